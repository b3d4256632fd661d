/* tests/frontend/elaborate_errors_test.c - wrong programs with the place and text of what is said about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "frontend/elaborate.h"
#include "frontend/parser.h"
#include "tests/frontend/support.h"

static MemoryArena *arena;

static int create_arena(void **state) {
  (void)state;
  arena = memory_arena_create();
  return 0;
}

static int destroy_arena(void **state) {
  (void)state;
  diag_reset();
  memory_arena_destroy(arena);
  return 0;
}

typedef struct ErrorCase {
  const char *text;
  const char *errors[4]; /* "line:column: message" in order, notes included */
} ErrorCase;

#define MODEL(body) "dim B = 8, T = 4\nconst C = 6\nmodel M(x: [B, T, C], i: i32[B]) {\n" body "\n}\n"

static const ErrorCase cases[] = {
#include "tests/frontend/elaborate_errors.inc"
};

/* How many errors a case has in all, beside those listed; none. */
static void check_count(const ErrorCase *expected, int *wrong) {
  int listed = 0;
  while (listed < 4 && expected->errors[listed]) listed++;
  if (listed == 4 || !diag_get(listed)) return;
  print_error("%s\n         also     %s\n", expected->text, diagnostic_text(arena, listed));
  ++*wrong;
}

static void test_errors(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    diag_reset();
    File *file = parse_source(arena, source_from(arena, "case.rp", cases[i].text));
    assert_int_equal(diag_error_count(), 0);
    if (elaborate_file(arena, file, NULL, 0)) {
      print_error("%s\n         has no error\n", cases[i].text);
      wrong++;
    }
    for (int k = 0; k < 4 && cases[i].errors[k]; k++) {
      const char *found = diagnostic_text(arena, k);
      if (string_equal(found, cases[i].errors[k])) continue;
      print_error("%s\n         expected %s\n         found    %s\n", cases[i].text, cases[i].errors[k], found);
      wrong++;
    }
    check_count(&cases[i], &wrong);
  }
  assert_int_equal(wrong, 0);
}

static void check_definition(const char *name, const char *value, const char *error) {
  diag_reset();
  File *file =
      parse_source(arena, source_from(arena, "case.rp", "dim Batch = 8\nmodel M(x: [Batch]) { output y = x }\n"));
  assert_null(elaborate_file(arena, file, &(Definition){name, value}, 1));
  assert_string_equal(diagnostic_text(arena, 0), error);
}

static void test_definitions(void **state) {
  (void)state;
  check_definition("Bach", "4", "1:14: 'case.rp' has no dim or const 'Bach'; did you mean 'Batch'?");
  check_definition("Batch", "0", "1:15: the dim 'Batch' is an int from 1, found 0; a 'const' may be any constant");
  check_definition("Batch", "2.5", "1:15: the dim 'Batch' is an int from 1, found 2.5; a 'const' may be any constant");
  check_definition("Batch", "", "1:15: expected an expression, found end of line");
  check_definition("Batch", "1, N = 2", "1:1: expected -D NAME=VALUE with one constant");
  check_definition("Batch", "x", "1:15: unknown name 'x'");
}

static char *repeat(const char *first, const char *text, int count, const char *last) {
  size_t length = strlen(text), start = strlen(first);
  char *result = memory_alloc(arena, (int64_t)(start + length * (size_t)count + strlen(last) + 1));
  memcpy(result, first, start);
  for (int i = 0; i < count; i++) memcpy(result + start + length * (size_t)i, text, length);
  strcpy(result + start + length * (size_t)count, last);
  return result;
}

static void check_first(const char *text, const char *error) {
  diag_reset();
  File *file = parse_source(arena, source_from(arena, "case.rp", text));
  assert_int_equal(diag_error_count(), 0);
  assert_null(elaborate_file(arena, file, NULL, 0));
  assert_string_equal(diagnostic_text(arena, 0), error);
}

/* What would run out of stack, memory or time ends with a located error. */
static void test_hostile(void **state) {
  (void)state;
  check_first("model M(x: [1]) { for i in 0..10^12 { x = x }; output x }",
              "1:39: the model expands to more than 5000000 statements");
  check_first("model M(x: [1]) { for i in 0..10^12 { }; output x }",
              "1:19: the model expands to more than 5000000 statements");
  check_first("model M(x: [1]) { a.{0..10^12} = x }",
              "1:22: the path stands for 1000000000000 names; the most is 65536");
  char *modules = memory_string(arena, "module F0(x: [1]) { return x }\n"); /* each calls the one before it */
  for (int i = 1; i < 1600; i++)
    modules = memory_format(arena, "%smodule F%d(x: [1]) { return F%d(x) }\n", modules, i, i - 1);
  check_first(memory_format(arena, "%smodel M(x: [1]) { output y = F1599(x) }", modules),
              "101:17: expressions and calls are nested more than 1500 deep");
  check_first(repeat("model M(x: [1]) { output y = x", " + x", 900, "\n y = x; output z = x[0] + y[1] }"),
              "2:29: index 1 is outside of an axis of 1 elements");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_errors, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_definitions, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_hostile, create_arena, destroy_arena),
  };
  return cmocka_run_group_tests_name("elaborate_errors", tests, NULL, NULL);
}
