/* The training loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "runtime/inputs.h"
#include "runtime/interrupt.h"
#include "runtime/run.h"
#include "runtime/schedule.h"
#include "runtime/types.h"

bool rp_run_phase(RpRun *run, const RpPhase *phase, RpData *data, int64_t next, RpStatus *status) {
  const RpProgram *program = run->program;
  RpContext *context = &run->context;
  context->phase = phase;
  rp_observe(context, &run->observation);
  if (run->observation.dump.active) rp_dump_kernel(&run->observation.dump, context, -1);
  if (run->observation.trace.active) rp_trace_resume(&run->observation.trace);
  if (!rp_phase_start(context, &run->control, status)) return false;
  if (next >= 0 && !context->observer) rp_inputs_prefetch(run, data, next);
  if (!rp_phase_finish(context, &run->control, run->scalars, status)) return false;
  const RpKernel *trespasser = run->observation.memory.trespasser;
  if (trespasser)
    return rp_fail(status, RP_INTERNAL, "%s: %s has written outside the arena", trespasser->source, trespasser->name);
  int32_t fault = run->control.fault;
  if (fault == 0) return true;
  if (fault < 0 || fault > program->check_count) {
    return rp_fail(status, RP_INTERNAL, "a kernel reported fault %d of %lld", fault, (long long)program->check_count);
  }
  const RpCheck *check = &program->checks[fault - 1];
  return rp_fail(status, RP_BAD_DATA, "%s: %s (in step %lld)", check->source, check->message,
                 (long long)run->control.update);
}

static void set_control(RpRun *run, int64_t micro_step) {
  const RpProgram *program = run->program;
  double override = program->learning_rate > 0 ? run->learning_rate / program->learning_rate : 1;
  run->control =
      (RpControl){.seed = run->seed,
                  .micro_step = micro_step,
                  .update = run->update + 1,
                  .learning_rate_scale = (float)(rp_schedule_factor(&program->schedule, run->update) * override),
                  .micro_steps = (int32_t)program->accumulate};
}

static bool clear_accumulators(RpRun *run, RpStatus *status) {
  const RpProgram *program = run->program;
  for (int64_t i = 0; i < program->persistent_count; i++) {
    const RpPersistent *persistent = &program->persistents[i];
    if (persistent->role != RP_ACCUMULATOR) continue;
    int64_t bytes = rp_tensor_bytes(&persistent->tensor);
    if (!rp_arena_fill(&run->context, persistent->tensor.offset, 0, bytes, status)) return false;
  }
  return true;
}

/* One update: `accumulate` micro-steps, then the update phase where there is one. `values` receives the scalars. */
static bool run_update(RpRun *run, RpScalarSum *sums, double *values, RpStatus *status) {
  const RpProgram *program = run->program;
  const RpPhase *phase = &program->micro_step;
  int64_t first = run->update * program->accumulate, end = first + program->accumulate;
  int64_t following = run->update + 1 < run->steps ? end : -1; /* the next update's first batch */
  memset(sums, 0, (size_t)phase->scalar_count * sizeof *sums);
  if (!clear_accumulators(run, status)) return false;
  for (int64_t micro_step = first; micro_step < end; micro_step++) {
    int64_t next = micro_step + 1 < end ? micro_step + 1 : program->update.run ? -1 : following;
    set_control(run, micro_step);
    if (!rp_inputs_load(run, &run->training, micro_step, status)) return false;
    if (!rp_run_phase(run, phase, &run->training, next, status)) return false;
    rp_scalars_add(run, phase, sums);
  }
  if (program->update.run) {
    set_control(run, end - 1);
    if (!rp_run_phase(run, &program->update, &run->training, following, status)) return false;
  }
  rp_scalars_finish(phase, sums, values);
  run->update++;
  return true;
}

/* Turns on what looks at this step: the first is dumped and measured, the second (or only) one traced. */
static bool start_observing(RpRun *run, int64_t step, RpStatus *status) {
  const RpOptions *options = run->options;
  RpObservation *observation = &run->observation;
  bool only = run->update + 1 == run->steps;
  if (step == 0 && options->dump_grads &&
      !rp_dump_start(&observation->dump, run->program, options->dump_grads, status)) {
    return false;
  }
  observation->memory.poison = options->poison || (step == 0 && options->memory);
  if (step == 0 && options->memory && !rp_memory_start(&observation->memory, &run->context, status)) return false;
  if (options->trace && step == (only && step == 0 ? 0 : 1)) rp_trace_start(&observation->trace);
  return true;
}

static bool finish_observing(RpRun *run, double loss, RpStatus *status) {
  RpObservation *observation = &run->observation;
  if (observation->memory.measuring && !rp_memory_finish(&observation->memory, &run->context, status)) return false;
  if (observation->dump.active && !rp_dump_finish(&observation->dump, loss, status)) return false;
  return !observation->trace.active || rp_trace_finish(&observation->trace, run->options->trace, status);
}

/* Said once: what follows is not worth waiting for. */
static void note_divergence(RpRun *run, double loss) {
  if (isfinite(loss) || run->diverged) return;
  run->diverged = true;
  rp_log_note(&run->log, "the loss is not finite in step %lld", (long long)run->update);
}

/* Seconds per step, an average in which the last ten steps count most. */
static void report_step(RpRun *run, int64_t step, const double *values, double seconds, double *smoothed) {
  const RpData *data = &run->training;
  int64_t units = data->batch * run->program->accumulate * (data->texts ? data->window : 1);
  *smoothed = step > 1 ? 0.9 * *smoothed + 0.1 * seconds : seconds; /* the first step is no measure of the others */
  RpProgress progress = {.step = run->update,
                         .steps = run->steps,
                         .phase = &run->program->micro_step,
                         .scalars = values,
                         .rate_unit = data->texts ? "tokens" : "samples",
                         .now = rp_seconds()};
  progress.learning_rate = run->learning_rate * rp_schedule_factor(&run->program->schedule, run->update - 1);
  progress.rate = *smoothed > 0 ? (double)units / *smoothed : 0;
  progress.seconds_left = *smoothed * (double)(run->steps - run->update);
  rp_log_step(&run->log, &progress);
  note_divergence(run, values[0]);
}

bool rp_train(RpRun *run, RpStatus *status) {
  int64_t scalars = run->program->micro_step.scalar_count;
  RpScalarSum *sums = rp_allocate(scalars, sizeof *sums, status);
  double *values = rp_allocate(scalars, sizeof *values, status), smoothed = 0;
  bool good = sums && values;
  for (int64_t step = 0; good && run->update < run->steps && !rp_interrupted(); step++) {
    double started = rp_seconds();
    good = start_observing(run, step, status) && run_update(run, sums, values, status) &&
           finish_observing(run, values[0], status);
    if (good) report_step(run, step, values, rp_seconds() - started, &smoothed);
  }
  rp_dump_discard(&run->observation.dump);
  rp_trace_discard(&run->observation.trace);
  free(sums);
  free(values);
  return good;
}
