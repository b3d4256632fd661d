/* frontend/driver/options.h - the command line of `reprise` (docs/design.md, section 9). */
#ifndef REPRISE_FRONTEND_DRIVER_OPTIONS_H
#define REPRISE_FRONTEND_DRIVER_OPTIONS_H

#include "codegen/cuda.h"
#include "codegen/pictures/drawing.h"
#include "frontend/elaborate.h"
#include "passes/planner/strategies.h"

/* What --emit asks for. */
typedef enum OutputKind {
  EMIT_EXECUTABLE = 1,
  EMIT_C = 2,
  EMIT_IR = 4,
  EMIT_GRAPH = 8,
  EMIT_CUDA = 16,
  EMIT_PTX = 32,
  EMIT_KERNELS = 64, /* what the kernels take of a device */
  EMIT_REPORT = 128
} OutputKind;

typedef struct Options {
  MemoryArena *arena;
  const char *command;
  ARRAY(const char *) files;
  ARRAY(Definition) definitions; /* -D NAME=VALUE */
  const char *output;            /* -o; NULL: by the input's name */
  unsigned emissions;            /* OutputKind bits; 0: not given */
  int64_t budget;                /* bytes; -1: none */
  bool budget_is_free_memory;    /* --memory-budget=auto */
  const char *dump_pass;
  const Target *target;
  CudaOptions cuda;                      /* of the cuda target */
  const char *cuda_option;               /* one that only that target takes, NULL: none was given */
  const char *compiler, *compiler_flags; /* --cc, --cflags; NULL: the defaults */
  PlanStrategy strategy;
  const char *profile;          /* file of measured costs; NULL: modelled ones */
  const char *planner, *device; /* NULL: the defaults */
  double solver_seconds;        /* 0: no limit */
  int64_t solver_nodes;         /* 0: the planner's default */
  const char *plan_output, *plan_input, *csv_output;
  const char *dot_output, *svg_output, *report_output; /* pictures; NULL: not asked for */
  Detail dot_detail;
  int64_t points;          /* sweep: budgets */
  int64_t elements, steps; /* verify */
  bool check, measure, json, quiet, verbose;
} Options;

typedef struct Command {
  const char *name, *arguments, *summary;
  const char *options; /* long names it takes, separated by spaces */
  int files_least, files_most;
  int (*run)(const Options *options);
} Command;

/* Parses the words after the command's name. Reports on stderr; returns EXIT_OK, EXIT_USAGE, or EXIT_DEVICE where the
 * device is not there whose free memory is to be the budget. */
int parse_options(const Command *command, int count, char **words, Options *options);
/* Can the file be read? Says why not on stderr. */
bool can_read(const Options *options, const char *path);
/* Help texts on a stream. */
void print_command_help(FILE *file, const Command *command);

#endif
