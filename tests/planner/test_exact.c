/* tests/planner/test_exact.c - the solvers against known optima and against exhaustive search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "passes/planner/bound.h"
#include "passes/planner/exact.h"
#include "passes/planner/local_search.h"
#include "passes/planner/nested.h"
#include "passes/planner/replay.h"
#include "passes/planner/retain_ilp.h"
#include "passes/planner/solver.h"
#include "passes/planner/strategies.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/sample_graphs.h"

static void ignore_plan(void *context, const Plan *plan) { (void)context, (void)plan; }
static void ignore_bound(void *context, double bound, PlanScope scope) { (void)context, (void)bound, (void)scope; }
static void ignore_progress(void *context, const char *what) { (void)context, (void)what; }
static bool never(void *context) {
  (void)context;
  return false;
}

static SolveResult solve(MemoryArena *arena, const PlanGraph *graph, int64_t budget) {
  SolveOptions options = {.budget = budget};
  SolveEvents events = {NULL, ignore_plan, ignore_bound, ignore_progress, never};
  return solve_plan(arena, graph, &options, &events);
}

static void check_valid(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, int64_t budget) {
  Replay *replay = replay_plan(arena, graph, plan);
  replay_check_claims(arena, graph, plan, replay);
  if (replay->faults.count) fail_msg("%s", replay->faults.items[0]);
  assert_true(replay->peak <= budget);
}

/* ---- chain8: the table of the docs, to the unit ---- */

static void check_chain(bool inplace, const double *extra, int64_t smallest) {
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, inplace, NULL, NULL);
  for (int mib = 3; mib <= 11; mib++) {
    SolveResult result = solve(arena, graph, (int64_t)mib << 20);
    assert_non_null(result.best);
    check_valid(arena, graph, result.best, (int64_t)mib << 20);
    assert_int_equal(result.best->status, PLAN_STATUS_OPTIMAL);
    assert_true(result.best->cost - 16 == extra[mib]);
  }
  SolveResult result = solve(arena, graph, smallest - 1);
  assert_null(result.best);
  assert_true(result.proven_infeasible);
  assert_int_equal(result.smallest->peak, smallest);
  assert_int_equal(result.largest_impossible, smallest - 1);
  memory_arena_destroy(arena);
}

static void test_chain8(void **state) {
  (void)state;
  check_chain(false, (const double[]){0, 0, 0, 28, 9, 5, 4, 3, 2, 1, 0, 0}, 3145728);
}

static void test_chain8_inplace(void **state) {
  (void)state;
  check_chain(true, (const double[]){0, 0, 0, 10, 5, 4, 3, 2, 1, 0, 0, 0}, 3145728);
}

static void test_byte_edges(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  assert_true(solve(arena, graph, 10485760).best->cost == 16);
  assert_true(solve(arena, graph, 10485759).best->cost == 17);
  assert_true(solve(arena, graph, 3145728).best->cost == 44);
  assert_null(solve(arena, graph, 3145727).best);
  memory_arena_destroy(arena);
}

/* n(n-1)/2 recomputations where only one layer fits beside the gradients; nothing smaller exists. */
static void test_long_chain(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 60, false, NULL, NULL);
  RunList runs = nested_runs(arena, graph, 3 << 20);
  assert_int_equal(runs_profile(arena, graph, runs.items, runs.count, NULL), 3 << 20);
  assert_true(runs_cost(graph, runs.items, runs.count) == 120 + 60 * 59 / 2);
  assert_int_equal(bound_memory(arena, graph), 3 << 20);
  memory_arena_destroy(arena);
}

/* ---- random graphs against exhaustive search ---- */

static void compare_at(MemoryArena *arena, const PlanGraph *graph, int64_t budget) {
  double truth = brute_force_cost(graph, budget);
  SolveResult result = solve(arena, graph, budget);
  if (truth < 0) {
    assert_null(result.best);
    assert_true(result.proven_infeasible);
    assert_true(result.largest_impossible >= budget);
    if (result.smallest) assert_true(brute_force_cost(graph, result.smallest->peak - 1) < 0);
    return;
  }
  assert_non_null(result.best);
  check_valid(arena, graph, result.best, budget);
  assert_true(result.best->lower_bound <= truth + 1e-9);
  assert_int_equal(result.best->status, PLAN_STATUS_OPTIMAL);
  assert_true(fabs(result.best->cost - truth) < 1e-9);
}

