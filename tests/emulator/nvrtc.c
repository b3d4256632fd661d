/* libnvrtc.so.13 for the emulated device: the host's C++ compiler on shim.h and the source.
 *
 * The source is preprocessed, its kernels are found by what __global__ was replaced with, an entry for each is
 * appended, and the whole becomes a shared library. REPRISE_EMULATOR_CXX names the compiler (c++). */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MARK "__reprise_global__"
#define BOUNDS "__reprise_bounds__("

enum { COMPILATION_ERROR = 6, INVALID_OPTION = 5, INVALID_INPUT = 3, OUT_OF_MEMORY = 1, MOST_HEADERS = 64 };

typedef struct Program {
  char *source, *name;
  int header_count;
  char *headers[MOST_HEADERS], *header_names[MOST_HEADERS];
  char *log;
  char *library; /* the shared library */
  int64_t library_bytes;
  int architecture;
  bool binary; /* sm_XX: cubin too; compute_XX: PTX only */
  char folder[256];
} Program;

/* ---- files and text ---- */

static char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *pattern, ...) {
  char *text;
  va_list list;
  va_start(list, pattern);
  if (vasprintf(&text, pattern, list) < 0) abort();
  va_end(list);
  return text;
}

static char *read_whole(const char *path, int64_t *bytes) {
  FILE *stream = fopen(path, "r");
  struct stat facts;
  if (!stream || fstat(fileno(stream), &facts) != 0) return NULL;
  char *text = calloc(1, (size_t)facts.st_size + 1);
  if (!text) abort();
  *bytes = (int64_t)fread(text, 1, (size_t)facts.st_size, stream);
  fclose(stream);
  return text;
}

static bool write_whole(const char *path, const char *text) {
  FILE *stream = fopen(path, "w");
  return stream && fputs(text, stream) >= 0 && fclose(stream) == 0;
}

static void add(char **text, const char *more) {
  char *joined = format("%s%s", *text, more);
  free(*text);
  *text = joined;
}

/* Folder of this library; the driver's library and shim.h lie there. */
static char *own_folder(void) {
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)own_folder, &info)) return strdup(".");
  char *path = realpath(info.dli_fname, NULL), *slash = path ? strrchr(path, '/') : NULL;
  if (slash) *slash = '\0';
  return path ? path : strdup(".");
}

/* ---- compiling ---- */

static bool run(Program *program, const char *command) {
  char *line = format("%s >%s/log 2>&1", command, program->folder);
  int status = system(line);
  int64_t bytes;
  char *path = format("%s/log", program->folder), *log = read_whole(path, &bytes);
  if (log) add(&program->log, log);
  free(log);
  free(path);
  free(line);
  return status == 0;
}

/* The headers that were given as text, as files; folders in their names are made. */
static bool write_headers(const Program *program) {
  for (int i = 0; i < program->header_count; i++) {
    char *path = format("%s/include/%s", program->folder, program->header_names[i]);
    for (char *slash = path + strlen(program->folder) + 1; (slash = strchr(slash, '/')); slash++) {
      *slash = '\0';
      mkdir(path, 0700);
      *slash = '/';
    }
    bool written = write_whole(path, program->headers[i]);
    free(path);
    if (!written) return false;
  }
  return true;
}

