/* tests/packing/test_packing_engine.c - the engine: edge cases, exhaustive search, large random instances. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>

#include "tests/packing/packing_random.h"

/* Packs, checks the map and the result's own claims. */
static PackingResult pack(PackingBuffer *buffers, int64_t count, PackingOptions options) {
  PackingResult result = pack_buffers(buffers, count, &options);
  PackingCheck check = check_packing(buffers, count, options.alignment, result.makespan);
  if (check.fault != PACKING_VALID)
    fail_msg("fault %d at buffers %ld and %ld", check.fault, (long)check.first, (long)check.second);
  assert_true(result.makespan >= result.lower_bound);
  assert_int_equal(result.optimal, result.makespan == result.lower_bound);
  assert_int_equal(result.fits, options.capacity == 0 || result.makespan <= options.capacity);
  return result;
}

static void packs_nothing(void **state) {
  (void)state;
  PackingResult result = pack(NULL, 0, (PackingOptions){.capacity = 1});
  assert_int_equal(result.makespan, 0);
  assert_true(result.fits && result.optimal);
}

static void packs_one_buffer(void **state) {
  (void)state;
  PackingBuffer buffer = {INT64_MIN, INT64_MAX, INT64_MAX, 5, "all"};
  assert_true(pack(&buffer, 1, (PackingOptions){0}).makespan == INT64_MAX);
  assert_int_equal(buffer.offset, 0);
}

static void packs_buffers_of_no_bytes(void **state) {
  (void)state;
  PackingBuffer buffers[] = {{0, 5, 0, 9, "a"}, {1, 3, 0, 9, "b"}, {0, 2, 7, 9, "c"}};
  assert_int_equal(pack(buffers, 3, (PackingOptions){.alignment = 4}).makespan, 8);
  assert_int_equal(pack(buffers, 2, (PackingOptions){0}).makespan, 0);
}

static void packs_equal_lives(void **state) {
  (void)state;
  PackingBuffer buffers[5];
  for (int i = 0; i < 5; i++) buffers[i] = (PackingBuffer){3, 8, 10 * i + 1, 0, NULL};
  assert_int_equal(pack(buffers, 5, (PackingOptions){0}).makespan, 105);
  assert_int_equal(pack(buffers, 5, (PackingOptions){.alignment = 64}).makespan, 320);
}

static void aligns_offsets(void **state) {
  (void)state;
  enum { COUNT = 200 };
  PackingBuffer buffers[COUNT];
  random_buffers(7, buffers, COUNT, 100, 20, 5000);
  PackingResult result = pack(buffers, COUNT, (PackingOptions){.alignment = 256});
  assert_int_equal(result.makespan % 256, 0);
  assert_int_equal(result.lower_bound % 256, 0);
}

/* Nested lives, each ending a step before the one around it: everything is stacked, at any depth. */
static void packs_deep_nests(void **state) {
  (void)state;
  enum { DEPTH = 20000 };
  PackingBuffer *buffers = calloc(2 * DEPTH, sizeof *buffers);
  assert_non_null(buffers);
  for (int64_t i = 0; i < DEPTH; i++) {
    buffers[2 * i] = (PackingBuffer){3 * i, 6 * DEPTH - 3 * i, 8, 0, NULL};
    buffers[2 * i + 1] = (PackingBuffer){3 * i + 1, 3 * i + 2, 4, 0, NULL};
  }
  assert_true(pack(buffers, 2 * DEPTH, (PackingOptions){.effort = 1000000}).optimal);
  free(buffers);
}

static void packs_large_instances(void **state) {
  (void)state;
  enum { COUNT = 10000 };
  PackingBuffer *buffers = calloc(COUNT, sizeof *buffers);
  assert_non_null(buffers);
  for (uint64_t seed = 1; seed <= 4; seed++) {
    random_buffers(seed, buffers, COUNT, 5000, seed % 2 ? 40 : 4000, 1 << 20);
    pack(buffers, COUNT, (PackingOptions){.alignment = 64, .effort = 300000});
  }
  free(buffers);
}

/* ---- exhaustive search ----
 * Some smallest packing is what comes of taking the buffers in some order, each to the lowest place above all earlier
 * ones that it lives with, with offsets that never decrease. */

typedef struct Exhaustive {
  const PackingBuffer *buffers;
  int64_t count, bound, best, offset[12];
  bool placed[12];
} Exhaustive;

static bool live_together(const PackingBuffer *a, const PackingBuffer *b) {
  return a->lower < b->upper && b->lower < a->upper;
}

static void try_orders(Exhaustive *search, int64_t placed, int64_t lowest, int64_t makespan) {
  if (makespan >= search->best || search->best == search->bound) return;
  if (placed == search->count) search->best = makespan;
  for (int64_t i = 0; i < search->count; i++) {
    if (search->placed[i]) continue;
    int64_t offset = 0;
    for (int64_t j = 0; j < search->count; j++)
      if (search->placed[j] && live_together(&search->buffers[i], &search->buffers[j]) &&
          search->offset[j] + search->buffers[j].size > offset)
        offset = search->offset[j] + search->buffers[j].size;
    if (offset < lowest) continue;
    int64_t top = offset + search->buffers[i].size;
    search->placed[i] = true;
    search->offset[i] = offset;
    try_orders(search, placed + 1, offset, top > makespan ? top : makespan);
    search->placed[i] = false;
  }
}

