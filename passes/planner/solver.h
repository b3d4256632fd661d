/* passes/planner/solver.h - the optimal strategy: from quick plans to proven ones, under limits that are counted in
 * work.
 *
 * Runs inside reprise-planner. Every better plan and bound is handed to the events as it is found. Limits in nodes and
 * iterations make a run deterministic; the wall-clock limit is a last resort and is named as the reason when it
 * strikes. */
#ifndef REPRISE_PASSES_PLANNER_SOLVER_H
#define REPRISE_PASSES_PLANNER_SOLVER_H

#include "passes/planner/plan.h"

typedef struct SolveOptions {
  int64_t budget;        /* bytes */
  int64_t node_limit;    /* branch-and-bound nodes per integer program; 0: the default */
  double seconds;        /* 0: no wall-clock limit */
  const Plan *incumbent; /* a valid plan to start from, or NULL */
} SolveOptions;

typedef struct SolveEvents {
  void *context;
  void (*plan)(void *context, const Plan *plan);
  void (*bound)(void *context, double bound, PlanScope scope);
  void (*progress)(void *context, const char *what);
  bool (*interrupted)(void *context);
} SolveEvents;

typedef struct SolveResult {
  Plan *best;                 /* within the budget, or NULL */
  const char *reason;         /* why it ended, for people: "optimal", "infeasible", "work limit", … */
  bool proven_infeasible;     /* no schedule in this order fits */
  Plan *smallest;             /* without a best plan: the plan of smallest peak that is known */
  int64_t largest_impossible; /* no schedule in this order has a peak up to this; -1 when nothing is known */
} SolveResult;

SolveResult solve_plan(MemoryArena *arena, const PlanGraph *graph, const SolveOptions *options,
                       const SolveEvents *events);

#endif
