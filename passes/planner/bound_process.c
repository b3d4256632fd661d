/* passes/planner/bound_process.c - phase bounds in a child process. */
#include "passes/planner/bound_process.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  MOST_ROUNDS = 3,      /* bounds that may use up their work */
  FIRST_SHARE = 8,      /* the bound of one phase, often the only one of a large graph, may do more */
  BRANCH_SIZE = 600000, /* branch-and-bound nodes x phases x forward nodes */
  FEWEST_NODES = 100
};
static const double LEAST_RISE = 1e-5;

static int64_t most_nodes(const PlanGraph *graph, int64_t limit, int32_t phases) {
  int64_t nodes = BRANCH_SIZE / ((int64_t)phases * graph->first_stage + 1);
  if (nodes < FEWEST_NODES) nodes = FEWEST_NODES;
  return nodes < limit ? nodes : limit;
}

/* Ends when the bound has reached the target, has not risen twice in a row, or when the work is done: after a
 * relaxation that took half of it, one of more phases would not come to an end. */
static void compute(const PlanGraph *graph, BoundOptions options, const int32_t *phases, int32_t count, int results) {
  double best = graph->base_cost;
  int64_t limit = options.nodes, each = options.work, left = MOST_ROUNDS * each;
  for (int32_t i = 0, idle = 0; i < count && idle < 2 && left > 0 && best < options.target; i++) {
    MemoryArena *arena = memory_arena_create();
    BoundWork work;
    options.phases = phases[i];
    options.nodes = most_nodes(graph, limit, phases[i]);
    options.work = phases[i] == 1 ? FIRST_SHARE * each : each < left ? each : left;
    double bound = bound_cost(arena, graph, &options, &work);
    memory_arena_destroy(arena);
    if (write(results, &bound, sizeof bound) != sizeof bound) return;
    idle = bound > best * (1 + LEAST_RISE) ? 0 : idle + (i > 1);
    best = fmax(best, bound);
    if (phases[i] > 1) left = 2 * work.root > options.work ? 0 : left - work.all;
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
    close(STDOUT_FILENO); /* who reads the planner's lines must see their end when the planner dies */
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