static int64_t largest_load(const PackingBuffer *buffers, int64_t count) {
  int64_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t load = 0;
    for (int64_t j = 0; j < count; j++)
      if (buffers[j].lower <= buffers[i].lower && buffers[i].lower < buffers[j].upper) load += buffers[j].size;
    if (load > largest) largest = load;
  }
  return largest;
}

/* Lives that always fill the same number of bytes: at each step two buffers end, and one or two of the same total
 * begin. The optimum is often above the lower bound. */
static int64_t flat_buffers(uint64_t seed, PackingBuffer *buffers, int64_t most) {
  int64_t live[4], count = 0;
  for (int k = 0; k < 4; k++) {
    live[k] = count;
    buffers[count++] = (PackingBuffer){0, 0, 1 + random_below(&seed, 5), 0, NULL};
  }
  int64_t live_count = 4, time = 1;
  for (; count + 2 <= most && live_count >= 2; time++) {
    int64_t freed = 0;
    for (int k = 0; k < 2; k++) {
      int64_t at = random_below(&seed, live_count);
      buffers[live[at]].upper = time;
      freed += buffers[live[at]].size;
      live[at] = live[--live_count];
    }
    int64_t part = live_count < 2 || random_below(&seed, 2) ? 1 + random_below(&seed, freed - 1) : freed;
    for (; freed > 0; freed -= part, part = freed) {
      live[live_count++] = count;
      buffers[count++] = (PackingBuffer){time, 0, part, 0, NULL};
    }
  }
  for (int64_t k = 0; k < live_count; k++) buffers[live[k]].upper = time;
  return count;
}

/* Both cases that meet the lower bound and cases that must be proven to lie above it. */
static void agrees_with_exhaustive_search(void **state) {
  (void)state;
  enum { CASES = 2000, MOST = 12 };
  int above_bound = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    PackingBuffer buffers[MOST];
    uint64_t generator = seed;
    int64_t count = 1 + random_below(&generator, MOST), total;
    if (seed % 2)
      random_buffers(seed, buffers, count, 3 + random_below(&generator, 9), 2 + random_below(&generator, 5), 40);
    else
      count = flat_buffers(seed, buffers, MOST);
    int64_t bound = largest_load(buffers, count);
    assert_true(packing_total_size(buffers, count, 1, &total));
    Exhaustive search = {.buffers = buffers, .count = count, .bound = bound, .best = total + 1};
    try_orders(&search, 0, 0, 0);
    PackingResult result = pack(buffers, count, (PackingOptions){.effort = 200000});
    assert_int_equal(result.lower_bound, bound);
    if (result.makespan != search.best)
      fail_msg("seed %ld: makespan %ld, the smallest is %ld", (long)seed, (long)result.makespan, (long)search.best);
    assert_true(result.effort < 200000);
    above_bound += search.best > bound;
  }
  assert_true(above_bound >= 5);
}

/* The same offsets again, and from buffers that lie elsewhere in memory. */
static void repeats_itself(void **state) {
  (void)state;
  enum { COUNT = 400 };
  PackingBuffer first[COUNT], *second = calloc(COUNT, sizeof *second);
  assert_non_null(second);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    random_buffers(seed, first, COUNT, 150, 30, 4096);
    random_buffers(seed, second, COUNT, 150, 30, 4096);
    PackingResult a = pack(first, COUNT, (PackingOptions){.effort = 200000});
    PackingResult b = pack(second, COUNT, (PackingOptions){.effort = 200000});
    assert_int_equal(a.effort, b.effort);
    assert_memory_equal(first, second, sizeof first);
  }
  free(second);
}

static void knows_totals(void **state) {
  (void)state;
  PackingBuffer buffers[] = {{0, 1, INT64_MAX - 7, 0, "a"}, {5, 6, 7, 0, "b"}};
  int64_t total = 0;
  assert_true(packing_total_size(buffers, 2, 1, &total));
  assert_true(total == INT64_MAX);
  assert_false(packing_total_size(buffers, 2, 4, &total));
  assert_true(packing_total_size(buffers, 0, 0, &total));
  assert_int_equal(total, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packs_nothing),
      cmocka_unit_test(packs_one_buffer),
      cmocka_unit_test(packs_buffers_of_no_bytes),
      cmocka_unit_test(packs_equal_lives),
      cmocka_unit_test(aligns_offsets),
      cmocka_unit_test(packs_deep_nests),
      cmocka_unit_test(packs_large_instances),
      cmocka_unit_test(repeats_itself),
      cmocka_unit_test(knows_totals),
      cmocka_unit_test(agrees_with_exhaustive_search),
  };
  return cmocka_run_group_tests_name("packing: engine", tests, NULL, NULL);
}
