/* frontend/driver/trial.h - a compiled program run on made-up data: for verification and for measured costs. */
#ifndef REPRISE_FRONTEND_DRIVER_TRIAL_H
#define REPRISE_FRONTEND_DRIVER_TRIAL_H

#include <sys/types.h>

#include "frontend/driver/options.h"

/* A temporary folder with the program and its data. */
typedef struct Trial {
  MemoryArena *arena;
  const char *folder;
  int64_t inputs;       /* files input0.npy … of the model's inputs */
  int64_t *limits;      /* largest value + 1 of integer inputs */
  const char **files;   /* all that may be in the folder, NULL at the end */
  volatile pid_t child; /* the program while it runs, else 0 */
} Trial;

/* Makes the folder, one at a time; SIGINT, SIGTERM and SIGHUP end the program and remove it first, until it is closed.
 * Returns false after a message on stderr. */
bool open_trial(Trial *trial, const Options *options, const Graph *train);
/* Removes the folder and what the functions below and the program left in it. */
void close_trial(Trial *trial);
/* Path of a file in the folder. */
char *trial_path(const Trial *trial, const char *name);

/* Writes data for `records` micro-steps and points the module's readers at it: in order, without test data, with a
 * constant schedule. Inputs of rank 0 are constants of the run, since a record needs a first axis. */
bool write_trial_data(Trial *trial, Module *module, int64_t records, const char **error);
/* Runs the folder's file "program" with arguments (NULL-terminated, without the name); its standard output is dropped.
 * Returns its exit code, or -1 when it did not run or was killed. */
int run_trial(Trial *trial, const char *const *arguments);

#endif
