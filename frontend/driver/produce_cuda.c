/* frontend/driver/produce_cuda.c - the texts and images of a program for CUDA, and what its kernels take. */
#include <jansson.h>
#include <stdlib.h>

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

/* {"kernel", "of", "source", "sm_90": {"registers", "shared_bytes", "stack_bytes", "spill_bytes"}}; null: not said. */
static json_t *kernel_json(MemoryArena *arena, const Produced *produced, int64_t k) {
  const CudaKernel *kernel = &produced->cuda->cuda.kernels.items[k];
  json_t *object = json_pack("{s:s, s:s, s:s}", "kernel", kernel->name, "of", kernel->title, "source",
                             source_text(arena, kernel->location));
  for (int a = 0; a < produced->images.count; a++) {
    const CudaKernelUse *use = &produced->images.cubins[a].uses[k];
    json_t *said = json_pack("{s:i, s:i, s:i, s:i}", "registers", use->registers, "shared_bytes", use->shared_bytes,
                             "stack_bytes", use->stack_bytes, "spill_bytes", use->spill_bytes);
    json_t *value = use->registers < 0 ? json_null() : json_incref(said);
    json_object_set_new(object, memory_format(arena, "sm_%d", produced->images.cubins[a].architecture), value);
    json_decref(said);
  }
  return object;
}

char *cuda_kernels_json(const Options *options, const Produced *produced) {
  if (!(options->emissions & EMIT_KERNELS)) return NULL;
  json_t *list = json_array();
  for (int64_t k = 0; k < produced->cuda->cuda.kernels.count; k++)
    json_array_append_new(list, kernel_json(options->arena, produced, k));
  char *text = json_dumps(list, JSON_INDENT(1)), *copy = memory_format(options->arena, "%s\n", text);
  free(text);
  json_decref(list);
  return copy;
}
