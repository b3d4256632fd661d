/* tests/frontend/parser_test.c - golden trees, the canonical form, located errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "frontend/format.h"
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

/* ---- golden files: tests/frontend/cases; REPRISE_UPDATE_GOLDEN=1 rewrites them ---- */

static void check_golden(const char *name, const char *text) {
  const char *path = memory_format(arena, "%s/%s", REPRISE_FRONTEND_CASES, name), *error = NULL;
  int64_t length = 0;
  if (getenv("REPRISE_UPDATE_GOLDEN")) assert_true(file_write(arena, path, text, (int64_t)strlen(text), &error));
  char *golden = file_read(arena, path, &length, &error);
  assert_non_null(golden);
  assert_string_equal(text, golden);
}

static File *parse_case(const char *name) {
  Source *source = source_read(arena, memory_format(arena, "%s/%s", REPRISE_FRONTEND_CASES, name));
  assert_non_null(source);
  File *file = parse_source(arena, source);
  if (diag_error_count()) diag_print(stderr, false);
  assert_int_equal(diag_error_count(), 0);
  return file;
}

/* The canonical form parses to the same tree and is its own canonical form. */
static char *check_format(const File *file) {
  char *once = format_file(arena, file);
  File *again = parse_source(arena, source_from(arena, "formatted", once));
  if (diag_error_count()) {
    diag_print(stderr, false);
    fail_msg("the canonical form of %s does not parse", file->source->path);
  }
  assert_string_equal(ast_dump(arena, file), ast_dump(arena, again));
  assert_string_equal(once, format_file(arena, again));
  return once;
}

static void test_cases(void **state) {
  (void)state;
  static const char *const names[] = {"expressions", "statements", "newlines"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    File *file = parse_case(memory_format(arena, "%s.rp", names[i]));
    check_golden(memory_format(arena, "%s.ast", names[i]), ast_dump(arena, file));
    check_golden(memory_format(arena, "%s.fmt", names[i]), check_format(file));
  }
}

static int64_t count_comments(const File *file) { return file->tokens->comment_count; }

static void test_models(void **state) {
  (void)state;
  static const char *const names[] = {"a_mlp", "b_resnet50", "c_unet", "e_vit",   "f_t5", "g_lstm",
                                      "gpt2",  "i_lora",     "k_mlm",  "l_trace", "nn"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    Source *source = source_read(arena, memory_format(arena, "%s/models/%s.rp", REPRISE_SHARED_DATA, names[i]));
    if (!source) {
      print_message("skipped: no models in %s\n", REPRISE_SHARED_DATA);
      skip();
    }
    File *file = parse_source(arena, source);
    if (diag_error_count()) diag_print(stderr, false);
    assert_int_equal(diag_error_count(), 0);
    assert_true(file->tops.count > 0);
    char *text = check_format(file);
    assert_int_equal(count_comments(parse_source(arena, source_from(arena, "again", text))), count_comments(file));
  }
}

/* ---- erroneous inputs ---- */

typedef struct ErrorCase {
  const char *text;
  const char *errors[3]; /* "line:column: message" in order, NULL: no further one */
} ErrorCase;

