/* tests/passes/arena_run.h - runs a graph node by node out of one block of bytes, as an emitted program would. */
#ifndef REPRISE_TESTS_PASSES_ARENA_RUN_H
#define REPRISE_TESTS_PASSES_ARENA_RUN_H

#include "passes/passes.h"
#include "random_graph.h"

/* From the pattern of fill_pattern(): follows the schedule, reads and writes values where table and map say, fills
 * freed bytes with NaN. Results as of evaluate_graph(): outputs and gradients are taken right after they are made. */
Results run_from_arena(MemoryArena *arena, const Graph *graph, const StorageTable *table, const Schedule *schedule,
                       const MemoryMap *map);

#endif
