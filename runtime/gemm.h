/* runtime/gemm.h - matrix products over BLAS, row major.
 *
 * For equal shapes and thread counts the result is bitwise the same from call to call: how the work is divided depends
 * on nothing else. */
#ifndef REPRISE_RUNTIME_GEMM_H
#define REPRISE_RUNTIME_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_BATCH_MAX_RANK = 6 };

/* c[m,n] = alpha op(a)[m,k] op(b)[k,n] + beta c, op = transpose where asked. lda, ldb, ldc: elements from row to row as
 * stored. beta 0 overwrites c, also NaN. m or n 0 does nothing; k 0 gives beta c. Sizes that BLAS's int does not hold
 * and rows that overlap (a leading dimension below the row's length) are computed by plain loops. */
void rp_gemm_f32(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* Leading axes of a batched product: sizes, and elements from one index to the next in each operand. A stride of 0
 * broadcasts a or b; the parts of c must not overlap. */
typedef struct RpGemmBatch {
  int rank;
  int64_t dims[RP_BATCH_MAX_RANK];
  int64_t stride_a[RP_BATCH_MAX_RANK], stride_b[RP_BATCH_MAX_RANK], stride_c[RP_BATCH_MAX_RANK];
} RpGemmBatch;

/* rp_gemm_f32 for every index of the batch. Many small products run in parallel, one thread each; otherwise BLAS's own
 * threads work on one after the other. */
void rp_gemm_batched_f32(const RpGemmBatch *batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                         float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                         int64_t ldc);

/* Threads of OpenMP loops and of BLAS. */
void rp_threads_set(int threads);
int rp_threads_get(void);

#endif
