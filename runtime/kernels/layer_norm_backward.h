/* runtime/kernels/layer_norm_backward.h - gradient of the input of layer_norm. dx may be g or x. */
#ifndef REPRISE_RUNTIME_KERNELS_LAYER_NORM_BACKWARD_H
#define REPRISE_RUNTIME_KERNELS_LAYER_NORM_BACKWARD_H

#include "runtime/kernels/reduce.h"

/* One row: dx = rstd (h - mean(h) - n mean(h n)) with h = g weight and n = (x - mean) rstd. `unit` replaces a weight of
 * ones: h = g. */
RP_FUNCTION void rp_layer_norm_backward_row(float *dx, const float *g, const float *x, const float *weight, float mean,
                                            float rstd, int64_t columns, bool unit) {
  float sums[RP_LANES] = {0}, products[RP_LANES] = {0};
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) {
      const float h = unit ? g[j + lane] : g[j + lane] * weight[j + lane];
      sums[lane] += h;
      products[lane] += h * ((x[j + lane] - mean) * rstd);
    }
  }
  for (int lane = 0; j + lane < columns; lane++) {
    const float h = unit ? g[j + lane] : g[j + lane] * weight[j + lane];
    sums[lane] += h;
    products[lane] += h * ((x[j + lane] - mean) * rstd);
  }
  const float mean_h = rp_sum_lanes(sums) / (float)columns, mean_product = rp_sum_lanes(products) / (float)columns;
#pragma omp simd
  for (int64_t k = 0; k < columns; k++) {
    const float h = unit ? g[k] : g[k] * weight[k];
    dx[k] = rstd * (h - mean_h - (x[k] - mean) * rstd * mean_product);
  }
}

/* dx, g, x: [rows, columns]; weight: [columns] or NULL; mean, rstd: [rows]. */
static inline void rp_layer_norm_backward(float *dx, const float *g, const float *x, const float *weight,
                                          const float *mean, const float *rstd, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const int64_t at = row * columns;
    if (weight)
      rp_layer_norm_backward_row(dx + at, g + at, x + at, weight, mean[row], rstd[row], columns, false);
    else
      rp_layer_norm_backward_row(dx + at, g + at, x + at, weight, mean[row], rstd[row], columns, true);
  }
}

#endif
