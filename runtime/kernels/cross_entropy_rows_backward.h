/* runtime/kernels/cross_entropy_rows_backward.h - gradient of the logits. dlogits may be logits. */
#ifndef REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_BACKWARD_H
#define REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_BACKWARD_H

#include "runtime/kernels/reduce.h"

/* dlogits, logits: [rows, columns]; target, logsumexp, g: [rows].
 *   dlogits[j] = g (exp(x[j] - logsumexp) - s / columns - (1 - s) [j = target]), s = smoothing
 * and 0 where the target is `ignore` or, a fault reported by the forward kernel, no class. */
static inline void rp_cross_entropy_rows_backward(float *dlogits, const float *logits, const int32_t *target,
                                                  const float *logsumexp, const float *g, int64_t rows, int64_t columns,
                                                  bool has_ignore, int64_t ignore, float smoothing) {
  const float rest = smoothing / (float)columns;
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *x = logits + row * columns;
    float *dx = dlogits + row * columns;
    const int64_t class = target[row];
    const bool counts = class >= 0 && class < columns && !(has_ignore && class == ignore);
    if (!counts) {
      for (int64_t j = 0; j < columns; j++) dx[j] = 0.0f;
      continue;
    }
    const float total = logsumexp[row], scale = g[row], at_class = x[class];
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) dx[j] = scale * (rp_exp_f32(x[j] - total) - rest);
    dx[class] = scale * (rp_exp_f32(at_class - total) - rest - (1.0f - smoothing));
  }
}

#endif
