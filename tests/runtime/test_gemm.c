/* Products over BLAS against plain loops in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/gemm.h"
#include "runtime/random.h"

static float *random_floats(int64_t count, uint64_t stream) {
  float *values = malloc((size_t)count * sizeof *values + 1);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = rp_uniform(11, stream, 0, (uint64_t)i) - 0.5f;
  return values;
}

static double expected(bool ta, bool tb, int64_t i, int64_t j, int64_t k, const float *a, int64_t lda, const float *b,
                       int64_t ldb) {
  double sum = 0;
  for (int64_t p = 0; p < k; p++) {
    sum += (double)(ta ? a[p * lda + i] : a[i * lda + p]) * (double)(tb ? b[j * ldb + p] : b[p * ldb + j]);
  }
  return sum;
}

static void check(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, float beta, int64_t pad) {
  int64_t lda = (ta ? m : k) + pad, ldb = (tb ? k : n) + pad, ldc = n + pad;
  float *a = random_floats((ta ? k : m) * lda, 1), *b = random_floats((tb ? n : k) * ldb, 2);
  float *c = random_floats(m * ldc, 3), *before = random_floats(m * ldc, 3);
  if (beta == 0) c[0] = NAN; /* overwritten, not multiplied by 0 */
  rp_gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < ldc; j++) {
      double right = before[i * ldc + j];
      if (j < n) right = alpha * expected(ta, tb, i, j, k, a, lda, b, ldb) + (beta == 0 ? 0 : beta * right);
      if (!(fabs(c[i * ldc + j] - right) <= 1e-6 * (double)(k + 1))) {
        fail_msg("%d %d %ldx%ldx%ld: [%ld,%ld] = %g, expected %g", ta, tb, (long)m, (long)n, (long)k, (long)i, (long)j,
                 (double)c[i * ldc + j], right);
      }
    }
  }
  free(a), free(b), free(c), free(before);
}

static void test_against_loops(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 17, 64, 131};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  for (int shape = 0; shape < COUNT * COUNT * COUNT; shape++) {
    int64_t m = sizes[shape % COUNT], n = sizes[shape / COUNT % COUNT], k = sizes[shape / COUNT / COUNT];
    for (int form = 0; form < 4; form++) {
      check(form & 1, form & 2, m, n, k, 1, 0, 0);
      check(form & 1, form & 2, m, n, k, 0.5f, 1, 5);
    }
  }
}

static void test_degenerate(void **state) {
  (void)state;
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4] = {NAN, 2, 3, 4};
  rp_gemm_f32(false, false, 2, 2, 0, 1, a, 0, b, 2, 0, c, 2);
  for (int i = 0; i < 4; i++) assert_true(c[i] == 0);
  c[0] = 9;
  rp_gemm_f32(false, false, 2, 2, 0, 1, a, 0, b, 2, 2, c, 2);
  assert_true(c[0] == 18);
  rp_gemm_f32(false, false, 0, 2, 2, 1, a, 2, b, 2, 0, c, 2);
  rp_gemm_f32(false, false, 2, 0, 2, 1, a, 2, b, 0, 0, c, 0);
  assert_true(c[0] == 18);
  /* One row: its leading dimension is not looked at. */
  rp_gemm_f32(false, true, 1, 1, 4, 1, a, 0, b, 0, 0, c, 0);
  assert_true(c[0] == 70);
  /* A leading dimension beyond int, and rows that overlap (stride 0: one row broadcast). */
  rp_gemm_f32(false, false, 1, 2, 2, 1, a, (int64_t)1 << 40, b, 2, 0, c, (int64_t)1 << 40);
  assert_true(c[0] == 19 && c[1] == 22);
  rp_gemm_f32(false, false, 2, 2, 2, 1, a, 0, b, 2, 0, c, 2);
  assert_true(c[0] == 19 && c[1] == 22 && c[2] == 19 && c[3] == 22);
}

/* A [3,1,2] batch: a broadcast over its second axis, b over its first, c transposed in memory. */
static void test_batches(void **state) {
  (void)state;
  enum { M = 5, N = 4, K = 3 };
  RpGemmBatch batch = {3, {3, 1, 2}, {M * K, 0, 0}, {0, 7, K * N}, {M * N, 0, 3 * M * N}};
  float *a = random_floats(3 * M * K, 1), *b = random_floats(2 * K * N, 2), c[6 * M * N], other[6 * M * N];
  for (int threads = 1; threads <= 4; threads++) {
    rp_threads_set(threads);
    assert_int_equal(rp_threads_get(), threads);
    rp_gemm_batched_f32(&batch, false, false, M, N, K, 1, a, K, b, N, 0, c, N);
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 2; j++) {
        const float *part = c + i * M * N + j * 3 * M * N;
        for (int e = 0; e < M * N; e++) {
          double right = expected(false, false, e / N, e % N, K, a + i * M * K, K, b + j * K * N, N);
          assert_true(fabs(part[e] - right) < 1e-6);
        }
      }
    }
    rp_gemm_batched_f32(&batch, false, false, M, N, K, 1, a, K, b, N, 0, other, N);
    assert_memory_equal(c, other, sizeof c);
  }
  batch.dims[1] = 0;
  c[0] = 42;
  rp_gemm_batched_f32(&batch, false, false, M, N, K, 1, a, K, b, N, 0, c, N);
  assert_true(c[0] == 42);
  free(a), free(b);
}

static void test_same_bits_from_call_to_call(void **state) {
  (void)state;
  enum { M = 150, N = 70, K = 333 };
  float *a = random_floats(M * K, 1), *b = random_floats(K * N, 2), *first = random_floats(M * N, 3),
        *second = random_floats(M * N, 4);
  for (int threads = 1; threads <= 2; threads++) {
    rp_threads_set(threads);
    rp_gemm_f32(false, false, M, N, K, 1, a, K, b, N, 0, first, N);
    for (int call = 0; call < 5; call++) {
      rp_gemm_f32(false, false, M, N, K, 1, a, K, b, N, 0, second, N);
      assert_memory_equal(first, second, M * N * sizeof *first);
    }
  }
  free(a), free(b), free(first), free(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_loops),
      cmocka_unit_test(test_degenerate),
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_same_bits_from_call_to_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
