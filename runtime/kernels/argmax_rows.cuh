/* runtime/kernels/argmax_rows.cuh - index of the first largest element of each row. */
#ifndef REPRISE_RUNTIME_KERNELS_ARGMAX_ROWS_CUH
#define REPRISE_RUNTIME_KERNELS_ARGMAX_ROWS_CUH

#include "runtime/kernels/reduce.cuh"

/* index: [rows]; x: [rows, columns]. NaN is passed over; a row of NaN alone gives 0. A block per row. */
RP_ROW_KERNEL rp_argmax_rows(int32_t *index, const float *__restrict__ x, int64_t rows, int64_t columns) {
  __shared__ int32_t first[32];
  const float *in = x + blockIdx.x * columns;
  const float largest = rp_row_max(in, columns, rp_vectorises(x, columns));
  int32_t at = INT32_MAX; /* of this thread's elements, then of the warp's, then of the block's */
  for (int64_t j = threadIdx.x; j < columns && at == INT32_MAX; j += blockDim.x)
    if (in[j] == largest) at = (int32_t)j;
  for (int distance = 16; distance > 0; distance /= 2) {
    const int32_t other = __shfl_xor_sync(RP_ALL_LANES, at, distance);
    at = other < at ? other : at;
  }
  if (rp_lane() == 0) first[rp_warp()] = at;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 0; warp < rp_warps(); warp++) at = first[warp] < at ? first[warp] : at;
  index[blockIdx.x] = at == INT32_MAX ? 0 : at;
}

#endif
