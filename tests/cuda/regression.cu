/* The device code of the program that regression_device.h hands over: tests/runtime/regression.c, operation for
 * operation. A thread per row or element; sums in one thread, in the order of the host. */
#include "runtime/kernels/device.cuh"

enum { B = 4, FEATURES = 3 };

RP_KERNEL predict(float *error, const float *x, const float *y, const float *weight, const float *bias,
                  RpControl *control, bool noisy) {
  const int i = (int)rp_thread();
  if (i >= B) return;
  float prediction = bias[0];
  for (int j = 0; j < FEATURES; j++) prediction += x[i * FEATURES + j] * weight[j];
  const float noise = rp_uniform(control->seed, rp_hash_name("noise"), (uint64_t)control->micro_step, (uint64_t)i) - 0.5f;
  if (y[i] > 1000) rp_report_fault(control, 0);
  error[i] = prediction - y[i] + (noisy ? 0.01f * noise : 0);
}

/* Beyond the last row: no guard. */
RP_KERNEL predict_planted(float *error, const float *x, const float *y, const float *weight, const float *bias,
                          RpControl *control, bool noisy) {
  error[rp_thread()] = x[rp_thread()];
}

RP_KERNEL sum_loss(float *loss, float *count, float *mean, const float *error) {
  float squares = 0, absolute = 0;
  for (int i = 0; i < B; i++) {
    squares += error[i] * error[i];
    absolute += fabsf(error[i]);
  }
  loss[0] = squares;
  count[0] = B;
  mean[0] = absolute / B;
}

/* Thread j: the gradient of weight j, the last one's of the bias; added to what is there where `add`. */
RP_KERNEL differentiate(float *weight, float *bias, const float *x, const float *error, int32_t accumulate) {
  const int j = (int)threadIdx.x;
  float gradient = 0;
  for (int i = 0; i < B; i++) {
    const float slope = 2 * error[i];
    gradient += (j < FEATURES ? slope * x[i * FEATURES + j] : slope) / (float)(B * accumulate);
  }
  float *out = j < FEATURES ? weight + j : bias;
  *out = (accumulate > 1 ? *out : 0) + gradient;
}

RP_KERNEL update(float *weight, float *bias, float *weight_momentum, float *bias_momentum, const float *weight_gradient,
                 const float *bias_gradient, const RpControl *control) {
  const int j = (int)threadIdx.x;
  const float rate = 0.02f * control->learning_rate_scale;
  float *value = j < FEATURES ? weight + j : bias, *momentum = j < FEATURES ? weight_momentum + j : bias_momentum;
  *momentum = 0.9f * *momentum + (j < FEATURES ? weight_gradient[j] : bias_gradient[0]);
  *value -= rate * *momentum;
}
