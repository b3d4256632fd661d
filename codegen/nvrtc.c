/* codegen/nvrtc.c - from CUDA source to cubins and PTX by NVRTC (NVIDIA, "NVRTC", release 13.0), found at run time: the
 * compiler neither needs a toolkit to be built nor to run for other targets. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/cuda.h"

typedef struct NvrtcProgram *NvrtcHandle;
enum { NVRTC_COMPILATION = 6, NVRTC_LEAST_MAJOR = 13 };

/* X(member, symbol, parameters); all return 0 for success */
#define NVRTC_FUNCTIONS(X) \
  X(version, nvrtcVersion, (int *major, int *minor)) \
  X(create, nvrtcCreateProgram, \
    (NvrtcHandle * program, const char *source, const char *name, int count, const char *const *headers, \
     const char *const *names)) \
  X(destroy, nvrtcDestroyProgram, (NvrtcHandle * program)) \
  X(compile, nvrtcCompileProgram, (NvrtcHandle program, int count, const char *const *options)) \
  X(log_size, nvrtcGetProgramLogSize, (NvrtcHandle program, size_t * bytes)) \
  X(log, nvrtcGetProgramLog, (NvrtcHandle program, char *log)) \
  X(cubin_size, nvrtcGetCUBINSize, (NvrtcHandle program, size_t * bytes)) \
  X(cubin, nvrtcGetCUBIN, (NvrtcHandle program, char *cubin)) \
  X(ptx_size, nvrtcGetPTXSize, (NvrtcHandle program, size_t * bytes)) \
  X(ptx, nvrtcGetPTX, (NvrtcHandle program, char *ptx))

typedef struct Nvrtc {
  void *handle;
#define DECLARE_MEMBER(member, symbol, parameters) int(*member) parameters;
  NVRTC_FUNCTIONS(DECLARE_MEMBER)
#undef DECLARE_MEMBER
  int (*architecture_count)(int *count); /* the two may be missing */
  int (*architectures)(int *numbers);
} Nvrtc;

typedef struct Compiler {
  Nvrtc nvrtc;
  MemoryArena *arena;
  const CudaProgram *program;
  const char *name, *include_option;
  ExitCode *exit_code;
  const char **error;
} Compiler;

static bool fail(Compiler *c, ExitCode code, char *message) {
  *c->exit_code = code;
  *c->error = message;
  return false;
}

/* ---- the library ---- */

static void *open_in(MemoryArena *arena, const char *folder, const char *subfolder) {
  if (!folder || !*folder) return NULL;
  return dlopen(memory_format(arena, "%s%s/libnvrtc.so.13", folder, subfolder), RTLD_NOW | RTLD_LOCAL);
}

/* In the folder that REPRISE_CUDA_PATH names, the library is the one that is meant. */
static const char *named_library(MemoryArena *arena) {
  const char *folder = getenv("REPRISE_CUDA_PATH");
  char *path = memory_format(arena, "%s/libnvrtc.so.13", folder ? folder : "");
  return folder && *folder && access(path, F_OK) == 0 ? path : NULL;
}

static void *open_library(MemoryArena *arena) {
  static const char *const subfolders[] = {"/lib64", "/lib", "/targets/x86_64-linux/lib"};
  const char *toolkits[] = {getenv("CUDA_PATH"), getenv("CUDA_HOME"), "/usr/local/cuda", "/opt/cuda"};
  const char *named = named_library(arena);
  if (named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  void *handle = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++)
    for (size_t k = 0; k < sizeof subfolders / sizeof *subfolders && !handle; k++)
      handle = open_in(arena, toolkits[i], subfolders[k]);
  return handle;
}

static bool check_named_folder(Compiler *c) {
  const char *folder = getenv("REPRISE_CUDA_PATH");
  struct stat facts;
  if (!folder || !*folder || (stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode))) return true;
  return fail(
      c, EXIT_DEVICE,
      memory_format(c->arena, "REPRISE_CUDA_PATH is to name a folder with CUDA libraries; '%s' is none", folder));
}