static const ErrorCase error_cases[] = {
    {"dim B\n", {"1:6: expected '=', found end of line"}},
    {"dim B = \n", {"1:9: expected an expression, found end of line"}},
    {"const a = 1 +\nconst b = 2\n", {"2:7: expected the end of the line or ';', found 'b'"}},
    {"const a = 99999999999999999999\n",
     {"1:11: the integer does not fit in 64 bits; the largest is 9223372036854775807"}},
    {"const a = 1e999\n", {"1:11: the number is too large for a 64-bit float"}},
    {"const a = 3x\n", {"1:11: '3x' is not a number; a word starts with a letter or '_', a number ends before it"}},
    {"const a = .5\n", {"1:11: expected an expression, found '.' (a number has digits on both sides of its point)"}},
    {"const a = \"open\nconst b = \"x\\n\"\n",
     {"1:11: the string is not closed on its line; expected '\"'",
      "2:13: unknown escape in a string; there are \\\" and \\\\"}},
    {"const a = $1, b = \xC3\xA9\n",
     {"1:11: unexpected character '$'", "1:19: unexpected character '\xC3\xA9'",
      "1:21: expected an expression, found end of line"}},
    {"const a = 1 < 2 < 3\n", {"1:17: comparisons do not chain; write 'a < b and b < c'"}},
    {"const a = 0..1..2\n", {"1:15: '..' does not chain; a range is 'first..end'"}},
    {"const a = f(1, 2\nconst b = 1", {"2:1: expected ',' or ')', found 'const'", "1:12: to match this '('"}},
    {"const a = [1, 2)\n", {"1:16: expected ',' or ']', found ')'", "1:11: to match this '['"}},
    {"const a = (1]\n", {"1:13: expected ')', found ']'", "1:11: to match this '('"}},
    {"const a = x.b(1)\n", {"1:14: only a single word can be called; write 'label:Module(...)' to call under a label"}},
    {"const a = x.and\n", {"1:13: expected a word or a hole '{...}' after '.', found 'and'"}},
    {"modul M(x) { return x }\ndim A = = 2\n",
     {"1:1: expected 'import', 'dim', 'const', 'module', 'model' or 'train', found 'modul'; did you mean 'module'?",
      "2:9: expected an expression, found '='"}},
    {"module M(x) {\n  y = relu(x\n  z = 1\n}\nmodule N(x) { return }\n",
     {"3:3: expected ',' or ')', found 'z'", "2:11: to match this '('", "5:22: expected an expression, found '}'"}},
    {"module M(x) {\n  y = x +* 2\n  z 3\n  relu(x)\n}\n",
     {"2:10: expected an expression, found '*'",
      "3:5: expected '=' (a statement starts with a keyword or is 'name = ...'), found '3'",
      "4:7: a call is not a statement; expected 'name = ...'"}},
    {"module M(x) {\n  y.{i+} = x\n  z = x\n}\nmodule N(x) { y = }\n",
     {"2:8: expected an expression, found '}'", "5:19: expected an expression, found '}'"}},
    {"module M(x) { if x{ y = 1 } }\n",
     {"1:23: expected '}' to close the hole, found '=' ('{' that touches a name opens a hole; a block needs a blank "
      "before it)"}},
    {"module M(x) { if x{y} }\n",
     {"1:23: expected a block '{' (a '{' that touches a name opens a hole; put a blank before a block), found '}'"}},
    {"module M(x) { param w = zeros }\n", {"1:23: expected ':' and a type, found '='"}},
    {"module M(x) { param w: f32 = zeros }\n", {"1:28: expected a type such as 'f32[B, T]' or '[]', found '='"}},
    {"module M(x) { for i on x { y = 1 } }\n", {"1:21: expected 'in', found 'on'"}},
    {"module M(x) {\n  y = 1\n", {"3:1: expected '}', found end of file", "1:13: to match this '{'"}},
    {"module M(x) { return x } }\ndim B = ,\n",
     {"1:26: this '}' closes nothing", "2:9: expected an expression, found ','"}},
    {"}\n", {"1:1: expected 'import', 'dim', 'const', 'module', 'model' or 'train', found '}'"}},
    {"import nn\n", {"1:8: expected the name of a file in quotes, found 'nn'"}},
    {"train M { clip; optimizer sgd() { wd = 0 } }\n",
     {"1:15: expected a value after 'clip', found ';'", "1:42: expected 'where', found '}'"}},
    {"train M { data = idx(1) }\n", {"1:16: expected the name of an input, found '='"}},
    {"const a = 2**3\n", {"1:13: expected an expression, found '*' (the power of x is x^2)"}},
    {"const a = 'x'\n", {"1:11: unexpected character '\''; strings stand in double quotes"}},
    {"const a = !b\n", {"1:11: unexpected character '!'; 'not' is written out"}},
    {"module M(x) { parm w: [2] = ones }\n",
     {"1:20: expected '=' (a statement starts with a keyword or is 'name = ...'), found 'w'; did you mean 'param'?"}},
    {"const a = \xFF\n", {"1:11: the byte 0xFF is not UTF-8; save the file as UTF-8 text"}},
    {"const a = 1 # \xED\xA0\x80\n", {"1:15: the byte 0xED is not UTF-8; save the file as UTF-8 text"}}};

