/* passes/planner/retain_model.h - what the retain-or-recompute-once program (retain_ilp.h) is built from.
 *
 * Letters as in docs/checkpointing.md: v a storage made before the first stage, m_v its bytes, D_v the stages that read
 * it, a_v = min D_v, b_v the last stage at which it must exist, h_v the grid point of a_v. The grid is the set of all
 * a_v: recomputation starts only there. Stages are node numbers of the graph. */
#ifndef REPRISE_PASSES_PLANNER_RETAIN_MODEL_H
#define REPRISE_PASSES_PLANNER_RETAIN_MODEL_H

#include "passes/planner/plan.h"

typedef struct RetainStorage {
  bool member;          /* made before the first stage by some node and not persistent */
  bool fixed;           /* kept whatever happens (result, pinned, or unable to run again) if it is needed at all */
  bool dropped;         /* the source says recompute */
  bool needed;          /* D_v is not empty */
  int32_t first, last;  /* a_v and b_v; -1 where there is none */
  int32_t forward_last; /* last reader before the first stage, or the producer */
  int32_t home;         /* h_v: grid point of a_v; of b_v where D_v is empty; -1 */
  int32_t start;        /* first grid point at which it may be recomputed (home - window) */
} RetainStorage;

typedef struct RetainNode {
  int32_t group;     /* node into which this one is fused, itself when not fused; -1: never runs again */
  double cost;       /* of the group, at its last node */
  int64_t transient; /* largest bytes of the group's own outputs and workspace while it runs */
  int32_t *inputs;   /* member storages that the group reads from outside */
  int32_t input_count;
} RetainNode;

typedef struct RetainModel {
  MemoryArena *arena;
  const PlanGraph *graph;
  RetainStorage *storages; /* by storage */
  RetainNode *nodes;       /* by node; for nodes before the first stage */
  int32_t *grid;           /* stages at which recomputation may start, ascending */
  int32_t grid_count;
  int32_t *grid_of;   /* by stage - first_stage: index of the last grid point at or before it, -1 */
  int64_t *base;      /* by node: bytes live while it runs that no choice changes: G_t, live_k */
  int64_t *base_idle; /* by stage: the same just before the node runs, without its outputs and workspace */
} RetainModel;

RetainModel *retain_model_create(MemoryArena *arena, const PlanGraph *graph, int32_t window);

#endif
