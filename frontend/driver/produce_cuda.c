/* frontend/driver/produce_cuda.c - the texts and images of a program for CUDA, and what its kernels take. */
#include "frontend/driver/commands.h"
#include "frontend/driver/produce.h"

int produce_cuda(const Options *options, const Compilation *compilation, const CodegenOptions *codegen, bool images,
                 Produced *produced) {
  LinkOptions link = {0};
  ExitCode code;
  const char *error;
  produced->cuda = emit_cuda_device(compilation, codegen, options->arena);
  if (!produced->cuda) return EXIT_SOURCE_ERROR;
  if (!images) return EXIT_OK;
  const char *include = find_include_path(&link, options->arena, &code, &error);
  bool compiled = include && compile_cuda(produced->cuda, &options->cuda, include, options->arena, &produced->images,
                                          &code, &error);
  print_diagnostics();
  if (!compiled) {
    fprintf(stderr, "reprise: %s\n", error);
    return code;
  }
  produced->host = emit_cuda_host(produced->cuda, &produced->images, options->arena, &produced->length);
  return EXIT_OK;
}

/* One row per kernel: per architecture registers, shared bytes, spilled bytes. */
void print_cuda_kernels(const Produced *produced) {
  const CudaEmission *cuda = &produced->cuda->cuda;
  const CudaImages *images = &produced->images;
  printf("kernels: registers, bytes of shared memory, bytes spilled\n  %-40s", "");
  for (int a = 0; a < images->count; a++) printf("  sm_%-12d", images->cubins[a].architecture);
  putchar('\n');
  for (int64_t k = 0; k < cuda->kernels.count; k++) {
    printf("  %-40s", cuda->kernels.items[k].name);
    for (int a = 0; a < images->count; a++) {
      const CudaKernelUse *use = &images->cubins[a].uses[k];
      if (use->registers < 0)
        printf("  %-15s", "?");
      else
        printf("  %4d %5d %4d", use->registers, use->shared_bytes, use->spill_bytes);
    }
    putchar('\n');
  }
}
