/* codegen/pictures/svg_axis.h - what our charts share: scales, ticks, colours. */
#ifndef REPRISE_CODEGEN_PICTURES_SVG_AXIS_H
#define REPRISE_CODEGEN_PICTURES_SVG_AXIS_H

#include "codegen/pictures/pictures.h"
#include "codegen/text.h"

/* A linear scale from values to pixels. */
typedef struct Axis {
  double from, to;   /* values */
  double start, end; /* pixels */
} Axis;

double axis_place(const Axis *axis, double value);
/* A distance between ticks that gives about `count` of them: 1, 2 or 5 times a power of ten. */
double decimal_step(double range, int count);
/* The same for bytes: a power of two. */
int64_t byte_step(int64_t range, int count);
/* "3 GiB", "1.5 MiB": for ticks. */
char *format_tick(MemoryArena *arena, int64_t bytes);

/* A cost at a tick: without the zeros that format_cost() adds. whole: the end of the axis. */
char *format_cost_tick(MemoryArena *arena, const PlanGraph *graph, double cost, double whole);

/* Opens an <svg> of that size with title and description (of people, escaped here). */
void svg_open(Text *svg, int width, int height, bool embedded, const char *title, const char *extra);
void svg_close(Text *svg);

#endif
