/* runtime/kernels/reduce.cuh - sums and extremes over a warp and over a block, in a fixed order.
 *
 * Lanes are combined by a butterfly, so every lane has the result and, addition being commutative, the same bits. All
 * threads of the block call, and the block is whole warps along x. The order depends on the size of the block alone. */
#ifndef REPRISE_RUNTIME_KERNELS_REDUCE_CUH
#define REPRISE_RUNTIME_KERNELS_REDUCE_CUH

#include "runtime/kernels/device.cuh"

#define RP_ALL_LANES 0xffffffffu

/* A row of a block's own: thread t takes elements 4t .. 4t + 3 of each stretch of four times the block. */
#define RP_FOR_ROW(j, columns) for (int64_t j = 4 * (int64_t)threadIdx.x; j < (columns); j += 4 * (int64_t)blockDim.x)

RP_FUNCTION float rp_warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(RP_ALL_LANES, value, distance);
  return value;
}

/* No value is NaN. */
RP_FUNCTION float rp_warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(RP_ALL_LANES, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

RP_FUNCTION int rp_lane(void) { return (int)(threadIdx.x % 32); }
RP_FUNCTION int rp_warp(void) { return (int)(threadIdx.x / 32); }
RP_FUNCTION int rp_warps(void) { return (int)(blockDim.x / 32); }

/* The sum of every thread's value, in every thread. */
RP_FUNCTION float rp_block_sum(float value) {
  __shared__ float partial[32];
  value = rp_warp_sum(value);
  if (rp_warps() == 1) return value;
  __syncthreads(); /* what an earlier call left has been read */
  if (rp_lane() == 0) partial[rp_warp()] = value;
  __syncthreads();
  return rp_warp_sum(rp_lane() < rp_warps() ? partial[rp_lane()] : 0.0f);
}

/* The largest of every thread's value, none of them NaN, in every thread. */
RP_FUNCTION float rp_block_max(float value) {
  __shared__ float partial[32];
  value = rp_warp_max(value);
  if (rp_warps() == 1) return value;
  __syncthreads(); /* what an earlier call left has been read */
  if (rp_lane() == 0) partial[rp_warp()] = value;
  __syncthreads();
  return rp_warp_max(rp_lane() < rp_warps() ? partial[rp_lane()] : -rp_infinity_f32());
}

/* ---- one row per block ---- */

/* NaN is passed over, -infinity when nothing is larger. */
RP_FUNCTION float rp_row_max(const float *row, int64_t columns, bool vectorises) {
  const float lowest = -rp_infinity_f32();
  float largest = lowest;
  RP_FOR_ROW(j, columns) {
    const float4 x = rp_load4(row, j, columns, vectorises, lowest);
    largest = x.x > largest ? x.x : largest;
    largest = x.y > largest ? x.y : largest;
    largest = x.z > largest ? x.z : largest;
    largest = x.w > largest ? x.w : largest;
  }
  return rp_block_max(largest);
}

RP_FUNCTION float rp_row_sum(const float *row, int64_t columns, bool vectorises) {
  float sum = 0.0f;
  RP_FOR_ROW(j, columns) {
    const float4 x = rp_load4(row, j, columns, vectorises, 0.0f);
    sum += (x.x + x.y) + (x.z + x.w);
  }
  return rp_block_sum(sum);
}

/* exp(x - shift) of row[j .. j + 4), 0 from `columns` on. */
RP_FUNCTION float4 rp_exp4(const float *row, int64_t j, int64_t columns, bool vectorises, float shift) {
  const float4 x = rp_load4(row, j, columns, vectorises, 0.0f);
  return make_float4(rp_exp_f32(x.x - shift), j + 1 < columns ? rp_exp_f32(x.y - shift) : 0.0f,
                     j + 2 < columns ? rp_exp_f32(x.z - shift) : 0.0f,
                     j + 3 < columns ? rp_exp_f32(x.w - shift) : 0.0f);
}

/* Sum of exp(x[j] - shift). */
RP_FUNCTION float rp_row_sum_exp(const float *row, float shift, int64_t columns, bool vectorises) {
  float sum = 0.0f;
  RP_FOR_ROW(j, columns) {
    const float4 e = rp_exp4(row, j, columns, vectorises, shift);
    sum += (e.x + e.y) + (e.z + e.w);
  }
  return rp_block_sum(sum);
}

#endif
