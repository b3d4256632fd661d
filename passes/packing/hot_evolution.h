/* passes/packing/hot_evolution.h - evolves rules for the items that live where memory is full and inserts the others.
 */
#ifndef REPRISE_PASSES_PACKING_HOT_EVOLUTION_H
#define REPRISE_PASSES_PACKING_HOT_EVOLUTION_H

#include "passes/packing/problem.h"
#include "passes/packing/random.h"

typedef struct HotEvolution HotEvolution;

/* It has memory of its own beside the arena, given back by hot_evolution_release(). */
HotEvolution *hot_evolution_create(MemoryArena *arena, Problem *problem);
void hot_evolution_release(HotEvolution *evolution);

/* Goes on from the last run, and with a new population whenever one is exhausted. Stops when the makespan of the
 * problem is at most `goal` or after about `limit` units of work, added to *work. */
void hot_evolution_run(HotEvolution *evolution, Random *random, int64_t goal, int64_t limit, int64_t *work);

#endif
