/* passes/planner/bound.h - lower bounds on the cost of every schedule whose first executions keep the order of the
 * graph.
 *
 * Phase bound (docs/checkpointing.md): at chosen moments p_1 < … < p_K (while the first execution of node p_k runs)
 * S_{k,v} says whether v is live, R_{k,n} whether n runs again between p_k and p_{k+1}, Q_{k,n} whether it does so at
 * any time from p_k on. What is read in a phase is live at its start or made in it, so  S_{k,v} + R_{k,n(v)} >= 1  for
 * v read, R_{k,w} <= S_{k,u} + R_{k,n(u)}  for inputs u of w, the same with Q for all that follows p_k,  Q_k <= R_k +
 * Q_{k+1}, S_{k+1,v} <= S_{k,v} + R_{k,n(v)}, and the bytes at each p_k fit the budget. The least Σ c_n R_{k,n} of this
 * program, and of any relaxation of it, is a bound. */
#ifndef REPRISE_PASSES_PLANNER_BOUND_H
#define REPRISE_PASSES_PLANNER_BOUND_H

#include "passes/planner/plan.h"

/* A budget that no schedule in this order can go below: the bytes that some node needs whatever is decided. */
int64_t bound_memory(MemoryArena *arena, const PlanGraph *graph);

typedef struct BoundOptions {
  int64_t budget;
  int32_t phases;
  int64_t nodes, work; /* limits of the integer program (mip.h) */
  double target;       /* stop when the bound reaches this cost */
  bool (*stop)(void *context);
  void *context;
} BoundOptions;

typedef struct BoundWork {
  int64_t all, root; /* as in mip.h; root: of the relaxation alone */
} BoundWork;

/* The bound on the whole cost (base cost included); HUGE_VAL when it proves that no schedule in this order fits. *work
 * receives what was done of options->work. */
double bound_cost(MemoryArena *arena, const PlanGraph *graph, const BoundOptions *options, BoundWork *work);

#endif
