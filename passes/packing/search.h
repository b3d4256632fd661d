/* passes/packing/search.h - the alternation of all algorithms on one problem, in rounds of growing effort. */
#ifndef REPRISE_PASSES_PACKING_SEARCH_H
#define REPRISE_PASSES_PACKING_SEARCH_H

#include "passes/packing/problem.h"

typedef struct Search Search;

/* A search that improves the best packing of a problem, which must have one. `seed` is of its random numbers. It has
 * memory of its own beside the arena, given back by search_release(). */
Search *search_create(MemoryArena *arena, Problem *problem, uint64_t seed);
void search_release(Search *search);

/* Runs the next round, which stops at once when the makespan of the problem is at most `goal` and never spends much
 * more than `limit` units of work, added to *work. Windows: also pack hot windows alone. */
void search_round(Search *search, bool windows, int64_t goal, int64_t limit, int64_t *work);

/* No packing is smaller than this: the lower bound of the problem, or what the search has proven beyond it. */
int64_t search_bound(const Search *search);

#endif
