/* tests/packing/test_packing_rank.c - the order of keys against a stable reference sort. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>

#include "passes/packing/portfolio.h"
#include "tests/packing/packing_random.h"

typedef struct Keyed {
  double key;
  int32_t item;
} Keyed;

static int by_falling_key(const void *left, const void *right) {
  const Keyed *a = left, *b = right;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static void assert_ranked(const double *key, int32_t count) {
  MemoryArena *arena = memory_arena_create();
  int32_t *order = NEW_ARRAY(arena, int32_t, count);
  Keyed *reference = NEW_ARRAY(arena, Keyed, count);
  for (int32_t i = 0; i < count; i++) reference[i] = (Keyed){key[i], i};
  qsort(reference, (size_t)count, sizeof *reference, by_falling_key);
  rank_by_key(key, count, order);
  for (int32_t i = 0; i < count; i++)
    if (order[i] != reference[i].item) fail_msg("rank %d: item %d, not %d", i, order[i], reference[i].item);
  memory_arena_destroy(arena);
}

static void ranks_special_keys(void **state) {
  (void)state;
  static const double key[] = {
      0.0,  -0.0, INFINITY, 1,   -1,        0x1p-1074, -0x1p-1074, -INFINITY, 0x1.fffffffffffffp1023,
      -0.0, 0.0,  INFINITY, 0.5, 0x1p-1022, 1,         -1,         -INFINITY, -0x1.fffffffffffffp1023};
  assert_ranked(key, sizeof key / sizeof *key);
  for (int32_t count = 0; count < 4; count++) assert_ranked(key, count);
}

static void ranks_equal_keys(void **state) {
  (void)state;
  double key[300];
  for (int i = 0; i < 300; i++) key[i] = i % 7 < 3 ? -2.5 : i % 3 ? 2.5 : -0.0;
  assert_ranked(key, 300);
  for (int i = 0; i < 300; i++) key[i] = 3;
  assert_ranked(key, 300);
}

/* Keys of any bits but those of NaN, keys near each other, and few distinct ones. */
static double random_key(uint64_t *seed, int kind) {
  uint64_t bits = random_bits(seed);
  double key;
  memcpy(&key, &bits, sizeof key);
  if (kind == 1 || isnan(key)) return 1 + (double)random_below(seed, 1000) * 0x1p-50;
  return kind == 2 ? (double)random_below(seed, 9) - 4 : key;
}

static void ranks_random_keys(void **state) {
  (void)state;
  enum { MOST = 3000 };
  double key[MOST];
  for (uint64_t seed = 1; seed <= 60; seed++) {
    uint64_t generator = seed;
    int32_t count = (int32_t)random_below(&generator, MOST);
    for (int32_t i = 0; i < count; i++) key[i] = random_key(&generator, seed % 3);
    assert_ranked(key, count);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_special_keys),
      cmocka_unit_test(ranks_equal_keys),
      cmocka_unit_test(ranks_random_keys),
  };
  return cmocka_run_group_tests_name("packing: rank", tests, NULL, NULL);
}
