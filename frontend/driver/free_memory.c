/* frontend/driver/free_memory.c - what --memory-budget=auto stands for: the memory that this machine has free now. */
#include "frontend/driver/free_memory.h"

#include <stdlib.h>

#include "runtime/cuda/driver.h"

/* Opens what a program opens: a context and, where it is there, cuBLAS; what is free then a program can have. NULL, or
 * what is wrong. */
static const char *ask_gpu(const CudaLibraries *cuda, int64_t *bytes) {
  CuDevice device;
  CuContext context;
  CublasHandle handle = NULL;
  size_t available = 0, total;
  if (cuda->init(0) || cuda->device_get(&device, 0)) return "no NVIDIA GPU answers (see nvidia-smi)";
  CuResult opened = cuda->context_retain(&context, device);
  if (opened) return opened == CU_OUT_OF_MEMORY ? "the GPU has no memory left" : "the GPU cannot be opened";
  bool asked = cuda->context_set(context) == 0;
  if (asked && cuda->cublas.create) cuda->cublas.create(&handle);
  asked = asked && cuda->memory_info(&available, &total) == 0;
  if (handle) cuda->cublas.destroy(handle);
  cuda->context_release(device);
  *bytes = (int64_t)available;
  return asked ? NULL : "the GPU does not say how much memory is free";
}

static bool free_gpu_memory(int64_t *bytes, const char **error, MemoryArena *arena) {
  CudaLibraries cuda;
  RpStatus status = {0};
  bool loaded = rp_cuda_load(&cuda, true, &status) || cuda.driver_handle; /* cuBLAS may be missing here */
  bool complete = loaded && cuda.memory_info;
  *error = complete ? ask_gpu(&cuda, bytes) : memory_string(arena, status.message);
  rp_cuda_unload(&cuda);
  return !*error;
}

static bool free_host_memory(int64_t *bytes, const char **error) {
  char line[256];
  FILE *file = fopen("/proc/meminfo", "r");
  *bytes = 0;
  while (file && !*bytes && fgets(line, sizeof line, file))
    if (string_starts(line, "MemAvailable:")) *bytes = strtoll(line + strlen("MemAvailable:"), NULL, 10) * 1024;
  if (file) fclose(file);
  if (!*bytes) *error = "the system does not say how much memory is available";
  return *bytes > 0;
}

bool find_free_memory(const Target *target, MemoryArena *arena, int64_t *bytes, const char **error) {
  enum { LEFT = 64 << 20, UNIT = 1 << 20 }; /* for the program's code, buffers of files, and what comes meanwhile */
  bool found = target == &target_cuda ? free_gpu_memory(bytes, error, arena) : free_host_memory(bytes, error);
  if (found && *bytes <= LEFT + UNIT) *error = "hardly any memory is free";
  if (!found || *bytes <= LEFT + UNIT) return false;
  *bytes = (*bytes - LEFT) / UNIT * UNIT;
  return true;
}
