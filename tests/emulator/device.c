/* Devices, the context, modules, settings, faults and the report. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/emulator/emulator.h"

Counters counters;
static CuResult first_fault;
static char fault_text[1024];

/* ---- settings ---- */

static int64_t number(const char *name, int64_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

const Settings *settings(void) {
  static Settings settings;
  static bool read;
  if (read) return &settings;
  const char *streams = getenv("REPRISE_EMULATOR_STREAMS");
  settings.memory = number("REPRISE_EMULATOR_MEMORY", (int64_t)1 << 30);
  settings.architecture = (int)number("REPRISE_EMULATOR_ARCH", 90);
  settings.driver = (int)number("REPRISE_EMULATOR_DRIVER", 13000);
  settings.devices = (int)number("REPRISE_EMULATOR_DEVICES", 1);
  settings.eager = streams && strcmp(streams, "eager") == 0;
  settings.report = getenv("REPRISE_EMULATOR_REPORT");
  settings.without = getenv("REPRISE_EMULATOR_WITHOUT") ? getenv("REPRISE_EMULATOR_WITHOUT") : "";
  read = true;
  return &settings;
}

/* ---- faults ---- */

CuResult fault(CuResult error, const char *format, ...) {
  va_list list;
  if (first_fault) return first_fault;
  first_fault = error;
  int length = snprintf(fault_text, sizeof fault_text, "%s", launch_title());
  va_start(list, format);
  vsnprintf(fault_text + length, sizeof fault_text - (size_t)length, format, list);
  va_end(list);
  fprintf(stderr, "emulated device: %s\n", fault_text);
  return error;
}

CuResult broken(void) { return first_fault; }

EXPORT CuResult cuGetErrorString(CuResult error, const char **text) {
  static const struct {
    CuResult error;
    const char *text;
  } table[] = {{0, "no error"},
               {ERROR_INVALID_VALUE, "invalid argument"},
               {ERROR_OUT_OF_MEMORY, "out of memory"},
               {ERROR_NOT_INITIALIZED, "initialization error"},
               {ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
               {ERROR_INVALID_IMAGE, "device kernel image is invalid"},
               {ERROR_INVALID_CONTEXT, "invalid device context"},
               {ERROR_NO_BINARY, "no kernel image is available for execution on the device"},
               {ERROR_NOT_FOUND, "named symbol not found"},
               {ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
               {ERROR_LAUNCH_FAILED, "unspecified launch failure"},
               {ERROR_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (table[i].error != error) continue;
    *text = table[i].text;
    return 0;
  }
  *text = NULL;
  return ERROR_INVALID_VALUE;
}

/* ---- the report ---- */

static void __attribute__((destructor)) write_report(void) {
  FILE *stream = settings()->report ? fopen(settings()->report, "w") : NULL;
  if (!stream) return;
  fprintf(stream,
          "{\"allocated_peak\": %lld, \"high_water\": %lld, \"in_use_peak\": %lld, \"allocations\": %lld, "
          "\"left_allocated\": %lld, "
          "\"launches\": %lld, \"graph_launches\": %lld, \"products\": %lld, \"blocks\": %lld, \"fault\": %d}\n",
          (long long)counters.allocated_peak, (long long)counters.high_water, (long long)counters.in_use_peak,
          (long long)counters.allocations, (long long)counters.allocated, (long long)counters.launches,
          (long long)counters.graph_launches, (long long)counters.products, (long long)counters.blocks, first_fault);
  fclose(stream);
}

/* ---- devices and the context ---- */

static bool initialised;
struct CUctx_st {
  int uses;
};
static struct CUctx_st context;

EXPORT CuResult cuDriverGetVersion(int *version) {
  *version = settings()->driver;
  return 0;
}
EXPORT CuResult cuInit(unsigned flags) {
  (void)flags;
  initialised = true;
  return settings()->devices > 0 ? 0 : ERROR_NO_DEVICE;
}
EXPORT CuResult cuDeviceGetCount(int *count) {
  *count = settings()->devices;
  return initialised ? 0 : ERROR_NOT_INITIALIZED;
}
EXPORT CuResult cuDeviceGet(CuDevice *device, int ordinal) {
  *device = ordinal;
  return ordinal < settings()->devices ? 0 : ERROR_INVALID_VALUE;
}
EXPORT CuResult cuDeviceGetName(char *name, int size, CuDevice device) {
  (void)device;
  snprintf(name, (size_t)size, "Reprise emulated device");
  return 0;
}
EXPORT CuResult cuDeviceGetAttribute(int *value, int attribute, CuDevice device) {
  (void)device;
  int architecture = settings()->architecture;
  if (attribute != CU_ATTRIBUTE_MAJOR && attribute != CU_ATTRIBUTE_MINOR) return ERROR_INVALID_VALUE;
  *value = attribute == CU_ATTRIBUTE_MAJOR ? architecture / 10 : architecture % 10;
  return 0;
}
EXPORT CuResult cuDevicePrimaryCtxRetain(CuContext *result, CuDevice device) {
  (void)device;
  if (!initialised) return ERROR_NOT_INITIALIZED;
  if (context.uses++ == 0) counters.context = EMULATED_CONTEXT_BYTES;
  note_use();
  *result = &context;
  return counters.context <= settings()->memory ? 0 : ERROR_OUT_OF_MEMORY;
}
EXPORT CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  (void)device;
  if (--context.uses == 0) counters.context = 0;
  return 0;
}

static _Thread_local CuContext current;

EXPORT CuResult cuCtxSetCurrent(CuContext chosen) {
  current = chosen;
  return chosen == &context ? 0 : ERROR_INVALID_VALUE;
}

CuResult unusable(void) {
  if (broken() || (current == &context && context.uses > 0)) return broken();
  return fault(ERROR_INVALID_CONTEXT, "no context is current in this thread");
}

/* cuBLAS takes and gives back its own memory. */
CuResult take_library_memory(int64_t bytes) {
  if (bytes > settings()->memory - counters.allocated - counters.context - counters.libraries)
    return ERROR_OUT_OF_MEMORY;
  counters.libraries += bytes;
  note_use();
  return 0;
}

/* ---- modules: what nvrtc.c makes ---- */

struct CUmod_st {
  void *library;
  CuFunction functions;
};

static int hex_digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* "//REPRISE-EMULATED cubin 90 12345\n" and a shared library, or ptx and the library in hexadecimal. */
static char *unpack_image(const char *image, int64_t *bytes, CuResult *result) {
  char kind[8];
  int architecture;
  long long size;
  *result = ERROR_INVALID_IMAGE;
  if (sscanf(image, "//REPRISE-EMULATED %7s %d %lld", kind, &architecture, &size) != 3) return NULL;
  bool ptx = strcmp(kind, "ptx") == 0, newer = architecture > settings()->architecture;
  *result = ERROR_NO_BINARY;
  if (newer || (!ptx && architecture / 10 != settings()->architecture / 10)) return NULL;
  const char *from = strchr(image, '\n') + 1;
  char *library = malloc((size_t)size);
  if (!library) abort();
  for (int64_t i = 0; i < size; i++)
    library[i] = ptx ? (char)(16 * hex_digit(from[2 * i]) + hex_digit(from[2 * i + 1])) : from[i];
  *bytes = size;
  *result = 0;
  return library;
}

EXPORT CuResult cuModuleLoadData(CuModule *module, const void *image) {
  if (unusable()) return broken();
  int64_t bytes;
  CuResult result;
  char path[4096], *library = unpack_image(image, &bytes, &result);
  const char *folder = getenv("TMPDIR");
  if (!library) return result;
  snprintf(path, sizeof path, "%s/reprise-emulated-XXXXXX", folder && *folder ? folder : "/tmp");
  int file = mkstemp(path);
  FILE *stream = file < 0 ? NULL : fdopen(file, "w");
  bool written = stream && fwrite(library, 1, (size_t)bytes, stream) == (size_t)bytes;
  if (stream) written &= fclose(stream) == 0;
  free(library);
  void *handle = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!handle) fault(ERROR_INVALID_IMAGE, "cannot load the emulated module: %s", dlerror());
  unlink(path);
  if (!handle) return ERROR_INVALID_IMAGE;
  *module = calloc(1, sizeof **module);
  if (!*module) abort();
  (*module)->library = handle;
  return 0;
}

EXPORT CuResult cuModuleUnload(CuModule module) {
  CuResult result = synchronize_all();
  while (module->functions) {
    CuFunction function = module->functions;
    module->functions = function->next;
    free((char *)(uintptr_t)function->name);
    free(function);
  }
  dlclose(module->library);
  free(module);
  return result;
}

/* The pages of the library's data, in which shared memory lies and which kernels read nothing else of. */
static int find_data(struct dl_phdr_info *library, size_t size, void *data) {
  (void)size;
  CuFunction function = data;
  CuPointer shared = (CuPointer)(uintptr_t)function->shared;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
    CuPointer start = library->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
    if (segment->p_type != PT_LOAD || shared < start || shared >= end) continue;
    function->data_start = start / 4096 * 4096;
    function->data_end = (end + 4095) / 4096 * 4096;
    return 1;
  }
  return 0;
}

EXPORT CuResult cuModuleGetFunction(CuFunction *function, CuModule module, const char *name) {
  char symbol[512];
  char *(*shared_range)(int);
  snprintf(symbol, sizeof symbol, "reprise_kernel_%s", name);
  const RepriseKernel *kernel = dlsym(module->library, symbol);
  void *range = dlsym(module->library, "reprise_shared_range");
  if (!kernel || !range) return ERROR_NOT_FOUND;
  memcpy(&shared_range, &range, sizeof range);
  CuFunction found = calloc(1, sizeof *found);
  if (!found) abort();
  char *start = shared_range(0), *end = shared_range(1);
  *found = (struct CUfunc_st){.name = strdup(name), .kernel = kernel, .shared = start, .next = module->functions};
  found->shared_bytes = start ? (size_t)(end - start) : 0;
  if (start) dl_iterate_phdr(find_data, found);
  module->functions = *function = found;
  return 0;
}

EXPORT CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) {
  int most = settings()->architecture / 10 >= 9 ? 227 << 10 : settings()->architecture == 75 ? 64 << 10 : 99 << 10;
  if (attribute != CU_FUNCTION_MAX_DYNAMIC_SHARED || value > most) return ERROR_INVALID_VALUE;
  function->most_dynamic_shared = value;
  return 0;
}
