/* passes/planner/solver.c - the order in which the solvers are tried, and what is known at each moment. */
#include "passes/planner/solver.h"

#include <math.h>
#include <time.h>

#include "passes/planner/block_plan.h"
#include "passes/planner/bound_process.h"
#include "passes/planner/exact.h"
#include "passes/planner/local_search.h"
#include "passes/planner/nested.h"
#include "passes/planner/retain_ilp.h"
#include "passes/planner/strategies.h"

/* Work limits. A unit of work is some thirty nanoseconds. */
enum {
  EXACT_STATES = 200000,  /* states of the exact search */
  SEARCH_WORK = 30000000, /* nodes x moves of a round of local search, at most */
  SEARCH_MOVES = 400,     /* moves per node of a round, at most */
  SEARCH_ROUNDS = 9,
  ALL_SEARCH_WORK = 180000000,  /* of all rounds, counted by the runs of plans: less where much is recomputed */
  BISECTIONS = 12,              /* of the budget, when the smallest one is sought */
  ILP_WINDOW = 20,              /* grid points, at most */
  ILP_SIZE = 9000,              /* grid points x forward nodes: the window of large graphs is smaller */
  MOST_ILP_NODES = 1500,        /* nodes of a graph for the integer program */
  ILP_NODES = 2000,             /* branch-and-bound nodes by default */
  ILP_WORK = 110000000,         /* of the integer program (mip.h) */
  BOUND_NODES = 2000,           /* branch-and-bound nodes of a lower bound, at most */
  BOUND_WORK = 150000000,       /* of a lower bound, at most */
  BOUND_WORK_PER_NODE = 800000, /* forward node */
  BOUND_SIZE = 9000,            /* phases x forward nodes of the sharper lower bounds */
  LARGE_GRAPH = 300,            /* nodes: planned block by block too */
  HUGE_GRAPH = 10000            /* nodes: neither programs nor nested recomputation, whose set-up is quadratic */
};

/* A gap that no longer matters: a hundredth of a per cent of the step. */
static const double default_gap = 1e-4;
/* Below this gap the integer program, slow on large graphs with loose budgets, is not worth its time. */
static const double worthwhile_gap = 5e-4;

typedef struct Solver {
  MemoryArena *arena;
  const PlanGraph *graph;
  const SolveOptions *options;
  const SolveEvents *events;
  SolveResult result;
  RunList runs; /* of the best plan, or of the smallest peak while there is none */
  int64_t peak; /* of runs */
  double bound; /* on the cost of any schedule in this order */
  BoundProcess bounds;
  bool any_order; /* the bound is the base cost, which holds for every schedule */
  double deadline;
  bool timed_out;
} Solver;

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool should_stop(void *context) {
  Solver *solver = context;
  if (solver->options->seconds > 0 && now_seconds() > solver->deadline) solver->timed_out = true;
  return solver->timed_out || solver->events->interrupted(solver->events->context);
}

static void say(Solver *solver, const char *what) { solver->events->progress(solver->events->context, what); }

static void copy_runs(Solver *solver, RunList runs) {
  solver->runs.count = 0;
  for (int64_t i = 0; i < runs.count; i++) array_push(solver->arena, &solver->runs, runs.items[i]);
}

static bool is_optimal(const Solver *solver) {
  const Plan *best = solver->result.best;
  return best && plan_status_of(best->cost, solver->bound) == PLAN_STATUS_OPTIMAL;
}

static double gap_of(const Solver *solver) {
  const Plan *best = solver->result.best;
  if (!best) return HUGE_VAL;
  return best->cost > 0 ? (best->cost - solver->bound) / best->cost : 0;
}

static void describe(Solver *solver, Plan *plan) {
  plan->budget = solver->options->budget;
  plan->strategy = plan_strategy_name(PLAN_STRATEGY_ILP);
  plan->lower_bound = fmin(solver->bound, plan->cost);
  plan->scope = solver->any_order ? PLAN_SCOPE_ANY : PLAN_SCOPE_ORDER;
  plan->status = plan_status_of(plan->cost, plan->lower_bound);
}

/* A sequence found by any solver: becomes the best plan when it fits and is cheaper, and until something fits the one
 * of smallest peak is remembered. */
