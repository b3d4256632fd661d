#include "tests/examples/program_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/safetensors.h"

extern char **environ;

char *folder_create(MemoryArena *arena) {
  const char *base = getenv("TMPDIR");
  char *folder = memory_format(arena, "%s/reprise-test-XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(folder)) die("cannot make a folder like %s", folder);
  setenv("OMP_NUM_THREADS", "1", 1); /* tests run beside each other: waiting threads would take their cores */
  setenv("REPRISE_CC", TEST_CC, 0);  /* the compiler of the runtime, since each has an OpenMP of its own */
  return folder;
}

void folder_remove(MemoryArena *arena, const char *folder) {
  DIR *directory = opendir(folder);
  for (struct dirent *entry = directory ? readdir(directory) : NULL; entry; entry = readdir(directory))
    if (entry->d_name[0] != '.') unlink(memory_format(arena, "%s/%s", folder, entry->d_name));
  if (directory) closedir(directory);
  rmdir(folder);
}

int run_command(const char *const *words, const char *output, const char *errors) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 0, flags = O_WRONLY | O_CREAT | O_TRUNC;
  char *arguments[32] = {NULL};
  for (int i = 0; words[i] && i < 31; i++) arguments[i] = strdup(words[i]);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output ? output : "/dev/null", flags, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors ? errors : "/dev/null", flags, 0644);
  bool started = posix_spawn(&child, words[0], &actions, NULL, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; arguments[i]; i++) free(arguments[i]);
  if (!started) die("cannot start %s", words[0]);
  if (waitpid(child, &status, 0) < 0) die("cannot wait for %s", words[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int compile_model(MemoryArena *arena, const char *model, const char *program, const char *const *further) {
  const char *words[16] = {REPRISE_COMMAND, "compile", "-q", model, "-o", program}, *error;
  int64_t length;
  for (int i = 0; further && further[i] && i < 9; i++) words[6 + i] = further[i];
  char *errors = memory_format(arena, "%s.errors", program);
  int code = run_command(words, NULL, errors);
  if (code != EXIT_OK)
    fprintf(stderr, "%s: exit code %d\n%s\n", model, code, file_read(arena, errors, &length, &error));
  return code;
}

char *example_path(MemoryArena *arena, const char *file) {
  return memory_format(arena, "%s/examples/%s", REPRISE_SOURCE, file);
}

char *train_example(MemoryArena *arena, const char *folder, const char *file, const char *const *compile_words,
                    const char *const *run_words) {
  char *program = memory_format(arena, "%s/program", folder), *log = memory_format(arena, "%s/log", folder),
       *errors = memory_format(arena, "%s/errors", folder);
  const char *words[16] = {program}, *error;
  int64_t length;
  for (int i = 0; run_words && run_words[i] && i < 14; i++) words[1 + i] = run_words[i];
  if (chdir(REPRISE_SOURCE) != 0) die("no folder %s", REPRISE_SOURCE);
  if (compile_model(arena, example_path(arena, file), program, compile_words) != EXIT_OK) return NULL;
  int code = run_command(words, log, errors);
  if (code != EXIT_OK) fprintf(stderr, "%s: exit code %d\n%s\n", file, code, file_read(arena, errors, &length, &error));
  return code == EXIT_OK ? log : NULL;
}

static const json_t *find_field(const json_t *event, const char *field) {
  return string_starts(field, "scalars.")
             ? json_object_get(json_object_get(event, "scalars"), field + strlen("scalars."))
             : json_object_get(event, field);
}

LogLines log_field(MemoryArena *arena, const char *path, const char *event, const char *field) {
  ARRAY(double) values = {0};
  int64_t length;
  const char *error;
  char *text = file_read(arena, path, &length, &error), *rest;
  for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
    json_t *object = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "event"));
    const json_t *value = find_field(object, field);
    if (kind && string_equal(kind, event) && json_is_number(value))
      array_push(arena, &values, json_number_value(value));
    json_decref(object);
  }
  return (LogLines){values.items, values.count};
}

static double element(RpType type, const void *bytes, int64_t i) {
  switch (type) {
    case RP_F32:
      return ((const float *)bytes)[i];
    case RP_F64:
      return ((const double *)bytes)[i];
    case RP_I32:
      return ((const int32_t *)bytes)[i];
    case RP_I64:
      return (double)((const int64_t *)bytes)[i];
    case RP_U8:
    case RP_BOOL:
      return ((const uint8_t *)bytes)[i];
    case RP_F16:
    case RP_BF16:
      break;
  }
  die("a tensor of a type that no test reads");
}

double *read_tensor(MemoryArena *arena, const char *path, const char *name, int64_t *count) {
  RpTensorFile file;
  RpStatus status;
  double *values = NULL;
  if (!rp_tensors_open(&file, path, &status)) die("%s", status.message);
  for (int64_t i = 0; i < file.count; i++) {
    const RpTensorEntry *entry = &file.entries[i];
    if (!string_equal(entry->name, name)) continue;
    int64_t elements = 1;
    for (int axis = 0; axis < entry->rank; axis++) elements *= entry->dims[axis];
    void *bytes = memory_alloc(arena, entry->end - entry->begin);
    if (!rp_tensors_read(&file, entry, (RpType)entry->type, 0, elements, bytes, &status)) die("%s", status.message);
    values = NEW_ARRAY(arena, double, elements);
    for (int64_t k = 0; k < elements; k++) values[k] = element((RpType)entry->type, bytes, k);
    *count = elements;
  }
  rp_tensors_close(&file);
  return values;
}
