/* passes/packing/check.c - the independent checker: a sweep over time with the live buffers in a list by offset. */
#include <stdlib.h>

#include "passes/packing/packing.h"

typedef struct Event {
  int64_t time, buffer;
  bool birth; /* deaths come first at equal times: lives are half-open */
} Event;

static int compare_events(const void *left, const void *right) {
  const Event *a = left, *b = right;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  if (a->birth != b->birth) return a->birth ? 1 : -1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* A treap of the live buffers, by offset. Live buffers never overlap, so only the neighbours of a new one matter.
 * Links are indices of buffers + 1; 0 is none. */
typedef struct Live {
  const PackingBuffer *buffers;
  int64_t *left, *right;
  int64_t root;
} Live;

static uint64_t heap_key(int64_t buffer) { return ((uint64_t)buffer + 1) * UINT64_C(0x9E3779B97F4A7C15); }

/* Splits a treap at an offset: smaller offsets to *below, the others to *above. Iterative: links are followed down. */
static void live_split(Live *live, int64_t tree, int64_t offset, int64_t *below, int64_t *above) {
  while (tree) {
    if (live->buffers[tree - 1].offset < offset) {
      *below = tree;
      below = &live->right[tree - 1];
      tree = *below;
    } else {
      *above = tree;
      above = &live->left[tree - 1];
      tree = *above;
    }
  }
  *below = *above = 0;
}

static int64_t *live_link(Live *live, int64_t buffer, int64_t *neighbour_below, int64_t *neighbour_above) {
  int64_t *link = &live->root, *place = NULL;
  int64_t offset = live->buffers[buffer].offset;
  *neighbour_below = *neighbour_above = -1;
  while (*link) {
    int64_t other = *link - 1;
    if (!place && heap_key(other) > heap_key(buffer)) place = link;
    if (live->buffers[other].offset < offset) {
      *neighbour_below = other;
      link = &live->right[other];
    } else {
      *neighbour_above = other;
      link = &live->left[other];
    }
  }
  return place ? place : link;
}

static void live_insert(Live *live, int64_t *place, int64_t buffer) {
  int64_t tree = *place;
  *place = buffer + 1;
  live_split(live, tree, live->buffers[buffer].offset, &live->left[buffer], &live->right[buffer]);
}

static void live_remove(Live *live, int64_t buffer) {
  int64_t *link = &live->root;
  while (*link != buffer + 1)
    link = live->buffers[*link - 1].offset < live->buffers[buffer].offset ? &live->right[*link - 1]
                                                                          : &live->left[*link - 1];
  int64_t low = live->left[buffer], high = live->right[buffer];
  while (low && high) {
    if (heap_key(low - 1) < heap_key(high - 1)) {
      *link = low;
      link = &live->right[low - 1];
      low = *link;
    } else {
      *link = high;
      link = &live->left[high - 1];
      high = *link;
    }
  }
  *link = low ? low : high;
}

static bool overlap(const PackingBuffer *a, const PackingBuffer *b) {
  return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static PackingCheck check_overlaps(MemoryArena *arena, const PackingBuffer *buffers, int64_t count) {
  Event *events = NEW_ARRAY(arena, Event, 2 * count);
  int64_t event_count = 0;
  for (int64_t i = 0; i < count; i++) {
    if (buffers[i].size == 0) continue;
    events[event_count++] = (Event){buffers[i].lower, i, true};
    events[event_count++] = (Event){buffers[i].upper, i, false};
  }
  qsort(events, (size_t)event_count, sizeof *events, compare_events);
  Live live = {buffers, NEW_ARRAY(arena, int64_t, count), NEW_ARRAY(arena, int64_t, count), 0};
  for (int64_t e = 0; e < event_count; e++) {
    int64_t buffer = events[e].buffer, below, above;
    if (!events[e].birth) {
      live_remove(&live, buffer);
      continue;
    }
    int64_t *place = live_link(&live, buffer, &below, &above);
    if (below >= 0 && overlap(&buffers[below], &buffers[buffer])) return (PackingCheck){PACKING_OVERLAP, below, buffer};
    if (above >= 0 && overlap(&buffers[above], &buffers[buffer])) return (PackingCheck){PACKING_OVERLAP, above, buffer};
    live_insert(&live, place, buffer);
  }
  return (PackingCheck){PACKING_VALID, -1, -1};
}

PackingCheck check_packing(const PackingBuffer *buffers, int64_t count, int64_t alignment, int64_t makespan) {
  int64_t largest_end = 0;
  if (alignment < 1) alignment = 1;
  for (int64_t i = 0; i < count; i++) {
    const PackingBuffer *buffer = &buffers[i];
    if (buffer->offset < 0) return (PackingCheck){PACKING_NEGATIVE, i, -1};
    if (buffer->offset % alignment != 0) return (PackingCheck){PACKING_MISALIGNED, i, -1};
    if (buffer->size > makespan || buffer->offset > makespan - buffer->size)
      return (PackingCheck){PACKING_BEYOND, i, -1};
    if (buffer->offset + buffer->size > largest_end) largest_end = buffer->offset + buffer->size;
  }
  if (makespan - largest_end >= alignment) return (PackingCheck){PACKING_NEVER_TOUCHED, -1, -1};
  MemoryArena *arena = memory_arena_create();
  PackingCheck check = check_overlaps(arena, buffers, count);
  memory_arena_destroy(arena);
  return check;
}
