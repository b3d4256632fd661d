/* passes/planner/strategies.h - the simple strategies that the optimal one is compared with (docs/checkpointing.md).
 *
 * All of them choose which storages to keep; what is not kept is recomputed once, lazily (retain.h). When keeping
 * everything fits the budget, that is the plan of every strategy. */
#ifndef REPRISE_PASSES_PLANNER_STRATEGIES_H
#define REPRISE_PASSES_PLANNER_STRATEGIES_H

#include "passes/planner/plan.h"

typedef enum PlanStrategy {
  PLAN_STRATEGY_ILP,    /* the planner program (client.h) */
  PLAN_STRATEGY_NONE,   /* keep everything */
  PLAN_STRATEGY_BLOCKS, /* each repeated module is one segment, as gradient_checkpointing flags do; needs "module" */
  PLAN_STRATEGY_SQRT,   /* segments of equal bytes (Chen et al. 2016, arXiv:1604.06174), their number chosen to fit */
  PLAN_STRATEGY_SELECTIVE, /* recompute what ops of low cost per byte make; needs "op" */
  PLAN_STRATEGY_GREEDY,    /* drop by bytes per cost, largest first, until it fits */
  PLAN_STRATEGY_COUNT
} PlanStrategy;

const char *plan_strategy_name(PlanStrategy strategy);
bool plan_strategy_parse(const char *name, PlanStrategy *strategy);

/* The plan of a strategy other than ILP for a budget in bytes (0: none). When it has no plan within the budget the
 * result is its plan of smallest peak, which exceeds the budget: compare plan->peak. Returns NULL with *error set (in
 * the arena) when the graph lacks a key that the strategy needs (*usage true) or the source's constraints contradict it
 * (false). */
Plan *plan_by_strategy(MemoryArena *arena, const PlanGraph *graph, PlanStrategy strategy, int64_t budget,
                       const char **error, bool *usage);

#endif
