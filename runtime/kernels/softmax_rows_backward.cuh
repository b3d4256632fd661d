/* runtime/kernels/softmax_rows_backward.cuh - dx = y (g - sum(g y)) over each row. dx may be y or g. */
#ifndef REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_BACKWARD_CUH
#define REPRISE_RUNTIME_KERNELS_SOFTMAX_ROWS_BACKWARD_CUH

#include "runtime/kernels/reduce.cuh"

/* dx, y, g: [rows, columns]. A block per row. */
RP_ROW_KERNEL rp_softmax_rows_backward(float *dx, const float *y, const float *g, int64_t rows, int64_t columns) {
  const float *value = y + blockIdx.x * columns, *gradient = g + blockIdx.x * columns;
  float *out = dx + blockIdx.x * columns, product = 0.0f;
  const bool vectorises = rp_vectorises(dx, columns) && rp_vectorises(y, columns) && rp_vectorises(g, columns);
  RP_FOR_ROW(j, columns) {
    const float4 v = rp_load4(value, j, columns, vectorises, 0.0f),
                 h = rp_load4(gradient, j, columns, vectorises, 0.0f);
    product += (h.x * v.x + h.y * v.y) + (h.z * v.z + h.w * v.w);
  }
  const float common = rp_block_sum(product);
  RP_FOR_ROW(j, columns) {
    const float4 v = rp_load4(value, j, columns, vectorises, 0.0f),
                 h = rp_load4(gradient, j, columns, vectorises, 0.0f);
    rp_store4(out, j, columns, vectorises,
              make_float4(v.x * (h.x - common), v.y * (h.y - common), v.z * (h.z - common), v.w * (h.w - common)));
  }
}

#endif
