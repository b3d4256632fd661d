/* runtime/kernels/layer_norm_backward.cuh - gradient of the input of layer_norm. dx may be g or x. */
#ifndef REPRISE_RUNTIME_KERNELS_LAYER_NORM_BACKWARD_CUH
#define REPRISE_RUNTIME_KERNELS_LAYER_NORM_BACKWARD_CUH

#include "runtime/kernels/reduce.cuh"

/* h = g weight; g where there is no weight. */
RP_FUNCTION float4 rp_scaled_gradient(const float *g, const float *weight, int64_t j, int64_t columns,
                                      bool vectorises) {
  float4 h = rp_load4(g, j, columns, vectorises, 0.0f);
  if (!weight) return h;
  const float4 w = rp_load4(weight, j, columns, vectorises, 0.0f);
  return make_float4(h.x * w.x, h.y * w.y, h.z * w.z, h.w * w.w);
}

/* dx, g, x: [rows, columns]; weight: [columns] or NULL; mean, rstd: [rows]. A block per row.
 *   dx = rstd (h - mean(h) - n mean(h n)) with n = (x - mean) rstd */
RP_ROW_KERNEL rp_layer_norm_backward(float *dx, const float *g, const float *x, const float *__restrict__ weight,
                                     const float *__restrict__ mean, const float *__restrict__ rstd, int64_t rows,
                                     int64_t columns) {
  const float *gradient = g + blockIdx.x * columns, *in = x + blockIdx.x * columns;
  float *out = dx + blockIdx.x * columns;
  const bool vectorises = rp_vectorises(dx, columns) && rp_vectorises(g, columns) && rp_vectorises(x, columns) &&
                          rp_vectorises(weight, columns);
  const float center = mean[blockIdx.x], scale = rstd[blockIdx.x];
  float sum = 0.0f, product = 0.0f;
  RP_FOR_ROW(j, columns) {
    const float4 h = rp_scaled_gradient(gradient, weight, j, columns, vectorises);
    const float4 v = rp_load4(in, j, columns, vectorises, center);
    sum += (h.x + h.y) + (h.z + h.w);
    product += (h.x * ((v.x - center) * scale) + h.y * ((v.y - center) * scale)) +
               (h.z * ((v.z - center) * scale) + h.w * ((v.w - center) * scale));
  }
  const float mean_h = rp_block_sum(sum) / (float)columns, mean_product = rp_block_sum(product) / (float)columns;
  RP_FOR_ROW(j, columns) {
    const float4 h = rp_scaled_gradient(gradient, weight, j, columns, vectorises);
    const float4 v = rp_load4(in, j, columns, vectorises, center);
    rp_store4(out, j, columns, vectorises,
              make_float4(scale * (h.x - mean_h - (v.x - center) * scale * mean_product),
                          scale * (h.y - mean_h - (v.y - center) * scale * mean_product),
                          scale * (h.z - mean_h - (v.z - center) * scale * mean_product),
                          scale * (h.w - mean_h - (v.w - center) * scale * mean_product)));
  }
}

#endif
