#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *open_library(const char *name) {
  const char *folder = getenv("REPRISE_CUDA_PATH");
  char path[4096];
  int length = folder && *folder ? snprintf(path, sizeof path, "%s/%s", folder, name) : -1;
  bool there = length > 0 && length < (int)sizeof path && access(path, R_OK) == 0;
  return dlopen(there ? path : name, RTLD_NOW | RTLD_LOCAL);
}

static bool find(void *library, const char *symbol, const char *file, const char *needed, void *function,
                 RpStatus *status) {
  void *address = dlsym(library, symbol);
  memcpy(function, &address, sizeof address); /* POSIX: a function's address fits */
  if (address) return true;
  return rp_fail(status, RP_NO_DEVICE, "%s has no %s: install %s", file, symbol, needed);
}

static bool load_driver(CudaLibraries *libraries, RpStatus *status) {
  static const char file[] = "libcuda.so.1", needed[] = "the NVIDIA driver for CUDA 13 (580 or later)";
  libraries->driver_handle = open_library(file);
  if (!libraries->driver_handle) {
    return rp_fail(status, RP_NO_DEVICE,
                   "this program needs an NVIDIA GPU and its driver (version 580 or later): cannot load %s: %s", file,
                   dlerror());
  }
#define FIND(result, member, symbol, parameters) \
  if (!find(libraries->driver_handle, #symbol, file, needed, &libraries->member, status)) return false;
  CUDA_DRIVER_FUNCTIONS(FIND)
#undef FIND
#define FIND_OPTIONAL(result, member, symbol, parameters) \
  find(libraries->driver_handle, #symbol, file, needed, &libraries->member, &(RpStatus){0});
  CUDA_EMULATOR_FUNCTIONS(FIND_OPTIONAL)
#undef FIND_OPTIONAL
  return true;
}

static bool load_cublas(CudaLibraries *libraries, RpStatus *status) {
  static const char file[] = "libcublas.so.13", needed[] = "cuBLAS of the CUDA Toolkit 13";
  libraries->cublas_handle = open_library(file);
  if (!libraries->cublas_handle) {
    return rp_fail(status, RP_NO_DEVICE,
                   "matrix products need cuBLAS 13: cannot load %s: %s; install it (part of the CUDA Toolkit 13), or "
                   "name its folder in LD_LIBRARY_PATH or REPRISE_CUDA_PATH",
                   file, dlerror());
  }
#define FIND(result, member, symbol, parameters) \
  if (!find(libraries->cublas_handle, #symbol, file, needed, &libraries->cublas.member, status)) return false;
  CUBLAS_FUNCTIONS(FIND)
#undef FIND
  return true;
}

static bool check_named_folder(RpStatus *status) {
  const char *folder = getenv("REPRISE_CUDA_PATH");
  struct stat facts;
  if (!folder || !*folder || (stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode))) return true;
  return rp_fail(status, RP_NO_DEVICE, "REPRISE_CUDA_PATH is to name a folder with CUDA libraries; '%s' is none",
                 folder);
}

bool rp_cuda_load(CudaLibraries *libraries, bool cublas, RpStatus *status) {
  *libraries = (CudaLibraries){0};
  return check_named_folder(status) && load_driver(libraries, status) && (!cublas || load_cublas(libraries, status));
}

void rp_cuda_unload(CudaLibraries *libraries) {
  if (libraries->cublas_handle) dlclose(libraries->cublas_handle);
  if (libraries->driver_handle) dlclose(libraries->driver_handle);
  *libraries = (CudaLibraries){0};
}
