/* passes/packing/rank_evolution.h - evolves the rule by which a skyline chooses, for the problem at hand.
 *
 * The key of an item is a weighted sum of its features plus a correction of its own. A population of such rules breeds
 * by changes of the weights, which move every item a little, and of the corrections of items with similar lives;
 * fitness is the makespan. Genetic algorithms with random keys (Goncalves & Resende, "A biased random key genetic
 * algorithm for 2D and 3D bin packing problems", 2013) have a free key per item instead; with features a few hundred
 * packings find what otherwise takes tens of thousands. */
#ifndef REPRISE_PASSES_PACKING_RANK_EVOLUTION_H
#define REPRISE_PASSES_PACKING_RANK_EVOLUTION_H

#include "passes/packing/random.h"
#include "passes/packing/skyline.h"

typedef struct RankEvolution RankEvolution;

/* A new population. */
RankEvolution *rank_evolution_create(MemoryArena *arena, Problem *problem);

/* Goes on until the makespan of the problem is at most `goal` or after about `limit` units of work, added to *work.
 * False when the population is exhausted: its rules have grown alike and none gets better. */
bool rank_evolution_run(RankEvolution *evolution, Skyline *skyline, Random *random, int64_t goal, int64_t limit,
                        int64_t *work);

#endif
