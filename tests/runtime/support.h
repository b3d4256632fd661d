/* tests/runtime/support.h - a scratch folder, files in it, and programs run in it. */
#ifndef REPRISE_TESTS_RUNTIME_SUPPORT_H
#define REPRISE_TESTS_RUNTIME_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* cmocka group fixtures: make a scratch folder and change to it; remove it with what is in it. */
int enter_scratch(void **state);
int leave_scratch(void **state);

void write_file(const char *path, const void *bytes, size_t size);
void write_text(const char *path, const char *text);
/* Contents with a NUL after them; the caller frees. `size` may be NULL. NULL when there is no such file. */
char *read_whole(const char *path, size_t *size);
void assert_same_files(const char *a, const char *b);

/* Runs a shell command line in the scratch folder with stdout in "out" and stderr in "err"; returns its exit code, 128
 * + signal when it was killed. */
int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The file has the text in it. */
void assert_contains(const char *path, const char *text);

#endif
