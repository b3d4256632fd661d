/* passes/packing/portfolio.c - rules of rank and the runs over all of them. */
#include "passes/packing/portfolio.h"

#include <math.h>
#include <stdlib.h>

typedef struct Ranked {
  double key;
  int32_t item;
} Ranked;

static int compare_ranked(const void *left, const void *right) {
  const Ranked *a = left, *b = right;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

void rank_by_key(const double *key, int32_t count, int32_t *order) {
  MemoryArena *arena = memory_arena_create();
  Ranked *ranked = NEW_ARRAY(arena, Ranked, count);
  for (int32_t i = 0; i < count; i++) ranked[i] = (Ranked){key[i], i};
  qsort(ranked, (size_t)count, sizeof *ranked, compare_ranked);
  for (int32_t i = 0; i < count; i++) order[i] = ranked[i].item;
  memory_arena_destroy(arena);
}

static double rank_key(const Problem *problem, RankRule rule, int32_t item) {
  double size = (double)problem->size[item], width = problem->end[item] - problem->start[item];
  double heat = problem->heat[item], heat4 = heat * heat * heat * heat, largest = (double)problem->lower_bound;
  switch (rule) {
    case RANK_AREA:
      return size * width;
    case RANK_WIDTH:
      return width + size / largest / 2;
    case RANK_SIZE:
      return size + width / (problem->points + 1);
    case RANK_HEAT:
      return heat * 1e6 + size / largest * width / problem->points;
    case RANK_HEAT_WIDTH:
      return heat4 * width;
    case RANK_HEAT_SIZE:
      return heat4 * size;
    case RANK_HEAT_AREA:
      return heat4 * size * width;
    case RANK_TALL_AREA:
      return size * size * width;
    case RANK_LONG_AREA:
      return size * width * width;
    case RANK_COUNT:
      break;
  }
  die("no rank rule %d", (int)rule);
}

void rank_items(const Problem *problem, RankRule rule, int32_t *order) {
  MemoryArena *arena = memory_arena_create();
  double *key = NEW_ARRAY(arena, double, problem->count);
  for (int32_t i = 0; i < problem->count; i++) key[i] = rank_key(problem, rule, i);
  rank_by_key(key, problem->count, order);
  memory_arena_destroy(arena);
}

void log_rank_keys(const Problem *problem, RankRule rule, double *key) {
  for (int32_t i = 0; i < problem->count; i++) key[i] = log(rank_key(problem, rule, i));
}

void run_portfolio(Problem *problem, int64_t goal, int64_t limit, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  Skyline *skyline = skyline_create(arena, problem);
  int32_t *order = NEW_ARRAY(arena, int32_t, problem->count);
  int64_t *offset = NEW_ARRAY(arena, int64_t, problem->count);
  int64_t stop = limit < INT64_MAX - *work ? *work + limit : INT64_MAX;
  for (int run = 0; run < RANK_COUNT * PIVOT_COUNT && problem->makespan > goal; run++) {
    if (run > 0 && *work >= stop) break;
    if (run % PIVOT_COUNT == 0) rank_items(problem, (RankRule)(run / PIVOT_COUNT), order);
    int64_t below = problem->makespan == INT64_MAX ? INT64_MAX : problem->makespan - 1;
    offer_packing(problem, offset, skyline_pack(skyline, order, (Pivot)(run % PIVOT_COUNT), below, offset, work));
  }
  memory_arena_destroy(arena);
}
