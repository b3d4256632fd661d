/* codegen/pictures/drawing.h - a plan as boxes and arrows, at three levels of detail, before any of it is laid out.
 *
 * full: a box per execution. block: repeated modules ("h.0", "h.1", ...) whose executions, sizes and decisions are the
 * same and which follow each other become one, with a count; updates become one box. module: one box per module (or
 * repeated block, or stretch of nodes where the graph names no modules) and class of execution. */
#ifndef REPRISE_CODEGEN_PICTURES_DRAWING_H
#define REPRISE_CODEGEN_PICTURES_DRAWING_H

#include "codegen/pictures/picture.h"

/* AUTOMATIC: the finest that stays readable. */
typedef enum Detail { DETAIL_AUTOMATIC, DETAIL_FULL, DETAIL_BLOCK, DETAIL_MODULE } Detail;

/* Clones are runs of forward nodes after the first. */
typedef enum RunClass { RUN_FORWARD, RUN_CLONE, RUN_BACKWARD, RUN_UPDATE, RUN_CLASS_COUNT } RunClass;

/* Where executions stand together: a module path; "" for none. */
typedef struct Unit {
  const char *name; /* as shown, "h.0 ... h.8" for a collapsed block */
  const char *path; /* of the module that it stands for, for nesting */
  int64_t times;    /* blocks drawn as this one */
} Unit;

typedef struct DrawnNode {
  int32_t unit;
  RunClass class;
  Fate fate;         /* of one run: kept before recomputed before freed; of several: that of most bytes */
  int64_t first_run; /* index into picture->planned.runs */
  int64_t runs;      /* executions drawn here */
  int64_t times;     /* blocks drawn as one; runs is for all of them */
  int64_t bytes[FATE_COUNT], outputs[FATE_COUNT]; /* of what its runs make, by what becomes of it */
  double cost;
} DrawnNode;

typedef enum EdgeKind { EDGE_FORWARD, EDGE_SAVED, EDGE_BACKWARD, EDGE_UPDATE, EDGE_AGAIN } EdgeKind;

typedef struct DrawnEdge {
  int32_t from, to;
  EdgeKind kind; /* AGAIN: from an original to its clone, no bytes */
  int64_t bytes, storages;
  const char *example; /* id of the first storage */
  bool ranked;         /* may take part in the order of ranks: these edges have no cycle */
} DrawnEdge;

typedef struct Drawing {
  const Picture *picture;
  Detail detail; /* what was drawn; never AUTOMATIC */
  ARRAY(Unit) units;
  ARRAY(DrawnNode) nodes;
  ARRAY(DrawnEdge) edges;
  int64_t
      gradient_bytes;   /* that the one box of updates reads: below full detail it has no arrows, they would hide all */
  int32_t *node_of_run; /* drawn node per run of picture->planned */
} Drawing;

Drawing *drawing_create(const Picture *picture, Detail detail);
RunClass run_class(const Picture *picture, const PictureRun *run);

/* ---- drawing_units.c ---- */

/* Per node of the graph: the module it is drawn in. Nodes of the backward pass that name none join that of what they
 * read. NULL where the graph names no modules at all. */
const char **adopt_modules(const Picture *picture);
/* Fills drawing->units and returns the unit of each run. counterpart[r] becomes the run that r is drawn as: itself, or
 * the run in the same place of the first of several equal blocks. */
int32_t *find_units(Drawing *drawing, int64_t *counterpart);
/* Length of the first part of a module path that ends in a number ("h.0" of "h.0.mlp"); 0 without. */
int64_t block_length(const char *path);

#endif
