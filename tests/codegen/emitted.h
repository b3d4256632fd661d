/* tests/codegen/emitted.h - an emitted program as a shared object in this process, run step by step: for the C target
 * with host_emitted.c, for the CUDA target with tests/cuda_codegen/device_emitted.c. */
#ifndef REPRISE_TESTS_CODEGEN_EMITTED_H
#define REPRISE_TESTS_CODEGEN_EMITTED_H

#include "ir/eval.h"
#include "passes/passes.h"
#include "runtime/program.h"

typedef struct Emitted {
  MemoryArena *memory;
  void *library;
  const RpProgram *program;
  void (*set_threads)(int threads);
  char *arena;
  RpControl *control;
  /* after a run: bytes of each observable of the phase, as they were when it was made */
  char **observed;
  RpContext context;
} Emitted;

/* How the target wants its graphs. */
PipelineOptions emitted_pipeline(void);
/* The program in C; NULL after diag_error. */
char *emitted_source(MemoryArena *memory, const Compilation *compilation);
/* Whether elementwise results have the interpreter's bits: a real device has other libraries for pow, sin, double. */
bool emitted_is_exact(void);
/* What code generation itself writes: for a device, with the source of the kernels in place of their images. */
char *emitted_text(MemoryArena *memory, const Compilation *compilation);
/* Compiles the text with the C compiler of the build, warnings as errors, and loads it. Fails the test when that fails.
 */
Emitted *emitted_load(MemoryArena *memory, const Compilation *compilation);
/* False when the text gives a warning with this compiler; skips (true) a compiler that is not there. */
bool emitted_is_clean(const char *source, const char *compiler);
/* Fills inputs and persistents from an evaluation, everything else with NaN bytes. */
void emitted_fill(Emitted *emitted, const Evaluation *evaluation);
/* Runs a phase; what the tables say is freed is overwritten with NaN bytes. */
void emitted_run(Emitted *emitted, const RpPhase *phase);
/* Element of a tensor's bytes as a double. */
double emitted_element(const RpTensor *tensor, const char *bytes, int64_t index);
int64_t emitted_elements(const RpTensor *tensor);
int64_t emitted_bytes(const RpTensor *tensor);

#endif
