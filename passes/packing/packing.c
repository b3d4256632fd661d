/* passes/packing/packing.c - the whole engine on one screen: split, quick rules, then search with growing effort. */
#include "passes/packing/packing.h"

#include <stdlib.h>

#include "passes/packing/portfolio.h"

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

static void write_offsets(const Problem *problem, PackingBuffer *buffers) {
  for (int32_t i = 0; i < problem->count; i++) buffers[problem->origin[i]].offset = problem->base + problem->offset[i];
}

PackingResult pack_buffers(PackingBuffer *buffers, int64_t count, const PackingOptions *options) {
  int64_t alignment = options->alignment > 0 ? options->alignment : 1, total;
  if (!packing_total_size(buffers, count, alignment, &total)) die("packing: the sizes of the buffers overflow");
  MemoryArena *arena = memory_arena_create();
  PackingResult result = {0};
  ProblemList problems = split_buffers(arena, buffers, count, alignment, &result.lower_bound);
  if (problems.count) qsort(problems.items, (size_t)problems.count, sizeof *problems.items, compare_problems);
  if (problems.count && problems.items[0].base + problems.items[0].lower_bound > result.lower_bound)
    result.lower_bound = problems.items[0].base + problems.items[0].lower_bound;
  result.makespan = result.lower_bound;
  for (int64_t i = 0; i < problems.count; i++) {
    Problem *problem = &problems.items[i];
    MemoryArena *scratch = memory_arena_create();
    run_portfolio(problem, skyline_create(scratch, problem), result.makespan - problem->base, &result.effort);
    memory_arena_destroy(scratch);
    write_offsets(problem, buffers);
    if (problem->base + problem->makespan > result.makespan) result.makespan = problem->base + problem->makespan;
  }
  memory_arena_destroy(arena);
  result.optimal = result.makespan == result.lower_bound;
  result.fits = options->capacity <= 0 || result.makespan <= options->capacity;
  return result;
}