static void offer(void *context, RunList runs) {
  Solver *solver = context;
  MemoryArena *scratch = memory_arena_create();
  int64_t peak = runs_profile(scratch, solver->graph, runs.items, runs.count, NULL);
  double cost = runs_cost(solver->graph, runs.items, runs.count);
  const Plan *best = solver->result.best;
  bool fits = peak <= solver->options->budget;
  bool better =
      fits ? !best || cost < best->cost - 1e-12 * best->cost : !best && (!solver->runs.count || peak < solver->peak);
  int32_t storage;
  if (better)
    better = plan_obeys_decisions(scratch, solver->graph,
                                  plan_from_runs(scratch, solver->graph, runs.items, runs.count), &storage);
  memory_arena_destroy(scratch);
  if (!better) return;
  copy_runs(solver, runs);
  solver->peak = peak;
  if (!fits) return;
  Plan *plan = plan_from_runs(solver->arena, solver->graph, runs.items, runs.count);
  describe(solver, plan);
  if (plan->status != PLAN_STATUS_OPTIMAL) plan->stopped_by = "still searching";
  solver->result.best = plan;
  solver->events->plan(solver->events->context, plan);
}

static void raise_bound(Solver *solver, double bound) {
  if (solver->result.best) bound = fmin(bound, solver->result.best->cost);
  if (bound <= solver->bound) return;
  solver->bound = bound;
  solver->any_order = false;
  solver->events->bound(solver->events->context, bound, PLAN_SCOPE_ORDER);
}

static bool done(Solver *solver) {
  return should_stop(solver) || (solver->result.best && gap_of(solver) <= default_gap);
}

/* ---- the solvers ---- */

/* Bounds are about schedules in the order of the graph. */
static bool keeps_order(RunList runs) {
  int32_t done = 0;
  for (int64_t k = 0; k < runs.count; k++) {
    if (runs.items[k] > done) return false;
    done += runs.items[k] == done;
  }
  return true;
}

static void try_incumbent(Solver *solver) {
  if (!solver->options->incumbent) return;
  RunList runs = plan_runs(solver->arena, solver->options->incumbent);
  if (keeps_order(runs))
    offer(solver, runs);
  else
    say(solver, "the given plan runs the nodes in another order than the graph: not used");
}

/* Returns false when the source's constraints contradict each other. */
static bool try_strategies(Solver *solver) {
  static const PlanStrategy order[] = {PLAN_STRATEGY_NONE, PLAN_STRATEGY_GREEDY, PLAN_STRATEGY_SQRT,
                                       PLAN_STRATEGY_BLOCKS, PLAN_STRATEGY_SELECTIVE};
  for (size_t i = 0; i < sizeof order / sizeof *order && !done(solver); i++) {
    const char *error;
    bool usage;
    MemoryArena *scratch = memory_arena_create();
    Plan *plan = plan_by_strategy(scratch, solver->graph, order[i], solver->options->budget, &error, &usage);
    if (plan) offer(solver, plan_runs(scratch, plan));
    if (!plan && !usage) solver->result.reason = memory_string(solver->arena, error);
    memory_arena_destroy(scratch);
    if (!plan && !usage) return false;
  }
  return true;
}

static bool is_huge(const Solver *solver) { return solver->graph->nodes.count > HUGE_GRAPH; }

static void try_nested(Solver *solver, int64_t budget) {
  if (is_huge(solver)) return;
  MemoryArena *scratch = memory_arena_create();
  RunList runs = nested_runs(scratch, solver->graph, budget);
  if (runs.count) offer(solver, runs);
  memory_arena_destroy(scratch);
}

/* Block by block, from small blocks to large ones, in which more can be dropped. */
static void try_blocks(Solver *solver) {
  static const int32_t fewest[] = {4, 12, 40};
  for (size_t i = 0; i < sizeof fewest / sizeof *fewest && !done(solver); i++) {
    MemoryArena *scratch = memory_arena_create();
    BlockPlan found = block_plan(scratch, solver->graph, solver->options->budget, fewest[i]);
    if (found.kinds) say(solver, memory_format(scratch, "%d blocks of %d kinds", found.blocks, found.kinds));
    if (found.runs.count) offer(solver, found.runs);
    memory_arena_destroy(scratch);
  }
}

