/* tests/frontend/elaborate_fuzz.c - libFuzzer: any program gives a module that the verifier accepts, or located errors.
 */
#include "frontend/elaborate.h"
#include "frontend/parser.h"
#include "tests/frontend/support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_module(MemoryArena *arena, const Module *module) {
  const char *fault = graph_verify(arena, module->train);
  if (!fault) fault = graph_verify(arena, module->evaluation);
  if (fault) die("a graph that does not verify: %s", fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryArena *arena = memory_arena_create();
  Source source = {"fuzz.rp", memory_string_range(arena, (const char *)data, (int64_t)size), (int64_t)size};
  File *file = parse_source(arena, &source);
  Module *module = diag_error_count() ? NULL : elaborate_file(arena, file, NULL, 0);
  if (module) check_module(arena, module);
  if (!module && !diag_error_count()) die("neither a module nor an error");
  for (int64_t i = 0; diag_get(i); i++)
    if (!diag_get(i)->location.source) die("a message without a location: %s", diag_get(i)->message);
  diag_reset();
  memory_arena_destroy(arena);
  return 0;
}
