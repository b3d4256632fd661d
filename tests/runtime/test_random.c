/* Random numbers, initial values, schedules, element types. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/initial.h"
#include "runtime/random.h"
#include "runtime/schedule.h"
#include "runtime/types.h"

/* From Random123's kat_vectors: counter, key, result. */
static void test_known_answers(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], result[4];
  } vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    const uint32_t *c = vectors[i].counter;
    uint32_t out[4];
    rp_philox(vectors[i].key[0], vectors[i].key[1], c[0], c[1], c[2], c[3], out);
    assert_memory_equal(out, vectors[i].result, sizeof out);
  }
}

/* Counter and key are laid out as documented: every argument matters, at its place. */
static void test_counter_layout(void **state) {
  (void)state;
  uint32_t out[4], expected[4];
  rp_random_words(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3u, 0x243f6a88u, out);
  rp_philox(0xa4093822, 0x299f31d0, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, expected);
  assert_memory_equal(out, expected, sizeof out);
  rp_random_words(0, 1, (uint64_t)2 << 32, (uint64_t)3 << 32, out);
  rp_philox(2, 3, 0, 0, 1, 0, expected);
  assert_memory_equal(out, expected, sizeof out);
}

static void test_uniform(void **state) {
  (void)state;
  enum { N = 100000 };
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < N; i++) {
    double u = rp_uniform(1, 2, 3, i);
    assert_true(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  assert_float_equal(sum / N, 0.5, 4 * sqrt(1.0 / 12 / N));
  assert_float_equal(squares / N, 1.0 / 3, 0.005);
  assert_true(rp_hash_name("h.0.drop#0") != rp_hash_name("h.0.drop#1"));
}

static void fill(RpInitialKind kind, double value, double mean, const char *name, uint64_t seed, float *to, int64_t n) {
  RpPersistent persistent = {{name, RP_F32, 1, {n}, 0}, RP_PARAMETER, {kind, value, mean}, true};
  rp_initialise(&persistent, seed, to);
}

static void moments(const float *values, int n, double *mean, double *deviation) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) sum += values[i];
  for (int i = 0; i < n; i++) squares += (values[i] - sum / n) * (values[i] - sum / n);
  *mean = sum / n;
  *deviation = sqrt(squares / n);
}

static void test_initial_values(void **state) {
  (void)state;
  enum { N = 100001 };
  float *values = malloc(N * sizeof *values);
  double mean, deviation;
  fill(RP_INIT_NORMAL, 0.02, 1, "w", 1, values, N);
  moments(values, N, &mean, &deviation);
  assert_float_equal(mean, 1, 0.0003);
  assert_float_equal(deviation, 0.02, 0.0003);
  fill(RP_INIT_UNIFORM, 3, 0, "w", 1, values, N);
  moments(values, N, &mean, &deviation);
  assert_float_equal(mean, 0, 0.03);
  assert_float_equal(deviation, sqrt(3), 0.02);
  for (int i = 0; i < N; i++) assert_true(values[i] >= -3 && values[i] < 3);
  fill(RP_INIT_TRUNCATED_NORMAL, 0.5, 0, "w", 1, values, N);
  moments(values, N, &mean, &deviation);
  assert_float_equal(deviation, 0.5 * 0.8796, 0.005); /* of a normal cut at two deviations */
  for (int i = 0; i < N; i++) assert_true(fabsf(values[i]) <= 1);
  fill(RP_INIT_CONSTANT, 0.25, 0, "w", 1, values, 3);
  assert_true(values[0] == 0.25f && values[2] == 0.25f);
  free(values);
}

