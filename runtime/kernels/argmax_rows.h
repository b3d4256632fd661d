/* runtime/kernels/argmax_rows.h - index of the first largest element of each row. */
#ifndef REPRISE_RUNTIME_KERNELS_ARGMAX_ROWS_H
#define REPRISE_RUNTIME_KERNELS_ARGMAX_ROWS_H

#include "runtime/kernels/reduce.h"

/* index: [rows]; x: [rows, columns]. NaN is passed over; a row of NaN alone gives 0. */
static inline void rp_argmax_rows(int32_t *index, const float *x, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *in = x + row * columns;
    const float largest = rp_max_row(in, columns);
    int64_t at = 0;
    while (at < columns && !(in[at] == largest)) at++;
    index[row] = at < columns ? (int32_t)at : 0;
  }
}

#endif
