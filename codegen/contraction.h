/* codegen/contraction.h - batched matrix products as every target sees them. */
#ifndef REPRISE_CODEGEN_CONTRACTION_H
#define REPRISE_CODEGEN_CONTRACTION_H

#include "codegen/emission.h"
#include "codegen/loops.h"

/* c[batch, m, n] = a[batch, m, k] b[batch, k, n]: strides in elements, 0 where an operand is broadcast over the batch.
 */
typedef struct Product {
  LoopNest batch; /* operands a, b, c */
  int64_t m, n, k;
  int64_t a_m, a_k, b_k, b_n, c_m, c_n;
} Product;

enum { OPERAND_A, OPERAND_B, OPERAND_C };

Product product_create(const GraphEmission *graph, const Node *node);

/* A matrix as BLAS takes it: rows with unit stride, or the transpose of such. */
typedef struct Matrix {
  bool transposed;
  int64_t leading; /* elements from stored row to stored row */
} Matrix;
Matrix matrix_form(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);

/* Name of the RpGemmBatch of a product's leading axes. */
const char *batch_constant(GraphEmission *graph, const LoopNest *batch);

#endif
