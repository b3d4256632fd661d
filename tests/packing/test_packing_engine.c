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
  };
  return cmocka_run_group_tests_name("packing: engine", tests, NULL, NULL);
}
