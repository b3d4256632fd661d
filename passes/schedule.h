/* passes/schedule.h - from an order of nodes to a schedule. */
#ifndef REPRISE_PASSES_SCHEDULE_H
#define REPRISE_PASSES_SCHEDULE_H

#include "passes/passes.h"

/* The schedule that runs these nodes in this order: outputs take the bytes of inputs that end where the table permits
 * (the first pair in table order), everything is freed right after its last use, results stay. Peak and anatomy are
 * set by replay; dies when the order breaks the counting rules. */
Schedule *schedule_runs(const Graph *graph, const StorageTable *table, const NodeId *order, int64_t count,
                        MemoryArena *arena);

#endif
