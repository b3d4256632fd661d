/* runtime/kernels/softmax_rows.cuh - y = exp(x - max x) / sum exp(x - max x) over each row. y may be x. */
#ifndef REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_CUH
#define REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_CUH

#include "runtime/kernels/reduce.cuh"

/* y, x: [rows, columns]. A row of which every element is -infinity gives NaN. A block per row. */
RP_KERNEL rp_softmax_rows(float *y, const float *x, int64_t rows, int64_t columns) {
  const float *in = x + blockIdx.x * columns;
  float *out = y + blockIdx.x * columns;
  const bool vectorises = rp_vectorises(x, columns) && rp_vectorises(y, columns);
  const float largest = rp_row_max(in, columns, vectorises);
  const float scale = 1.0f / rp_row_sum_exp(in, largest, columns, vectorises);
  RP_FOR_ROW(j, columns) {
    const float4 v = rp_load4(in, j, columns, vectorises, 0.0f);
    rp_store4(out, j, columns, vectorises,
              make_float4(rp_exp_f32(v.x - largest) * scale, rp_exp_f32(v.y - largest) * scale,
                          rp_exp_f32(v.z - largest) * scale, rp_exp_f32(v.w - largest) * scale));
  }
}

#endif
