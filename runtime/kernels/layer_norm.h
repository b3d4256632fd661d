/* runtime/kernels/layer_norm.h - y = (x - mean) rstd weight + bias over each row. y may be x. */
#ifndef REPRISE_RUNTIME_KERNELS_LAYER_NORM_H
#define REPRISE_RUNTIME_KERNELS_LAYER_NORM_H

#include "runtime/kernels/reduce.h"

/* Sum of (x[j] - mean)^2 over x[0..columns). */
RP_FUNCTION float rp_sum_square_deviations(const float *x, float mean, int64_t columns) {
  float lanes[RP_LANES] = {0};
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] += (x[j + lane] - mean) * (x[j + lane] - mean);
  }
  for (int lane = 0; j + lane < columns; lane++) lanes[lane] += (x[j + lane] - mean) * (x[j + lane] - mean);
  return rp_sum_lanes(lanes);
}

/* y, x: [rows, columns]; mean, rstd: [rows], rstd = 1 / sqrt(variance + eps) with the variance divided by columns;
 * weight, bias: [columns] or NULL. */
static inline void rp_layer_norm(float *y, float *mean, float *rstd, const float *x, const float *weight,
                                 const float *bias, int64_t rows, int64_t columns, float eps) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *in = x + row * columns;
    float *out = y + row * columns;
    const float center = rp_sum_row(in, columns) / (float)columns;
    const float variance = rp_sum_square_deviations(in, center, columns) / (float)columns;
    const float scale = 1.0f / sqrtf(variance + eps);
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) out[j] = (in[j] - center) * scale;
    if (weight) {
#pragma omp simd
      for (int64_t j = 0; j < columns; j++) out[j] *= weight[j];
    }
    if (bias) {
#pragma omp simd
      for (int64_t j = 0; j < columns; j++) out[j] += bias[j];
    }
    mean[row] = center;
    rstd[row] = scale;
  }
}

#endif
