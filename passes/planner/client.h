/* passes/planner/client.h - asking for a plan: the simple strategies in the process, the optimal one by running the
 * planner program and keeping watch over it.
 *
 * Every plan that the planner prints is replayed here before it is believed. Whatever becomes of the planner - missing,
 * crashed, hanging, out of memory, printing nonsense - the answer is the best valid plan that there is, and says so. */
#ifndef REPRISE_PASSES_PLANNER_CLIENT_H
#define REPRISE_PASSES_PLANNER_CLIENT_H

#include "passes/planner/strategies.h"

typedef struct PlanRequest {
  int64_t budget; /* bytes, > 0 */
  PlanStrategy strategy;
  const char *planner;   /* command of the planner program; NULL: reprise-planner beside this program, else in PATH */
  const Plan *incumbent; /* a valid plan to start from, or NULL */
  int64_t nodes;         /* branch-and-bound nodes; 0: the planner's default */
  double seconds;        /* wall-clock limit given to the planner; 0: none */
  double patience;       /* seconds after which a planner that has not ended is stopped; 0: 600 */
  int64_t memory;        /* bytes the planner may use; 0: 4 GiB */
  /* Called for every progress line and better plan (text for people); NULL: nobody listens. */
  void (*progress)(void *context, const char *text);
  void *context;
} PlanRequest;

typedef struct PlanAnswer {
  Plan *plan;                 /* within the budget, valid by replay; NULL when there is none */
  ExitCode exit;              /* EXIT_OK with a plan; else USAGE, BUDGET_INFEASIBLE, NO_PLAN, INTERRUPTED */
  const char *note;           /* what went wrong with the planner or the request, for people; NULL when nothing did */
  Plan *smallest;             /* without a plan: the valid plan of smallest peak that is known, or NULL */
  int64_t largest_impossible; /* no schedule has a peak up to this; -1 when nothing is known */
} PlanAnswer;

PlanAnswer plan_request(MemoryArena *arena, const PlanGraph *graph, const PlanRequest *request);

#endif