static void test_errors(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof error_cases / sizeof *error_cases; i++) {
    diag_reset();
    parse_source(arena, source_from(arena, "case.rp", error_cases[i].text));
    for (int k = 0; k < 3 && error_cases[i].errors[k]; k++) {
      const char *found = diagnostic_text(arena, k);
      if (string_equal(found, error_cases[i].errors[k])) continue;
      print_error("case %zu: expected %s\n         found    %s\n", i, error_cases[i].errors[k], found);
      wrong++;
    }
  }
  assert_int_equal(wrong, 0);
}

static void test_nul_byte(void **state) {
  (void)state;
  Source source = {"nul.rp", "dim B = 1\n\0\n", 12};
  parse_source(arena, &source);
  assert_string_equal(diagnostic_text(arena, 0), "2:1: the file holds a NUL byte; expected UTF-8 text");
}

/* ---- hostile inputs: bounded stack, located errors ---- */

static char *repeat(const char *first, const char *text, int count, const char *last) {
  size_t length = strlen(text), start = strlen(first);
  char *result = memory_alloc(arena, (int64_t)(start + length * (size_t)count + strlen(last) + 1));
  memcpy(result, first, start);
  for (int i = 0; i < count; i++) memcpy(result + start + length * (size_t)i, text, length);
  strcpy(result + start + length * (size_t)count, last);
  return result;
}

static void check_one_error(const char *text, const char *error) {
  diag_reset();
  File *file = parse_source(arena, source_from(arena, "hostile.rp", text));
  assert_string_equal(diagnostic_text(arena, 0), error);
  assert_non_null(file);
}

static void test_hostile(void **state) {
  (void)state;
  enum { MANY = 200000 };
  check_one_error(repeat("const a = ", "(", MANY, ""), "1:211: nested more than 200 deep");
  check_one_error(repeat("const a = ", "-", MANY, "1"), "1:211: nested more than 200 deep");
  check_one_error(repeat("const a = ", "x{", MANY, ""), "1:411: nested more than 200 deep");
  check_one_error(repeat("const a = ", "f(x=[", MANY, ""), "1:511: nested more than 200 deep");
  check_one_error(repeat("const a = 1", "+1", MANY, ""),
                  "1:2012: the expression has more than 1000 levels; give parts of it names");
  check_one_error(repeat("const a = x", "[0]", MANY, ""),
                  "1:3009: the expression has more than 1000 levels; give parts of it names");
  check_one_error(repeat("module M(x) ", "{ if x ", MANY, ""), "1:1411: nested more than 200 deep");
  check_one_error(repeat("const a = ", "a", 300, ""), "1:11: this word has 300 letters; a word may have 255");
  check_one_error(repeat("const a = \"", "ab", 3000, "\""), "1:11: this string has 6000 bytes; a string may have 4095");
}

static void test_long_inputs_parse(void **state) {
  (void)state;
  enum { MANY = 100000 };
  char *statements = repeat("module M(x) {\n", "x = relu(x)\n", MANY, "return x }");
  File *file = parse_source(arena, source_from(arena, "long.rp", statements));
  assert_int_equal(file->tops.items[0].block.statements.count, MANY + 1);
  char *branches = repeat("module M(x) { if x { }", " else if x { }", MANY, "}");
  file = parse_source(arena, source_from(arena, "long.rp", branches));
  assert_int_equal(file->tops.items[0].block.statements.items[0]->branches.count, MANY + 1);
  assert_int_equal(diag_error_count(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_cases, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_models, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_errors, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_nul_byte, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_hostile, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_long_inputs_parse, create_arena, destroy_arena),
  };
  return cmocka_run_group_tests_name("parser", tests, NULL, NULL);
}
