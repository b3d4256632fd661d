/* frontend/driver/trial.c - the temporary folder, the data and the child process of a trial run. */
#include "frontend/driver/trial.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/driver/model_inputs.h"
#include "frontend/driver/npy.h"
#include "ir/signals.h"

extern char **environ;

enum { MOST_ARGUMENTS = 16 };

static Trial *open_now; /* what the signal handler removes */
static SignalWatch watch;

static void remove_folder(const Trial *trial) {
  for (const char **file = trial->files; *file; file++) unlink(*file);
  rmdir(trial->folder);
}

/* Only calls that may be made in a signal handler. */
static void end_trial(int number) {
  if (open_now->child) kill(open_now->child, SIGTERM);
  remove_folder(open_now);
  restore_ending_signals(&watch);
  raise(number);
}

char *trial_path(const Trial *trial, const char *name) {
  return memory_format(trial->arena, "%s/%s", trial->folder, name);
}

static char *input_path(const Trial *trial, int64_t input) {
  return trial_path(trial, memory_format(trial->arena, "input%lld.npy", (long long)input));
}

static void list_files(Trial *trial) {
  static const char *const names[] = {"program", "gradients.safetensors", "weights.safetensors", "log.jsonl",
                                      "trace.json"};
  enum { NAMES = sizeof names / sizeof *names };
  trial->files = NEW_ARRAY(trial->arena, const char *, NAMES + trial->inputs + 1);
  for (int i = 0; i < NAMES; i++) trial->files[i] = trial_path(trial, names[i]);
  for (int64_t i = 0; i < trial->inputs; i++) trial->files[NAMES + i] = input_path(trial, i);
}

bool open_trial(Trial *trial, const Options *options, const Graph *train) {
  const char *base = getenv("TMPDIR");
  char *folder = memory_format(options->arena, "%s/reprise-trial-XXXXXX", base && *base ? base : "/tmp");
  *trial = (Trial){.arena = options->arena, .inputs = train->module->inputs.count};
  trial->limits = find_input_limits(options->arena, train);
  trial->folder = mkdtemp(folder);
  if (!trial->folder) {
    fprintf(stderr, "reprise: cannot make a temporary folder '%s'\n", folder);
    return false;
  }
  list_files(trial);
  open_now = trial;
  watch_ending_signals(&watch, end_trial);
  return true;
}

void close_trial(Trial *trial) {
  remove_folder(trial);
  restore_ending_signals(&watch);
}

/* A reader of the made-up data of one input. */
static bool write_input(Trial *trial, Module *module, int64_t index, int64_t records, Reader *reader,
                        const char **error) {
  const ModelInput *input = &module->inputs.items[index];
  EvalTensor *tensors = NEW_ARRAY(trial->arena, EvalTensor, records);
  for (int64_t r = 0; r < records; r++) {
    tensors[r] = eval_tensor_create(trial->arena, &input->type);
    fill_input(&tensors[r], (int)index, trial->limits[index], module->training.seed, input->type.rank ? r : 0);
  }
  *reader = (Reader){.kind = READER_CONSTANT, .first = 0, .last = -1, .location = input->location};
  array_push(module->arena, &reader->inputs, index);
  if (!input->type.rank) {
    reader->value = eval_tensor_get(&tensors[0], 0);
    return true;
  }
  reader->kind = READER_NPY;
  reader->path = input_path(trial, index);
  return write_npy(trial->arena, reader->path, tensors, records, error);
}

bool write_trial_data(Trial *trial, Module *module, int64_t records, const char **error) {
  module->training.readers.count = module->training.test_readers.count = 0;
  module->training.shuffle = false;
  module->training.schedule = SCHEDULE_CONSTANT;
  module->training.warmup = 0;
  for (int64_t i = 0; i < module->inputs.count; i++) {
    Reader reader;
    if (!write_input(trial, module, i, records, &reader, error)) return false;
    array_push(module->arena, &module->training.readers, reader);
  }
  return true;
}

int run_trial(Trial *trial, const char *const *arguments) {
  char *words[MOST_ARGUMENTS] = {trial_path(trial, "program")};
  posix_spawn_file_actions_t actions;
  pid_t child, ended = -1;
  int status = -1;
  for (int i = 0; arguments[i]; i++) {
    ASSERT(i + 2 < MOST_ARGUMENTS);
    words[i + 1] = memory_string(trial->arena, arguments[i]);
  }
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  bool started = posix_spawn(&child, words[0], &actions, NULL, words, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (started) {
    trial->child = child;
    ended = waitpid(child, &status, 0);
    trial->child = 0;
  }
  if (ended < 0 || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}
