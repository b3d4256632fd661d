/* tests/examples/program_run.h - a model file through the `reprise` command and the program it makes, as a user would.
 * Programs run with one thread; the caller's folder holds every file. */
#ifndef REPRISE_TESTS_EXAMPLES_PROGRAM_RUN_H
#define REPRISE_TESTS_EXAMPLES_PROGRAM_RUN_H

#include "ir/base.h"

/* A fresh folder for temporary files, and its removal with everything in it. */
char *folder_create(MemoryArena *arena);
void folder_remove(MemoryArena *arena, const char *folder);

/* Runs a command (NULL-terminated words, found by path) with standard output and error in files (NULL: /dev/null).
 * Returns its exit code, 128 + signal when it was killed. */
int run_command(const char *const *words, const char *output, const char *errors);
/* reprise compile MODEL -o PROGRAM and up to four further words (NULL where unused). Prints the errors when it fails.
 */
int compile_model(MemoryArena *arena, const char *model, const char *program, const char *const *further);

/* Path of a file of examples/. */
char *example_path(MemoryArena *arena, const char *file);
/* Compiles an example into the folder and runs it from the root of the sources with further words (NULL-terminated
 * lists, or NULL). Returns the path of its log of JSON lines, or NULL after printing what went wrong. */
char *train_example(MemoryArena *arena, const char *folder, const char *file, const char *const *compile_words,
                    const char *const *run_words);

typedef struct LogLines {
  double *values;
  int64_t count;
} LogLines;
/* Field of all events of a kind in a log of JSON lines, in order: log_field(arena, "run.log", "step", "loss");
 * "scalars.accuracy" looks into scalars. */
LogLines log_field(MemoryArena *arena, const char *path, const char *event, const char *field);

/* Elements of a tensor in a safetensors file as doubles; NULL when it has none of that name. */
double *read_tensor(MemoryArena *arena, const char *path, const char *name, int64_t *count);

#endif
