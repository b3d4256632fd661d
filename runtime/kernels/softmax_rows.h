/* runtime/kernels/softmax_rows.h - y = exp(x - max x) / sum exp(x - max x) over each row. y may be x. */
#ifndef REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_H
#define REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_H

#include "runtime/kernels/reduce.h"

/* y, x: [rows, columns]. A row of which every element is -infinity gives NaN. */
static inline void rp_softmax_rows(float *y, const float *x, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *in = x + row * columns;
    float *out = y + row * columns;
    const float largest = rp_max_row(in, columns);
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) out[j] = rp_exp_f32(in[j] - largest);
    const float scale = 1.0f / rp_sum_row(out, columns);
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) out[j] *= scale;
  }
}

#endif
