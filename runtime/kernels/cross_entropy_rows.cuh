/* runtime/kernels/cross_entropy_rows.cuh - cross entropy of each row of logits against a class index. */
#ifndef REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_CUH
#define REPRISE_RUNTIME_KERNELS_CROSS_ENTROPY_ROWS_CUH

#include "runtime/kernels/reduce.cuh"

/* logits: [rows, columns]; loss, logsumexp, target: [rows]. A block per row.
 *   loss = (1 - s) (logsumexp - x[target]) + s mean_j(logsumexp - x[j]), s = smoothing
 * and 0 where the target is `ignore`. Another target outside [0, columns) is a fault; its row has loss 0. */
RP_ROW_KERNEL rp_cross_entropy_rows(float *loss, float *logsumexp, const float *__restrict__ logits,
                                    const int32_t *__restrict__ target, int64_t rows, int64_t columns, bool has_ignore,
                                    int64_t ignore, float smoothing, RpControl *control, int32_t check) {
  const int64_t row = blockIdx.x, label = target[row];
  const float *x = logits + row * columns;
  const bool vectorises = rp_vectorises(logits, columns);
  const float largest = rp_row_max(x, columns, vectorises);
  const float total = largest + rp_log_f32(rp_row_sum_exp(x, largest, columns, vectorises));
  const float mean = smoothing > 0.0f ? rp_row_sum(x, columns, vectorises) / (float)columns : 0.0f;
  if (threadIdx.x != 0) return;
  logsumexp[row] = total;
  const bool ignored = has_ignore && label == ignore, known = label >= 0 && label < columns;
  float value = 0.0f;
  if (!ignored && known) value = total - x[label];
  if (!ignored && known && smoothing > 0.0f) value = (1.0f - smoothing) * value + smoothing * (total - mean);
  if (!ignored && !known) rp_report_fault(control, check);
  loss[row] = value;
}

#endif
