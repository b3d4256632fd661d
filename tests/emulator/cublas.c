/* libcublas.so.13 for the emulated device: products by plain loops, in order of the inner index.
 *
 * Holds callers to what real cuBLAS needs for reproducible results: a workspace of the caller's, set after the stream.
 * Every product leaves NaNs in it. With TF32 allowed, operands are rounded as tensor cores do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"

enum { STATUS_ALLOC_FAILED = 3, STATUS_INVALID_VALUE = 7, STATUS_EXECUTION_FAILED = 13, STATUS_NOT_SUPPORTED = 15 };

struct cublasContext {
  CuStream stream;
  CuPointer workspace;
  size_t workspace_bytes;
  bool has_workspace;
};

EXPORT const char *cublasGetStatusString(int status) {
  switch (status) {
    case 0:
      return "success";
    case STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    default:
      return "unknown status";
  }
}

EXPORT int cublasCreate_v2(CublasHandle *handle) {
  if (take_library_memory(EMULATED_CUBLAS_BYTES)) return STATUS_ALLOC_FAILED;
  *handle = calloc(1, sizeof **handle);
  return *handle ? 0 : STATUS_ALLOC_FAILED;
}

EXPORT int cublasDestroy_v2(CublasHandle handle) {
  take_library_memory(-(int64_t)EMULATED_CUBLAS_BYTES);
  free(handle);
  return 0;
}

EXPORT int cublasSetStream_v2(CublasHandle handle, CuStream stream) {
  handle->stream = stream;
  handle->has_workspace = false;
  return 0;
}

EXPORT int cublasSetWorkspace_v2(CublasHandle handle, void *workspace, size_t bytes) {
  CuPointer address = (CuPointer)(uintptr_t)workspace;
  if (bytes && (address % 256 || !find_allocation(address, bytes))) return STATUS_INVALID_VALUE;
  handle->workspace = address;
  handle->workspace_bytes = bytes;
  handle->has_workspace = true;
  return 0;
}

typedef struct Product {
  int transpose_a, transpose_b;
  int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
  bool tf32;
  const float *a, *b;
  float *c;
  void *workspace;
  size_t workspace_bytes;
} Product;

/* To the nearest number with 10 bits of mantissa, halves away from zero: what tensor cores take. */
static float operand(const Product *p, float x) {
  uint32_t bits;
  if (!p->tf32 || !isfinite(x)) return x;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static CuResult multiply(void *data) {
  const Product *p = data;
  int64_t a_row = p->transpose_a ? p->lda : 1, a_inner = p->transpose_a ? 1 : p->lda;
  int64_t b_inner = p->transpose_b ? p->ldb : 1, b_column = p->transpose_b ? 1 : p->ldb;
  if (p->workspace_bytes) memset(p->workspace, 0xff, p->workspace_bytes);
  for (int64_t s = 0; s < p->count; s++)
    for (int64_t column = 0; column < p->n; column++)
      for (int64_t row = 0; row < p->m; row++) {
        const float *a = p->a + s * p->stride_a + row * a_row, *b = p->b + s * p->stride_b + column * b_column;
        float sum = 0;
        for (int64_t i = 0; i < p->k; i++) sum += operand(p, a[i * a_inner]) * operand(p, b[i * b_inner]);
        p->c[s * p->stride_c + column * p->ldc + row] = sum;
      }
  return 0;
}

/* The bytes from the first to the last element of `count` column-major matrices. */
static CuOperand span(const void *start, int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t count,
                      int use) {
  int64_t elements = rows && columns ? (count - 1) * stride + (columns - 1) * leading + rows : 0;
  return (CuOperand){(CuPointer)(uintptr_t)start, (size_t)elements * sizeof(float), use};
}

EXPORT int cublasGemmStridedBatchedEx_64(CublasHandle handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                                         const void *alpha, const void *a, int type_a, int64_t lda, long long stride_a,
                                         const void *b, int type_b, int64_t ldb, long long stride_b, const void *beta,
                                         void *c, int type_c, int64_t ldc, long long stride_c, int64_t count,
                                         int compute_type, int algorithm) {
  float scale, added;
  memcpy(&scale, alpha, sizeof scale);
  memcpy(&added, beta, sizeof added);
  bool known = (compute_type == CUBLAS_F32_PEDANTIC || compute_type == CUBLAS_F32_TF32) && type_a == CUBLAS_REAL_F32 &&
               type_b == CUBLAS_REAL_F32 && type_c == CUBLAS_REAL_F32 && algorithm == CUBLAS_DEFAULT_ALGORITHM &&
               scale == 1 && added == 0;
  bool leading = lda >= (op_a ? k : m) && ldb >= (op_b ? n : k) && ldc >= m && lda > 0 && ldb > 0 && ldc > 0;
  if (!known) return STATUS_NOT_SUPPORTED;
  if (!leading || m < 0 || n < 0 || k < 0 || count < 1 || op_a > 1 || op_b > 1) return STATUS_INVALID_VALUE;
  if (!handle->has_workspace) {
    fault(ERROR_LAUNCH_FAILED, "a product without a workspace of the program's own: set it after the stream");
    return STATUS_EXECUTION_FAILED;
  }
  Product p = {op_a,
               op_b,
               m,
               n,
               k,
               lda,
               ldb,
               ldc,
               stride_a,
               stride_b,
               stride_c,
               count,
               compute_type == CUBLAS_F32_TF32,
               a,
               b,
               c,
               (void *)(uintptr_t)handle->workspace,
               handle->workspace_bytes};
  CuOperand operands[] = {span(a, op_a ? k : m, op_a ? m : k, lda, stride_a, count, RP_OPERAND_IN),
                          span(b, op_b ? n : k, op_b ? k : n, ldb, stride_b, count, RP_OPERAND_IN),
                          span(c, m, n, ldc, stride_c, count, RP_OPERAND_UPDATE),
                          {handle->workspace, handle->workspace_bytes, RP_OPERAND_OUT}};
  int operand_count = handle->workspace_bytes ? 4 : 3;
  for (int i = 0; i < operand_count; i++) {
    if (!operands[i].bytes || find_allocation(operands[i].address, operands[i].bytes)) continue;
    fault(ERROR_ILLEGAL_ADDRESS, "operand %d of a product is not in device memory", i);
    return STATUS_EXECUTION_FAILED;
  }
  for (int i = 0; i < operand_count; i++)
    if (operands[i].use != RP_OPERAND_IN) touch(operands[i].address, operands[i].bytes);
  return enqueue_work(handle->stream, "product", multiply, &p, sizeof p, operands, operand_count)
             ? STATUS_EXECUTION_FAILED
             : 0;
}
