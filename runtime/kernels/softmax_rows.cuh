/* runtime/kernels/softmax_rows.cuh - y = exp(x - max x) / sum exp(x - max x) over each row. y may be x. */
#ifndef REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_CUH
#define REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_CUH

#include "runtime/kernels/reduce.cuh"

/* y, x: [rows, columns]. A row of which every element is -infinity gives NaN. A block per row. */
RP_ROW_KERNEL rp_softmax_rows(float *y, const float *x, int64_t rows, int64_t columns) {
  const float *in = x + blockIdx.x * columns;
  float *out = y + blockIdx.x * columns;
  const bool vectorises = rp_vectorises(x, columns) && rp_vectorises(y, columns);
  const float largest = rp_row_max(in, columns, vectorises);
  float4 held = make_float4(0.0f, 0.0f, 0.0f, 0.0f); /* the thread's first four: all it has, up to 2048 columns */
  float sum = 0.0f;
  RP_FOR_ROW(j, columns) {
    const float4 e = rp_exp4(in, j, columns, vectorises, largest);
    if (j < 4 * (int)blockDim.x) held = e;
    sum += (e.x + e.y) + (e.z + e.w);
  }
  const float scale = 1.0f / rp_block_sum(sum);
  RP_FOR_ROW(j, columns) {
    const float4 e = j < 4 * (int)blockDim.x ? held : rp_exp4(in, j, columns, vectorises, largest);
    rp_store4(out, j, columns, vectorises, make_float4(e.x * scale, e.y * scale, e.z * scale, e.w * scale));
  }
}

#endif