/* Exact search; returns true when it settled the question. */
static bool try_exact(Solver *solver) {
  MemoryArena *scratch = memory_arena_create();
  ExactResult exact = exact_plan(scratch, solver->graph, solver->options->budget, EXACT_STATES);
  if (exact.status == EXACT_OPTIMAL) offer(solver, exact.runs);
  if (exact.status == EXACT_INFEASIBLE) solver->result.proven_infeasible = true;
  if (exact.status != EXACT_INFEASIBLE) raise_bound(solver, exact.bound);
  memory_arena_destroy(scratch);
  return exact.status == EXACT_INFEASIBLE || done(solver);
}

static void try_ilp(Solver *solver) {
  MemoryArena *scratch = memory_arena_create();
  const SolveOptions *options = solver->options;
  RetainIlpOptions ilp = {.budget = options->budget, .window = ILP_WINDOW, .gap = 1e-4, .work = ILP_WORK};
  int32_t fitting = ILP_SIZE / (solver->graph->first_stage + 1);
  if (fitting < ILP_WINDOW) ilp.window = fitting > 4 ? fitting : 4;
  ilp.nodes = options->node_limit ? options->node_limit : ILP_NODES;
  ilp.cutoff = solver->result.best ? solver->result.best->cost : HUGE_VAL;
  RetainIlpEvents events = {.context = solver, .found = offer, .stop = should_stop};
  say(solver, "integer program");
  retain_ilp_solve(scratch, solver->graph, &ilp, &events);
  memory_arena_destroy(scratch);
}

static double best_cost(const Solver *solver) { return solver->result.best ? solver->result.best->cost : HUGE_VAL; }

/* The phase bounds in ascending sharpness; large graphs get fewer phases. */
static void start_bounds(Solver *solver) {
  static const int32_t phases[] = {1, 4, 8, 16, 24, 32};
  int32_t count = 1;
  while (count < 6 && (int64_t)phases[count] * solver->graph->first_stage <= BOUND_SIZE) count++;
  BoundOptions options = {.budget = solver->options->budget, .nodes = BOUND_NODES, .work = BOUND_WORK};
  int64_t work = (int64_t)BOUND_WORK_PER_NODE * solver->graph->first_stage;
  if (work < options.work) options.work = work;
  options.target = best_cost(solver);
  solver->bounds = bound_process_start(solver->graph, &options, phases, count);
}

/* False when there is no further bound. */
static bool take_bound(Solver *solver) {
  double bound;
  if (should_stop(solver) || !bound_process_next(&solver->bounds, &bound)) return false;
  if (bound == HUGE_VAL && !solver->result.best) solver->result.proven_infeasible = true;
  if (bound < HUGE_VAL) raise_bound(solver, bound);
  return true;
}

/* Moves of a whole round. */
static int64_t round_moves(const Solver *solver) {
  int64_t nodes = solver->graph->nodes.count, most = SEARCH_WORK / (nodes + 100);
  return SEARCH_MOVES * nodes < most ? SEARCH_MOVES * nodes : most;
}

static void try_search(Solver *solver, int64_t budget, uint64_t seed, double heat, int64_t moves) {
  MemoryArena *scratch = memory_arena_create();
  LocalSearchOptions options = {.budget = budget, .seed = seed, .heat = heat, .iterations = moves};
  LocalSearchEvents events = {.context = solver, .found = offer, .stop = should_stop};
  RunList lowest = local_search(scratch, solver->graph, solver->runs, &options, &events);
  if (!solver->result.best) offer(solver, lowest);
  memory_arena_destroy(scratch);
}

/* Rounds without a better plan before the search gives up: fewer the less there is to win. */
static int patience(const Solver *solver) {
  double gap = gap_of(solver);
  return gap < 1e-3 ? 1 : gap < 1e-2 ? 2 : 3;
}

