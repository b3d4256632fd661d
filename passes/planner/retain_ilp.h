/* passes/planner/retain_ilp.h - the retain-or-recompute-once integer program (RI-ILP, docs/checkpointing.md).
 *
 * Decides for every storage made before the first stage between keeping it and recomputing it once, from some grid
 * point of the backward pass on. Memory rows are conservative; each integral solution is turned into a run sequence
 * whose true profile decides, and rows are added where it does not fit. */
#ifndef REPRISE_PASSES_PLANNER_RETAIN_ILP_H
#define REPRISE_PASSES_PLANNER_RETAIN_ILP_H

#include "passes/planner/mip.h"
#include "passes/planner/plan.h"

typedef struct RetainIlpOptions {
  int64_t budget;
  int32_t window; /* grid points before its demand at which a storage may be recomputed */
  int64_t nodes;  /* branch-and-bound nodes */
  int64_t work;   /* as in mip.h */
  double gap;     /* of the program itself */
  double cutoff;  /* solutions of this cost or more are of no use */
} RetainIlpOptions;

typedef struct RetainIlpEvents {
  void *context;
  /* A run sequence that keeps within the budget. The list is only valid during the call. */
  void (*found)(void *context, RunList runs);
  bool (*stop)(void *context);
} RetainIlpEvents;

/* Solves; found() is called for every solution that fits. The status is about the program, not about all schedules. */
MipStatus retain_ilp_solve(MemoryArena *arena, const PlanGraph *graph, const RetainIlpOptions *options,
                           const RetainIlpEvents *events);

#endif
