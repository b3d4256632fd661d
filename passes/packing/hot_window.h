/* passes/packing/hot_window.h - packs the items that live where memory is full, then the others into the holes. */
#ifndef REPRISE_PASSES_PACKING_HOT_WINDOW_H
#define REPRISE_PASSES_PACKING_HOT_WINDOW_H

#include "passes/packing/problem.h"

/* Items of heat >= `heat` are packed alone, which splits them into small problems, and stay; the others are inserted
 * by several rules. Those that end above `target` join the hot ones and it starts anew, until the limit of work. */
void pack_hot_window(Problem *problem, double heat, int64_t target, int64_t limit, int64_t *work);

#endif
