/* tests/codegen/emitted.h for the C target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka.h needs the four above it */
#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/codegen/emitted.h"

PipelineOptions emitted_pipeline(void) { return (PipelineOptions){.alignment = target_c.alignment, .budget = -1}; }

char *emitted_source(MemoryArena *memory, const Compilation *compilation) {
  int64_t length;
  CodegenOptions options = {0};
  char *source = emit_c_program(compilation, &options, memory, &length);
  if (source) assert_int_equal(length, strlen(source));
  return source;
}

bool emitted_is_exact(void) { return true; }

char *emitted_text(MemoryArena *memory, const Compilation *compilation) { return emitted_source(memory, compilation); }

/* ---- runs ---- */

static void observe(RpContext *context, int64_t kernel) {
  Emitted *emitted = context->observer_data;
  const RpPhase *phase = context->phase;
  for (int64_t i = 0; i < phase->observable_count; i++) {
    const RpTensor *tensor = &phase->observables[i].tensor;
    if (phase->observables[i].step == kernel)
      memcpy(emitted->observed[i], context->arena + tensor->offset, (size_t)emitted_bytes(tensor));
  }
  if (kernel < 0) return;
  const RpKernel *done = &phase->kernels[kernel];
  for (int64_t i = 0; i < done->freed_count; i++)
    memset(context->arena + done->freed[2 * i], 0xff, (size_t)done->freed[2 * i + 1]);
}

void emitted_run(Emitted *emitted, const RpPhase *phase) {
  emitted->observed = NEW_ARRAY(emitted->memory, char *, phase->observable_count);
  for (int64_t i = 0; i < phase->observable_count; i++)
    emitted->observed[i] = memory_alloc(emitted->memory, emitted_bytes(&phase->observables[i].tensor));
  emitted->context.observer = observe;
  emitted->context.observer_data = emitted;
  emitted->context.phase = phase;
  observe(&emitted->context, -1);
  phase->run(&emitted->context);
}
