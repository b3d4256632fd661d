#include "tests/cuda/device_bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NVRTC ---- */

typedef struct Nvrtc {
  void *library;
  int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(void *, int, const char *const *);
  int (*log_size)(void *, size_t *);
  int (*log)(void *, char *);
  int (*cubin_size)(void *, size_t *);
  int (*cubin)(void *, char *);
  int (*ptx_size)(void *, size_t *);
  int (*ptx)(void *, char *);
  int (*destroy)(void **);
} Nvrtc;

static void find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "NVRTC has no %s\n", name);
    abort();
  }
  memcpy(function, &address, sizeof address);
}

static bool load(Nvrtc *nvrtc, const char *path) {
  nvrtc->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!nvrtc->library) return false;
  find(nvrtc->library, "nvrtcCreateProgram", &nvrtc->create);
  find(nvrtc->library, "nvrtcCompileProgram", &nvrtc->compile);
  find(nvrtc->library, "nvrtcGetProgramLogSize", &nvrtc->log_size);
  find(nvrtc->library, "nvrtcGetProgramLog", &nvrtc->log);
  find(nvrtc->library, "nvrtcGetCUBINSize", &nvrtc->cubin_size);
  find(nvrtc->library, "nvrtcGetCUBIN", &nvrtc->cubin);
  find(nvrtc->library, "nvrtcGetPTXSize", &nvrtc->ptx_size);
  find(nvrtc->library, "nvrtcGetPTX", &nvrtc->ptx);
  find(nvrtc->library, "nvrtcDestroyProgram", &nvrtc->destroy);
  return true;
}

static void read_log(const Nvrtc *nvrtc, void *program, char *log, size_t log_size) {
  size_t size = 0;
  nvrtc->log_size(program, &size);
  char *whole = calloc(1, size + 1);
  if (!whole) abort();
  nvrtc->log(program, whole);
  snprintf(log, log_size, "%s", whole);
  free(whole);
}

char *compile_cuda(const char *library, const char *source, const char *target, const char *const *extra, char *log,
                   size_t log_size, size_t *bytes) {
  Nvrtc nvrtc;
  char architecture[64];
  const char *options[16] = {architecture, "--fmad=false", "--std=c++17", "-I" REPRISE_SOURCE};
  int count = 4;
  bool binary = strncmp(target, "sm_", 3) == 0;
  void *program;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", target);
  for (; extra && *extra; extra++) options[count++] = *extra;
  snprintf(log, log_size, "cannot load %s", library);
  if (!load(&nvrtc, library) || nvrtc.create(&program, source, "test.cu", 0, NULL, NULL) != 0) return NULL;
  int result = nvrtc.compile(program, count, options);
  read_log(&nvrtc, program, log, log_size);
  char *image = NULL;
  if (result == 0 && (binary ? nvrtc.cubin_size : nvrtc.ptx_size)(program, bytes) == 0 && *bytes) {
    image = malloc(*bytes);
    if (!image || (binary ? nvrtc.cubin : nvrtc.ptx)(program, image) != 0) abort();
  }
  nvrtc.destroy(&program);
  return image;
}

/* ---- the device ---- */

static void expect(CuResult result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s: error %d\n", what, result);
  abort();
}

void bench_open(Bench *bench, const char *source) {
  RpStatus status = {0};
  char log[4096];
  CuDevice device;
  CuContext context;
  *bench = (Bench){0};
  if (!rp_cuda_load(&bench->cuda, false, &status)) {
    fprintf(stderr, "%s\n", status.message);
    abort();
  }
  size_t bytes;
  char *cubin = compile_cuda(REPRISE_EMULATOR "/libnvrtc.so.13", source, "sm_90", NULL, log, sizeof log, &bytes);
  if (!cubin) fprintf(stderr, "%s\n", log);
  expect(cubin ? 0 : 1, "compile");
  expect(bench->cuda.init(0), "init");
  expect(bench->cuda.device_get(&device, 0), "device");
  expect(bench->cuda.context_retain(&context, device), "context");
  expect(bench->cuda.context_set(context), "context");
  expect(bench->cuda.module_load(&bench->module, cubin), "module");
  expect(bench->cuda.stream_create(&bench->stream, CU_STREAM_NON_BLOCKING), "stream");
  free(cubin);
}

void bench_close(Bench *bench) {
  for (int i = 0; i < bench->count; i++) {
    bench->cuda.release(bench->pointers[i]);
    bench->cuda.release_host(bench->hosts[i]);
  }
  bench->cuda.stream_destroy(bench->stream);
  bench->cuda.module_unload(bench->module);
  bench->cuda.context_release(0);
  rp_cuda_unload(&bench->cuda);
}

int bench_operand(Bench *bench, const void *data, size_t bytes) {
  int index = bench->count++;
  bench->bytes[index] = bytes;
  expect(bench->cuda.allocate(&bench->pointers[index], bytes), "allocate");
  expect(bench->cuda.allocate_host(&bench->hosts[index], bytes, 0), "allocate host memory");
  if (!data) return index;
  memcpy(bench->hosts[index], data, bytes);
  expect(bench->cuda.copy_in(bench->pointers[index], bench->hosts[index], bytes, bench->stream), "copy");
  expect(bench->cuda.stream_synchronize(bench->stream), "copy");
  return index;
}

CuResult bench_launch(Bench *bench, const char *function, RpDim grid, RpDim block, uint32_t shared,
                      const RpArgument *arguments, int count) {
  CuFunction handle;
  CuOperand operands[RP_MAX_ARGUMENTS];
  CuPointer addresses[RP_MAX_ARGUMENTS];
  void *parameters[RP_MAX_ARGUMENTS];
  int operand_count = 0;
  for (int i = 0; i < count; i++) {
    const RpArgument *argument = &arguments[i];
    int64_t index = argument->value.offset;
    parameters[i] = (void *)(uintptr_t)&argument->value;
    if (argument->use == RP_OPERAND_VALUE) continue;
    addresses[i] = index < 0 ? 0 : bench->pointers[index];
    parameters[i] = &addresses[i];
    if (index < 0) continue;
    operands[operand_count++] = (CuOperand){addresses[i], bench->bytes[index], (int)argument->use};
  }
  expect(bench->cuda.module_function(&handle, bench->module, function), function);
  if (shared > 48 << 10)
    expect(bench->cuda.function_set(handle, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)shared), function);
  bench->cuda.declare_operands(operands, operand_count);
  CuResult result = bench->cuda.launch(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, bench->stream,
                                       parameters, NULL);
  return result ? result : bench->cuda.stream_synchronize(bench->stream);
}

const void *bench_read(Bench *bench, int operand) {
  CuPointer from = bench->pointers[operand];
  expect(bench->cuda.copy_out(bench->hosts[operand], from, bench->bytes[operand], bench->stream), "copy");
  expect(bench->cuda.stream_synchronize(bench->stream), "copy");
  return bench->hosts[operand];
}
