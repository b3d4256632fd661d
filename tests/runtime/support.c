#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/runtime/support.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

static char scratch[] = "reprise-runtime-XXXXXX";
static char *home;

int enter_scratch(void **state) {
  (void)state;
  home = getcwd(NULL, 0);
  return home && mkdtemp(scratch) && chdir(scratch) == 0 ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *information, int kind, struct FTW *walk) {
  (void)information, (void)kind, (void)walk;
  return remove(path);
}

int leave_scratch(void **state) {
  (void)state;
  int failed = chdir(home) != 0 || nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0;
  free(home);
  return failed ? -1 : 0;
}

void write_file(const char *path, const void *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, 1, size, stream), size);
  assert_int_equal(fclose(stream), 0);
}

void write_text(const char *path, const char *text) { write_file(path, text, strlen(text)); }

char *read_whole(const char *path, size_t *size) {
  FILE *stream = fopen(path, "rb");
  struct stat information;
  if (!stream) return NULL;
  assert_int_equal(fstat(fileno(stream), &information), 0);
  char *bytes = calloc(1, (size_t)information.st_size + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, (size_t)information.st_size, stream), information.st_size);
  fclose(stream);
  if (size) *size = (size_t)information.st_size;
  return bytes;
}

void assert_same_files(const char *a, const char *b) {
  size_t a_size = 0, b_size = 0;
  char *a_bytes = read_whole(a, &a_size), *b_bytes = read_whole(b, &b_size);
  assert_non_null(a_bytes);
  assert_non_null(b_bytes);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a_bytes, b_bytes, a_size);
  free(a_bytes);
  free(b_bytes);
}

int run(const char *format, ...) {
  char command[2048];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  assert_true(length > 0 && (size_t)length < sizeof command - 16);
  strcat(command, " >out 2>err");
  int result = system(command);
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

void assert_contains(const char *path, const char *text) {
  char *contents = read_whole(path, NULL);
  assert_non_null(contents);
  if (!strstr(contents, text)) fail_msg("'%s' lacks \"%s\":\n%.1500s", path, text, contents);
  free(contents);
}
