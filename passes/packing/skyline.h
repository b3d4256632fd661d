/* passes/packing/skyline.h - one greedy packing by a skyline: the heart of every search in the engine.
 *
 * The skyline is the height reached at every point, as segments of equal height. Take the lowest segment [A, B): the
 * candidates are unplaced items that lie within it. Place the candidate of best rank that covers a pivot point, on the
 * segment; without candidates raise the segment to its lower neighbour and merge. */
#ifndef REPRISE_PASSES_PACKING_SKYLINE_H
#define REPRISE_PASSES_PACKING_SKYLINE_H

#include "passes/packing/problem.h"

/* Which point of the lowest segment must be covered next. */
typedef enum Pivot {
  PIVOT_FULLEST,  /* the point with the most bytes still to be placed: the least slack */
  PIVOT_LEFTMOST, /* the point where the segment begins */
  PIVOT_RIGHTMOST,
  PIVOT_NONE, /* any point */
  PIVOT_COUNT
} Pivot;

typedef struct Skyline Skyline;

/* The working memory for packings of a problem, reused by every run. */
Skyline *skyline_create(MemoryArena *arena, const Problem *problem);

/* Packs all items into offset[count]. order[count] lists items by rank, the best first. Gives up when the makespan
 * would exceed `limit` (INT64_MAX: never). Returns the makespan, or INT64_MAX after giving up. *work grows by the
 * number of steps. */
int64_t skyline_pack(Skyline *skyline, const int32_t *order, Pivot pivot, int64_t limit, int64_t *offset,
                     int64_t *work);

#endif
