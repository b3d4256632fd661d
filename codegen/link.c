/* codegen/link.c - runs the C compiler on an emitted program and links it with the runtime. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/text.h"
#include "ir/signals.h"

extern char **environ;

/* What results must not depend on: no contraction to fused multiply-add; integers wrap. What lets loops vectorise
 * without changing a value: errno and floating-point exceptions are never looked at. */
static const char value_safe_flags[] = "-std=c17 -fopenmp -ffp-contract=off -fwrapv -fno-math-errno -fno-trapping-math";
static const char default_flags[] = "-O3 -march=native";
static const char libraries[] = "-lopenblas -ljansson -lz -lm";

typedef struct Link {
  MemoryArena *arena;
  const char *output, *temporary_output;       /* the latter in the folder of the former, then renamed */
  const char *folder, *source_path, *log_path; /* temporary */
  const char *compiler, *flags, *include_path, *library_path;
  const char *build_flags; /* what the runtime of a build tree was built with */
  ExitCode *exit_code;
  const char **error;
  volatile pid_t child; /* the C compiler while it runs, else 0 */
} Link;

static bool fail(Link *link, ExitCode code, char *message) {
  *link->exit_code = code;
  *link->error = message;
  return false;
}

static const char *first_set(const char *a, const char *b, const char *c, const char *otherwise) {
  if (a && *a) return a;
  if (b && *b) return b;
  return c && *c ? c : otherwise;
}

/* ---- the runtime, found from where the running program lies ---- */

static char *program_folder(MemoryArena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash) *slash = '\0';
  return memory_string(arena, path);
}

/* The build tree has a file beside its programs: the two folders and, where the runtime was built with them, flags. */
static bool read_build_paths(Link *link, const char *folder) {
  const char *error;
  int64_t length;
  char *text = file_read(link->arena, memory_format(link->arena, "%s/reprise-build-paths", folder), &length, &error);
  if (!text) return false;
  char *rest, *include = strtok_r(text, "\n", &rest), *library = strtok_r(NULL, "\n", &rest);
  if (!include || !library) return false;
  link->build_flags = strtok_r(NULL, "\n", &rest);
  if (!link->include_path) link->include_path = include;
  if (!link->library_path) link->library_path = library;
  return true;
}

static bool find_runtime(Link *link) {
  MemoryArena *arena = link->arena;
  char *folder = link->include_path && link->library_path ? NULL : program_folder(arena);
  if (folder && !read_build_paths(link, folder)) {
    if (!link->include_path)
      link->include_path = memory_format(arena, "%s/../" REPRISE_INCLUDE_FOLDER "/reprise", folder);
    if (!link->library_path) link->library_path = memory_format(arena, "%s/../" REPRISE_LIBRARY_FOLDER, folder);
  }
  const char *header = memory_format(arena, "%s/runtime/program.h", link->include_path ? link->include_path : "");
  const char *library = memory_format(arena, "%s/libreprise_runtime.a", link->library_path ? link->library_path : "");
  const char *missing = access(header, R_OK) ? header : access(library, R_OK) ? library : NULL;
  if (!missing) return true;
  return fail(link, EXIT_IO,
              memory_format(arena, "the runtime is not where this program expects it: %s: %s; install reprise again",
                            missing, strerror(errno)));
}

/* ---- the compiler as a child process ---- */

typedef ARRAY(char *) Words;

