/* tests/packing/test_packing_checker.c - the checker finds planted faults and agrees with a look at every pair. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "tests/packing/packing_random.h"

static PackingFault fault_of(const PackingBuffer *buffers, int64_t count, int64_t alignment, int64_t makespan) {
  return check_packing(buffers, count, alignment, makespan).fault;
}

static void accepts_touching_buffers(void **state) {
  (void)state;
  PackingBuffer buffers[] = {{0, 2, 4, 0, "a"}, {2, 4, 8, 0, "b"}, {0, 2, 4, 4, "c"}, {1, 3, 0, 2, "none"}};
  assert_int_equal(fault_of(buffers, 4, 1, 8), PACKING_VALID);
}

static void finds_the_overlapping_pair(void **state) {
  (void)state;
  PackingBuffer buffers[] = {{0, 9, 4, 0, "a"}, {5, 7, 4, 8, "b"}, {6, 8, 4, 11, "c"}, {8, 9, 16, 4, "d"}};
  PackingCheck check = check_packing(buffers, 4, 1, 20);
  assert_int_equal(check.fault, PACKING_OVERLAP);
  assert_int_equal(check.first, 1);
  assert_int_equal(check.second, 2);
}

static void finds_what_lies_outside(void **state) {
  (void)state;
  PackingBuffer buffer = {0, 1, 10, 6, "a"};
  assert_int_equal(fault_of(&buffer, 1, 1, 15), PACKING_BEYOND);
  assert_int_equal(fault_of(&buffer, 1, 1, 16), PACKING_VALID);
  assert_int_equal(fault_of(&buffer, 1, 1, 17), PACKING_NEVER_TOUCHED);
  assert_int_equal(fault_of(&buffer, 1, 6, 18), PACKING_VALID);
  assert_int_equal(fault_of(&buffer, 1, 4, 16), PACKING_MISALIGNED);
  buffer.offset = -4;
  assert_int_equal(fault_of(&buffer, 1, 4, 16), PACKING_NEGATIVE);
  buffer.offset = 8;
  buffer.size = INT64_MAX;
  assert_int_equal(fault_of(&buffer, 1, 4, INT64_MAX), PACKING_BEYOND);
}

static bool any_pair_overlaps(const PackingBuffer *b, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = i + 1; j < count; j++)
      if (b[i].size && b[j].size && b[i].lower < b[j].upper && b[j].lower < b[i].upper &&
          b[i].offset < b[j].offset + b[j].size && b[j].offset < b[i].offset + b[i].size)
        return true;
  return false;
}

/* Random offsets in a space wide enough that about half of the cases have an overlap. */
static void agrees_with_every_pair(void **state) {
  (void)state;
  enum { CASES = 4000, MOST = 24 };
  int valid = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    PackingBuffer buffers[MOST];
    uint64_t generator = seed + CASES;
    int64_t count = 1 + random_below(&generator, MOST), makespan = 0;
    random_buffers(seed, buffers, count, 40, 12, 9);
    for (int64_t i = 0; i < count; i++) {
      buffers[i].offset = random_below(&generator, 20 * count);
      int64_t end = buffers[i].offset + buffers[i].size;
      if (end > makespan) makespan = end;
    }
    bool overlaps = any_pair_overlaps(buffers, count);
    PackingCheck check = check_packing(buffers, count, 1, makespan);
    assert_int_equal(check.fault, overlaps ? PACKING_OVERLAP : PACKING_VALID);
    if (overlaps) {
      PackingBuffer pair[] = {buffers[check.first], buffers[check.second]};
      assert_true(any_pair_overlaps(pair, 2));
    }
    valid += !overlaps;
  }
  assert_in_range(valid, CASES / 20, CASES - CASES / 20);
}

/* Moves one buffer of a valid packing onto another that lives with it. */
static void finds_every_planted_overlap(void **state) {
  (void)state;
  enum { COUNT = 300 };
  for (uint64_t seed = 1; seed <= 20; seed++) {
    PackingBuffer buffers[COUNT];
    random_buffers(seed, buffers, COUNT, 200, 30, 1000);
    PackingResult result = pack_buffers(buffers, COUNT, &(PackingOptions){.effort = 1});
    assert_int_equal(fault_of(buffers, COUNT, 1, result.makespan), PACKING_VALID);
    uint64_t generator = seed;
    for (int planted = 0; planted < 50;) {
      int64_t i = random_below(&generator, COUNT), j = random_below(&generator, COUNT), before = buffers[i].offset;
      bool live_together = buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper;
      if (i == j || !live_together || !buffers[i].size || !buffers[j].size) continue;
      buffers[i].offset = buffers[j].offset;
      assert_int_not_equal(fault_of(buffers, COUNT, 1, result.makespan), PACKING_VALID);
      buffers[i].offset = before;
      planted++;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_touching_buffers),    cmocka_unit_test(finds_the_overlapping_pair),
      cmocka_unit_test(finds_what_lies_outside),     cmocka_unit_test(agrees_with_every_pair),
      cmocka_unit_test(finds_every_planted_overlap),
  };
  return cmocka_run_group_tests_name("packing: checker", tests, NULL, NULL);
}
