/* Writes device code into a header: embed_kernels SOURCE.cu OUTPUT.h TARGET…, with an array image_TARGET for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device_bench.h"

static char *read_whole(const char *path) {
  enum { MOST = 1 << 20 };
  FILE *stream = fopen(path, "r");
  char *text = calloc(1, MOST);
  if (!stream || !text) {
    perror(path);
    exit(1);
  }
  fread(text, 1, MOST - 1, stream);
  fclose(stream);
  return text;
}

static void write_array(FILE *stream, const char *target, const char *image, size_t bytes) {
  fprintf(stream, "static const unsigned char image_%s[] = {", target);
  for (size_t i = 0; i < bytes; i++) fprintf(stream, "%s%u,", i % 32 ? "" : "\n", (unsigned char)image[i]);
  fprintf(stream, "\n};\n");
}

int main(int argc, char **argv) {
  char log[8192], *source = read_whole(argv[1]);
  FILE *stream = argc > 3 ? fopen(argv[2], "w") : NULL;
  if (!stream) return 2;
  for (int i = 3; i < argc; i++) {
    size_t bytes = 0;
    char *image = compile_cuda(REPRISE_EMULATOR "/libnvrtc.so.13", source, argv[i], NULL, log, sizeof log, &bytes);
    if (!image) {
      fprintf(stderr, "%s\n", log);
      return 1;
    }
    write_array(stream, argv[i], image, bytes);
    free(image);
  }
  free(source);
  return fclose(stream) == 0 ? 0 : 1;
}
