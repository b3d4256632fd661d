/* A program as the compiler would emit it, by hand: linear regression y = x w + b with a little noise on the
 * prediction, momentum SGD, `loss sum(e^2) per count`, B = 4, three features. ACCUMULATE (1 or 2) micro-steps make an
 * update; PLANTED makes it wrong in one way that an option has to find. DEVICE makes it a CUDA program. */
#include <math.h>
#include <string.h>

#include "runtime/program.h"
#include "runtime/random.h"

#ifndef ACCUMULATE
#define ACCUMULATE 1
#endif

enum { B = 4, FEATURES = 3 };
enum Offset {
  WEIGHT = 0,
  BIAS = 64,
  WEIGHT_MOMENTUM = 128,
  BIAS_MOMENTUM = 192,
  WEIGHT_SUM = 256, /* accumulators */
  BIAS_SUM = 320,
  CONTROL = 384,
  X = 448,
  Y = 512,
  ERROR = 576,
  LOSS = 640,
  COUNT = 704,
  ABSOLUTE = 768,
  WEIGHT_GRADIENT = 832,
  BIAS_GRADIENT = 896,
  ARENA = 960
};
#ifndef ARENA_BYTES
#define ARENA_BYTES ARENA
#endif

#ifdef DEVICE /* the step functions queue kernels of a CUDA device */
#include "tests/cuda/regression_device.h"
#else
#define DEVICE_PROGRAM 0

static float *at(const RpContext *context, int64_t offset) { return (float *)(void *)(context->arena + offset); }

static void predict(RpContext *context, bool noisy) {
  const float *x = at(context, X), *y = at(context, Y), *weight = at(context, WEIGHT);
  const RpControl *control = rp_control(context);
  for (int i = 0; i < B; i++) {
    float prediction = at(context, BIAS)[0];
    for (int j = 0; j < FEATURES; j++) prediction += x[i * FEATURES + j] * weight[j];
    float noise = rp_uniform(control->seed, rp_hash_name("noise"), (uint64_t)control->micro_step, (uint64_t)i) - 0.5f;
    if (y[i] > 1000) rp_control(context)->fault = 1;
    at(context, ERROR)[i] = prediction - y[i] + (noisy ? 0.01f * noise : 0);
  }
}

static void sum_loss(RpContext *context) {
  float squares = 0, absolute = 0;
  for (int i = 0; i < B; i++) {
    float error = at(context, ERROR)[i];
    squares += error * error;
    absolute += fabsf(error);
  }
  at(context, LOSS)[0] = squares;
  at(context, COUNT)[0] = B;
  at(context, ABSOLUTE)[0] = absolute / B;
}

/* The gradient of this micro-step, summed over the micro-steps where there are several. */
static void differentiate(RpContext *context) {
  const float *x = at(context, X), *error = at(context, ERROR);
  float *weight = at(context, ACCUMULATE > 1 ? WEIGHT_SUM : WEIGHT_GRADIENT);
  float *bias = at(context, ACCUMULATE > 1 ? BIAS_SUM : BIAS_GRADIENT);
  float gradient[FEATURES + 1] = {0};
  for (int i = 0; i < B; i++) {
    for (int j = 0; j < FEATURES; j++) gradient[j] += 2 * error[i] * x[i * FEATURES + j] / (B * ACCUMULATE);
    gradient[FEATURES] += 2 * error[i] / (B * ACCUMULATE);
  }
  for (int j = 0; j < FEATURES; j++) weight[j] = (ACCUMULATE > 1 ? weight[j] : 0) + gradient[j];
  bias[0] = (ACCUMULATE > 1 ? bias[0] : 0) + gradient[FEATURES];
}

static void descend(float *value, float *momentum, float gradient, float rate) {
  *momentum = 0.9f * *momentum + gradient;
  *value -= rate * *momentum;
}

