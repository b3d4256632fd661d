/* codegen/pictures/curves.h - overhead against budget, for every strategy. */
#ifndef REPRISE_CODEGEN_PICTURES_CURVES_H
#define REPRISE_CODEGEN_PICTURES_CURVES_H

#include "passes/planner/strategies.h"

/* One strategy at one budget; plan NULL: nothing fits. */
typedef struct CurvePoint {
  int64_t budget, arena_bytes; /* arena_bytes -1: not packed */
  const Plan *plan;
  const char *note;
} CurvePoint;

typedef struct Curves {
  const char *name;
  const PlanGraph *graph;
  int64_t keep_all_peak;
  int64_t count; /* budgets, ascending */
  int64_t *budgets;
  CurvePoint *points;         /* [strategy * count + budget] */
  int64_t largest_impossible; /* proven; -1: nothing is known */
  int64_t smallest;           /* smallest budget with a known plan */
  /* A budget of special interest, -1: none; with its plan and what `step` bytes more save and less add (NaN: no plan).
   */
  int64_t chosen, step;
  const Plan *chosen_plan;
  double saved, added;
} Curves;

/* The budget where the curve of the best strategy bends most: the point farthest below the line between its ends, both
 * axes scaled to 1 (Satopaa et al. 2011, "Finding a Kneedle in a Haystack"). Index into budgets, -1 without a bend. */
int64_t curve_knee(const Curves *curves);
/* "3.1 MiB more saves 1.2 ms; less costs 4.1 ms": what a step of memory is worth at the chosen budget. */
char *shadow_price_text(MemoryArena *arena, const Curves *curves);
/* All curves as steps: a plan holds for every larger budget too. embedded: see timeline_svg(). */
char *curves_svg(MemoryArena *arena, const Curves *curves, bool embedded);

#endif
