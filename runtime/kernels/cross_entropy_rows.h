/* runtime/kernels/cross_entropy_rows.h - cross entropy of each row of logits against a class index. */
#ifndef REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_H
#define REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_H

#include "runtime/kernels/fault.h"
#include "runtime/kernels/reduce.h"

/* logits: [rows, columns]; loss, logsumexp, target: [rows].
 *   loss = (1 - s) (logsumexp - x[target]) + s mean_j(logsumexp - x[j]), s = smoothing
 * and 0 where the target is `ignore`. Another target outside [0, columns) is a fault; its row has loss 0. */
static inline void rp_cross_entropy_rows(float *loss, float *logsumexp, const float *logits, const int32_t *target,
                                         int64_t rows, int64_t columns, bool has_ignore, int64_t ignore,
                                         float smoothing, RpControl *control, int32_t check) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const float *x = logits + row * columns;
    const int64_t class = target[row];
    const float largest = rp_max_row(x, columns);
    const float total = largest + rp_log_f32(rp_sum_exp_row(x, largest, columns));
    logsumexp[row] = total;
    loss[row] = 0.0f;
    if (has_ignore && class == ignore) continue;
    if (class < 0 || class >= columns) {
      rp_report_fault(control, check);
      continue;
    }
    loss[row] = total - x[class];
    if (smoothing > 0.0f) {
      const float mean = rp_sum_row(x, columns) / (float)columns;
      loss[row] = (1.0f - smoothing) * loss[row] + smoothing * (total - mean);
    }
  }
}

#endif
