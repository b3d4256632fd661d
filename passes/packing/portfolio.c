/* passes/packing/portfolio.c - rules of rank and the runs over all of them. */
#include "passes/packing/portfolio.h"

#include <math.h>

typedef struct Ranked {
  uint64_t bits; /* in the order of decreasing keys */
  int32_t item;
} Ranked;

/* Digits of the radix sort: 6 * 11 >= 64 bits. */
enum { DIGITS = 6, DIGIT_BITS = 11, DIGIT_VALUES = 1 << DIGIT_BITS };

static int digit_of(uint64_t bits, int place) { return (int)(bits >> (place * DIGIT_BITS)) & (DIGIT_VALUES - 1); }

/* IEEE doubles compare like integers of sign and magnitude; -0 becomes 0. */
static uint64_t descending_bits(double key) {
  uint64_t bits;
  key += 0.0;
  memcpy(&bits, &key, sizeof bits);
  return bits >> 63 ? bits : ~(bits | UINT64_C(1) << 63);
}

/* A radix sort, stable, so that ties stay in the order of items; qsort() takes an eighth of a packing's time. */
void rank_by_key(const double *key, int32_t count, int32_t *order) {
  MemoryArena *arena = memory_arena_create();
  Ranked *from = NEW_ARRAY(arena, Ranked, count), *to = NEW_ARRAY(arena, Ranked, count);
  int32_t(*end)[DIGIT_VALUES] = memory_alloc(arena, sizeof(int32_t[DIGITS][DIGIT_VALUES]));
  for (int32_t i = 0; i < count; i++) {
    from[i] = (Ranked){descending_bits(key[i]), i};
    for (int place = 0; place < DIGITS; place++) end[place][digit_of(from[i].bits, place)]++;
  }
  for (int place = 0; place < DIGITS; place++) {
    if (count > 0 && end[place][digit_of(from[0].bits, place)] == count) continue;
    for (int digit = 1; digit < DIGIT_VALUES; digit++) end[place][digit] += end[place][digit - 1];
    for (int32_t i = count; i-- > 0;) to[--end[place][digit_of(from[i].bits, place)]] = from[i];
    Ranked *swap = from;
    from = to;
    to = swap;
  }
  for (int32_t i = 0; i < count; i++) order[i] = from[i].item;
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
