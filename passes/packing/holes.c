/* passes/packing/holes.c - a list of what is placed by offset, scanned for the gaps over each item's life. */
#include "passes/packing/holes.h"

#include <stdlib.h>

/* Looks at placed items that take about a microsecond. */
enum { LOOKS_PER_UNIT = 512 };

typedef struct Placed {
  int64_t offset, top;
  int32_t start, end;
} Placed;

static int compare_placed(const void *left, const void *right) {
  const Placed *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return (a->start > b->start) - (a->start < b->start);
}

/* The offset for an item. */
static int64_t find_hole(const Placed *list, int32_t count, Placed item, int64_t size, FitRule rule, int64_t limit) {
  int64_t reach = 0, best = -1, least_left = INT64_MAX;
  for (int32_t k = 0; k < count; k++) {
    if (list[k].start >= item.end || list[k].end <= item.start) continue;
    int64_t left = list[k].offset - reach - size;
    if (left >= 0 && left < least_left) {
      best = reach;
      least_left = left;
      if (rule == FIT_FIRST || left == 0) return best;
    }
    if (list[k].top > reach) reach = list[k].top;
  }
  int64_t left = limit - reach - size;
  return best >= 0 && (left < 0 || left >= least_left) ? best : reach;
}

static void insert_placed(Placed *list, int32_t count, Placed item) {
  int32_t low = 0, high = count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (list[middle].offset < item.offset)
      low = middle + 1;
    else
      high = middle;
  }
  memmove(list + low + 1, list + low, (size_t)(count - low) * sizeof *list);
  list[low] = item;
}

int64_t fill_holes(const Problem *problem, const bool *placed, const int32_t *order, int32_t order_count, FitRule rule,
                   int64_t limit, int64_t *offset, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  Placed *list = NEW_ARRAY(arena, Placed, problem->count);
  int32_t count = 0;
  int64_t makespan = 0, looks = 0;
  for (int32_t i = 0; i < problem->count; i++) {
    if (!placed[i]) continue;
    list[count++] = (Placed){offset[i], offset[i] + problem->size[i], problem->start[i], problem->end[i]};
    if (offset[i] + problem->size[i] > makespan) makespan = offset[i] + problem->size[i];
  }
  qsort(list, (size_t)count, sizeof *list, compare_placed);
  for (int32_t k = 0; k < order_count; k++) {
    int32_t i = order[k];
    Placed item = {0, 0, problem->start[i], problem->end[i]};
    item.offset = offset[i] = find_hole(list, count, item, problem->size[i], rule, limit);
    item.top = item.offset + problem->size[i];
    if (item.top > makespan) makespan = item.top;
    looks += count;
    insert_placed(list, count++, item);
  }
  memory_arena_destroy(arena);
  *work += looks / LOOKS_PER_UNIT + order_count / 8 + 1;
  return makespan;
}
