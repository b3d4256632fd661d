/* passes/packing/squeaky_wheel.c - blame, promotion, restarts. */
#include "passes/packing/squeaky_wheel.h"

#include "passes/packing/portfolio.h"

/* A trial that has not improved on itself for so many runs starts anew. */
enum { PATIENCE = 150 };

typedef struct Wheel {
  Problem *problem;
  double *key; /* logarithms: a promotion by 1 multiplies the worth of an item by e */
  int32_t *order;
  int64_t *offset;
  Pivot pivot;
  int64_t best; /* of this trial */
} Wheel;

static void start_trial(Wheel *wheel, Random *random) {
  static const Pivot pivots[] = {PIVOT_FULLEST,  PIVOT_FULLEST, PIVOT_FULLEST,
                                 PIVOT_LEFTMOST, PIVOT_NONE,    PIVOT_RIGHTMOST};
  RankRule rule = (RankRule)random_choice(random, RANK_COUNT);
  wheel->pivot = pivots[random_choice(random, sizeof pivots / sizeof *pivots)];
  log_rank_keys(wheel->problem, rule, wheel->key);
  for (int32_t i = 0; i < wheel->problem->count; i++) wheel->key[i] += 0.2 * (random_unit(random) - 0.5);
  wheel->best = INT64_MAX;
}

static void promote_late_items(Wheel *wheel, Random *random, int64_t target) {
  const Problem *problem = wheel->problem;
  for (int32_t i = 0; i < problem->count; i++)
    if (wheel->offset[i] + problem->size[i] > target) wheel->key[i] += 0.03 + 0.15 * random_unit(random);
}

void run_squeaky_wheel(Problem *problem, Skyline *skyline, Random *random, int64_t goal, int64_t limit, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  Wheel wheel = {problem,
                 NEW_ARRAY(arena, double, problem->count),
                 NEW_ARRAY(arena, int32_t, problem->count),
                 NEW_ARRAY(arena, int64_t, problem->count),
                 PIVOT_NONE,
                 0};
  int64_t stop = *work + limit;
  while (problem->makespan > goal && *work < stop) {
    start_trial(&wheel, random);
    for (int stale = 0; stale < PATIENCE && problem->makespan > goal && *work < stop; stale++) {
      rank_by_key(wheel.key, problem->count, wheel.order);
      int64_t makespan = skyline_pack(skyline, wheel.order, wheel.pivot, INT64_MAX, wheel.offset, work);
      if (makespan < wheel.best) wheel.best = makespan, stale = 0;
      offer_packing(problem, wheel.offset, makespan);
      int64_t target = goal + (int64_t)((double)(makespan - goal) * random_unit(random));
      promote_late_items(&wheel, random, target);
    }
  }
  memory_arena_destroy(arena);
}
