#include "runtime/gemm.h"

#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <stddef.h>

/* Products up to this many multiply-adds are not worth dividing between BLAS's threads: below about 256^3 OpenBLAS
 * spends as long on starting and joining as on the product. */
static const int64_t small_product = (int64_t)1 << 24;

/* OpenBLAS has these two; another BLAS is taken to use no threads inside a parallel region. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak));

void rp_threads_set(int threads) {
  omp_set_num_threads(threads);
  if (openblas_set_num_threads) openblas_set_num_threads(threads);
}

int rp_threads_get(void) { return omp_get_max_threads(); }

/* An OpenBLAS with threads of its own (parallel() == 1) must not be called from several threads: they would share it.
 */
static bool blas_is_serial_in_parallel(void) { return !openblas_get_parallel || openblas_get_parallel() != 1; }

static void scale(int64_t m, int64_t n, float beta, float *c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
  }
}

static void multiply_by_loops(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                              const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t p = 0; p < k; p++) {
      float factor = alpha * (transpose_a ? a[p * lda + i] : a[i * lda + p]);
      for (int64_t j = 0; j < n; j++) c[i * ldc + j] += factor * (transpose_b ? b[j * ldb + p] : b[p * ldb + j]);
    }
  }
}

/* BLAS wants the leading dimension of even a single row to hold it. */
static int64_t leading_dimension(int64_t rows, int64_t columns, int64_t given) {
  return rows <= 1 && given < columns ? columns : given;
}

void rp_gemm_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  int64_t a_columns = transpose_a ? m : k, b_columns = transpose_b ? k : n;
  if (m <= 0 || n <= 0) return;
  lda = leading_dimension(transpose_a ? k : m, a_columns, lda);
  ldb = leading_dimension(transpose_b ? n : k, b_columns, ldb);
  ldc = leading_dimension(m, n, ldc);
  bool fits = m <= INT_MAX && n <= INT_MAX && k <= INT_MAX && lda <= INT_MAX && ldb <= INT_MAX && ldc <= INT_MAX;
  if (k > 0 && fits && lda >= a_columns && ldb >= b_columns && ldc >= n) {
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, (int)m,
                (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
    return;
  }
  scale(m, n, beta, c, ldc);
  multiply_by_loops(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, c, ldc);
}

/* Element offset of batch entry `index` (row major over dims) under `strides`. */
static int64_t batch_offset(const RpGemmBatch *batch, const int64_t *strides, int64_t index) {
  int64_t offset = 0;
  for (int axis = batch->rank - 1; axis >= 0; axis--) {
    offset += index % batch->dims[axis] * strides[axis];
    index /= batch->dims[axis];
  }
  return offset;
}

void rp_gemm_batched_f32(const RpGemmBatch *batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                         float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                         int64_t ldc) {
  int64_t count = 1;
  for (int axis = 0; axis < batch->rank; axis++) count *= batch->dims[axis];
  int threads = omp_get_max_threads();
  int64_t work = m * n * k; /* of tensors whose sizes fit 64 bits; a wrapped product only picks the other way */
  bool parallel = threads > 1 && count >= threads && work <= small_product && blas_is_serial_in_parallel();
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t i = 0; i < count; i++) {
    rp_gemm_f32(transpose_a, transpose_b, m, n, k, alpha, a + batch_offset(batch, batch->stride_a, i), lda,
                b + batch_offset(batch, batch->stride_b, i), ldb, beta, c + batch_offset(batch, batch->stride_c, i),
                ldc);
  }
}
