/* frontend/driver/plan_report.h - what people are told about a plan, or about why there is none. */
#ifndef REPRISE_FRONTEND_DRIVER_PLAN_REPORT_H
#define REPRISE_FRONTEND_DRIVER_PLAN_REPORT_H

#include "frontend/driver/options.h"
#include "passes/checkpoint.h"

/* A problem with its answer: of a model (arena and replans known) or of a graph file. */
typedef struct PlanView {
  const char *name;
  const PlanGraph *graph;
  const Plan *keep_all;
  PlanAnswer answer;
  int64_t budget;           /* bytes; -1: none */
  int64_t arena_bytes;      /* after packing; -1: a graph file, which is not packed */
  int replans;              /* times the planner was asked again because packing missed */
  int64_t keep_all_arena;   /* -1 likewise */
  int64_t evaluation_bytes; /* arena of the evaluation graph, which no plan changes; 0: there is none */
} PlanView;

/* What one percent of memory is worth: time saved with more, added with less, in the graph's unit; NaN: no plan there.
 */
typedef struct ShadowPrice {
  int64_t step; /* bytes */
  double saved, added;
} ShadowPrice;

/* The verdict, the figures, the anatomy before and after, and the decisions. */
void print_plan(FILE *file, MemoryArena *arena, const PlanView *view, const ShadowPrice *price, bool every_storage);
/* The plan file of a view: its plan, with the budget that it was made for, also where keeping everything fits. */
char *view_plan_text(MemoryArena *arena, const PlanView *view, bool compact);
/* The plan file's object with "name", "arena", "keep_all", "shadow_price" and the decisions' sources added. */
char *plan_report_json(MemoryArena *arena, const PlanView *view, const ShadowPrice *price);
/* Why nothing fits, or that nothing was found: smallest budget with a plan, largest proven impossible, anatomy and
 * largest storages at the peak, advice. */
void print_infeasible(FILE *file, MemoryArena *arena, const PlanView *view);
/* The same figures as an object; "status" is "infeasible", or "unknown" where none was found and none excluded. */
char *infeasible_json(MemoryArena *arena, const PlanView *view);

#endif