static bool load_library(Compiler *c) {
  Nvrtc *nvrtc = &c->nvrtc;
  if (!check_named_folder(c)) return false;
  nvrtc->handle = open_library(c->arena);
  if (!nvrtc->handle && named_library(c->arena))
    return fail(c, EXIT_DEVICE, memory_format(c->arena, "cannot load NVRTC: %s", dlerror()));
  if (!nvrtc->handle)
    return fail(c, EXIT_DEVICE,
                memory_string(c->arena,
                              "target 'cuda' needs NVRTC: libnvrtc.so.13 of the CUDA Toolkit 13 was not found; install "
                              "it, or name its folder with REPRISE_CUDA_PATH or LD_LIBRARY_PATH"));
#define FIND_MEMBER(member, symbol, parameters) *(void **)&nvrtc->member = dlsym(nvrtc->handle, #symbol);
  NVRTC_FUNCTIONS(FIND_MEMBER)
#undef FIND_MEMBER
  *(void **)&nvrtc->architecture_count = dlsym(nvrtc->handle, "nvrtcGetNumSupportedArchs");
  *(void **)&nvrtc->architectures = dlsym(nvrtc->handle, "nvrtcGetSupportedArchs");
#define CHECK_MEMBER(member, symbol, parameters) \
  if (!nvrtc->member) return fail(c, EXIT_DEVICE, memory_string(c->arena, "libnvrtc.so.13 lacks " #symbol));
  NVRTC_FUNCTIONS(CHECK_MEMBER)
#undef CHECK_MEMBER
  return true;
}

/* ---- architectures ---- */

static bool check_architectures(Compiler *c, const CudaOptions *options) {
  int count = 0, numbers[64], major = 0, minor = 0;
  const Nvrtc *nvrtc = &c->nvrtc;
  if (!nvrtc->architecture_count || !nvrtc->architectures || nvrtc->architecture_count(&count) || count < 1 ||
      count > 64 || nvrtc->architectures(numbers))
    return true;
  nvrtc->version(&major, &minor);
  for (int i = 0; i < options->count; i++) {
    bool known = false;
    for (int k = 0; k < count; k++) known = known || numbers[k] == options->architectures[i];
    if (known) continue;
    Text text = {.arena = c->arena};
    text_append(&text, "NVRTC %d.%d does not compile for sm_%d; it knows", major, minor, options->architectures[i]);
    for (int k = 0; k < count; k++) text_append(&text, "%s sm_%d", k ? "," : "", numbers[k]);
    return fail(c, EXIT_DEVICE, text.bytes);
  }
  return true;
}

/* ---- what the log says ---- */

static int line_of(const char *text, const char *at) {
  int line = 1;
  for (; text < at; text++) line += *text == '\n';
  return line;
}

/* The kernel whose definition is the last one at or before a line of the source; NULL: none. */
static const CudaKernel *kernel_at(const Compiler *c, int line) {
  const CudaEmission *cuda = &c->program->cuda;
  const CudaKernel *best = NULL;
  int best_line = 0;
  for (int64_t i = 0; i < cuda->kernels.count; i++) {
    const CudaKernel *kernel = &cuda->kernels.items[i];
    const char *at = strstr(c->program->source, memory_format(c->arena, "%s %s(", target_cuda.function, kernel->name));
    int first = at ? line_of(c->program->source, at) : line + 1;
    if (first <= line && first > best_line) best = kernel, best_line = first;
  }
  return best;
}

static bool report_errors(Compiler *c, int architecture, const char *log) {
  const char *at = strstr(log, ": error");
  const char *mark = strstr(log, memory_format(c->arena, "%s(", c->name));
  if (mark) {
    const CudaKernel *kernel = kernel_at(c, atoi(mark + strlen(c->name) + 1));
    if (kernel)
      diag_error(kernel->location, "NVRTC refuses kernel '%s' of %s; this is an error of reprise", kernel->name,
                 kernel->title);
  }
  return fail(c, EXIT_INTERNAL,
              memory_format(c->arena, "NVRTC failed for sm_%d:\n%.3000s", architecture, at || *log ? log : "no log"));
}

/* The number right before `word`, searched in [from, end). */
static int number_before(const char *from, const char *end, const char *word) {
  const char *at = strstr(from, word);
  if (!at || at >= end) return -1;
  while (at > from && at[-1] == ' ') at--;
  while (at > from && isdigit((unsigned char)at[-1])) at--;
  return atoi(at);
}

static int at_least_zero(int number) { return number < 0 ? 0 : number; }

static CudaKernelUse kernel_use(Compiler *c, const char *log, const char *name) {
  CudaKernelUse use = {-1, -1, -1, -1};
  const char *start = strstr(log, memory_format(c->arena, "entry function '%s'", name));
  if (!start) return use;
  const char *end = strstr(start + 1, "entry function '");
  if (!end) end = start + strlen(start);
  int stores = number_before(start, end, "bytes spill stores"), loads = number_before(start, end, "bytes spill loads");
  use.registers = number_before(start, end, "registers");
  use.stack_bytes = number_before(start, end, "bytes stack frame");
  use.spill_bytes = stores < 0 ? -1 : stores + loads;
  use.shared_bytes = at_least_zero(number_before(start, end, "bytes smem"));
  return use;
}

static void read_uses(Compiler *c, CudaImage *image, const char *log) {
  const CudaEmission *cuda = &c->program->cuda;
  image->uses = NEW_ARRAY(c->arena, CudaKernelUse, cuda->kernels.count);
  for (int64_t i = 0; i < cuda->kernels.count; i++) {
    const CudaKernel *kernel = &cuda->kernels.items[i];
    CudaKernelUse *use = &image->uses[i];
    *use = kernel_use(c, log, kernel->name);
    if (use->spill_bytes > 0)
      diag_warning(kernel->location, "kernel '%s' of %s spills %d bytes of registers on sm_%d", kernel->name,
                   kernel->title, use->spill_bytes, image->architecture);
  }
}

/* ---- compiling ---- */

static char *read_log(Compiler *c, NvrtcHandle handle) {
  size_t bytes = 0;
  if (c->nvrtc.log_size(handle, &bytes) || !bytes) return memory_string(c->arena, "");
  char *log = memory_alloc(c->arena, (int64_t)bytes + 1);
  c->nvrtc.log(handle, log);
  return log;
}

static bool read_image(Compiler *c, NvrtcHandle handle, int (*size)(NvrtcHandle, size_t *),
                       int (*get)(NvrtcHandle, char *), CudaImage *image) {
  size_t bytes = 0;
  if (size(handle, &bytes) || bytes < 2)
    return fail(c, EXIT_INTERNAL, memory_format(c->arena, "NVRTC gives no code for sm_%d", image->architecture));
  char *copy = memory_alloc(c->arena, (int64_t)bytes);
  get(handle, copy);
  image->bytes = copy;
  image->length = (int64_t)bytes;
  return true;
}

static bool compile_one(Compiler *c, NvrtcHandle handle, CudaImage *cubin, CudaImage *ptx) {
  const char *options[] = {memory_format(c->arena, "--gpu-architecture=sm_%d", cubin->architecture), "--fmad=false",
                           "--std=c++17", "--ptxas-options=-v", c->include_option};
  int result = c->nvrtc.compile(handle, sizeof options / sizeof *options, options);
  char *log = read_log(c, handle);
  if (result == NVRTC_COMPILATION) return report_errors(c, cubin->architecture, log);
  if (result)
    return fail(
        c, EXIT_DEVICE,
        memory_format(c->arena, "NVRTC does not compile for sm_%d (error %d): %s", cubin->architecture, result, log));
  read_uses(c, cubin, log);
  ptx->architecture = cubin->architecture;
  return read_image(c, handle, c->nvrtc.cubin_size, c->nvrtc.cubin, cubin) &&
         read_image(c, handle, c->nvrtc.ptx_size, c->nvrtc.ptx, ptx);
}

static bool compile_all(Compiler *c, const CudaOptions *options, CudaImages *images) {
  for (int i = 0; i < options->count; i++) {
    NvrtcHandle handle = NULL;
    images->cubins[i].architecture = options->architectures[i];
    if (c->nvrtc.create(&handle, c->program->source, c->name, 0, NULL, NULL))
      return fail(c, EXIT_INTERNAL, memory_string(c->arena, "NVRTC takes no program"));
    bool compiled = compile_one(c, handle, &images->cubins[i], &images->ptx);
    c->nvrtc.destroy(&handle);
    if (!compiled) return false;
  }
  images->count = options->count;
  return true;
}

bool compile_cuda(const CudaProgram *program, const CudaOptions *options, const char *include_path, MemoryArena *arena,
                  CudaImages *images, ExitCode *exit_code, const char **error) {
  Compiler c = {.arena = arena, .program = program, .name = "kernels.cu", .exit_code = exit_code, .error = error};
  c.include_option = memory_format(arena, "-I%s", include_path);
  memset(images, 0, sizeof *images);
  *exit_code = EXIT_OK;
  *error = NULL;
  /* The library stays loaded: unloading it would lose what it allocated for itself. */
  return load_library(&c) && check_architectures(&c, options) && compile_all(&c, options, images);
}
