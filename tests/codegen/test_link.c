/* The C compiler as a child process: an executable appears whole or not at all, faults are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/codegen.h"

static MemoryArena *arena;
static char *folder;

static bool link_text(const char *source, const char *name, const LinkOptions *options, ExitCode *code,
                      const char **error) {
  return link_executable(source, (int64_t)strlen(source), memory_format(arena, "%s/%s", folder, name), options, arena,
                         code, error);
}

static bool exists(const char *name) { return access(memory_format(arena, "%s/%s", folder, name), F_OK) == 0; }

static const LinkOptions built = {
    .compiler = TEST_CC, .flags = TEST_FLAGS, .include_path = TEST_INCLUDE, .library_path = TEST_LIBRARY};

static void makes_an_executable(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  const char *source = "#include \"runtime/program.h\"\nint main(void) { return RP_PROGRAM_VERSION == 1 ? 42 : 0; }\n";
  if (!link_text(source, "program", &built, &code, &error)) fail_msg("%s", error);
  int status = system(memory_format(arena, "%s/program", folder));
  assert_int_equal(WEXITSTATUS(status), 42);
  unlink(memory_format(arena, "%s/program", folder));
  assert_int_equal(rmdir(folder), 0); /* nothing else was left */
  assert_int_equal(mkdir(folder, 0700), 0);
}

/* The build tree has a file beside its programs that says where headers and library are. */
static void finds_the_runtime(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  LinkOptions options = {.compiler = TEST_CC};
  if (!link_text("#include \"runtime/program.h\"\nint main(void) { return 0; }\n", "found", &options, &code, &error))
    fail_msg("%s", error);
  unlink(memory_format(arena, "%s/found", folder));
}

static void reports_a_missing_runtime(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  LinkOptions options = {.compiler = TEST_CC, .flags = TEST_FLAGS, .include_path = folder, .library_path = folder};
  assert_false(link_text("int main(void) { return 0; }\n", "none", &options, &code, &error));
  assert_int_equal(code, EXIT_IO);
  assert_non_null(strstr(error, "program.h"));
}

static void reports_a_missing_compiler(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  LinkOptions options = built;
  options.compiler = "no-such-compiler-here";
  assert_false(link_text("int main(void) { return 0; }\n", "none", &options, &code, &error));
  assert_int_equal(code, EXIT_IO);
  assert_non_null(strstr(error, "no-such-compiler-here"));
  assert_false(exists("none"));
}

static void reports_what_the_compiler_says(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  assert_false(link_text("int main(void) { return undeclared; }\n", "none", &built, &code, &error));
  assert_int_equal(code, EXIT_INTERNAL);
  assert_non_null(strstr(error, "undeclared"));
  assert_false(exists("none"));
}

static void reports_an_unwritable_output(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  assert_false(link_text("int main(void) { return 0; }\n", "no/such/folder", &built, &code, &error));
  assert_int_equal(code, EXIT_IO);
}

/* Flags reach the compiler. */
static void takes_flags(void **state) {
  (void)state;
  ExitCode code;
  const char *error;
  LinkOptions options = built;
  options.flags = TEST_FLAGS " -DANSWER=0";
  if (!link_text("int main(void) { return ANSWER; }\n", "flags", &options, &code, &error)) fail_msg("%s", error);
  unlink(memory_format(arena, "%s/flags", folder));
}

static int setup(void **state) {
  (void)state;
  arena = memory_arena_create();
  const char *base = getenv("TMPDIR");
  folder = memory_format(arena, "%s/reprise-test-XXXXXX", base ? base : "/tmp");
  return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  rmdir(folder);
  memory_arena_destroy(arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_an_executable),
      cmocka_unit_test(finds_the_runtime),
      cmocka_unit_test(reports_a_missing_runtime),
      cmocka_unit_test(reports_a_missing_compiler),
      cmocka_unit_test(reports_what_the_compiler_says),
      cmocka_unit_test(reports_an_unwritable_output),
      cmocka_unit_test(takes_flags),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
