/* runtime/kernels/layer_norm.cuh - y = (x - mean) rstd weight + bias over each row. y may be x. */
#ifndef REPRISE_RUNTIME_KERNELS_LAYER_NORM_CUH
#define REPRISE_RUNTIME_KERNELS_LAYER_NORM_CUH

#include "runtime/kernels/reduce.cuh"

/* Sum of (x[j] - mean)^2. */
RP_FUNCTION float rp_row_sum_square_deviations(const float *row, float mean, int64_t columns, bool vectorises) {
  float sum = 0.0f;
  RP_FOR_ROW(j, columns) {
    const float4 x = rp_load4(row, j, columns, vectorises, mean);
    const float a = x.x - mean, b = x.y - mean, c = x.z - mean, d = x.w - mean;
    sum += (a * a + (j + 1 < columns ? b * b : 0.0f)) +
           ((j + 2 < columns ? c * c : 0.0f) + (j + 3 < columns ? d * d : 0.0f));
  }
  return rp_block_sum(sum);
}

RP_FUNCTION float4 rp_multiply4(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
RP_FUNCTION float4 rp_add4(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

/* y, x: [rows, columns]; mean, rstd: [rows], rstd = 1 / sqrt(variance + eps) with the variance divided by columns;
 * weight, bias: [columns] or NULL. A block per row. */
RP_ROW_KERNEL rp_layer_norm(float *y, float *mean, float *rstd, const float *x, const float *__restrict__ weight,
                            const float *__restrict__ bias, int64_t rows, int64_t columns, float eps) {
  const float *in = x + blockIdx.x * columns;
  float *out = y + blockIdx.x * columns;
  const bool vectorises = rp_vectorises(x, columns) && rp_vectorises(y, columns) && rp_vectorises(weight, columns) &&
                          rp_vectorises(bias, columns);
  const float center = rp_row_sum(in, columns, vectorises) / (float)columns;
  const float variance = rp_row_sum_square_deviations(in, center, columns, vectorises) / (float)columns;
  const float scale = 1.0f / sqrtf(variance + eps);
  RP_FOR_ROW(j, columns) {
    const float4 v = rp_load4(in, j, columns, vectorises, 0.0f);
    float4 result =
        make_float4((v.x - center) * scale, (v.y - center) * scale, (v.z - center) * scale, (v.w - center) * scale);
    if (weight) result = rp_multiply4(result, rp_load4(weight, j, columns, vectorises, 0.0f));
    if (bias) result = rp_add4(result, rp_load4(bias, j, columns, vectorises, 0.0f));
    rp_store4(out, j, columns, vectorises, result);
  }
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = center;
    rstd[blockIdx.x] = scale;
  }
}

#endif
