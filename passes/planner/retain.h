/* passes/planner/retain.h - run sequences in which each storage is kept, or recomputed once and held until its last
 * use.
 *
 * Given which storages made before the first stage are kept, the lazy sequence is unique: a stage that needs a storage
 * that is gone runs its node again just before, and the nodes of what is missing for that, in the order of the graph;
 * what was made again stays until its last use. */
#ifndef REPRISE_PASSES_PLANNER_RETAIN_H
#define REPRISE_PASSES_PLANNER_RETAIN_H

#include "passes/planner/plan.h"

/* May the planner choose between keeping and recomputing this storage? Made before the first stage by a node that may
 * run again, not a result, not decided by the source. */
bool retain_is_choice(const PlanGraph *graph, int32_t storage);
/* Marks every storage as kept, except those that the source says to recompute. */
bool *retain_all(MemoryArena *arena, const PlanGraph *graph);

/* The lazy sequence. Entries of kept[] that cannot be honoured are corrected: a storage whose node may not run again
 * where it is needed becomes kept. Returns an empty list and sets *storage when such a storage must be recomputed by
 * the source's constraint. */
RunList retain_runs(MemoryArena *arena, const PlanGraph *graph, bool *kept, int32_t *storage);

#endif
