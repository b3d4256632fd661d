/* codegen/pictures/layout.c - `dot` as a child: its library leaks and may crash, the program cannot hurt us. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/pictures/report.h"

enum { EXIT_NO_PROGRAM = 127 };

/* In the child: the alarm outlives exec and ends a layout that takes too long. */
static void run_dot(FILE *input, FILE *output, int seconds) {
  signal(SIGALRM, SIG_DFL);
  if (dup2(fileno(input), STDIN_FILENO) < 0 || dup2(fileno(output), STDOUT_FILENO) < 0) _exit(EXIT_NO_PROGRAM);
  if (!freopen("/dev/null", "w", stderr)) _exit(EXIT_NO_PROGRAM);
  alarm((unsigned)seconds);
  execlp("dot", "dot", "-Tsvg", (char *)NULL);
  _exit(EXIT_NO_PROGRAM);
}

static char *read_svg(MemoryArena *arena, FILE *file) {
  if (fseek(file, 0, SEEK_END) != 0) return NULL;
  long length = ftell(file);
  char *text = length < 0 ? NULL : memory_alloc(arena, length + 1);
  rewind(file);
  if (!text || fread(text, 1, (size_t)length, file) != (size_t)length) return NULL;
  return strstr(text, "<svg");
}

static const char *failure(MemoryArena *arena, int status, int seconds) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM)
    return "the program dot of Graphviz is not installed";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return memory_format(arena, "dot did not lay it out within %d seconds", seconds);
  return "dot could not lay it out";
}

char *layout_graph(MemoryArena *arena, const char *dot, int seconds, const char **note) {
  FILE *input = tmpfile(), *output = tmpfile();
  char *svg = NULL;
  int status = 0;
  *note = "no temporary file for dot could be written";
  if (input && output && fputs(dot, input) >= 0 && fflush(input) == 0) {
    rewind(input);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_dot(input, output, seconds);
    if (child > 0 && waitpid(child, &status, 0) == child) {
      svg = status == 0 ? read_svg(arena, output) : NULL;
      *note = svg ? NULL : failure(arena, status, seconds);
    }
  }
  if (input) fclose(input);
  if (output) fclose(output);
  return svg;
}
