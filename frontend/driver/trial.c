/* frontend/driver/trial.c - the temporary folder, the data and the child process of a trial run. */
#include "frontend/driver/trial.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/driver/model_inputs.h"
#include "frontend/driver/npy.h"

extern char **environ;

enum { MOST_ARGUMENTS = 16 };

bool open_trial(Trial *trial, const Options *options, const Graph *train) {
  const char *base = getenv("TMPDIR");
  char *folder = memory_format(options->arena, "%s/reprise-trial-XXXXXX", base && *base ? base : "/tmp");
  trial->arena = options->arena;
  trial->inputs = train->module->inputs.count;
  trial->limits = find_input_limits(options->arena, train);
  trial->folder = mkdtemp(folder);
  if (!trial->folder) fprintf(stderr, "reprise: cannot make a temporary folder '%s'\n", folder);
  return trial->folder != NULL;
}

char *trial_path(const Trial *trial, const char *name) {
  return memory_format(trial->arena, "%s/%s", trial->folder, name);
}

static char *input_path(const Trial *trial, int64_t input) {
  return trial_path(trial, memory_format(trial->arena, "input%lld.npy", (long long)input));
}

void close_trial(Trial *trial) {
  static const char *const names[] = {"program", "gradients.safetensors", "weights.safetensors", "log.jsonl",
                                      "trace.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(trial_path(trial, names[i]));
  for (int64_t i = 0; i < trial->inputs; i++) unlink(input_path(trial, i));
  rmdir(trial->folder);
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

int run_trial(const Trial *trial, const char *const *arguments) {
  char *words[MOST_ARGUMENTS] = {trial_path(trial, "program")};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  for (int i = 0; arguments[i]; i++) {
    ASSERT(i + 2 < MOST_ARGUMENTS);
    words[i + 1] = memory_string(trial->arena, arguments[i]);
  }
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  bool started = posix_spawn(&child, words[0], &actions, NULL, words, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!started || waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}
