/* frontend/driver/produce.h - from a module to files: passes, code generation, linking. */
#ifndef REPRISE_FRONTEND_DRIVER_PRODUCE_H
#define REPRISE_FRONTEND_DRIVER_PRODUCE_H

#include "codegen/codegen.h"
#include "frontend/driver/options.h"
#include "passes/checkpoint.h"

/* Runs the passes with the target's alignment and the options' budget, strategy and limits. NULL after errors were
 * reported, with the exit code: EXIT_BUDGET_INFEASIBLE or EXIT_NO_PLAN when no plan fits. */
Compilation *compile_for_target(const Options *options, Module *module, int *code);

/* The same, but where no plan fits the compilation is returned without one and nothing is said. */
Compilation *compile_within_budget(const Options *options, Module *module, int *code);

/* What the options say about how to plan. */
PlanRequest plan_request_of(const Options *options);

/* command_plan.c: EXIT_OK when the compilation has a plan within its budget (notes about the planner are printed); else
 * the report of what is missing on stderr, and its exit code. */
int report_plan_faults(const Options *options, const Compilation *compilation);

/* What code generation makes for the options' target. */
typedef struct Produced {
  char *host; /* the program in C */
  int64_t length;
  CudaProgram *cuda; /* for the cuda target: kernels, and their images where they were asked for */
  CudaImages images;
} Produced;
/* images false: the cuda target stops before it needs NVRTC, without `host`. Returns an ExitCode after its message. */
int produce_sources(const Options *options, const Compilation *compilation, bool images, Produced *produced);
int produce_cuda(const Options *options, const Compilation *compilation, const CodegenOptions *codegen, bool images,
                 Produced *produced);
/* What each kernel takes on each architecture: a table on standard output, and JSON. */
void print_cuda_kernels(const Produced *produced);
char *cuda_kernels_json(const Options *options, const Produced *produced);

/* Emits, compiles and links the program. Returns an ExitCode after its own message. */
int produce_executable(const Options *options, const Compilation *compilation, const char *output);

/* Writes a text to a file or standard output ("-"). Returns EXIT_OK, or EXIT_IO after its message. */
int write_text(const Options *options, const char *path, const char *text);

#endif
