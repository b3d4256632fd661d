/* passes/planner/bound_groups.h - forward nodes that a lower bound may treat as one.
 *
 * u, made by node n, is read by one forward node c only and is no smaller than the w that c makes. Claim: some cheapest
 * schedule never holds u while a stage runs, and n runs where c does, if bytes between the stages are not counted.
 *   - Where u is held for a run of c, let c run at once and hold w in place of u, which is no larger: at the first
 *     execution of n that is possible as c ran then, too; at a further one if c reads nothing else that may be gone,
 *     that is, nothing that n does not read as well.
 *   - Or let n run later, just before c: if n reads nothing that c does not read, and nothing that is overwritten.
 * One of the two must hold. Further nodes join a group by the same argument with the group in place of c; its inputs
 * are those of all its nodes from outside. */
#ifndef REPRISE_PASSES_PLANNER_BOUND_GROUPS_H
#define REPRISE_PASSES_PLANNER_BOUND_GROUPS_H

#include "passes/planner/plan_graph.h"

typedef struct BoundGroup {
  int32_t root;    /* the last node of the group, whose outputs are those of the group */
  double cost;     /* of a run; in root's entry, like the inputs */
  int32_t *inputs; /* storages read from outside, without repetition */
  int32_t input_count;
} BoundGroup;

/* Per node; a node outside any group is its own root. */
BoundGroup *find_bound_groups(MemoryArena *arena, const PlanGraph *graph);

/* Not persistent, not to be kept, and made by a node that may run again. */
bool may_be_dropped(const PlanGraph *graph, int32_t storage);

#endif
