/* Combining scalars, and evaluation: one pass over the test data. */
#include <stdlib.h>
#include <string.h>

#include "runtime/interrupt.h"
#include "runtime/run.h"

static double read_scalar(const RpContext *context, int64_t offset) {
  float value;
  memcpy(&value, context->arena + offset, sizeof value);
  return value;
}

void rp_scalars_add(const RpContext *context, const RpPhase *phase, RpScalarSum *sums) {
  for (int64_t i = 0; i < phase->scalar_count; i++) {
    const RpScalar *scalar = &phase->scalars[i];
    sums[i].numerator += read_scalar(context, scalar->offset);
    sums[i].denominator += scalar->denominator_offset < 0 ? 1 : read_scalar(context, scalar->denominator_offset);
  }
}

void rp_scalars_finish(const RpPhase *phase, const RpScalarSum *sums, double *values) {
  for (int64_t i = 0; i < phase->scalar_count; i++) values[i] = sums[i].numerator / sums[i].denominator;
}

static void report(RpRun *run, const char *name, const double *values, int64_t used) {
  const RpPhase *phase = &run->program->evaluation;
  json_t *event = json_pack("{s:s, s:I, s:o, s:o*, s:I, s:I}", "event", name, "step", (json_int_t)run->update, "loss",
                            rp_json_number(values[0]), "scalars", rp_json_scalars(phase, values), "records",
                            (json_int_t)used, "left_out", (json_int_t)(run->test.records - used));
  rp_log_event(&run->log, event);
  rp_log_text(&run->log, "%s: %lld records, loss %.6g", name, (long long)used, values[0]);
  for (int64_t i = 1; i < phase->scalar_count; i++) {
    rp_log_text(&run->log, "  %s %.6g", phase->scalars[i].name, values[i]);
  }
}

static void set_control(RpRun *run) {
  RpControl *control = rp_control(&run->context);
  *control = (RpControl){
      .seed = run->seed, .micro_step = run->update * run->program->accumulate, .update = run->update, .micro_steps = 1};
}

bool rp_evaluate(RpRun *run, const char *event, RpStatus *status) {
  const RpPhase *phase = &run->program->evaluation;
  RpScalarSum *sums = rp_allocate(phase->scalar_count, sizeof *sums, status);
  double *values = rp_allocate(phase->scalar_count, sizeof *values, status);
  int64_t batches = rp_data_batches(&run->test), done = 0;
  bool good = sums && values;
  run->observation.memory.poison = run->options->poison;
  for (; good && done < batches && !rp_interrupted(); done++) {
    set_control(run);
    good = rp_data_load(&run->test, run->program, done, run->context.arena, status) && rp_run_phase(run, phase, status);
    if (good) rp_scalars_add(&run->context, phase, sums);
  }
  if (good && done == batches) {
    rp_scalars_finish(phase, sums, values);
    report(run, event, values, done * run->test.batch);
  }
  free(sums);
  free(values);
  return good;
}