static void update(RpContext *context) {
  float rate = 0.02f * rp_control(context)->learning_rate_scale;
  const float *weight = at(context, ACCUMULATE > 1 ? WEIGHT_SUM : WEIGHT_GRADIENT);
  const float *bias = at(context, ACCUMULATE > 1 ? BIAS_SUM : BIAS_GRADIENT);
  for (int j = 0; j < FEATURES; j++) {
    descend(&at(context, WEIGHT)[j], &at(context, WEIGHT_MOMENTUM)[j], weight[j], rate);
  }
  descend(at(context, BIAS), at(context, BIAS_MOMENTUM), bias[0], rate);
}

#endif

/* OUTSIDE: the loss also writes a byte so far from the start of the arena, which only --poison sees. */
#ifndef OUTSIDE
#define OUTSIDE 0
#endif

static void trespass(RpContext *context) {
  volatile char *byte = context->arena + OUTSIDE;
  if (OUTSIDE) *byte = 1;
}

static void run_micro_step(RpContext *context) {
  predict(context, true), rp_done(context, 0);
  sum_loss(context), trespass(context), rp_done(context, 1);
  differentiate(context), rp_done(context, 2);
  if (ACCUMULATE == 1) update(context), rp_done(context, 3);
}

#if ACCUMULATE > 1
static void run_update(RpContext *context) { update(context), rp_done(context, 0); }
#endif

static void run_evaluation(RpContext *context) {
  predict(context, false), rp_done(context, 0);
  sum_loss(context), rp_done(context, 1);
}

/* The planted fault: the predictions' error is freed one kernel early, which only --poison sees. */
#ifdef PLANTED
static const int64_t after_loss[] = {ERROR, 64}, after_gradient[] = {X, 64, Y, 64};
#define AFTER_LOSS after_loss, 1
#define AFTER_EVALUATED_PREDICTION after_loss, 1
#define AFTER_GRADIENT after_gradient, 2
#else
static const int64_t after_gradient[] = {X, 64, Y, 64, ERROR, 64};
#define AFTER_LOSS 0, 0
#define AFTER_EVALUATED_PREDICTION 0, 0
#define AFTER_GRADIENT after_gradient, 3
#endif

static const RpKernel kernels[] = {
    {"predict", "regression.rp:4:7", "forward", false, 640, 0, 0},
    {"loss", "regression.rp:5:8", "forward", false, 832, AFTER_LOSS},
    {"gradient", "regression.rp:5:8", "backward", false, 960, AFTER_GRADIENT},
    {"update", "regression.rp:8:3", "update", false, 768, 0, 0},
};
static const RpKernel evaluation_kernels[] = {
    {"predict", "regression.rp:4:7", "forward", false, 640, AFTER_EVALUATED_PREDICTION},
    {"loss", "regression.rp:5:8", "forward", false, 832, 0, 0},
};
static const RpObservable observables[] = {
    {RP_OBSERVE_LOSS, {"loss", RP_F32, 0, {0}, LOSS}, 1, -1},
    {RP_OBSERVE_OUTPUT, {"output.absolute", RP_F32, 0, {0}, ABSOLUTE}, 1, -1},
    {RP_OBSERVE_VALUE, {"x", RP_F32, 2, {B, FEATURES}, X}, -1, -1},
    {RP_OBSERVE_OUTPUT, {"output.mean_square", RP_F32, 0, {0}, LOSS}, 1, COUNT},
    {RP_OBSERVE_VALUE, {"error", RP_F32, 1, {B}, ERROR}, 0, -1},
#if ACCUMULATE == 1
    {RP_OBSERVE_GRADIENT, {"grad.weight", RP_F32, 1, {FEATURES}, WEIGHT_GRADIENT}, 2, -1},
    {RP_OBSERVE_GRADIENT, {"grad.bias", RP_F32, 0, {0}, BIAS_GRADIENT}, 2, -1},
#endif
};
#if ACCUMULATE > 1
static const RpObservable update_observables[] = {
    {RP_OBSERVE_GRADIENT, {"grad.weight", RP_F32, 1, {FEATURES}, WEIGHT_SUM}, 0, -1},
    {RP_OBSERVE_GRADIENT, {"grad.bias", RP_F32, 0, {0}, BIAS_SUM}, 0, -1},
};
#endif
static const RpScalar scalars[] = {{"loss", LOSS, COUNT}, {"absolute", ABSOLUTE, -1}};

