/* passes/packing/holes.h - inserts items one by one between items that are already placed. */
#ifndef REPRISE_PASSES_PACKING_HOLES_H
#define REPRISE_PASSES_PACKING_HOLES_H

#include "passes/packing/problem.h"

typedef enum FitRule { FIT_BEST, FIT_FIRST } FitRule;

/* Places order[0 .. order_count) into the holes between the items with placed[item] set, whose offsets stay. FIT_BEST
 * takes the hole that leaves the least, FIT_FIRST the lowest; without a hole below `limit` the item goes on top.
 * Sets offset[] of those items, and returns the makespan of all. *work grows by the time it took. */
int64_t fill_holes(const Problem *problem, const bool *placed, const int32_t *order, int32_t order_count, FitRule rule,
                   int64_t limit, int64_t *offset, int64_t *work);

#endif
