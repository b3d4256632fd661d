/* rp_main: the one place where a produced program prints its errors and chooses its exit code. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/arena.h"
#include "runtime/gemm.h"
#include "runtime/initial.h"
#include "runtime/interrupt.h"
#include "runtime/print.h"
#include "runtime/snapshot.h"
#include "runtime/threads.h"
#include "runtime/types.h"
#include "runtime/weights.h"

static bool allocate(RpRun *run, RpStatus *status) {
  const RpProgram *program = run->program;
  int64_t scalars = program->micro_step.scalar_count + program->update.scalar_count + program->evaluation.scalar_count;
  run->scalars = rp_allocate(scalars, 2 * sizeof *run->scalars, status);
  return run->scalars && rp_arena_open(&run->context, status);
}

/* On a device, one tensor after the other is made in host memory. */
static bool initialise(RpRun *run, RpStatus *status) {
  const RpProgram *program = run->program;
  bool done = true;
  for (int64_t i = 0; done && i < program->persistent_count; i++) {
    const RpPersistent *persistent = &program->persistents[i];
    int64_t offset = persistent->tensor.offset, bytes = rp_tensor_bytes(&persistent->tensor);
    if (run->context.arena) {
      rp_initialise(persistent, run->seed, run->context.arena + offset);
      continue;
    }
    void *data = rp_allocate(bytes, 1, status);
    if (data) rp_initialise(persistent, run->seed, data);
    done = data && rp_arena_write(&run->context, offset, data, bytes, status);
    free(data);
  }
  return done;
}

static bool needs_vocabulary(const RpProgram *program) {
  for (int64_t i = 0; i < program->reader_count; i++) {
    if (program->readers[i].kind == RP_READ_CHARS) return true;
  }
  return false;
}

static bool open_data(RpRun *run, RpStatus *status) {
  const RpProgram *program = run->program;
  const RpOptions *options = run->options;
  bool train = !options->eval, test = rp_data_has_test(program, options) && program->evaluation.run;
  if (options->test_count > 0 && !test) return rp_fail(status, RP_USAGE, "--test: the model has no evaluation");
  if (options->eval && !test) {
    return rp_fail(status, RP_USAGE,
                   "--eval: there is no test data: give --test NAME=FILE or a 'test' item in the "
                   "model's train block");
  }
  if ((train || needs_vocabulary(program)) &&
      !rp_data_open_training(&run->training, program, options, run->seed, status)) {
    return false;
  }
  return !test || rp_data_open_test(&run->test, program, options, &run->training, status);
}

/* --steps, else --epochs, else the model's steps, else its epochs, else one pass over the data. */
static bool choose_steps(RpRun *run, RpStatus *status) {
  const RpProgram *program = run->program;
  const RpOptions *options = run->options;
  int64_t epochs = options->epochs > 0 ? options->epochs : program->epochs > 0 ? program->epochs : 1;
  int64_t micro_steps;
  if (__builtin_mul_overflow(epochs, rp_data_batches(&run->training), &micro_steps)) {
    return rp_fail(status, RP_USAGE, "%lld epochs are too many", (long long)epochs);
  }
  run->steps = micro_steps / program->accumulate > 0 ? micro_steps / program->accumulate : 1;
  if (options->steps > 0) {
    run->steps = options->steps;
  } else if (options->epochs <= 0 && options->memory) {
    run->steps = run->update + 1;
  } else if (options->epochs <= 0 && program->steps > 0) {
    run->steps = program->steps;
  }
  if (run->update <= run->steps) return true;
  return rp_fail(status, RP_USAGE, "'%s' has %lld updates already, more than the %lld asked for", options->resume,
                 (long long)run->update, (long long)run->steps);
}

static bool open_weights(RpTensorFile *tensors, const RpOptions *options, bool *open, RpStatus *status) {
  const char *path = options->resume ? options->resume : options->load;
  *open = path && rp_tensors_open(tensors, path, status);
  return *open || !path;
}

static bool take_place(RpRun *run, const RpTensorFile *tensors, RpSnapshotPlace *place, RpStatus *status) {
  if (!rp_snapshot_place(tensors, run->program, place, status)) return false;
  run->update = place->update;
  run->seed = place->seed;
  if (run->options->learning_rate < 0) run->learning_rate = place->learning_rate;
  return true;
}

