/* passes/planner/exact.h - exact planning of small graphs by search over (nodes executed, storages live).
 *
 * Uniform-cost search: a state is the number of first executions done and the set of live storages; an action runs the
 * next node, runs an earlier one again, or frees a storage. Every schedule whose first executions keep the order of the
 * graph is a path, so the cheapest path is the optimum of scope `order`, and the cost of the cheapest open state of an
 * unfinished search is a lower bound. */
#ifndef REPRISE_PASSES_PLANNER_EXACT_H
#define REPRISE_PASSES_PLANNER_EXACT_H

#include "passes/planner/plan.h"

typedef enum ExactStatus {
  EXACT_OPTIMAL,    /* runs is an optimal sequence */
  EXACT_INFEASIBLE, /* no schedule in this order fits */
  EXACT_LIMIT,      /* too many states; bound holds */
  EXACT_TOO_LARGE   /* more storages than a state can hold; nothing was searched */
} ExactStatus;

typedef struct ExactResult {
  ExactStatus status;
  RunList runs;
  double bound;   /* lower bound on the cost of any schedule in this order; base cost at least */
  int64_t states; /* states reached */
} ExactResult;

/* Cheapest schedule within budget bytes, looking at no more than state_limit states. */
ExactResult exact_plan(MemoryArena *arena, const PlanGraph *graph, int64_t budget, int64_t state_limit);
/* The smallest budget for which a schedule in this order exists: its runs and, in *budget, its peak. With EXACT_LIMIT
 * *budget is a proven lower bound on it. */
ExactResult exact_smallest(MemoryArena *arena, const PlanGraph *graph, int64_t state_limit, int64_t *budget);

#endif
