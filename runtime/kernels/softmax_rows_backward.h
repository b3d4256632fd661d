/* runtime/kernels/softmax_rows_backward.h - dx = y (g - sum(g y)) over each row. dx may be y or g. */
#ifndef REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_BACKWARD_H
#define REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_BACKWARD_H

#include "runtime/kernels/reduce.h"

/* dx, y, g: [rows, columns]. */
static inline void rp_softmax_rows_backward(float *dx, const float *y, const float *g, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *value = y + row * columns, *gradient = g + row * columns;
    float *out = dx + row * columns;
    const float common = rp_dot_row(gradient, value, columns);
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) out[j] = value[j] * (gradient[j] - common);
  }
}

#endif