static bool check_same_data(const RpRun *run, const RpSnapshotPlace *place, RpStatus *status) {
  if (place->records == run->training.records && place->batch == run->training.batch) return true;
  return rp_fail(status, RP_BAD_DATA,
                 "'%s' was trained on %lld records in batches of %lld, the data has %lld in batches "
                 "of %lld: a resumed run would not be the same (--load starts anew from its weights)",
                 run->options->resume, (long long)place->records, (long long)place->batch,
                 (long long)run->training.records, (long long)run->training.batch);
}

static bool load_weights(RpRun *run, const RpTensorFile *tensors, RpStatus *status) {
  const RpOptions *options = run->options;
  return rp_weights_load(&run->context, tensors, options->resume != NULL, options->renames, options->rename_count,
                         &run->log, status);
}

/* Everything before the first step: the arena filled, the data open, the place in training known. */
static bool prepare(RpRun *run, RpStatus *status) {
  const RpOptions *options = run->options;
  RpTensorFile tensors;
  RpSnapshotPlace place;
  bool open;
  run->seed = options->seed_given ? options->seed : run->program->seed;
  run->learning_rate = options->learning_rate >= 0 ? options->learning_rate : run->program->learning_rate;
  if (options->threads > 0) rp_threads_set(options->threads);
  if (!allocate(run, status) || !open_weights(&tensors, options, &open, status)) return false;
  bool ready = (!options->resume || take_place(run, &tensors, &place, status)) && open_data(run, status);
  if (ready && options->resume) ready = check_same_data(run, &place, status);
  if (ready && !options->eval) ready = choose_steps(run, status);
  if (ready) ready = initialise(run, status);
  if (ready && open) ready = load_weights(run, &tensors, status);
  if (open) rp_tensors_close(&tensors);
  return ready;
}

static void report_start(RpRun *run) {
  const RpProgram *program = run->program;
  int64_t parameters = 0, trainable = 0;
  for (int64_t i = 0; i < program->persistent_count; i++) {
    if (program->persistents[i].role != RP_PARAMETER) continue;
    int64_t elements = rp_tensor_elements(&program->persistents[i].tensor);
    parameters += elements;
    if (program->persistents[i].trainable) trainable += elements;
  }
  json_t *event =
      json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i}", "event", "start", "model", program->model, "target",
                program->target, "parameters", (json_int_t)parameters, "trainable", (json_int_t)trainable, "arena",
                (json_int_t)program->arena_bytes, "update", (json_int_t)run->update, "threads", rp_threads_get());
  const RpDeviceFacts *facts = run->context.device ? rp_backend(&run->context)->facts(&run->context) : NULL;
  if (facts) {
    json_object_set_new(event, "device", json_string(facts->name));
    json_object_set_new(event, "emulated", json_boolean(facts->emulated));
    if (facts->emulated) rp_log_note(&run->log, "the device is emulated on the CPU: timings mean nothing");
  }
  char seed[24];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed); /* may exceed what JSON integers hold */
  json_object_set_new(event, "seed", json_string(seed));
  if (!run->options->eval) {
    json_object_set_new(event, "steps", json_integer(run->steps));
    json_object_set_new(event, "records", json_integer(run->training.records));
  }
  rp_log_event(&run->log, event);
  if (facts) {
    rp_log_text(&run->log, "%s: %lld parameters, arena %.2f MiB, on %s", program->model, (long long)parameters,
                (double)program->arena_bytes / 1048576, facts->name);
  } else {
    rp_log_text(&run->log, "%s: %lld parameters, arena %.2f MiB, %d threads", program->model, (long long)parameters,
                (double)program->arena_bytes / 1048576, rp_threads_get());
  }
}

static bool save(RpRun *run, RpStatus *status) {
  const char *path = run->options->save;
  if (!path) return true;
  if (!rp_snapshot_save(run, path, status)) return false;
  rp_log_event(&run->log, json_pack("{s:s, s:s, s:I}", "event", "save", "file", path, "step", (json_int_t)run->update));
  rp_log_text(&run->log, "saved %s", path);
  return true;
}

static bool report_interrupt(const RpRun *run, RpStatus *status) {
  if (run->options->eval) return rp_fail(status, RP_INTERRUPTED, "interrupted");
  return rp_fail(status, RP_INTERRUPTED, "interrupted after step %lld of %lld%s%s%s", (long long)run->update,
                 (long long)run->steps, run->options->save ? ", saved " : ", nothing saved (no --save)",
                 run->options->save ? run->options->save : "", run->options->save ? ": go on with --resume" : "");
}

