/* passes/packing/hot_window.c - windows of heat, and the insertion of everything else. */
#include "passes/packing/hot_window.h"

#include <stdlib.h>

#include "passes/packing/holes.h"
#include "passes/packing/portfolio.h"
#include "passes/packing/search.h"

/* Packs one independent part of the hot items by the rules and, without windows of its own, by search. */
static void pack_part(Problem *part, int64_t goal, int64_t limit, Random *random, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  int64_t stop = *work + limit;
  run_portfolio(part, goal, limit, work);
  if (part->makespan > goal) {
    Search *search = search_create(arena, part, random_next(random));
    while (part->makespan > goal && search_bound(search) <= goal && *work < stop)
      search_round(search, false, goal, stop - *work, work);
    search_release(search);
  }
  memory_arena_destroy(arena);
}

/* Packs the hot items below the target and stores their offsets; false when that was not reached. */
static bool pack_hot_items(HotWindow *window, Random *random, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  const Problem *problem = window->problem;
  PackingBuffer *buffers = NEW_ARRAY(arena, PackingBuffer, problem->count);
  int32_t *item_of = NEW_ARRAY(arena, int32_t, problem->count);
  int32_t count = 0;
  for (int32_t i = 0; i < problem->count; i++) {
    if (!window->hot[i]) continue;
    item_of[count] = i;
    buffers[count++] = (PackingBuffer){problem->start[i], problem->end[i], problem->size[i], 0, NULL};
  }
  int64_t stacked;
  ProblemList parts = split_buffers(arena, buffers, count, 1, &stacked);
  bool reached = stacked <= window->target;
  for (int64_t k = 0; k < parts.count && reached; k++) {
    Problem *part = &parts.items[k];
    int64_t share = (window->stop - *work) / (parts.count - k) + 1;
    pack_part(part, window->target - part->base, share, random, work);
    reached = part->base + part->makespan <= window->target;
    for (int32_t i = 0; i < part->count; i++) buffers[part->origin[i]].offset = part->base + part->offset[i];
  }
  for (int32_t k = 0; k < count; k++) window->offset[item_of[k]] = buffers[k].offset;
  memory_arena_destroy(arena);
  return reached;
}

static bool ends_late(const HotWindow *window, int32_t item) {
  return window->trial[item] + window->problem->size[item] > window->target;
}

/* Moves the items that ended above the target to the front of the order, stably. */
static void promote_late_items(HotWindow *window, int32_t count) {
  int32_t late = 0, rest = count;
  for (int32_t k = count - 1; k >= 0; k--)
    if (!ends_late(window, window->order[k])) window->moved[--rest] = window->order[k];
  for (int32_t k = 0; k < count; k++)
    if (ends_late(window, window->order[k])) window->moved[late++] = window->order[k];
  memcpy(window->order, window->moved, (size_t)count * sizeof *window->order);
}

int64_t insert_cold_items(HotWindow *window, int64_t *work) {
  static const RankRule rules[] = {RANK_SIZE, RANK_AREA, RANK_HEAT_AREA, RANK_WIDTH};
  enum { RULES = sizeof rules / sizeof *rules, PROMOTIONS = 3 };
  const Problem *problem = window->problem;
  int64_t best = INT64_MAX;
  int32_t count = 0;
  memcpy(window->trial, window->offset, (size_t)problem->count * sizeof *window->trial);
  for (int run = 0; run < 2 * RULES * PROMOTIONS && best > window->target; run++) {
    if (run > 0 && *work >= window->stop) break;
    int rule = run / PROMOTIONS;
    if (run % PROMOTIONS == 0) {
      rank_items(problem, rules[rule / 2], window->order);
      count = 0;
      for (int32_t k = 0; k < problem->count; k++)
        if (!window->hot[window->order[k]]) window->order[count++] = window->order[k];
    } else {
      promote_late_items(window, count);
    }
    int64_t makespan = fill_holes(problem, window->hot, window->order, count, rule % 2 ? FIT_FIRST : FIT_BEST,
                                  window->target, window->trial, work);
    if (makespan >= best) continue;
    best = makespan;
    memcpy(window->offset, window->trial, (size_t)problem->count * sizeof *window->trial);
  }
  offer_packing(window->problem, window->offset, best);
  return best;
}

int32_t heat_late_items(HotWindow *window) {
  const Problem *problem = window->problem;
  int32_t count = 0;
  for (int32_t i = 0; i < problem->count; i++) {
    if (window->hot[i] || window->offset[i] + problem->size[i] <= window->target) continue;
    window->hot[i] = true;
    count++;
  }
  return count;
}

HotWindow hot_window_create(MemoryArena *arena, Problem *problem, double heat) {
  HotWindow window = {.problem = problem,
                      .hot = NEW_ARRAY(arena, bool, problem->count),
                      .offset = NEW_ARRAY(arena, int64_t, problem->count),
                      .trial = NEW_ARRAY(arena, int64_t, problem->count),
                      .order = NEW_ARRAY(arena, int32_t, problem->count),
                      .moved = NEW_ARRAY(arena, int32_t, problem->count)};
  for (int32_t i = 0; i < problem->count; i++) window.hot[i] = problem->heat[i] >= heat;
  return window;
}

void pack_hot_window(Problem *problem, double heat, int64_t target, int64_t limit, Random *random, int64_t *work) {
  MemoryArena *arena = memory_arena_create();
  HotWindow window = hot_window_create(arena, problem, heat);
  window.target = target;
  window.stop = *work + limit;
  while (*work < window.stop && pack_hot_items(&window, random, work)) {
    int64_t makespan = insert_cold_items(&window, work);
    if (makespan <= target || heat_late_items(&window) == 0) break;
  }
  memory_arena_destroy(arena);
}
