/* passes/planner/solver.c - the order in which the solvers are tried. */
#include "passes/planner/solver.h"

#include <stdlib.h>
#include "passes/planner/exact.h"
#include "passes/planner/local_search.h"
#include "passes/planner/retain_ilp.h"

typedef struct Solver {
  MemoryArena *arena;
  const PlanGraph *graph;
  const SolveOptions *options;
  const SolveEvents *events;
  SolveResult result;
} Solver;

static void offer(void *ctx, RunList runs) {
  Solver *solver = ctx;
  double cost = runs_cost(solver->graph, runs.items, runs.count);
  if (solver->result.best && solver->result.best->cost <= cost) return;
  Plan *plan = plan_from_runs(solver->arena, solver->graph, runs.items, runs.count);
  plan->budget = solver->options->budget;
  solver->result.best = plan;
  fprintf(stderr, "found %.4f%%\n", 100 * (plan->cost / plan->base_cost - 1));
  solver->events->plan(solver->events->context, plan);
}
static bool stop(void *ctx) {
  Solver *s = ctx;
  return s->events->interrupted(s->events->context);
}

SolveResult solve_plan(MemoryArena *arena, const PlanGraph *graph, const SolveOptions *options,
                       const SolveEvents *events) {
  Solver solver = {.arena = arena, .graph = graph, .options = options, .events = events};
  RetainIlpOptions o = {.budget = options->budget, .window = 20, .nodes = 100000, .iterations = 10000000, .gap = 1e-4};
  RetainIlpEvents e = {.context = &solver, .found = offer, .stop = stop};
  retain_ilp_solve(arena, graph, &o, &e);
  LocalSearchEvents le = {.context = &solver, .found = offer, .stop = stop};
  for (int k = 1; k <= 4 && solver.result.best; k++) {
    LocalSearchOptions lo = {.budget = options->budget,
                             .iterations = atoi(getenv("LS") ? getenv("LS") : "100000"),
                             .seed = (uint64_t)k,
                             .heat = atof(getenv("HEAT") ? getenv("HEAT") : "0.5")};
    local_search(arena, graph, plan_runs(arena, solver.result.best), &lo, &le);
    fprintf(stderr, "ls round %d: %.4f%%\n", k, 100 * (solver.result.best->cost / solver.result.best->base_cost - 1));
  }
  solver.result.reason = "optimal";
  return solver.result;
}