/* A short round of local search, then whole ones from the best plan, with the integer program after the second. */
static void search_rounds(Solver *solver) {
  static const double heats[] = {1.0, 0.5, 2.0, 1.0, 0.3};
  int64_t work = 0;
  int idle = 0;
  for (uint64_t round = 1; round <= SEARCH_ROUNDS && work < ALL_SEARCH_WORK && !done(solver); round++) {
    double before = best_cost(solver);
    int64_t moves = round == 1 ? round_moves(solver) / 4 : round_moves(solver);
    work += moves * (solver->runs.count + 100);
    say(solver, "local search");
    try_search(solver, solver->options->budget, round, heats[round % 5], moves);
    if (round == 1) start_bounds(solver);
    if (!done(solver)) take_bound(solver);
    if (round == 2 && !done(solver) && solver->graph->nodes.count <= MOST_ILP_NODES && gap_of(solver) > worthwhile_gap)
      try_ilp(solver);
    if (solver->result.proven_infeasible) break;
    idle = best_cost(solver) < before || !solver->result.best ? 0 : idle + (round > 1);
    if (idle >= patience(solver)) break;
  }
  while (!done(solver) && take_bound(solver)) continue;
  bound_process_end(&solver->bounds);
}

static void improve(Solver *solver) {
  if (solver->graph->nodes.count > LARGE_GRAPH) try_blocks(solver);
  say(solver, "nested recomputation");
  try_nested(solver, solver->options->budget);
  search_rounds(solver);
}

/* ---- the answer ---- */

/* The plan of smallest peak: exactly where the graph is small, else by bisecting the budget of the nested
 * recomputation. */
static void find_smallest(Solver *solver) {
  SolveResult *result = &solver->result;
  int64_t low = bound_memory(solver->arena, solver->graph) - 1, smallest = 0;
  MemoryArena *scratch = memory_arena_create();
  ExactResult exact = exact_smallest(scratch, solver->graph, EXACT_STATES, &smallest);
  if (exact.status == EXACT_OPTIMAL) offer(solver, exact.runs);
  if (exact.status != EXACT_TOO_LARGE && smallest - 1 > low) low = smallest - 1;
  memory_arena_destroy(scratch);
  if (result->proven_infeasible && solver->options->budget > low) low = solver->options->budget;
  result->largest_impossible = low;
  try_nested(solver, low + 1);
  int64_t high = solver->peak;
  for (int step = 0; step < BISECTIONS && high > low + 1 && exact.status != EXACT_OPTIMAL; step++) {
    int64_t middle = low + (high - low) / 2;
    try_nested(solver, middle);
    if (solver->peak <= middle)
      high = solver->peak;
    else
      low = middle;
  }
  for (uint64_t seed = 1; seed <= 3 && solver->peak > result->largest_impossible + 1 && !should_stop(solver); seed++)
    try_search(solver, result->largest_impossible + 1, seed, 0.5, round_moves(solver));
}

static void finish_infeasible(Solver *solver) {
  SolveResult *result = &solver->result;
  if (!solver->runs.count) return;
  find_smallest(solver);
  if (result->best) return; /* the smallest plan fits after all */
  result->smallest = plan_from_runs(solver->arena, solver->graph, solver->runs.items, solver->runs.count);
  result->smallest->strategy = plan_strategy_name(PLAN_STRATEGY_ILP);
}

static const char *why_stopped(const Solver *solver) {
  if (solver->events->interrupted(solver->events->context)) return "interrupted";
  if (solver->timed_out) return "wall-clock limit";
  if (gap_of(solver) <= default_gap) return "the gap is small enough";
  return "work limit";
}

static void finish(Solver *solver) {
  SolveResult *result = &solver->result;
  if (!result->best) finish_infeasible(solver);
  if (!result->best) {
    if (!result->reason) result->reason = result->proven_infeasible ? "infeasible" : why_stopped(solver);
    return;
  }
  result->reason = is_optimal(solver) ? "optimal" : why_stopped(solver);
  describe(solver, result->best);
  result->best->stopped_by = is_optimal(solver) ? NULL : result->reason;
  solver->events->plan(solver->events->context, result->best);
}

SolveResult solve_plan(MemoryArena *arena, const PlanGraph *graph, const SolveOptions *options,
                       const SolveEvents *events) {
  Solver solver = {.arena = arena, .graph = graph, .options = options, .events = events, .bound = graph->base_cost};
  solver.any_order = true;
  solver.result.largest_impossible = -1;
  solver.deadline = now_seconds() + options->seconds;
  try_incumbent(&solver);
  if (!try_strategies(&solver))
    solver.result.proven_infeasible = true;
  else if (!done(&solver) && bound_memory(arena, graph) > options->budget)
    solver.result.proven_infeasible = true;
  else if (!done(&solver) && !try_exact(&solver))
    improve(&solver);
  finish(&solver);
  return solver.result;
}
