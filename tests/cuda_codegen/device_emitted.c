/* tests/codegen/emitted.h for the CUDA target: programs run on the device that REPRISE_CUDA_PATH names. The device is
 * opened for each run; between runs the arena's bytes are the host's. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* cmocka.h needs the four above it */
#include <cmocka.h>

#include "codegen/codegen.h"
#include "codegen/cuda.h"
#include "tests/cuda_codegen/device_emitted.h"

/* REPRISE_TEST_ARCH: of the device, sm_90 when it is not set. */
static const CudaOptions *cuda_options(void) {
  static CudaOptions options;
  const char *architecture = getenv("REPRISE_TEST_ARCH");
  assert_true(cuda_parse_architectures(architecture ? architecture : "sm_90", &options));
  return &options;
}

bool emitted_is_exact(void) { return getenv("REPRISE_CUDA_PATH") != NULL; }

PipelineOptions emitted_pipeline(void) {
  return (PipelineOptions){.alignment = target_cuda.alignment,
                           .budget = -1,
                           .workspace = cuda_workspace,
                           .workspace_context = cuda_options()};
}

static Plant planted;

void emitted_plant(const Plant *plant) { planted = plant ? *plant : (Plant){0}; }

/* The text with the fault in it; NULL when it lacks the place. */
static char *plant_into(MemoryArena *memory, const char *text) {
  const char *behind = strstr(text, planted.behind), *at = behind ? strstr(behind, planted.from) : NULL;
  if (!at) return NULL;
  return memory_format(memory, "%.*s%s%s", (int)(at - text), text, planted.to, at + strlen(planted.from));
}

/* The source with the files of runtime/kernels/ that it includes in it. */
static char *expand_kernels(MemoryArena *memory, const char *source) {
  static const char start[] = "#include \"runtime/kernels/";
  const char *include = strstr(source, start), *error;
  int64_t length;
  if (!include) return memory_string(memory, source);
  const char *name = strchr(include, '"') + 1, *end = strchr(name, '"');
  char *path = memory_format(memory, TEST_INCLUDE "/%.*s", (int)(end - name), name);
  char *text = file_read(memory, path, &length, &error);
  assert_non_null(text);
  return memory_format(memory, "%.*s%s%s", (int)(include - source), source, text, expand_kernels(memory, end + 1));
}

static bool plant_in_kernels(MemoryArena *memory, CudaProgram *program) {
  char *text = planted.behind ? plant_into(memory, expand_kernels(memory, program->source)) : NULL;
  if (!text) return false;
  program->source = text;
  program->length = (int64_t)strlen(text);
  return true;
}

char *emitted_source(MemoryArena *memory, const Compilation *compilation) {
  CodegenOptions options = {.cuda = cuda_options()};
  CudaProgram *program = emit_cuda_device(compilation, &options, memory);
  CudaImages images;
  ExitCode code;
  const char *error;
  int64_t length;
  if (!program) return NULL;
  bool in_kernels = plant_in_kernels(memory, program);
  if (!compile_cuda(program, options.cuda, TEST_INCLUDE, memory, &images, &code, &error)) fail_msg("%s", error);
  char *source = emit_cuda_host(program, &images, memory, &length);
  assert_int_equal(length, strlen(source));
  if (in_kernels || !planted.behind) return source;
  source = plant_into(memory, source);
  if (!source) fail_msg("neither kernels nor launches have '%s' behind '%s'", planted.from, planted.behind);
  return source;
}

char *emitted_text(MemoryArena *memory, const Compilation *compilation) {
  CodegenOptions options = {.cuda = cuda_options()};
  CudaProgram *program = emit_cuda_device(compilation, &options, memory);
  int64_t length;
  assert_non_null(program);
  CudaImage image = {options.cuda->architectures[0], program->source, program->length + 1, NULL};
  CudaImages images = {.count = 1, .cubins = {image}, .ptx = image};
  return emit_cuda_host(program, &images, memory, &length);
}

/* ---- runs ---- */

/* The runtime that is linked into a program. */
typedef struct Runtime {
  bool (*open)(RpContext *context, RpStatus *status);
  void (*close)(RpContext *context);
  bool (*read)(const RpContext *context, int64_t offset, void *to, int64_t bytes, RpStatus *status);
  bool (*write)(const RpContext *context, int64_t offset, const void *from, int64_t bytes, RpStatus *status);
  bool (*fill)(const RpContext *context, int64_t offset, unsigned char value, int64_t bytes, RpStatus *status);
  bool (*start)(RpContext *context, const RpControl *control, RpStatus *status);
  bool (*finish)(RpContext *context, RpControl *control, float *scalars, RpStatus *status);
} Runtime;

typedef struct DeviceRun {
  Emitted *emitted;
  Runtime runtime;
} DeviceRun;

static Runtime find_runtime(void *library) {
  Runtime runtime;
  *(void **)&runtime.open = dlsym(library, "rp_arena_open");
  *(void **)&runtime.close = dlsym(library, "rp_arena_close");
  *(void **)&runtime.read = dlsym(library, "rp_arena_read");
  *(void **)&runtime.write = dlsym(library, "rp_arena_write");
  *(void **)&runtime.fill = dlsym(library, "rp_arena_fill");
  *(void **)&runtime.start = dlsym(library, "rp_phase_start");
  *(void **)&runtime.finish = dlsym(library, "rp_phase_finish");
  return runtime;
}

static void observe(RpContext *context, int64_t kernel) {
  DeviceRun *run = context->observer_data;
  const RpPhase *phase = context->phase;
  for (int64_t i = 0; i < phase->observable_count; i++) {
    const RpTensor *tensor = &phase->observables[i].tensor;
    if (phase->observables[i].step == kernel)
      run->runtime.read(context, tensor->offset, run->emitted->observed[i], emitted_bytes(tensor), NULL);
  }
  if (kernel < 0) return;
  const RpKernel *done = &phase->kernels[kernel];
  for (int64_t i = 0; i < done->freed_count; i++)
    run->runtime.fill(context, done->freed[2 * i], 0xff, done->freed[2 * i + 1], NULL);
}

bool emitted_try(Emitted *emitted, const RpPhase *phase, RpStatus *status) {
  DeviceRun run = {emitted, find_runtime(emitted->library)};
  const Runtime *runtime = &run.runtime;
  RpContext context = {.program = emitted->program};
  RpControl control;
  float *scalars = NEW_ARRAY(emitted->memory, float, 2 * phase->scalar_count + 1);
  int64_t bytes = emitted->program->arena_bytes;
  emitted->observed = NEW_ARRAY(emitted->memory, char *, phase->observable_count);
  for (int64_t i = 0; i < phase->observable_count; i++)
    emitted->observed[i] = memory_alloc(emitted->memory, emitted_bytes(&phase->observables[i].tensor));
  if (!runtime->open(&context, status) || !runtime->write(&context, 0, emitted->arena, bytes, status)) return false;
  context.observer = observe;
  context.observer_data = &run;
  context.phase = phase;
  observe(&context, -1);
  bool done = runtime->start(&context, emitted->control, status) &&
              runtime->finish(&context, &control, scalars, status) &&
              runtime->read(&context, 0, emitted->arena, bytes, status);
  runtime->close(&context);
  return done;
}

/* REPRISE_TEST_COMPILE: programs are only compiled, to be kept. */
void emitted_run(Emitted *emitted, const RpPhase *phase) {
  RpStatus status = {0};
  if (getenv("REPRISE_TEST_COMPILE")) skip();
  if (!emitted_try(emitted, phase, &status)) fail_msg("%s", status.message);
}