static const RpPersistent persistents[] = {
    {{"weight", RP_F32, 1, {FEATURES}, WEIGHT}, RP_PARAMETER, {RP_INIT_NORMAL, 0.1, 0}, true},
    {{"bias", RP_F32, 0, {0}, BIAS}, RP_PARAMETER, {RP_INIT_CONSTANT, 0, 0}, true},
    {{"optimizer.momentum.weight", RP_F32, 1, {FEATURES}, WEIGHT_MOMENTUM},
     RP_OPTIMIZER,
     {RP_INIT_CONSTANT, 0, 0},
     false},
    {{"optimizer.momentum.bias", RP_F32, 0, {0}, BIAS_MOMENTUM}, RP_OPTIMIZER, {RP_INIT_CONSTANT, 0, 0}, false},
#if ACCUMULATE > 1
    {{"sum.weight", RP_F32, 1, {FEATURES}, WEIGHT_SUM}, RP_ACCUMULATOR, {RP_INIT_CONSTANT, 0, 0}, false},
    {{"sum.bias", RP_F32, 0, {0}, BIAS_SUM}, RP_ACCUMULATOR, {RP_INIT_CONSTANT, 0, 0}, false},
#endif
};
static const RpInput inputs[] = {{{"x", RP_F32, 2, {B, FEATURES}, X}, X}, {{"y", RP_F32, 1, {B}, Y}, Y}};
static const RpReader readers[] = {{RP_READ_CSV, "x", "points.csv", 2, {0, 1}, 0, 20, 0, true, 0}};
static const RpReader test_readers[] = {{RP_READ_CSV, "x", "points.csv", 2, {0, 1}, 20, -1, 0, true, 0}};
static const RpCheck checks[] = {{"target out of range: expected at most 1000", "regression.rp:5:8"}};

#define COUNT_OF(array) (int64_t)(sizeof(array) / sizeof *(array))

static const RpProgram program = {
    .version = RP_PROGRAM_VERSION,
    .model = "Regression",
    .target = "cpu",
    .source = "regression.rp",
    .arena_bytes = ARENA_BYTES,
    .alignment = 64,
    .budget = 1024,
    .live_peak = ARENA,
    .persistent_bytes = CONTROL,
    .anatomy = {.weights = 128,
                .gradients = 256,
                .optimizer_state = 128,
                .activations = 64,
                .temporaries = 256,
                .inputs = 128},
    .control_offset = CONTROL,
    .persistents = persistents,
    .persistent_count = COUNT_OF(persistents),
    .inputs = inputs,
    .input_count = COUNT_OF(inputs),
    .readers = readers,
    .reader_count = COUNT_OF(readers),
    .test_readers = test_readers,
    .test_reader_count = COUNT_OF(test_readers),
    .checks = checks,
    .check_count = COUNT_OF(checks),
    .micro_step = {run_micro_step, kernels, ACCUMULATE == 1 ? 4 : 3, observables, COUNT_OF(observables), scalars, 2},
#if ACCUMULATE > 1
    .update = {run_update, kernels + 3, 1, update_observables, COUNT_OF(update_observables), 0, 0},
#endif
    .evaluation = {run_evaluation, evaluation_kernels, 2, 0, 0, scalars, 2},
    .learning_rate = 0.02,
    .schedule = {RP_SCHEDULE_COSINE, 2, 100, 0, 0.1, 0},
    .accumulate = ACCUMULATE,
    .epochs = 2,
    .seed = 7,
    .shuffle = true,
    .device = DEVICE_PROGRAM,
    .plan_json = "{\"format\": \"reprise-plan\"}",
};

int main(int argc, char **argv) { return rp_main(&program, argc, argv); }
