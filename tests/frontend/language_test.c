/* tests/frontend/language_test.c - the examples in docs/language.md are programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "frontend/elaborate.h"
#include "frontend/format.h"
#include "frontend/parser.h"
#include "tests/frontend/support.h"

/* Each block fenced as ```rp, in order, must elaborate without a message. */
static void test_examples(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  Source *document = source_read(arena, REPRISE_LANGUAGE_DOCUMENT);
  int examples = 0;
  assert_non_null(document);
  for (const char *at = document->text; (at = strstr(at, "\n```rp\n")); examples++) {
    const char *start = at + strlen("\n```rp\n"), *end = strstr(start, "\n```");
    assert_non_null(end);
    char *text = memory_string_range(arena, start, end - start + 1);
    File *file = parse_source(arena, source_from(arena, memory_format(arena, "example %d", examples + 1), text));
    Module *module = diag_error_count() ? NULL : elaborate_file(arena, file, NULL, 0);
    diag_print(stderr, false);
    assert_non_null(module);
    assert_null(diag_get(0));
    assert_null(graph_verify(arena, module->train));
    at = end;
  }
  assert_int_equal(examples, 6);
  diag_reset();
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
  return cmocka_run_group_tests_name("language", tests, NULL, NULL);
}
