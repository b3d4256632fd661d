/* passes/planner/block_plan.h - planning of large graphs block by block: equal blocks are solved once.
 *
 * The forward pass is cut where few storages cross; what crosses is kept. For each kind of block (equal nodes, bytes,
 * costs, edges and stages) the choices of what to keep inside are tried once and leave a Pareto set of (bytes kept,
 * peak of the forward nodes, peak of the stages, cost). A shortest path over the sequence of blocks, with the bytes
 * kept so far as its state, takes one choice per block. */
#ifndef REPRISE_PASSES_PLANNER_BLOCK_PLAN_H
#define REPRISE_PASSES_PLANNER_BLOCK_PLAN_H

#include "passes/planner/plan.h"

typedef struct BlockPlan {
  RunList runs;          /* empty when no choice of blocks fits */
  int32_t blocks, kinds; /* kinds 0: too few blocks to try */
} BlockPlan;

/* The cheapest sequence of this form within the budget, with blocks of at least fewest_nodes forward nodes. */
BlockPlan block_plan(MemoryArena *arena, const PlanGraph *graph, int64_t budget, int32_t fewest_nodes);

#endif
