/* The hand-made kernels through the real NVRTC, where there is a toolkit: they compile without
 * warnings for every architecture, no kernel spills, and a cubin is the same from run to run. Without a toolkit the
 * test is skipped (exit code 77). */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device_bench.h"

static const char *const kernels[] = {
    "softmax_rows",       "softmax_rows_backward",       "layer_norm",  "layer_norm_backward",
    "cross_entropy_rows", "cross_entropy_rows_backward", "argmax_rows", "embed",
    "embed_backward"};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Each spill in the log as "N bytes spill stores" is to be 0. */
static bool spills(const char *log) {
  for (const char *at = log; (at = strstr(at, " bytes spill")); at++) {
    const char *digit = at;
    while (digit > log && isdigit((unsigned char)digit[-1])) digit--;
    if (strtol(digit, NULL, 10) != 0) return true;
  }
  return false;
}

static int count(const char *text, const char *word) {
  int found = 0;
  for (; (text = strstr(text, word)); text++) found++;
  return found;
}

static bool check(const char *library, const char *source, const char *target, bool twice) {
  static const char *const options[] = {"--ptxas-options=-v", NULL};
  static char log[1 << 16];
  size_t bytes = 0, again_bytes = 0;
  char *image = compile_cuda(library, source, target, options, log, sizeof log, &bytes);
  bool good = image && !strstr(log, "warning") && !spills(log) && count(log, "Compiling entry function") == KERNELS;
  char *again = good && twice ? compile_cuda(library, source, target, options, log, sizeof log, &again_bytes) : NULL;
  bool same = !twice || (again && bytes == again_bytes && memcmp(image, again, bytes) == 0);
  if (!good || !same) printf("%s: %s\n%s\n", target, good ? "another cubin from run to run" : "see the log", log);
  free(image);
  free(again);
  return good && same;
}

int main(int argc, char **argv) {
  static const char *const targets[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
  char source[4096] = "";
  if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) {
    printf("skipped: no NVRTC (CUDA Toolkit 13)\n");
    return 77;
  }
  for (int i = 0; i < KERNELS; i++)
    snprintf(source + strlen(source), sizeof source - strlen(source), "#include \"runtime/kernels/%s.cuh\"\n",
             kernels[i]);
  int failures = 0;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) failures += !check(argv[1], source, targets[i], i == 0);
  return failures > 0;
}
