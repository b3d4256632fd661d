/* passes/packing/problem.h - what the algorithms of the engine work on: independent problems on a compressed time axis.
 *
 * Time is compressed to the maximal cliques of the interval graph ("points"): two items overlap iff they share a point.
 * Items that live at every point are stacked at the bottom, and the rest is split where nothing crosses; both keep
 * every optimum, so the makespan of the whole is the largest of base + makespan over the problems. */
#ifndef REPRISE_PASSES_PACKING_PROBLEM_H
#define REPRISE_PASSES_PACKING_PROBLEM_H

#include "passes/packing/packing.h"

/* An independent problem. Items are sorted by (start, end, origin). */
typedef struct Problem {
  int32_t count, points;
  int32_t *start, *end; /* [count] the item lives at points start <= p < end */
  int64_t *size;        /* [count] rounded bytes, > 0 */
  int32_t *origin;      /* [count] index of the buffer */
  int32_t *first_from;  /* [points + 1] the first item with start >= p */
  int64_t *load;        /* [points] bytes live at the point */
  double *heat;         /* [count] largest load over the item's life / lower_bound, in (0, 1] */
  int64_t lower_bound;  /* largest load */
  int64_t base;         /* bytes stacked below the problem */
  int64_t *offset;      /* [count] the best packing found so far, relative to base */
  int64_t makespan;     /* its height; INT64_MAX before the first */
} Problem;

typedef ARRAY(Problem) ProblemList;

/* Splits the buffers into problems and sets the offset of every buffer that is in none (no bytes, or stacked at the
 * bottom). *stacked is the largest end of those. */
ProblemList split_buffers(MemoryArena *arena, PackingBuffer *buffers, int64_t count, int64_t alignment,
                          int64_t *stacked);

/* The problem of the chosen items alone, at least one, with time compressed anew; origin[] are indices of `problem`. */
Problem extract_problem(MemoryArena *arena, const Problem *problem, const bool *chosen);

/* The largest end of all items at offset[count]. */
int64_t measure_makespan(const Problem *problem, const int64_t *offset);

/* Remembers offsets[count] as the best packing if its makespan is smaller. */
void offer_packing(Problem *problem, const int64_t *offset, int64_t makespan);

#endif
