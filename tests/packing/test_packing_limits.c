/* tests/packing/test_packing_limits.c - 100,000 buffers, and searches that go on for long, in bounded memory. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <sys/resource.h>

#include "passes/packing/hot_evolution.h"
#include "passes/packing/portfolio.h"
#include "tests/packing/packing_random.h"

/* Sanitizers reserve terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__)
#define LIMITS_MEMORY false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMITS_MEMORY false
#endif
#endif
#ifndef LIMITS_MEMORY
#define LIMITS_MEMORY true
#endif

/* Packs in at most `memory` bytes of addresses (program, libraries and buffers included): the engine dies when it needs
 * more. */
static PackingResult pack_within(int64_t memory, PackingBuffer *buffers, int64_t count, PackingOptions options) {
  struct rlimit before, limited;
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  limited = (struct rlimit){(rlim_t)memory, before.rlim_max};
  if (LIMITS_MEMORY) assert_int_equal(setrlimit(RLIMIT_AS, &limited), 0);
  PackingResult result = pack_buffers(buffers, count, &options);
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  PackingCheck check = check_packing(buffers, count, options.alignment, result.makespan);
  if (check.fault != PACKING_VALID)
    fail_msg("fault %d at buffers %ld and %ld", check.fault, (long)check.first, (long)check.second);
  assert_true(result.effort <= options.effort + 100 * count); /* a packing that has begun is finished */
  return result;
}

/* Lives that fill the same bytes all the time, as a budget makes them: greedy rules leave a gap, so the search spends
 * all its effort. */
static void flat_trace(uint64_t seed, PackingBuffer *buffers, int64_t count) {
  enum { LIVE = 40 };
  int64_t live[2 * LIVE], live_count = 0, time = 0, made = 0;
  while (live_count < LIVE) {
    buffers[made] = (PackingBuffer){0, 0, 1 + random_below(&seed, 1 << 20), 0, NULL};
    live[live_count++] = made++;
  }
  while (made + 2 <= count) {
    int64_t freed = 0;
    time++;
    for (int k = 0; k < 2; k++) {
      int64_t at = random_below(&seed, live_count);
      buffers[live[at]].upper = time;
      freed += buffers[live[at]].size;
      live[at] = live[--live_count];
    }
    int64_t part = 1 + random_below(&seed, freed - 1);
    for (int k = 0; k < 2; k++) {
      buffers[made] = (PackingBuffer){time, 0, k ? freed - part : part, 0, NULL};
      live[live_count++] = made++;
    }
  }
  for (; made < count; made++) buffers[made] = (PackingBuffer){time, time + 1, 0, 0, NULL};
  for (int64_t k = 0; k < live_count; k++) buffers[live[k]].upper = time + 1;
}

static PackingBuffer *new_buffers(int64_t count) {
  PackingBuffer *buffers = calloc((size_t)count, sizeof *buffers);
  assert_non_null(buffers);
  return buffers;
}

static void packs_100000_random_buffers(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  PackingBuffer *buffers = new_buffers(COUNT);
  for (uint64_t seed = 1; seed <= 2; seed++) {
    random_buffers(seed, buffers, COUNT, 40000, seed % 2 ? 60 : 20000, 1 << 20);
    pack_within(256 << 20, buffers, COUNT, (PackingOptions){.alignment = 64, .effort = 1000000});
  }
  free(buffers);
}

static void packs_100000_flat_buffers(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  PackingBuffer *buffers = new_buffers(COUNT);
  flat_trace(3, buffers, COUNT);
  PackingResult result = pack_within(256 << 20, buffers, COUNT, (PackingOptions){.effort = 1000000});
  assert_true(result.makespan < result.lower_bound / 10 * 14);
  free(buffers);
}

/* Population after population takes the memory of the last one. Dozens of them, 0.1 MB each, come and go here. */
static void gives_memory_back(void **state) {
  (void)state;
  enum { COUNT = 300 };
  PackingBuffer buffers[COUNT];
  flat_trace(4, buffers, COUNT);
  int64_t stacked, work = 0;
  MemoryArena *arena = memory_arena_create();
  ProblemList problems = split_buffers(arena, buffers, COUNT, 1, &stacked);
  assert_int_equal(problems.count, 1);
  run_portfolio(&problems.items[0], 0, 1, &work);
  HotEvolution *evolution = hot_evolution_create(arena, &problems.items[0]);
  Random random = {5};
  struct rusage before, after;
  hot_evolution_run(evolution, &random, 0, 300000, &work);
  assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
  hot_evolution_run(evolution, &random, 0, 6000000, &work);
  assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
  if (LIMITS_MEMORY) assert_true(after.ru_maxrss < before.ru_maxrss + 1024); /* KiB */
  hot_evolution_release(evolution);
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_memory_back), /* before the others: the largest size of the process is measured */
      cmocka_unit_test(packs_100000_random_buffers),
      cmocka_unit_test(packs_100000_flat_buffers),
  };
  return cmocka_run_group_tests_name("packing: limits", tests, NULL, NULL);
}
