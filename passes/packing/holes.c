/* passes/packing/holes.c - lists of what is placed by offset, scanned for the gaps over each item's life.
 *
 * One list of everything would make a pass quadratic, so there is one per block of time. Blocks of level k span 2h
 * points and begin at every multiple of h = width << k: a life of at most h points lies within one block. The last
 * level is a single block. */
#include "passes/packing/holes.h"

#include <stdlib.h>

/* Looks at placed items that take about a microsecond. */
enum { LOOKS_PER_UNIT = 512 };

typedef struct Placed {
  int64_t offset, top;
  int32_t start, end;
} Placed;

typedef ARRAY(Placed) PlacedList;

typedef struct Level {
  PlacedList *blocks;
  int32_t stride, count;
} Level;

typedef struct Holes {
  MemoryArena *arena;
  Level levels[32];
  int32_t level_count;
  int64_t looks;
} Holes;

static int compare_placed(const void *left, const void *right) {
  const Placed *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return (a->start > b->start) - (a->start < b->start);
}

/* Chooses the stride of the lowest level so that an item is in about sixteen of its blocks. */
static void create_levels(Holes *holes, const Problem *problem) {
  int64_t points = 0;
  int32_t stride = 32;
  for (int32_t i = 0; i < problem->count; i++) points += problem->end[i] - problem->start[i];
  while (stride < points / problem->count / 8) stride *= 2;
  for (bool last = false; !last; stride *= 2) {
    last = stride >= problem->points;
    int32_t count = last ? 1 : (problem->points - 1) / stride + 1;
    holes->levels[holes->level_count++] = (Level){NEW_ARRAY(holes->arena, PlacedList, count), stride, count};
  }
}

/* The blocks of a level that an item meets: [*first, *last]. */
static void find_blocks(const Level *level, Placed item, int32_t *first, int32_t *last) {
  *first = item.start / level->stride - 1;
  *last = (item.end - 1) / level->stride;
  if (*first < 0) *first = 0;
  if (*last >= level->count) *last = level->count - 1;
}

static void append_placed(Holes *holes, Placed item) {
  int32_t first, last;
  for (int32_t k = 0; k < holes->level_count; k++) {
    find_blocks(&holes->levels[k], item, &first, &last);
    for (int32_t b = first; b <= last; b++) array_push(holes->arena, &holes->levels[k].blocks[b], item);
  }
}

static void insert_into(Holes *holes, PlacedList *list, Placed item) {
  int64_t low = 0, high = list->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (list->items[middle].offset < item.offset)
      low = middle + 1;
    else
      high = middle;
  }
  array_push(holes->arena, list, item);
  memmove(list->items + low + 1, list->items + low, (size_t)(list->count - 1 - low) * sizeof item);
  list->items[low] = item;
  holes->looks += (list->count - low) / 2 + 16;
}

static void insert_placed(Holes *holes, Placed item) {
  int32_t first, last;
  for (int32_t k = 0; k < holes->level_count; k++) {
    find_blocks(&holes->levels[k], item, &first, &last);
    for (int32_t b = first; b <= last; b++) insert_into(holes, &holes->levels[k].blocks[b], item);
  }
}

/* The list of the smallest block that contains the life of an item. */
static const PlacedList *list_over(const Holes *holes, Placed item) {
  int32_t k = 0;
  while (k + 1 < holes->level_count && holes->levels[k].stride < item.end - item.start) k++;
  const Level *level = &holes->levels[k];
  return &level->blocks[level->count == 1 ? 0 : item.start / level->stride];
}

/* The offset for an item. */
static int64_t find_hole(Holes *holes, Placed item, int64_t size, FitRule rule, int64_t limit) {
  const PlacedList *list = list_over(holes, item);
  int64_t reach = 0, best = -1, least_left = INT64_MAX;
  holes->looks += list->count;
  for (int64_t k = 0; k < list->count; k++) {
    const Placed *other = &list->items[k];
    if (other->start >= item.end || other->end <= item.start) continue;
    int64_t left = other->offset - reach - size;
    if (left >= 0 && left < least_left) {
      best = reach;
      least_left = left;
      if (rule == FIT_FIRST || left == 0) return best;
    }
    if (other->top > reach) reach = other->top;
  }
  int64_t left = limit - reach - size;
  return best >= 0 && (left < 0 || left >= least_left) ? best : reach;
}

int64_t fill_holes(const Problem *problem, const bool *placed, const int32_t *order, int32_t order_count, FitRule rule,
                   int64_t limit, int64_t *offset, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  Holes holes = {.arena = arena};
  Placed *fixed = NEW_ARRAY(arena, Placed, problem->count);
  int32_t count = 0;
  create_levels(&holes, problem);
  for (int32_t i = 0; i < problem->count; i++)
    if (placed[i])
      fixed[count++] = (Placed){offset[i], offset[i] + problem->size[i], problem->start[i], problem->end[i]};
  qsort(fixed, (size_t)count, sizeof *fixed, compare_placed);
  int64_t makespan = 0;
  for (int32_t k = 0; k < count; k++) {
    append_placed(&holes, fixed[k]);
    if (fixed[k].top > makespan) makespan = fixed[k].top;
  }
  for (int32_t k = 0; k < order_count; k++) {
    int32_t i = order[k];
    Placed item = {0, 0, problem->start[i], problem->end[i]};
    item.offset = offset[i] = find_hole(&holes, item, problem->size[i], rule, limit);
    item.top = item.offset + problem->size[i];
    if (item.top > makespan) makespan = item.top;
    insert_placed(&holes, item);
  }
  memory_arena_destroy(arena);
  *work += holes.looks / LOOKS_PER_UNIT + problem->count / 8 + 1;
  return makespan;
}
