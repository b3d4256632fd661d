/* What the character models reach on a megabyte of text, held-out nats per character. Takes minutes: label slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <unistd.h>

#include "tests/examples/program_run.h"

static const char text[] = REPRISE_SHARED_DATA "/text/tinyshakespeare.txt";

static void expect_loss(const char *file, double most) {
  MemoryArena *arena = memory_arena_create();
  const char *folder = folder_create(arena), *words[] = {"--data", text, "--test", text, NULL};
  unsetenv("OMP_NUM_THREADS");
  const char *log = train_example(arena, folder, file, NULL, words);
  assert_non_null(log);
  LogLines loss = log_field(arena, log, "test", "loss");
  assert_true(loss.count >= 1);
  print_message("%s: %.4f\n", file, loss.values[loss.count - 1]);
  assert_true(loss.values[loss.count - 1] < most);
  folder_remove(arena, folder);
  memory_arena_destroy(arena);
}

static void char_transformer_learns(void **state) {
  (void)state;
  expect_loss("char_transformer.rp", 1.9);
}

static void char_rnn_learns(void **state) {
  (void)state;
  expect_loss("char_rnn.rp", 2.1);
}

int main(void) {
  if (access(text, R_OK) != 0) {
    fprintf(stderr, "skipped: no file %s\n", text);
    return 77;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(char_transformer_learns), cmocka_unit_test(char_rnn_learns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
