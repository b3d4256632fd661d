/* passes/planner/bound_process.c - phase bounds in a child process. */
#include "passes/planner/bound_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void compute(const PlanGraph *graph, BoundOptions options, const int32_t *phases, int32_t count, int results) {
  for (int32_t i = 0; i < count; i++) {
    MemoryArena *arena = memory_arena_create();
    options.phases = phases[i];
    double bound = bound_cost(arena, graph, &options);
    memory_arena_destroy(arena);
    if (write(results, &bound, sizeof bound) != sizeof bound) return;
  }
}

BoundProcess bound_process_start(const PlanGraph *graph, const BoundOptions *options, const int32_t *phases,
                                 int32_t count) {
  int ends[2];
  if (pipe(ends) != 0) return (BoundProcess){0};
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGTERM, SIG_DFL);
    close(ends[0]);
    compute(graph, *options, phases, count, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (child > 0) return (BoundProcess){.child = child, .results = ends[0]};
  close(ends[0]);
  return (BoundProcess){0};
}

bool bound_process_next(BoundProcess *process, double *bound) {
  if (!process->child) return false;
  ssize_t got;
  do got = read(process->results, bound, sizeof *bound);
  while (got < 0 && errno == EINTR);
  return got == sizeof *bound;
}

void bound_process_end(BoundProcess *process) {
  if (!process->child) return;
  kill(process->child, SIGKILL);
  close(process->results);
  while (waitpid(process->child, NULL, 0) < 0 && errno == EINTR) continue;
  process->child = 0;
}
