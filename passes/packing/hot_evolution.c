/* passes/packing/hot_evolution.c - one population after the other, each of the hot items alone. */
#include "passes/packing/hot_evolution.h"

#include "passes/packing/hot_window.h"
#include "passes/packing/rank_evolution.h"

struct HotEvolution {
  Problem *problem;
  MemoryArena *window_memory, *population_memory; /* NULL before the first; of what lies below each of them */
  HotWindow window;
  Problem core; /* the hot items */
  Skyline *skyline;
  RankEvolution *rules; /* NULL: exhausted */
  int32_t windows;
};

/* A population takes about 250 bytes per item, and a search sees hundreds of populations. */
static void renew(MemoryArena **memory) {
  memory_arena_destroy(*memory);
  *memory = memory_arena_create();
}

static void start_population(HotEvolution *evolution) {
  renew(&evolution->population_memory);
  evolution->core = extract_problem(evolution->population_memory, evolution->problem, evolution->window.hot);
  evolution->skyline = skyline_create(evolution->population_memory, &evolution->core);
  evolution->rules = rank_evolution_create(evolution->population_memory, &evolution->core);
}

/* Measured on the budgeted traces: with the items of heat >= 0.9 alone a packing takes half the time of all, and the
 * makespan after the same work is 0.5 % lower; the cold ones fit into the holes. */
static void choose_window(HotEvolution *evolution) {
  static const double heats[] = {0.9, 0.8, 0.95};
  double heat = heats[evolution->windows++ % (int)(sizeof heats / sizeof *heats)];
  renew(&evolution->window_memory);
  evolution->window = hot_window_create(evolution->window_memory, evolution->problem, heat);
  start_population(evolution);
}

HotEvolution *hot_evolution_create(MemoryArena *arena, Problem *problem) {
  HotEvolution *evolution = NEW(arena, HotEvolution);
  evolution->problem = problem;
  return evolution;
}

void hot_evolution_release(HotEvolution *evolution) {
  memory_arena_destroy(evolution->population_memory);
  memory_arena_destroy(evolution->window_memory);
}

/* Inserts the others into the best packing of the hot items. When that does not improve the problem's, those that end
 * too high become hot, with a new population. */
static void insert_others(HotEvolution *evolution, int64_t stop, int64_t *work) {
  HotWindow *window = &evolution->window;
  const Problem *core = &evolution->core;
  int64_t before = evolution->problem->makespan;
  for (int32_t i = 0; i < core->count; i++) window->offset[core->origin[i]] = core->offset[i];
  window->target = core->makespan;
  window->stop = stop;
  if (insert_cold_items(window, work) >= before && heat_late_items(window) > 0) start_population(evolution);
}

void hot_evolution_run(HotEvolution *evolution, Random *random, int64_t goal, int64_t limit, int64_t *work) {
  Problem *problem = evolution->problem;
  int64_t stop = *work + limit;
  while (problem->makespan > goal && *work < stop) {
    if (!evolution->rules) choose_window(evolution);
    int64_t best = evolution->core.makespan < problem->makespan ? evolution->core.makespan : problem->makespan;
    if (!rank_evolution_run(evolution->rules, evolution->skyline, random, best - 1, stop - *work, work))
      evolution->rules = NULL;
    else if (evolution->core.makespan < best)
      insert_others(evolution, stop, work);
  }
}
