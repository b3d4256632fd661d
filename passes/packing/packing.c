/* passes/packing/packing.c - the whole engine on one screen: split, quick rules, then search with growing effort. */
#include "passes/packing/packing.h"

#include <stdlib.h>

#include "passes/packing/portfolio.h"
#include "passes/packing/search.h"

bool packing_total_size(const PackingBuffer *buffers, int64_t count, int64_t alignment, int64_t *total) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t rounded;
    if (!checked_align(buffers[i].size, alignment > 0 ? alignment : 1, &rounded) || !checked_add(sum, rounded, &sum))
      return false;
  }
  *total = sum;
  return true;
}

/* The hardest first: by base + lower bound, then by order of time. */
static int compare_problems(const void *left, const void *right) {
  const Problem *a = left, *b = right;
  int64_t x = a->base + a->lower_bound, y = b->base + b->lower_bound;
  if (x != y) return x > y ? -1 : 1;
  return (a->origin[0] > b->origin[0]) - (a->origin[0] < b->origin[0]);
}

static int64_t end_of(const Problem *problem) { return problem->base + problem->makespan; }

static const Problem *highest_problem(const ProblemList *problems) {
  const Problem *highest = &problems->items[0];
  for (int64_t i = 1; i < problems->count; i++)
    if (end_of(&problems->items[i]) > end_of(highest)) highest = &problems->items[i];
  return highest;
}

/* Searches on where the arena ends, until that is at most `goal` or proven to be the best, or the effort is spent. */
static void search_problems(MemoryArena *arena, ProblemList *problems, int64_t goal, int64_t limit, int64_t *work) {
  Search **searches = NEW_ARRAY(arena, Search *, problems->count);
  while (*work < limit) {
    int64_t worst = highest_problem(problems) - problems->items;
    Problem *problem = &problems->items[worst];
    if (end_of(problem) <= goal) break;
    if (!searches[worst]) searches[worst] = search_create(arena, problem, 1);
    if (search_bound(searches[worst]) >= problem->makespan) break;
    search_round(searches[worst], true, goal - problem->base, limit - *work, work);
  }
  for (int64_t i = 0; i < problems->count; i++)
    if (searches[i]) search_release(searches[i]);
}

static void write_offsets(const Problem *problem, PackingBuffer *buffers) {
  for (int32_t i = 0; i < problem->count; i++) buffers[problem->origin[i]].offset = problem->base + problem->offset[i];
}

PackingResult pack_buffers(PackingBuffer *buffers, int64_t count, const PackingOptions *options) {
  int64_t alignment = options->alignment > 0 ? options->alignment : 1, total, stacked;
  int64_t limit = options->effort > 0 ? options->effort : PACKING_DEFAULT_EFFORT;
  if (!packing_total_size(buffers, count, alignment, &total)) die("packing: the sizes of the buffers overflow");
  MemoryArena *arena = memory_arena_create();
  ProblemList problems = split_buffers(arena, buffers, count, alignment, &stacked);
  PackingResult result = {.makespan = stacked, .lower_bound = stacked};
  if (problems.count) {
    qsort(problems.items, (size_t)problems.count, sizeof *problems.items, compare_problems);
    int64_t highest = problems.items[0].base + problems.items[0].lower_bound;
    if (highest > stacked) result.lower_bound = highest;
    int64_t reached = result.lower_bound, goal = result.lower_bound;
    for (int64_t i = 0; i < problems.count; i++) {
      run_portfolio(&problems.items[i], reached - problems.items[i].base, limit - result.effort, &result.effort);
      if (end_of(&problems.items[i]) > reached) reached = end_of(&problems.items[i]);
    }
    if (options->capacity > goal) goal = options->capacity;
    search_problems(arena, &problems, goal, limit, &result.effort);
    for (int64_t i = 0; i < problems.count; i++) write_offsets(&problems.items[i], buffers);
    if (end_of(highest_problem(&problems)) > stacked) result.makespan = end_of(highest_problem(&problems));
  }
  memory_arena_destroy(arena);
  result.optimal = result.makespan == result.lower_bound;
  result.fits = options->capacity <= 0 || result.makespan <= options->capacity;
  return result;
}
