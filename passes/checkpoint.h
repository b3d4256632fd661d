/* passes/checkpoint.h - rematerialization: clones and frees until the training step fits the budget
 * (docs/checkpointing.md).
 *
 * The pass states the planning problem of the keep-everything schedule, asks the planner for a plan, inserts the clones
 * it wants and packs the result. When the packed arena misses the budget by a factor, the planner is asked again with a
 * budget smaller by that factor, three times at most. */
#ifndef REPRISE_PASSES_CHECKPOINT_H
#define REPRISE_PASSES_CHECKPOINT_H

#include "passes/cost.h"
#include "passes/planner/client.h"
#include "passes/rematerialize.h"

enum { MOST_REPLANS = 3 };

typedef struct CheckpointOptions {
  PlanRequest request;    /* strategy, planner, limits, incumbent; its budget is set by the pass */
  const char *plan_input; /* a plan file of this problem to start from, or NULL */
} CheckpointOptions;

typedef struct Checkpoint {
  PlanningProblem *problem;
  Plan *keep_all;
  PlanAnswer answer;      /* of the last question; answer.plan == NULL: infeasible, or no plan within the limits */
  CompiledGraph compiled; /* graph NULL when there is no plan, or when packing missed the budget */
  int64_t asked;          /* budget of the last question, bytes */
  int replans;            /* questions after the first */
  int64_t packed;         /* smallest arena that was reached, bytes */
} Checkpoint;

/* keep_all: the training graph with its table, schedule and map. costs: microseconds per node id. budget: bytes of the
 * arena, -1: none. */
Checkpoint *checkpoint_graph(const CompiledGraph *keep_all, const double *costs, int64_t budget,
                             const CheckpointOptions *options, MemoryArena *arena);

#endif
