/* passes/packing/hot_window.h - packs the items that live where memory is full, then the others into the holes. */
#ifndef REPRISE_PASSES_PACKING_HOT_WINDOW_H
#define REPRISE_PASSES_PACKING_HOT_WINDOW_H

#include "passes/packing/problem.h"
#include "passes/packing/random.h"

typedef struct HotWindow {
  Problem *problem;
  bool *hot;       /* [count] */
  int64_t *offset; /* [count] of the hot items, and of the cold ones once they are inserted */
  int64_t target;  /* bytes that all should end below */
  int64_t stop;    /* units of work at which to stop */
  int64_t *trial;  /* working memory */
  int32_t *order, *moved;
} HotWindow;

/* Items of heat >= `heat` are hot; offsets, target and stop are still to be set. */
HotWindow hot_window_create(MemoryArena *arena, Problem *problem, double heat);

/* Inserts the cold items into the holes between the hot ones by several rules, each a few times with the late items
 * first, and keeps the best. Offers it to the problem and returns its makespan. */
int64_t insert_cold_items(HotWindow *window, int64_t *work);

/* Makes the cold items that end above the target hot. Returns how many they are. */
int32_t heat_late_items(HotWindow *window);

/* Items of heat >= `heat` are packed alone, which splits them into small problems, and stay; the others are inserted.
 * Those that end above `target` join the hot ones and it starts anew, until the limit of work. */
void pack_hot_window(Problem *problem, double heat, int64_t target, int64_t limit, Random *random, int64_t *work);

#endif