/* The name before the first parenthesis after `text`. */
static char *kernel_name(const char *text) {
  const char *end = strchr(text, '(');
  if (!end) return NULL;
  while (end > text && isspace((unsigned char)end[-1])) end--;
  const char *start = end;
  while (start > text && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
  return strndup(start, (size_t)(end - start));
}

/* A kernel that the driver can find by name is declared extern "C" right before __global__. */
static bool has_c_name(const char *source, const char *mark) {
  static const char word[] = "extern \"C\"";
  while (mark > source && isspace((unsigned char)mark[-1])) mark--;
  return mark - source >= (long)sizeof word - 1 && strncmp(mark - (sizeof word - 1), word, sizeof word - 1) == 0;
}

/* The most threads of a block, which the launch bounds before the kernel's body say; they are blanked out. */
static int take_bounds(char *mark) {
  enum { MOST_THREADS = 1024 };
  char *body = strpbrk(mark, "{;"), *bounds = strstr(mark, BOUNDS);
  if (!body || !bounds || bounds > body) return MOST_THREADS;
  int threads = atoi(bounds + strlen(BOUNDS));
  char *end = strchr(bounds, ')');
  memset(bounds, ' ', (size_t)(end + 1 - bounds));
  return threads;
}

/* Blanks the marks out and appends an entry for each kernel. */
static char *add_entries(char *source) {
  char *entries = strdup("");
  for (char *mark = strstr(source, MARK); mark; mark = strstr(mark, MARK)) {
    memset(mark, ' ', strlen(MARK));
    int most_threads = take_bounds(mark);
    char *name = kernel_name(mark);
    if (name && has_c_name(source, mark)) {
      char *entry = format(
          "static void reprise_run_%s(void **p) { reprise_call(%s, p); }\n"
          "extern \"C\" __attribute__((visibility(\"default\"))) const RepriseKernel reprise_kernel_%s;\n"
          "const RepriseKernel reprise_kernel_%s = reprise_describe(%s, reprise_run_%s, %d);\n",
          name, name, name, name, name, name, most_threads);
      add(&entries, entry);
      free(entry);
    }
    free(name);
  }
  char *whole = format("%s\n%s__attribute__((used)) static char *(*const reprise_keep)(int) = reprise_shared_range;\n",
                       source, entries);
  free(entries);
  return whole;
}

static const char *compiler(void) {
  const char *named = getenv("REPRISE_EMULATOR_CXX");
  return named && *named ? named : "c++";
}

static bool preprocess(Program *program, const char *home, const char *include) {
  char *command =
      format("%s -std=c++20 -E -x c++ -D__global__=" MARK
             " -D__CUDA_ARCH__=%d0 -include %s/shim.h -I%s/include %s %s/source.cu -o %s/source.ii",
             compiler(), program->architecture, home, program->folder, include, program->folder, program->folder);
  bool done = run(program, command);
  free(command);
  return done;
}

static bool link_library(Program *program, const char *home) {
  char *command = format(
      "%s -std=c++20 -x c++-cpp-output -c -O1 -g0 -fPIC -w -fsanitize=thread,alignment -ffp-contract=off "
      "-fno-exceptions "
      "-fno-rtti -fvisibility=hidden -fno-builtin-memset -fno-builtin-memcpy -fno-strict-aliasing "
      "-fno-delete-null-pointer-checks %s/entries.ii -o "
      "%s/kernels.o && %s -shared -o %s/kernels.so %s/kernels.o -L%s -l:libcuda.so.1 -lm",
      compiler(), program->folder, program->folder, compiler(), program->folder, program->folder, home);
  bool done = run(program, command);
  free(command);
  return done;
}

static bool build(Program *program, const char *include) {
  char *home = own_folder(), *source = format("%s/source.cu", program->folder);
  char *preprocessed = format("%s/source.ii", program->folder), *entries = format("%s/entries.ii", program->folder);
  char *library = format("%s/kernels.so", program->folder);
  int64_t bytes;
  bool built = write_headers(program) && write_whole(source, program->source) && preprocess(program, home, include);
  char *text = built ? read_whole(preprocessed, &bytes) : NULL, *whole = text ? add_entries(text) : NULL;
  built = whole && write_whole(entries, whole) && link_library(program, home);
  if (built) program->library = read_whole(library, &program->library_bytes);
  free(text);
  free(whole);
  free(library);
  free(entries);
  free(preprocessed);
  free(source);
  free(home);
  return program->library != NULL;
}

static void remove_folder(const char *folder) {
  char *command = format("rm -rf '%s'", folder);
  if (system(command) != 0) fprintf(stderr, "emulated nvrtc: cannot remove %s\n", folder);
  free(command);
}

/* ---- the interface ---- */

EXPORT const char *nvrtcGetErrorString(int result) {
  return result == 0                   ? "NVRTC_SUCCESS"
         : result == COMPILATION_ERROR ? "NVRTC_ERROR_COMPILATION"
         : result == INVALID_OPTION    ? "NVRTC_ERROR_INVALID_OPTION"
                                       : "NVRTC_ERROR_INVALID_INPUT";
}

EXPORT int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

EXPORT int nvrtcCreateProgram(Program **result, const char *source, const char *name, int count,
                              const char *const *headers, const char *const *names) {
  if (count > MOST_HEADERS) return INVALID_INPUT;
  Program *program = calloc(1, sizeof *program);
  if (!program) return OUT_OF_MEMORY;
  program->source = strdup(source);
  program->name = strdup(name ? name : "default_program");
  program->log = strdup("");
  for (int i = 0; i < count; i++) {
    program->headers[i] = strdup(headers[i]);
    program->header_names[i] = strdup(names[i]);
  }
  program->header_count = count;
  *result = program;
  return 0;
}

EXPORT int nvrtcDestroyProgram(Program **result) {
  Program *program = *result;
  for (int i = 0; i < program->header_count; i++) {
    free(program->headers[i]);
    free(program->header_names[i]);
  }
  free(program->source);
  free(program->name);
  free(program->log);
  free(program->library);
  free(program);
  *result = NULL;
  return 0;
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* Options of ours; -I and -D are the compiler's too. Others are known to mean nothing here. */
static bool take_option(Program *program, const char *option, char **include) {
  static const char *const ignored[] = {"--fmad=",          "-fmad=",
                                        "--std=",           "-std=",
                                        "--ptxas-options=", "--prec-div=",
                                        "--prec-sqrt=",     "--ftz=",
                                        "-lineinfo",        "--generate-line-info",
                                        "-default-device",  "--device-as-default-execution-space",
                                        "-diag-suppress",   "--diag-suppress"};
  const char *value = strchr(option, '=');
  if (starts_with(option, "--gpu-architecture=") || starts_with(option, "-arch=")) {
    const char *digits = strchr(value, '_');
    if (!digits) return false;
    program->binary = starts_with(value + 1, "sm_");
    program->architecture = atoi(digits + 1);
    return program->architecture >= 75;
  }
  if (starts_with(option, "-I") || starts_with(option, "-D") || starts_with(option, "--include-path=")) {
    char *word = format(" '%s%s'", option[1] == '-' ? "-I" : "", option[1] == '-' ? value + 1 : option);
    add(include, word);
    free(word);
    return true;
  }
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
    if (starts_with(option, ignored[i])) return true;
  return false;
}

EXPORT int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  const char *temporary = getenv("TMPDIR");
  char *include = strdup("");
  bool taken = true;
  program->binary = false;
  program->architecture = 75; /* as NVRTC: PTX of the lowest architecture when none is named */
  for (int i = 0; i < count && taken; i++) {
    taken = take_option(program, options[i], &include);
    if (!taken) add(&program->log, format("nvrtc: error: invalid value or unrecognized option: %s\n", options[i]));
  }
  snprintf(program->folder, sizeof program->folder, "%s/reprise-nvrtc-XXXXXX",
           temporary && *temporary ? temporary : "/tmp");
  bool built = false;
  if (taken && mkdtemp(program->folder)) {
    char *folder = format("%s/include", program->folder);
    mkdir(folder, 0700);
    free(folder);
    built = build(program, include);
    remove_folder(program->folder);
  }
  free(include);
  return built ? 0 : taken ? COMPILATION_ERROR : INVALID_OPTION;
}

EXPORT int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = strlen(program->log) + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(Program *program, char *log) {
  strcpy(log, program->log);
  return 0;
}

static int head(const Program *program, const char *kind, char text[64]) {
  return snprintf(text, 64, "//REPRISE-EMULATED %s %d %lld\n", kind, program->architecture,
                  (long long)program->library_bytes);
}

EXPORT int nvrtcGetCUBINSize(Program *program, size_t *size) {
  char text[64];
  *size =
      program->binary && program->library ? (size_t)head(program, "cubin", text) + (size_t)program->library_bytes : 0;
  return program->library ? 0 : INVALID_INPUT;
}
EXPORT int nvrtcGetCUBIN(Program *program, char *cubin) {
  if (!program->binary || !program->library) return program->library ? 0 : INVALID_INPUT;
  char text[64];
  int length = head(program, "cubin", text);
  memcpy(cubin, text, (size_t)length);
  memcpy(cubin + length, program->library, (size_t)program->library_bytes);
  return 0;
}

EXPORT int nvrtcGetPTXSize(Program *program, size_t *size) {
  char text[64];
  *size = (size_t)head(program, "ptx", text) + 2 * (size_t)program->library_bytes + 1;
  return program->library ? 0 : INVALID_INPUT;
}
EXPORT int nvrtcGetPTX(Program *program, char *ptx) {
  if (!program->library) return INVALID_INPUT;
  char text[64];
  int length = head(program, "ptx", text);
  memcpy(ptx, text, (size_t)length);
  for (int64_t i = 0; i < program->library_bytes; i++) {
    unsigned char byte = (unsigned char)program->library[i];
    ptx[length + 2 * i] = "0123456789abcdef"[byte >> 4];
    ptx[length + 2 * i + 1] = "0123456789abcdef"[byte & 15];
  }
  ptx[length + 2 * program->library_bytes] = '\0';
  return 0;
}
