/* tests/packing/test_packing_table.c - reading and writing tables of buffers, and the command's exit codes. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <unistd.h>

#include "ir/diagnostics.h"
#include "passes/packing/buffer_table.h"

static MemoryArena *arena;

static int set_up(void **state) {
  (void)state;
  arena = memory_arena_create();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  diag_reset();
  memory_arena_destroy(arena);
  return 0;
}

static BufferTable parse(const char *text) {
  return parse_buffer_table(arena, "table.csv", text, (int64_t)strlen(text));
}

/* The text has exactly one fault, at this place, and the message contains `expected`. */
static void assert_fault(const char *text, const char *place, const char *expected) {
  diag_reset();
  parse(text);
  if (diag_error_count() != 1) fail_msg("%d errors in: %s", diag_error_count(), text);
  assert_string_equal(location_text(arena, diag_get(0)->location), place);
  if (!strstr(diag_get(0)->message, expected)) fail_msg("'%s' lacks '%s'", diag_get(0)->message, expected);
}

static void reads_and_writes(void **state) {
  (void)state;
  BufferTable table = parse("id,lower,upper,size\r\nb 1,-3,4,16\n\nw.x,0,9223372036854775807,0");
  assert_int_equal(diag_error_count(), 0);
  assert_int_equal(table.count, 2);
  assert_string_equal(table.items[0].id, "b 1");
  assert_int_equal(table.items[0].lower, -3);
  assert_true(table.items[1].upper == INT64_MAX);
  table.items[0].offset = 64;
  int64_t length;
  const char *text = format_buffer_table(arena, table.items, table.count, &length);
  assert_string_equal(text, "id,lower,upper,size,offset\nb 1,-3,4,16,64\nw.x,0,9223372036854775807,0,0\n");
  assert_int_equal(length, strlen(text));
  assert_int_equal(parse(text).count, 2);
  assert_int_equal(diag_error_count(), 0);
}

static void locates_faults(void **state) {
  (void)state;
  assert_fault("", "table.csv:1:1", "empty file");
  assert_fault("a,0,1,2\n", "table.csv:1:1", "expected the header");
  assert_fault("id,lower,upper,size,offset,more\n", "table.csv:1:1", "expected the header");
  assert_fault("id,lower,upper,size\na,0,1\n", "table.csv:2:1", "expected 4 fields as in the header, found 3");
  assert_fault("id,lower,upper,size\na,0,1,2,3\n", "table.csv:2:1", "found 5");
  assert_fault("id,lower,upper,size\n\na,0,x,2\n", "table.csv:3:5", "for 'upper', found 'x'");
  assert_fault("id,lower,upper,size\na, 0,1,2\n", "table.csv:2:3", "found ' 0'");
  assert_fault("id,lower,upper,size\na,0,1,\n", "table.csv:2:7", "found ''");
  assert_fault("id,lower,upper,size\na,0,1,-\n", "table.csv:2:7", "found '-'");
  assert_fault("id,lower,upper,size\na,0,1,9223372036854775808\n", "table.csv:2:7", "below 2^63");
  assert_fault("id,lower,upper,size\na,0,1,-4\n", "table.csv:2:7", "expected a size >= 0, found -4");
  assert_fault("id,lower,upper,size\na,3,3,4\n", "table.csv:2:5", "expected upper > 3, found 3");
  assert_fault("id,lower,upper,size\n,0,1,4\n", "table.csv:2:1", "expected an id");
  assert_fault("id,lower,upper,size\na,0,1,4\nb,0,1,4\na,1,2,4\n", "table.csv:4:1", "given twice");
  diag_reset();
  parse("id,lower,upper,size\na,0,x,2\nb,5,4,2\nc,1,2\n");
  assert_int_equal(diag_error_count(), 3);
}

static void refuses_nul_bytes(void **state) {
  (void)state;
  static const char text[] = "id,lower,upper,size\na\0b,0,1,4\n";
  parse_buffer_table(arena, "table.csv", text, (int64_t)sizeof text - 1);
  assert_int_equal(diag_error_count(), 1);
}

