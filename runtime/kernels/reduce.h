/* runtime/kernels/reduce.h - sums and maxima of rows with a fixed order of operations.
 *
 * Element i of a row goes to lane i mod RP_LANES, lanes are combined as a tree. So the bits depend on the length of
 * the row alone: not on the width of the machine's vectors, which the compiler fits to the lanes, and not on threads,
 * which share out whole rows. */
#ifndef REPRISE_RUNTIME_KERNELS_REDUCE_H
#define REPRISE_RUNTIME_KERNELS_REDUCE_H

#include "runtime/scalar_math.h"

enum {
  RP_LANES = 16,
  /* Elements from which a kernel starts its threads: below, starting them (about 2 us) costs more than they save. */
  RP_PARALLEL_ELEMENTS = 16384
};

/* Destroys lanes. */
RP_FUNCTION float rp_sum_lanes(float lanes[RP_LANES]) {
  for (int width = RP_LANES / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

/* Destroys lanes. NaN lanes are passed over. */
RP_FUNCTION float rp_max_lanes(float lanes[RP_LANES]) {
  for (int width = RP_LANES / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++)
      lanes[lane] = lanes[lane + width] > lanes[lane] ? lanes[lane + width] : lanes[lane];
  return lanes[0];
}

/* Sum of x[0..columns). */
RP_FUNCTION float rp_sum_row(const float *x, int64_t columns) {
  float lanes[RP_LANES] = {0};
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] += x[j + lane];
  }
  for (int lane = 0; j + lane < columns; lane++) lanes[lane] += x[j + lane];
  return rp_sum_lanes(lanes);
}

/* Largest of x[0..columns); NaN is passed over, -infinity when nothing is larger. */
RP_FUNCTION float rp_max_row(const float *x, int64_t columns) {
  float lanes[RP_LANES];
  for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] = -rp_infinity_f32();
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
  }
  for (int lane = 0; j + lane < columns; lane++) lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
  return rp_max_lanes(lanes);
}

/* Sum of exp(x[j] - shift) over x[0..columns). */
RP_FUNCTION float rp_sum_exp_row(const float *x, float shift, int64_t columns) {
  float lanes[RP_LANES] = {0};
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] += rp_exp_f32(x[j + lane] - shift);
  }
  for (int lane = 0; j + lane < columns; lane++) lanes[lane] += rp_exp_f32(x[j + lane] - shift);
  return rp_sum_lanes(lanes);
}

/* Sum of a[j] b[j] over [0..columns). */
RP_FUNCTION float rp_dot_row(const float *a, const float *b, int64_t columns) {
  float lanes[RP_LANES] = {0};
  int64_t j = 0;
  for (; j + RP_LANES <= columns; j += RP_LANES) {
#pragma omp simd
    for (int lane = 0; lane < RP_LANES; lane++) lanes[lane] += a[j + lane] * b[j + lane];
  }
  for (int lane = 0; j + lane < columns; lane++) lanes[lane] += a[j + lane] * b[j + lane];
  return rp_sum_lanes(lanes);
}

#endif
