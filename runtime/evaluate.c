/* Combining scalars, and evaluation: one pass over the test data. */
#include <stdlib.h>

#include "runtime/inputs.h"
#include "runtime/interrupt.h"
#include "runtime/run.h"

void rp_scalars_add(const RpRun *run, const RpPhase *phase, RpScalarSum *sums) {
  for (int64_t i = 0; i < phase->scalar_count; i++) {
    sums[i].numerator += run->scalars[2 * i];
    sums[i].denominator += run->scalars[2 * i + 1];
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
  run->control = (RpControl){
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
    int64_t next = done + 1 < batches ? done + 1 : -1;
    good = rp_inputs_load(run, &run->test, done, status) && rp_run_phase(run, phase, &run->test, next, status);
    if (good) rp_scalars_add(run, phase, sums);
  }
  if (good && done == batches) {
    rp_scalars_finish(phase, sums, values);
    report(run, event, values, done * run->test.batch);
  }
  free(sums);
  free(values);
  return good;
}
