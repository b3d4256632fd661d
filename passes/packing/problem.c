/* passes/packing/problem.c - compression of time, stacking and splitting. */
#include "passes/packing/problem.h"

#include <stdlib.h>

/* A buffer on its way into a problem. Times are ranks of distinct times. */
typedef struct Piece {
  int32_t lower, upper, origin;
  int64_t size;
} Piece;

/* A set of pieces that is still to be split. */
typedef struct Part {
  Piece *pieces;
  int32_t count, level;
  int64_t base;
} Part;

/* Stacking can uncover a split and a split can uncover more to stack; nests deeper than this are left to the search. */
enum { MOST_LEVELS = 40 };

static int compare_times(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int compare_pieces(const void *left, const void *right) {
  const Piece *a = left, *b = right;
  if (a->lower != b->lower) return a->lower < b->lower ? -1 : 1;
  if (a->upper != b->upper) return a->upper < b->upper ? -1 : 1;
  return (a->origin > b->origin) - (a->origin < b->origin);
}

static int32_t rank_of_time(const int64_t *times, int64_t count, int64_t time) {
  int64_t low = 0, high = count;
  while (low + 1 < high) {
    int64_t middle = low + (high - low) / 2;
    if (times[middle] <= time)
      low = middle;
    else
      high = middle;
  }
  return (int32_t)low;
}

/* Replaces the times of pieces, which are sorted and below `times`, by points: a point opens at the first birth after
 * a death, so each is a maximal clique. Returns the number of points. */
static int32_t compress_time(MemoryArena *arena, Piece *pieces, int32_t count, int32_t times) {
  int32_t *births = NEW_ARRAY(arena, int32_t, times + 1), *deaths = NEW_ARRAY(arena, int32_t, times + 1);
  for (int32_t i = 0; i < count; i++) births[pieces[i].lower]++, deaths[pieces[i].upper]++;
  int32_t point = -1;
  bool closed = true;
  for (int32_t t = 0; t <= times; t++) { /* from here on births[t], deaths[t] are the points of a birth or death at t */
    bool born = births[t] > 0, died = deaths[t] > 0;
    deaths[t] = point + 1;
    if (died) closed = true;
    if (born && closed) point++, closed = false;
    births[t] = point;
  }
  for (int32_t i = 0; i < count; i++) {
    pieces[i].lower = births[pieces[i].lower];
    pieces[i].upper = deaths[pieces[i].upper];
  }
  for (int32_t i = 1; i < count; i++) {
    if (compare_pieces(&pieces[i - 1], &pieces[i]) <= 0) continue;
    qsort(pieces, (size_t)count, sizeof *pieces, compare_pieces);
    break;
  }
  return point + 1;
}

/* Moves pieces that live at all points to the bottom. Returns how many remain, in front. */
static int32_t stack_pieces(Part *part, int32_t points, PackingBuffer *buffers) {
  int32_t kept = 0;
  for (int32_t i = 0; i < part->count; i++) {
    Piece piece = part->pieces[i];
    if (piece.lower == 0 && piece.upper == points) {
      buffers[piece.origin].offset = part->base;
      part->base += piece.size;
    } else {
      part->pieces[kept++] = piece;
    }
  }
  return kept;
}

static void measure_loads(Problem *problem) {
  for (int32_t i = 0; i < problem->count; i++) {
    problem->load[problem->start[i]] += problem->size[i];
    if (problem->end[i] < problem->points) problem->load[problem->end[i]] -= problem->size[i];
  }
  for (int32_t p = 0; p < problem->points; p++) {
    if (p > 0) problem->load[p] += problem->load[p - 1];
    if (problem->load[p] > problem->lower_bound) problem->lower_bound = problem->load[p];
  }
}

/* heat by a sparse table of range maxima: level k holds maxima over 2^k points. */
static void measure_heat(MemoryArena *arena, Problem *problem) {
  int64_t *levels[32] = {problem->load};
  for (int k = 1; (INT64_C(1) << k) <= problem->points; k++) {
    int32_t half = INT32_C(1) << (k - 1), width = problem->points - 2 * half + 1;
    levels[k] = NEW_ARRAY(arena, int64_t, width);
    for (int32_t p = 0; p < width; p++) {
      int64_t a = levels[k - 1][p], b = levels[k - 1][p + half];
      levels[k][p] = a > b ? a : b;
    }
  }
  for (int32_t i = 0; i < problem->count; i++) {
    int32_t length = problem->end[i] - problem->start[i];
    int k = 31 - __builtin_clz((unsigned)length);
    int64_t a = levels[k][problem->start[i]], b = levels[k][problem->end[i] - (INT32_C(1) << k)];
    problem->heat[i] = (double)(a > b ? a : b) / (double)problem->lower_bound;
  }
}

static Problem build_problem(MemoryArena *arena, const Part *part, int32_t points) {
  int32_t count = part->count;
  Problem problem = {.count = count, .points = points, .base = part->base, .makespan = INT64_MAX};
  problem.start = NEW_ARRAY(arena, int32_t, count);
  problem.end = NEW_ARRAY(arena, int32_t, count);
  problem.size = NEW_ARRAY(arena, int64_t, count);
  problem.origin = NEW_ARRAY(arena, int32_t, count);
  problem.first_from = NEW_ARRAY(arena, int32_t, points + 1);
  problem.load = NEW_ARRAY(arena, int64_t, points);
  problem.heat = NEW_ARRAY(arena, double, count);
  problem.offset = NEW_ARRAY(arena, int64_t, count);
  for (int32_t i = 0; i < count; i++) {
    problem.start[i] = part->pieces[i].lower;
    problem.end[i] = part->pieces[i].upper;
    problem.size[i] = part->pieces[i].size;
    problem.origin[i] = part->pieces[i].origin;
  }
  for (int32_t p = 0, i = 0; p <= points; p++) {
    while (i < count && problem.start[i] < p) i++;
    problem.first_from[p] = i;
  }
  measure_loads(&problem);
  measure_heat(arena, &problem);
  return problem;
}

typedef ARRAY(Part) PartList;

/* Pushes the runs of pieces between points that nothing crosses. Returns how many there are. */
static int32_t push_runs(MemoryArena *arena, PartList *parts, const Part *part) {
  int32_t runs = 0;
  for (int32_t i = 0; i < part->count;) {
    int32_t from = i, reach = part->pieces[i].upper;
    for (; i < part->count && part->pieces[i].lower < reach; i++)
      if (part->pieces[i].upper > reach) reach = part->pieces[i].upper;
    Part run = {part->pieces + from, i - from, part->level + 1, part->base};
    array_push(arena, parts, run);
    runs++;
  }
  return runs;
}

static void split_parts(MemoryArena *arena, PartList *parts, int32_t times, PackingBuffer *buffers,
                        ProblemList *problems, int64_t *stacked) {
  MemoryArena *scratch = memory_arena_create();
  while (parts->count > 0) {
    Part part = parts->items[--parts->count];
    int32_t span = 0, first = part.count ? part.pieces[0].lower : 0;
    for (int32_t i = 0; i < part.count; i++) {
      part.pieces[i].lower -= first;
      part.pieces[i].upper -= first;
      if (part.pieces[i].upper > span) span = part.pieces[i].upper;
    }
    ASSERT(span <= times);
    memory_arena_reset(scratch);
    int32_t points = compress_time(scratch, part.pieces, part.count, span);
    int32_t kept = part.level < MOST_LEVELS ? stack_pieces(&part, points, buffers) : part.count;
    if (part.base > *stacked) *stacked = part.base;
    bool shrunk = kept < part.count;
    part.count = kept;
    if (kept == 0) continue;
    if (push_runs(arena, parts, &part) == 1 && !shrunk) {
      parts->count--;
      Problem problem = build_problem(arena, &part, points);
      array_push(arena, problems, problem);
    }
  }
  memory_arena_destroy(scratch);
}

ProblemList split_buffers(MemoryArena *arena, PackingBuffer *buffers, int64_t count, int64_t alignment,
                          int64_t *stacked) {
  ASSERT(count >= 0 && count < INT32_MAX / 4);
  ProblemList problems = {0};
  PartList parts = {0};
  *stacked = 0;
  int64_t *times = NEW_ARRAY(arena, int64_t, 2 * count), distinct = 0;
  for (int64_t i = 0; i < count; i++) {
    ASSERT(buffers[i].lower < buffers[i].upper && buffers[i].size >= 0);
    times[2 * i] = buffers[i].lower;
    times[2 * i + 1] = buffers[i].upper;
  }
  qsort(times, (size_t)(2 * count), sizeof *times, compare_times);
  for (int64_t i = 0; i < 2 * count; i++)
    if (i == 0 || times[i] != times[i - 1]) times[distinct++] = times[i];
  Part all = {NEW_ARRAY(arena, Piece, count), 0, 0, 0};
  for (int64_t i = 0; i < count; i++) {
    buffers[i].offset = 0;
    if (buffers[i].size == 0) continue;
    all.pieces[all.count++] =
        (Piece){rank_of_time(times, distinct, buffers[i].lower), rank_of_time(times, distinct, buffers[i].upper),
                (int32_t)i, align_size(buffers[i].size, alignment)};
  }
  qsort(all.pieces, (size_t)all.count, sizeof *all.pieces, compare_pieces);
  array_push(arena, &parts, all);
  split_parts(arena, &parts, (int32_t)distinct, buffers, &problems, stacked);
  return problems;
}

int64_t measure_makespan(const Problem *problem, const int64_t *offset) {
  int64_t makespan = 0;
  for (int32_t i = 0; i < problem->count; i++)
    if (offset[i] + problem->size[i] > makespan) makespan = offset[i] + problem->size[i];
  return makespan;
}

void offer_packing(Problem *problem, const int64_t *offset, int64_t makespan) {
  if (makespan >= problem->makespan) return;
  problem->makespan = makespan;
  memcpy(problem->offset, offset, (size_t)problem->count * sizeof *offset);
}

Problem extract_problem(MemoryArena *arena, const Problem *problem, const bool *chosen) {
  Part part = {.pieces = NEW_ARRAY(arena, Piece, problem->count)};
  for (int32_t i = 0; i < problem->count; i++)
    if (chosen[i]) part.pieces[part.count++] = (Piece){problem->start[i], problem->end[i], i, problem->size[i]};
  int32_t points = compress_time(arena, part.pieces, part.count, problem->points);
  return build_problem(arena, &part, points);
}