static void test_random_graphs(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = random_graph(arena, seed, 2 + (int)(seed % 4));
    if (graph->storages.count - 2 <= 15) {
      Plan *keep = plan_keep_all(arena, graph);
      for (int tenth = 5; tenth <= 10; tenth++) compare_at(arena, graph, keep->peak * tenth / 10 + 1);
    }
    memory_arena_destroy(arena);
  }
}

static void test_random_chains(void **state) {
  (void)state;
  uint64_t random = 7;
  for (int length = 2; length <= 6; length++) {
    MemoryArena *arena = memory_arena_create();
    int64_t bytes[16];
    double costs[16];
    for (int i = 0; i <= length; i++) bytes[i] = 1 + random_below(&random, 9), costs[i] = 1 + random_below(&random, 5);
    PlanGraph *graph = chain_graph(arena, length, length & 1, bytes, costs);
    Plan *keep = plan_keep_all(arena, graph);
    for (int64_t budget = keep->peak / 3; budget <= keep->peak; budget += 2) compare_at(arena, graph, budget);
    memory_arena_destroy(arena);
  }
}

/* ---- each solver alone on the same graphs: what it offers is valid, what it proves is true ---- */

typedef struct Offers {
  MemoryArena *arena;
  const PlanGraph *graph;
  int64_t budget;
  double truth;
  int count;
} Offers;

static void check_offer(void *context, RunList runs) {
  Offers *offers = context;
  assert_true(runs_profile(offers->arena, offers->graph, runs.items, runs.count, NULL) <= offers->budget);
  assert_true(offers->truth >= 0 && runs_cost(offers->graph, runs.items, runs.count) >= offers->truth - 1e-9);
  check_valid(offers->arena, offers->graph, plan_from_runs(offers->arena, offers->graph, runs.items, runs.count),
              offers->budget);
  offers->count++;
}

static void check_solvers(Offers *offers) {
  const PlanGraph *graph = offers->graph;
  MemoryArena *arena = offers->arena;
  offers->truth = brute_force_cost(graph, offers->budget);
  RetainIlpOptions ilp = {
      .budget = offers->budget, .window = 20, .nodes = 1000, .work = 10000000, .gap = 1e-6, .cutoff = HUGE_VAL};
  RetainIlpEvents ilp_events = {offers, check_offer, never};
  retain_ilp_solve(arena, graph, &ilp, &ilp_events);
  LocalSearchOptions search = {.budget = offers->budget, .iterations = 500, .seed = 3, .heat = 1};
  LocalSearchEvents search_events = {offers, check_offer, never};
  local_search(arena, graph, plan_runs(arena, plan_keep_all(arena, graph)), &search, &search_events);
  RunList nested = nested_runs(arena, graph, offers->budget);
  if (nested.count) plan_from_runs(arena, graph, nested.items, nested.count);
  for (int32_t phases = 1; phases <= 5; phases += 2) {
    BoundOptions bound = {
        .budget = offers->budget, .phases = phases, .nodes = 1000, .work = 10000000, .target = HUGE_VAL};
    BoundWork work;
    double low = bound_cost(arena, graph, &bound, &work);
    if (offers->truth >= 0 && low > offers->truth + 1e-6) fail_msg("bound %g above the optimum %g", low, offers->truth);
  }
  assert_true(offers->truth < 0 || bound_memory(arena, graph) <= offers->budget);
}

static void test_solvers_alone(void **state) {
  (void)state;
  int offered = 0;
  for (uint64_t seed = 100; seed < 140; seed++) {
    MemoryArena *arena = memory_arena_create();
    Offers offers = {.arena = arena, .graph = random_graph(arena, seed, 3 + (int)(seed % 3))};
    if (offers.graph->storages.count - 2 <= 14) {
      int64_t peak = plan_keep_all(arena, offers.graph)->peak;
      for (int tenth = 6; tenth <= 9; tenth++) {
        offers.budget = peak * tenth / 10;
        check_solvers(&offers);
      }
    }
    offered += offers.count;
    memory_arena_destroy(arena);
  }
  assert_true(offered > 20);
}

/* ---- large graphs: equal layers are solved once ---- */

typedef struct Heard {
  int blocks, kinds; /* of the finest division; 0: none was heard of */
} Heard;

static void hear(void *context, const char *what) {
  Heard *heard = context;
  int blocks, kinds;
  if (!heard->blocks && sscanf(what, "%d blocks of %d kinds", &blocks, &kinds) == 2) *heard = (Heard){blocks, kinds};
}

