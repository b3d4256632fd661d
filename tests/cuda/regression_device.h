/* The step functions of tests/runtime/regression.c for a CUDA device, as the compiler would emit them. PREDICT picks
 * the kernel that predicts and PREDICT_BLOCKS its grid, so that tests can plant a fault. */
#include "regression_images.h"
#include "runtime/cuda/device_program.h"

enum Function { FUNCTION_PREDICT, FUNCTION_SUM_LOSS, FUNCTION_DIFFERENTIATE, FUNCTION_UPDATE };
#ifndef PREDICT
#define PREDICT "predict"
#endif
static const char *const functions[] = {PREDICT, "sum_loss", "differentiate", "update"};

static void predict(RpContext *context, bool noisy) {
  rp_cuda_launch(context, FUNCTION_PREDICT, RP_DIM(2, 1, 1), RP_DIM(3, 1, 1), 0, RP_OUT(ERROR, 4 * B),
                 RP_IN(X, 4 * B * FEATURES), RP_IN(Y, 4 * B), RP_IN(WEIGHT, 4 * FEATURES), RP_IN(BIAS, 4), RP_CONTROL,
                 RP_BOOL(noisy));
}

static void sum_loss(RpContext *context) {
  rp_cuda_launch(context, FUNCTION_SUM_LOSS, RP_DIM(1, 1, 1), RP_DIM(1, 1, 1), 0, RP_OUT(LOSS, 4), RP_OUT(COUNT, 4),
                 RP_OUT(ABSOLUTE, 4), RP_IN(ERROR, 4 * B));
}

enum {
  WEIGHT_SLOPE = ACCUMULATE > 1 ? WEIGHT_SUM : WEIGHT_GRADIENT,
  BIAS_SLOPE = ACCUMULATE > 1 ? BIAS_SUM : BIAS_GRADIENT
};

static void differentiate(RpContext *context) {
  rp_cuda_launch(context, FUNCTION_DIFFERENTIATE, RP_DIM(1, 1, 1), RP_DIM(FEATURES + 1, 1, 1), 0,
                 RP_UPDATE(WEIGHT_SLOPE, 4 * FEATURES), RP_UPDATE(BIAS_SLOPE, 4), RP_IN(X, 4 * B * FEATURES),
                 RP_IN(ERROR, 4 * B), RP_I32(ACCUMULATE));
}

static void update(RpContext *context) {
  rp_cuda_launch(context, FUNCTION_UPDATE, RP_DIM(1, 1, 1), RP_DIM(FEATURES + 1, 1, 1), 0,
                 RP_UPDATE(WEIGHT, 4 * FEATURES), RP_UPDATE(BIAS, 4), RP_UPDATE(WEIGHT_MOMENTUM, 4 * FEATURES),
                 RP_UPDATE(BIAS_MOMENTUM, 4), RP_IN(WEIGHT_SLOPE, 4 * FEATURES), RP_IN(BIAS_SLOPE, 4), RP_CONTROL);
}

static const RpImage cubins[] = {{80, image_sm_80, sizeof image_sm_80}, {90, image_sm_90, sizeof image_sm_90}};
static const RpDeviceProgram device_program = {
    .backend = &rp_cuda_backend,
    .cubins = cubins,
    .cubin_count = 2,
    .ptx = {80, image_compute_80, sizeof image_compute_80},
    .functions = functions,
    .function_count = 4,
};
#define DEVICE_PROGRAM &device_program
