/* runtime/options.h - the command line of a produced program. */
#ifndef REPRISE_RUNTIME_OPTIONS_H
#define REPRISE_RUNTIME_OPTIONS_H

#include <stdint.h>

#include "runtime/program.h"
#include "runtime/status.h"

/* Two strings of one option: NAME=FILE of --data and --test, FROM=TO of --rename. Both point into argv or program. */
typedef struct RpPair {
  const char *name, *value;
  int name_length; /* name is not terminated where it points into "NAME=FILE" */
} RpPair;

typedef struct RpOptions {
  int64_t steps, epochs; /* -1: not given */
  double learning_rate;  /* negative: not given */
  bool seed_given;
  uint64_t seed;
  int threads;                                                 /* 0: not given */
  const char *load, *save, *resume, *log, *dump_grads, *trace; /* NULL: not given */
  bool eval, memory, print, plan, poison, help;
  RpPair *data, *test, *renames; /* owned arrays, of argc at most */
  int data_count, test_count, rename_count;
} RpOptions;

/* Parses `argv`: `--option value` and `--option=value`. Errors have code RP_USAGE. Free with rp_options_free, after
 * failure too. */
bool rp_options_parse(RpOptions *options, const RpProgram *program, int argc, char **argv, RpStatus *status);
void rp_options_free(RpOptions *options);

/* The text of --help; the caller frees it. NULL when out of memory. */
char *rp_options_help(const RpProgram *program, const char *name);

/* The value given for `name`, or NULL. */
const char *rp_pair_find(const RpPair *pairs, int count, const char *name);

#endif
