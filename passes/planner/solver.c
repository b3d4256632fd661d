/* passes/planner/solver.c - the order in which the solvers are tried. */
#include "passes/planner/solver.h"

#include "passes/planner/exact.h"

typedef struct Solver {
  MemoryArena *arena;
  const PlanGraph *graph;
  const SolveOptions *options;
  const SolveEvents *events;
  SolveResult result;
} Solver;

static void offer(Solver *solver, RunList runs) {
  Plan *plan = plan_from_runs(solver->arena, solver->graph, runs.items, runs.count);
  plan->budget = solver->options->budget;
  solver->result.best = plan;
  solver->events->plan(solver->events->context, plan);
}

SolveResult solve_plan(MemoryArena *arena, const PlanGraph *graph, const SolveOptions *options,
                       const SolveEvents *events) {
  Solver solver = {.arena = arena, .graph = graph, .options = options, .events = events};
  ExactResult exact = exact_plan(arena, graph, options->budget, 2000000);
  if (exact.status == EXACT_OPTIMAL) offer(&solver, exact.runs);
  events->bound(events->context, exact.bound, PLAN_SCOPE_ORDER);
  if (exact.status == EXACT_INFEASIBLE) {
    int64_t b;
    ExactResult small = exact_smallest(arena, graph, 2000000, &b);
    fprintf(stderr, "smallest %lld status %d states %lld\n", (long long)b, small.status, (long long)small.states);
  }
  fprintf(stderr, "exact %d states %lld\n", exact.status, (long long)exact.states);
  solver.result.reason = "optimal";
  return solver.result;
}
