/* codegen/pictures/report.h - one HTML file that shows everything about a plan, without network and without scripts
 * needed to read it. */
#ifndef REPRISE_CODEGEN_PICTURES_REPORT_H
#define REPRISE_CODEGEN_PICTURES_REPORT_H

#include "codegen/cuda.h"
#include "codegen/pictures/curves.h"
#include "codegen/pictures/pictures.h"
#include "codegen/text.h"

typedef struct ReportSource {
  const char *path, *text; /* path as the nodes' sources name it */
} ReportSource;

typedef struct Report {
  const Picture *picture;
  const Curves *curves;   /* NULL: none were solved */
  const char *graph;      /* SVG of `dot`; NULL: see note */
  const char *graph_note; /* why there is no graph */
  ARRAY(ReportSource) sources;
  const CudaProgram *cuda; /* kernels of a CUDA program and what they take; NULL: none were compiled */
  const CudaImages *images;
} Report;

char *report_html(MemoryArena *arena, const Report *report);

/* Lays a graph out with the program `dot`, if it is installed, within `seconds` of wall-clock time. Returns SVG without
 * XML prologue, or NULL with *note set to the reason. */
char *layout_graph(MemoryArena *arena, const char *dot, int seconds, const char **note);

/* The parts of "path:line:column"; false when a text is not one. */
bool split_source(MemoryArena *arena, const char *source, const char **path, int *line);

/* ---- report_kernels.c ---- */

/* Every kernel with its first node, a row each: registers, shared and spilled bytes on each architecture. */
void append_kernel_table(Text *html, const CudaProgram *program, const CudaImages *images);

/* ---- report_table.c ---- */

/* Every storage, a row each. */
void append_storage_table(Text *html, const Picture *picture);
/* Source files with the decisions of every line in the margin. */
void append_sources(Text *html, const Report *report);

#endif