static bool train(RpRun *run, RpStatus *status) {
  double started = rp_seconds();
  if (!rp_train(run, status) || !save(run, status)) return false;
  bool test = run->test.count > 0 && !run->options->print && !rp_interrupted();
  if (test && !rp_evaluate(run, "test", status)) return false;
  if (run->observation.memory.measured) rp_memory_report(&run->observation.memory, &run->context, &run->log);
  rp_log_event(&run->log, json_pack("{s:s, s:I, s:f, s:b}", "event", "done", "step", (json_int_t)run->update, "seconds",
                                    rp_seconds() - started, "interrupted", (int)rp_interrupted()));
  return true;
}

/* What would be lost if it turned out only at the end that it cannot be written. */
static bool try_outputs(const RpOptions *options, RpStatus *status) {
  return (!options->save || rp_output_try(options->save, status)) &&
         (!options->trace || rp_output_try(options->trace, status));
}

static bool execute(RpRun *run, RpStatus *status) {
  if (!rp_log_open(&run->log, run->options->log, run->options->resume != NULL, status)) return false;
  run->log.silent = run->options->print;
  if (run->options->print) run->log.terminal = false;
  if (!try_outputs(run->options, status) || !prepare(run, status)) return false;
  rp_interrupt_install();
  report_start(run);
  if (run->options->eval && !run->options->load && !run->options->resume)
    rp_log_note(&run->log, "these are the initial weights; --load FILE evaluates trained ones");
  if (!(run->options->eval ? rp_evaluate(run, "test", status) : train(run, status))) return false;
  return !rp_interrupted() || report_interrupt(run, status);
}

/* One step whose dump is printed: the one asked for, or a temporary one. */
static bool execute_and_print(RpRun *run, RpOptions *options, RpStatus *status) {
  char *temporary = options->dump_grads ? NULL : rp_print_temporary(status);
  if (temporary) options->dump_grads = temporary;
  options->steps = 1;
  bool good = options->dump_grads && execute(run, status) && rp_print_dump(options->dump_grads, status);
  if (temporary) unlink(temporary);
  free(temporary);
  return good;
}

static void show_error(const RpStatus *status) {
  const char *no_colour = getenv("NO_COLOR");
  bool colour = isatty(STDERR_FILENO) == 1 && !(no_colour && *no_colour);
  fflush(stdout);
  if (status->code == RP_INTERRUPTED) {
    fprintf(stderr, "%s\n", status->message);
  } else {
    fprintf(stderr, "%serror:%s %s\n", colour ? "\x1b[1;31m" : "", colour ? "\x1b[0m" : "", status->message);
  }
}

static bool print_text(const char *text, RpStatus *status) {
  if (text && fputs(text, stdout) >= 0 && fflush(stdout) == 0) return true;
  return rp_fail(status, RP_IO, "cannot write to the standard output");
}

static bool print_help(const RpProgram *program, const char *name, RpStatus *status) {
  char *text = rp_options_help(program, name);
  bool printed = print_text(text, status);
  free(text);
  return printed;
}

static bool print_plan(const RpProgram *program, RpStatus *status) {
  if (!program->plan_json) return rp_fail(status, RP_USAGE, "--plan: the program carries no plan");
  return print_text(program->plan_json, status) && print_text("\n", status);
}

int rp_main(const RpProgram *program, int argc, char **argv) {
  rp_hold_standard_streams();
  if (argc > 0) rp_threads_wait_passively(argv);
  RpStatus status = {0};
  RpOptions options;
  RpRun run = {.program = program, .options = &options, .context = {.program = program}};
  bool parsed = rp_options_parse(&options, program, argc, argv, &status);
  if (program->version != RP_PROGRAM_VERSION) {
    rp_fail(&status, RP_INTERNAL, "compiled for version %d of the runtime's tables, the runtime has %d",
            program->version, RP_PROGRAM_VERSION);
  } else if (parsed && options.help) {
    print_help(program, argc > 0 ? argv[0] : "program", &status);
  } else if (parsed && options.plan) {
    print_plan(program, &status);
  } else if (parsed) {
    if (options.print)
      execute_and_print(&run, &options, &status);
    else
      execute(&run, &status);
    rp_log_close(&run.log, &status);
  }
  rp_data_close(&run.training);
  rp_data_close(&run.test);
  rp_arena_close(&run.context);
  free(run.scalars);
  rp_options_free(&options);
  if (status.code != RP_OK) show_error(&status);
  return status.code;
}