static void push_words(Link *link, Words *words, const char *text) {
  char *copy = memory_string(link->arena, text), *rest;
  for (char *word = strtok_r(copy, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
    array_push(link->arena, words, word);
}

static void push_word(Link *link, Words *words, const char *prefix, const char *word) {
  array_push(link->arena, words, memory_format(link->arena, "%s%s", prefix, word));
}

static Words compiler_words(Link *link) {
  Words words = {0};
  push_words(link, &words, link->compiler);
  push_words(link, &words, value_safe_flags);
  push_words(link, &words, link->flags);
  if (link->build_flags) push_words(link, &words, link->build_flags);
  push_word(link, &words, "-I", link->include_path);
  push_word(link, &words, "-o", link->temporary_output);
  push_word(link, &words, "", link->source_path);
  push_word(link, &words, "-L", link->library_path);
  push_words(link, &words, "-lreprise_runtime");
  push_words(link, &words, libraries);
  array_push(link->arena, &words, NULL);
  return words;
}

/* Runs the command with its output in the log; its exit status, or -1 with errno set when it does not start. */
static int run_command(Link *link, char **words) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, link->log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int fault = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault) {
    errno = fault;
    return -1;
  }
  link->child = child;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  link->child = 0;
  if (ended < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool compile(Link *link) {
  MemoryArena *arena = link->arena;
  Words words = compiler_words(link);
  int status = run_command(link, words.items);
  if (status == 0) return true;
  if (status < 0 || status == 127)
    return fail(
        link, EXIT_IO,
        memory_format(arena, "cannot run the C compiler '%s': %s; install one (gcc or clang), or name one with CC=…",
                      words.items[0], status < 0 ? strerror(errno) : "not found"));
  const char *error;
  int64_t length = 0;
  char *log = file_read(arena, link->log_path, &length, &error);
  if (log && length > 3000) strcpy(log + 3000, "…");
  bool interrupted = status == 128 + 2;
  return fail(
      link, interrupted ? EXIT_INTERRUPTED : EXIT_INTERNAL,
      memory_format(arena, "the C compiler '%s' failed with status %d:\n%s", words.items[0], status, log ? log : ""));
}

/* ---- temporary files ---- */

/* Tells an output that cannot be written before the compiler runs. */
static bool check_output(Link *link) {
  struct stat information;
  if (stat(link->output, &information) == 0 && !S_ISREG(information.st_mode))
    return fail(
        link, EXIT_IO,
        memory_format(link->arena, "cannot write '%s': it is there and not a regular file; name another file with -o",
                      link->output));
  int file = open(link->temporary_output, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0)
    return fail(link, EXIT_IO, memory_format(link->arena, "cannot write '%s': %s", link->output, strerror(errno)));
  close(file);
  unlink(link->temporary_output);
  return true;
}

static bool make_folder(Link *link) {
  char *folder = memory_format(link->arena, "%s/reprise-XXXXXX", first_set(getenv("TMPDIR"), NULL, NULL, "/tmp"));
  if (!mkdtemp(folder))
    return fail(link, EXIT_IO, memory_format(link->arena, "cannot make a folder %s: %s", folder, strerror(errno)));
  link->folder = folder;
  link->source_path = memory_format(link->arena, "%s/program.c", folder);
  link->log_path = memory_format(link->arena, "%s/log", folder);
  return true;
}

static void remove_temporaries(const Link *link) {
  unlink(link->temporary_output);
  unlink(link->source_path);
  unlink(link->log_path);
  rmdir(link->folder);
}

/* ---- signals ---- */

static const Link *linking; /* what the handler removes */
static SignalWatch watch;

/* Only calls that may be made in a signal handler. What handled the signal before sees it next. */
static void end_linking(int number) {
  if (linking->child) kill(linking->child, SIGTERM);
  remove_temporaries(linking);
  restore_ending_signals(&watch);
  raise(number);
}

static bool write_and_compile(Link *link, const char *source, int64_t length) {
  const char *error;
  if (!file_write(link->arena, link->source_path, source, length, &error))
    return fail(link, EXIT_IO, memory_string(link->arena, error));
  if (!compile(link)) return false;
  if (rename(link->temporary_output, link->output) == 0) return true;
  return fail(link, EXIT_IO, memory_format(link->arena, "cannot write '%s': %s", link->output, strerror(errno)));
}

const char *find_include_path(const LinkOptions *options, MemoryArena *arena, ExitCode *exit_code, const char **error) {
  Link link = {.arena = arena, .exit_code = exit_code, .error = error};
  link.include_path = options->include_path;
  link.library_path = options->library_path;
  return find_runtime(&link) ? link.include_path : NULL;
}

bool link_executable(const char *source, int64_t length, const char *output, const LinkOptions *options,
                     MemoryArena *arena, ExitCode *exit_code, const char **error) {
  Link link = {.arena = arena, .exit_code = exit_code, .error = error};
  link.output = output[0] == '-' ? memory_format(arena, "./%s", output) : output;
  link.temporary_output = memory_format(arena, "%s.%ld.tmp", link.output, (long)getpid());
  link.compiler = first_set(options->compiler, getenv("REPRISE_CC"), getenv("CC"), REPRISE_DEFAULT_COMPILER);
  link.flags = first_set(options->flags, getenv("REPRISE_CFLAGS"), NULL, default_flags);
  link.include_path = options->include_path;
  link.library_path = options->library_path;
  *exit_code = EXIT_OK;
  *error = NULL;
  if (!find_runtime(&link) || !check_output(&link) || !make_folder(&link)) return false;
  linking = &link;
  watch_ending_signals(&watch, end_linking);
  bool linked = write_and_compile(&link, source, length);
  remove_temporaries(&link);
  restore_ending_signals(&watch);
  return linked;
}