/* behaviours 12: equal initialisers of two parameters draw different values; the same seed and name the same. */
static void test_initial_values_by_name_and_seed(void **state) {
  (void)state;
  float a[5], b[5];
  fill(RP_INIT_NORMAL, 1, 0, "fc1.weight", 1, a, 5);
  fill(RP_INIT_NORMAL, 1, 0, "fc1.weight", 1, b, 5);
  assert_memory_equal(a, b, sizeof a);
  fill(RP_INIT_NORMAL, 1, 0, "fc2.weight", 1, b, 5);
  for (int i = 0; i < 5; i++) assert_true(a[i] != b[i]);
  fill(RP_INIT_NORMAL, 1, 0, "fc1.weight", 2, b, 5);
  for (int i = 0; i < 5; i++) assert_true(a[i] != b[i]);
}

static void test_schedules(void **state) {
  (void)state;
  RpSchedule cosine = {RP_SCHEDULE_COSINE, 4, 12, 0, 0.1, 0}, linear = {RP_SCHEDULE_LINEAR, 0, 10, 0, 0.5, 0};
  RpSchedule step = {RP_SCHEDULE_STEP, 0, 0, 3, 0, 0.1}, constant = {.kind = RP_SCHEDULE_CONSTANT};
  RpSchedule all_warmup = {RP_SCHEDULE_COSINE, 5, 5, 0, 0, 0};
  assert_float_equal(rp_schedule_factor(&cosine, 0), 0.25, 1e-12);
  assert_float_equal(rp_schedule_factor(&cosine, 3), 1, 1e-12);
  assert_float_equal(rp_schedule_factor(&cosine, 4), 1, 1e-12);
  assert_float_equal(rp_schedule_factor(&cosine, 8), 0.55, 1e-12);
  assert_float_equal(rp_schedule_factor(&cosine, 12), 0.1, 1e-12);
  assert_float_equal(rp_schedule_factor(&cosine, 1000), 0.1, 1e-12);
  assert_float_equal(rp_schedule_factor(&linear, 5), 0.75, 1e-12);
  assert_float_equal(rp_schedule_factor(&step, 2), 1, 1e-12);
  assert_float_equal(rp_schedule_factor(&step, 3), 0.1, 1e-12);
  assert_float_equal(rp_schedule_factor(&step, 6), 0.01, 1e-12);
  assert_float_equal(rp_schedule_factor(&constant, 7), 1, 0);
  assert_float_equal(rp_schedule_factor(&all_warmup, 5), 0, 1e-12);
}

/* Every half and bfloat16 survives the way to float and back; rounding is to nearest even. */
static void test_small_floats(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float half = rp_half_to_float((uint16_t)bits), bfloat = rp_bfloat_to_float((uint16_t)bits);
    if (!isnan(half)) assert_int_equal(rp_float_to_half(half), bits);
    if (!isnan(bfloat)) assert_int_equal(rp_float_to_bfloat(bfloat), bits);
    if (isnan(half)) assert_true(isnan(rp_half_to_float(rp_float_to_half(half))));
    if (isnan(bfloat)) assert_true(isnan(rp_bfloat_to_float(rp_float_to_bfloat(bfloat))));
  }
  assert_true(rp_half_to_float(0x3c00) == 1 && rp_half_to_float(0x0001) == 0x1p-24f &&
              rp_half_to_float(0xfbff) == -65504);
  assert_int_equal(rp_float_to_half(1 + 0x1p-11f), 0x3c00);            /* tie to even, down */
  assert_int_equal(rp_float_to_half(1 + 0x1p-10f + 0x1p-11f), 0x3c02); /* tie to even, up */
  assert_int_equal(rp_float_to_half(65519), 0x7bff);
  assert_int_equal(rp_float_to_half(65520), 0x7c00);
  assert_int_equal(rp_float_to_half(-1e-30f), 0x8000);
  assert_int_equal(rp_float_to_bfloat(1 + 0x1p-8f), 0x3f80);
  assert_int_equal(rp_float_to_bfloat(1 + 0x1p-8f + 0x1p-20f), 0x3f81);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers), cmocka_unit_test(test_counter_layout),
      cmocka_unit_test(test_uniform),       cmocka_unit_test(test_initial_values),
      cmocka_unit_test(test_schedules),     cmocka_unit_test(test_initial_values_by_name_and_seed),
      cmocka_unit_test(test_small_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
