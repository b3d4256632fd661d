/* passes/planner/replay.h - the counting rules of docs/design.md, section 6, executed: the judge of every plan. */
#ifndef REPRISE_PASSES_PLANNER_REPLAY_H
#define REPRISE_PASSES_PLANNER_REPLAY_H

#include "passes/planner/plan.h"

typedef struct Replay {
  int64_t peak;                     /* largest sum of live bytes */
  int64_t peak_step;                /* the step that reaches it first; -1 when no step raises the persistent bytes */
  int64_t anatomy[PLAN_ROLE_COUNT]; /* the peak by role; scratch of dropped outputs and workspace count as workspace */
  double cost;
  int32_t *runs;      /* executions per node */
  int64_t *live;      /* per step: bytes while the node runs, or after the free */
  bool *live_at_peak; /* per storage: live while the peak step runs, its outputs included */
  ARRAY(const char *) faults;
} Replay;

/* Replays every step, going on after a fault. A plan is valid exactly when there are no faults. */
Replay *replay_plan(MemoryArena *arena, const PlanGraph *graph, const Plan *plan);
/* The claims of a plan (peak, cost, base_cost, lower_bound, status, budget) against its replay; appends to faults. */
void replay_check_claims(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, Replay *replay);

#endif
