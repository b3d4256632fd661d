/* libnvrtc.so.13 that fails as a test asks: FAKE_NVRTC=spill (the first kernel spills on every architecture), =error
 * (a syntax error at its line), =option (no architecture is known), =empty (success without code). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef struct Program {
  char name[64], kernel[128], log[512];
  int line;
} Program;

static const char *mode(void) { return getenv("FAKE_NVRTC") ? getenv("FAKE_NVRTC") : ""; }
static int is(const char *name) { return strcmp(mode(), name) == 0; }

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

int nvrtcCreateProgram(Program **result, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
  (void)count, (void)headers, (void)names;
  Program *program = calloc(1, sizeof *program);
  const char *kernel = strstr(source, "RP_KERNEL ");
  if (!program || !kernel) return 1;
  program->line = 1;
  for (const char *at = source; at < kernel; at++) program->line += *at == '\n';
  snprintf(program->name, sizeof program->name, "%s", name);
  sscanf(kernel, "RP_KERNEL %127[a-z0-9_]", program->kernel);
  *result = program;
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  free(*program);
  *program = NULL;
  return 0;
}

int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  (void)count, (void)options;
  if (is("spill"))
    snprintf(program->log, sizeof program->log,
             "ptxas info    : Compiling entry function '%s' for 'sm_90'\n"
             "ptxas info    : Function properties for %s\n"
             "    64 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads\n"
             "ptxas info    : Used 255 registers, used 0 barriers, 64 bytes cumulative stack size\n",
             program->kernel, program->kernel);
  if (is("error"))
    snprintf(program->log, sizeof program->log, "%s(%d): error: expected a \";\"\n", program->name, program->line + 1);
  return is("error") ? 6 : is("option") ? 5 : 0;
}

int nvrtcGetProgramLogSize(Program *program, size_t *bytes) {
  *bytes = strlen(program->log) + 1;
  return 0;
}
int nvrtcGetProgramLog(Program *program, char *log) {
  strcpy(log, program->log);
  return 0;
}

static int size(size_t *bytes) {
  *bytes = is("empty") ? 0 : 4;
  return 0;
}
int nvrtcGetCUBINSize(Program *program, size_t *bytes) {
  (void)program;
  return size(bytes);
}
int nvrtcGetPTXSize(Program *program, size_t *bytes) {
  (void)program;
  return size(bytes);
}
int nvrtcGetCUBIN(Program *program, char *image) {
  (void)program;
  memcpy(image, "abc", 4);
  return 0;
}
int nvrtcGetPTX(Program *program, char *image) { return nvrtcGetCUBIN(program, image); }
