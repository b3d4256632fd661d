/* runtime/kernels/cross_entropy_rows_backward.cuh - gradient of the logits. dlogits may be logits. */
#ifndef REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_BACKWARD_CUH
#define REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_BACKWARD_CUH

#include "runtime/kernels/reduce.cuh"

/* dlogits, logits: [rows, columns]; target, logsumexp, g: [rows]. A block per row.
 *   dlogits[j] = g (exp(x[j] - logsumexp) - s / columns - (1 - s) [j = target]), s = smoothing
 * and 0 where the target is `ignore` or, a fault reported by the forward kernel, no class. */
RP_ROW_KERNEL rp_cross_entropy_rows_backward(float *dlogits, const float *logits, const int32_t *__restrict__ target,
                                             const float *__restrict__ logsumexp, const float *__restrict__ g,
                                             int64_t rows, int64_t columns, bool has_ignore, int64_t ignore,
                                             float smoothing) {
  const int64_t row = blockIdx.x, label = target[row];
  const float *x = logits + row * columns;
  float *dx = dlogits + row * columns;
  const bool vectorises = rp_vectorises(logits, columns) && rp_vectorises(dlogits, columns);
  const bool counts = label >= 0 && label < columns && !(has_ignore && label == ignore);
  const float rest = smoothing / (float)columns, own = 1.0f - smoothing, total = logsumexp[row], scale = g[row];
  if (!vectorises) { /* such as GPT-2's 50257: neighbouring threads on neighbouring elements */
    for (int64_t j = threadIdx.x; j < columns; j += blockDim.x)
      dx[j] = counts ? scale * (rp_exp_f32(x[j] - total) - rest - (j == label ? own : 0.0f)) : 0.0f;
    return;
  }
  RP_FOR_ROW(j, columns) {
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (counts) {
      const float4 v = rp_load4(x, j, columns, vectorises, 0.0f);
      value.x = scale * (rp_exp_f32(v.x - total) - rest - (j == label ? own : 0.0f));
      value.y = scale * (rp_exp_f32(v.y - total) - rest - (j + 1 == label ? own : 0.0f));
      value.z = scale * (rp_exp_f32(v.z - total) - rest - (j + 2 == label ? own : 0.0f));
      value.w = scale * (rp_exp_f32(v.w - total) - rest - (j + 3 == label ? own : 0.0f));
    }
    rp_store4(dx, j, columns, vectorises, value);
  }
}

#endif