static double simple_cost(MemoryArena *arena, const PlanGraph *graph, int64_t budget) {
  double best = HUGE_VAL;
  for (int s = PLAN_STRATEGY_NONE; s < PLAN_STRATEGY_COUNT; s++) {
    const char *error;
    bool usage;
    Plan *plan = plan_by_strategy(arena, graph, (PlanStrategy)s, budget, &error, &usage);
    if (plan && plan->peak <= budget) best = fmin(best, plan->cost);
  }
  return best;
}

static void test_large_graphs(void **state) {
  (void)state;
  for (int layers = 96; layers <= 480; layers *= 5) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = equal_layers_graph(arena, layers);
    int64_t peak = plan_keep_all(arena, graph)->peak;
    for (int tenth = 3; tenth <= 7; tenth += 4) {
      SolveOptions options = {.budget = peak * tenth / 10, .node_limit = 20};
      Heard heard = {0};
      SolveEvents events = {&heard, ignore_plan, ignore_bound, hear, never};
      SolveResult result = solve_plan(arena, graph, &options, &events);
      assert_non_null(result.best);
      check_valid(arena, graph, result.best, options.budget);
      assert_true(result.best->cost <= simple_cost(arena, graph, options.budget));
      assert_true(result.best->lower_bound > graph->base_cost);
      assert_true(result.best->cost - result.best->lower_bound < 0.02 * result.best->cost);
      assert_true(heard.blocks >= layers / 2 && heard.kinds > 0 && heard.kinds <= 6);
      if (layers > 96 || tenth > 3) continue;
      SolveResult again = solve_plan(arena, graph, &options, &events);
      assert_string_equal(plan_text(arena, graph, result.best, true), plan_text(arena, graph, again.best, true));
    }
    memory_arena_destroy(arena);
  }
}

/* Bounds that count from each phase on (Q) see through what a linear relaxation would split between phases. */
static void test_equal_layers_bound(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = equal_layers_graph(arena, 12);
  int64_t budget = plan_keep_all(arena, graph)->peak / 2;
  SolveResult result = solve(arena, graph, budget);
  BoundOptions options = {.budget = budget, .phases = 6, .nodes = 1, .work = 100000000, .target = HUGE_VAL};
  BoundWork work;
  double bound = bound_cost(arena, graph, &options, &work);
  assert_true(bound <= result.best->cost + 1e-9);
  assert_true(bound > graph->base_cost + 0.8 * (result.best->cost - graph->base_cost));
  assert_true(work.root > 0 && work.root <= work.all);
  memory_arena_destroy(arena);
}

/* The same graph and options give the same plan, byte for byte. */
static void test_deterministic(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 50, false, NULL, NULL);
  SolveOptions options = {.budget = 20 << 20, .node_limit = 50};
  SolveEvents events = {NULL, ignore_plan, ignore_bound, ignore_progress, never};
  SolveResult first = solve_plan(arena, graph, &options, &events), second = solve_plan(arena, graph, &options, &events);
  assert_string_equal(plan_text(arena, graph, first.best, false), plan_text(arena, graph, second.best, false));
  assert_true(first.best->cost == 100 + 52 - 20);
  memory_arena_destroy(arena);
}

/* keep and recompute bind every solver, on small graphs and on those that are searched. */
static void test_decisions(void **state) {
  (void)state;
  for (int length = 8; length <= 48; length += 40) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = chain_graph(arena, length, false, NULL, NULL);
    graph->storages.items[plan_graph_storage(graph, "h3")].decision = PLAN_KEEP;
    graph->storages.items[plan_graph_storage(graph, "h5")].decision = PLAN_RECOMPUTE;
    graph->storages.items[plan_graph_storage(graph, "h6")].decision = PLAN_RECOMPUTE;
    for (int64_t budget = length / 2; budget <= length + 2; budget += 5) {
      SolveResult result = solve(arena, graph, budget << 20);
      int32_t storage;
      assert_non_null(result.best);
      check_valid(arena, graph, result.best, budget << 20);
      assert_true(plan_obeys_decisions(arena, graph, result.best, &storage));
      assert_true(result.best->cost >= graph->base_cost + 2);
    }
    memory_arena_destroy(arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain8),
                                     cmocka_unit_test(test_chain8_inplace),
                                     cmocka_unit_test(test_byte_edges),
                                     cmocka_unit_test(test_long_chain),
                                     cmocka_unit_test(test_random_graphs),
                                     cmocka_unit_test(test_random_chains),
                                     cmocka_unit_test(test_solvers_alone),
                                     cmocka_unit_test(test_deterministic),
                                     cmocka_unit_test(test_decisions),
                                     cmocka_unit_test(test_large_graphs),
                                     cmocka_unit_test(test_equal_layers_bound)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
