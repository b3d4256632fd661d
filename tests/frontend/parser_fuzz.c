/* tests/frontend/parser_fuzz.c - libFuzzer: any bytes give a tree or located errors; what parses has a canonical form
 * that parses to the same tree and is its own canonical form. */
#include "frontend/format.h"
#include "frontend/parser.h"
#include "tests/frontend/support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_format(MemoryArena *arena, const File *file) {
  char *once = format_file(arena, file);
  File *again = parse_source(arena, source_from(arena, "once", once));
  if (diag_error_count()) die("the canonical form does not parse:\n%s", once);
  if (!string_equal(ast_dump(arena, file), ast_dump(arena, again)))
    die("the canonical form means something else:\n%s", once);
  char *twice = format_file(arena, again);
  if (!string_equal(once, twice)) die("the canonical form is not stable:\n%s\n---\n%s", once, twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryArena *arena = memory_arena_create();
  Source source = {"fuzz.rp", memory_string_range(arena, (const char *)data, (int64_t)size), (int64_t)size};
  File *file = parse_source(arena, &source);
  if (!diag_error_count()) check_format(arena, file);
  for (int64_t i = 0; diag_get(i); i++)
    if (diag_get(i)->location.source != &source) die("a message without a location: %s", diag_get(i)->message);
  diag_reset();
  memory_arena_destroy(arena);
  return 0;
}