/* ---- the command, in a scratch folder ---- */

static char folder[] = "packing-test-XXXXXX";

static const char *path_of(const char *name) { return memory_format(arena, "%s/%s", folder, name); }

static void write_text(const char *name, const char *text) {
  const char *error;
  if (!file_write(arena, path_of(name), text, (int64_t)strlen(text), &error)) fail_msg("%s", error);
}

/* Runs `pack` with up to three arguments, all output discarded. */
static int run(const char *first, const char *second, const char *third) {
  char *arguments[8] = {(char *)"pack"};
  const char *given[] = {first, second, third, "-o", path_of("out.csv")};
  int count = 1;
  for (int i = 0; i < 5; i++)
    if (given[i]) arguments[count++] = (char *)given[i];
  unlink(path_of("out.csv"));
  fflush(stderr);
  int saved = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  int code = pack_command(count, arguments);
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  return code;
}

static bool output_exists(void) { return access(path_of("out.csv"), F_OK) == 0; }

static void command_packs(void **state) {
  (void)state;
  write_text("in.csv", "id,lower,upper,size\na,0,2,10\nb,1,3,10\nc,2,4,10\n");
  assert_int_equal(run(path_of("in.csv"), "--capacity=20B", NULL), EXIT_OK);
  int64_t length;
  const char *error, *text = file_read(arena, path_of("out.csv"), &length, &error);
  BufferTable table = parse_buffer_table(arena, "out.csv", text, length);
  assert_int_equal(table.count, 3);
  assert_int_equal(run(path_of("in.csv"), "--capacity=32", "--alignment=16"), EXIT_OK);
  assert_int_equal(run(path_of("in.csv"), "--capacity=31", "--alignment=16"), EXIT_BUDGET_INFEASIBLE);
  assert_int_equal(run(path_of("in.csv"), "--capacity=19", NULL), EXIT_BUDGET_INFEASIBLE);
  assert_false(output_exists());
}

static void command_refuses(void **state) {
  (void)state;
  write_text("in.csv", "id,lower,upper,size\na,0,2,10\n");
  static const char *const wrong[] = {"--capacity=0",   "--capacity=-1", "--capacity=", "--capacity=10XB", "--effort=0",
                                      "--effort=1.5",   "--alignment=0", "--capacty=5", "--unknown",       "-x",
                                      "--capacity=nan", "other.csv"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(run(path_of("in.csv"), wrong[i], NULL), EXIT_USAGE);
  assert_int_equal(run(NULL, NULL, NULL), EXIT_USAGE);
  assert_int_equal(run(path_of("absent.csv"), NULL, NULL), EXIT_IO);
  write_text("bad.csv", "id,lower,upper,size\na,2,2,10\n");
  assert_int_equal(run(path_of("bad.csv"), NULL, NULL), EXIT_SOURCE_ERROR);
  write_text("huge.csv", "id,lower,upper,size\na,0,1,9223372036854775807\nb,0,1,1\n");
  assert_int_equal(run(path_of("huge.csv"), NULL, NULL), EXIT_SOURCE_ERROR);
  write_text("edge.csv", "id,lower,upper,size\na,0,1,9223372036854775807\n");
  assert_int_equal(run(path_of("edge.csv"), "--alignment=64", NULL), EXIT_SOURCE_ERROR);
  assert_false(output_exists());
  assert_int_equal(run(path_of("edge.csv"), NULL, NULL), EXIT_OK);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"in.csv", "bad.csv", "huge.csv", "edge.csv", "out.csv"};
  arena = memory_arena_create();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  memory_arena_destroy(arena);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(reads_and_writes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(locates_faults, set_up, tear_down),
      cmocka_unit_test_setup_teardown(refuses_nul_bytes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(command_packs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(command_refuses, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("packing: tables and command", tests, make_folder, remove_folder);
}
