/* tests/planner/test_exhaustive.c - chains and graphs with everything in them, against exhaustive search: `optimal` is
 * optimal, no bound is above the true optimum, and where a schedule exists one is found.
 *
 * usage: planner_exhaustive [FIRST LAST]: seeds of the random graphs (1 8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "passes/planner/bound.h"
#include "passes/planner/exact.h"
#include "passes/planner/replay.h"
#include "passes/planner/solver.h"
#include "tests/planner/brute_force.h"
#include "tests/planner/exhaustive.h"
#include "tests/planner/sample_graphs.h"

static uint64_t first_seed = 1, last_seed = 8;

static void ignore_plan(void *context, const Plan *plan) { (void)context, (void)plan; }
static void ignore_progress(void *context, const char *what) { (void)context, (void)what; }
static bool never(void *context) {
  (void)context;
  return false;
}

typedef struct Case {
  const char *name;
  const PlanGraph *graph;
  int64_t budget;
  double truth; /* least cost; -1 when nothing fits */
} Case;

/* Every bound that the planner announces while it searches. */
static void check_bound(void *context, double bound, PlanScope scope) {
  const Case *test = context;
  (void)scope;
  if (test->truth >= 0 && bound > test->truth + 1e-9)
    fail_msg("%s at %lld: bound %g above the optimum %g", test->name, (long long)test->budget, bound, test->truth);
}

static void check_plan(MemoryArena *arena, const Case *test, const Plan *plan) {
  Replay *replay = replay_plan(arena, test->graph, plan);
  replay_check_claims(arena, test->graph, plan, replay);
  if (replay->faults.count) fail_msg("%s: %s", test->name, replay->faults.items[0]);
  assert_true(replay->peak <= test->budget);
  check_bound((void *)test, plan->lower_bound, plan->scope);
  if (plan->cost < test->truth - 1e-9)
    fail_msg("%s: cost %g below the optimum %g", test->name, plan->cost, test->truth);
  if (plan->status == PLAN_STATUS_OPTIMAL && plan->cost > test->truth + 1e-9)
    fail_msg("%s at %lld: %g is called optimal, the optimum is %g", test->name, (long long)test->budget, plan->cost,
             test->truth);
}

/* Returns whether the planner proved its answer. */
static bool compare_at(const Case *test) {
  MemoryArena *arena = memory_arena_create();
  SolveOptions options = {.budget = test->budget};
  SolveEvents events = {(void *)test, ignore_plan, check_bound, ignore_progress, never};
  SolveResult result = solve_plan(arena, test->graph, &options, &events);
  if (test->truth >= 0 && !result.best)
    fail_msg("%s at %lld: no plan, the optimum is %g", test->name, (long long)test->budget, test->truth);
  if (test->truth < 0) assert_null(result.best);
  if (result.best) check_plan(arena, test, result.best);
  bool proven = result.best ? result.best->status == PLAN_STATUS_OPTIMAL : result.proven_infeasible;
  memory_arena_destroy(arena);
  return proven;
}

/* The bounds of the integer programs, which small graphs do not need. */
static void check_bounds_alone(const Case *test) {
  MemoryArena *arena = memory_arena_create();
  for (int32_t phases = 1; phases <= 4; phases += 3) {
    BoundOptions options = {
        .budget = test->budget, .phases = phases, .nodes = 200, .work = 2000000, .target = HUGE_VAL};
    BoundWork work;
    if (test->truth >= 0) check_bound((void *)test, bound_cost(arena, test->graph, &options, &work), PLAN_SCOPE_ORDER);
  }
  memory_arena_destroy(arena);
}

/* From just below the smallest budget to keep-everything. Counts the budgets and the proven answers. */
static void compare_graph(const char *name, const PlanGraph *graph, int budgets, int *count, int *proven) {
  MemoryArena *arena = memory_arena_create();
  int64_t smallest = exhaustive_smallest(graph), peak = plan_keep_all(arena, graph)->peak;
  assert_true(bound_memory(arena, graph) <= smallest);
  Case test = {.name = name, .graph = graph, .budget = smallest - 1, .truth = -1};
  if (smallest > graph->persistent_bytes) {
    MemoryArena *scratch = memory_arena_create();
    SolveOptions options = {.budget = smallest - 1};
    SolveEvents events = {&test, ignore_plan, check_bound, ignore_progress, never};
    SolveResult result = solve_plan(scratch, graph, &options, &events);
    assert_null(result.best);
    assert_true(result.proven_infeasible);
    assert_int_equal(result.largest_impossible, smallest - 1);
    assert_int_equal(result.smallest->peak, smallest);
    memory_arena_destroy(scratch);
  }
  for (int i = 0; i <= budgets; i++) {
    test.budget = smallest + (peak - smallest) * i / budgets;
    test.truth = exhaustive_cost(graph, test.budget);
    assert_true(test.truth >= graph->base_cost - 1e-9);
    *proven += compare_at(&test);
    (*count)++;
    check_bounds_alone(&test);
  }
  memory_arena_destroy(arena);
}

/* ---- the searches against each other ---- */

static void test_searches_agree(void **state) {
  (void)state;
  int compared = 0;
  for (uint64_t seed = 1000; seed < 1060; seed++) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = random_graph(arena, seed, 2 + (int)(seed % 3));
    if (graph->storages.count - 2 <= 13) {
      int64_t peak = plan_keep_all(arena, graph)->peak;
      for (int eighth = 3; eighth <= 8; eighth++, compared++) {
        double simple = brute_force_cost(graph, peak * eighth / 8), fast = exhaustive_cost(graph, peak * eighth / 8);
        if (simple != fast) fail_msg("seed %d: %g and %g", (int)seed, simple, fast);
      }
    }
    memory_arena_destroy(arena);
  }
  assert_true(compared > 100);
}

/* ---- chains of 2 to 12 layers, random sizes and costs ---- */

static void test_chains(void **state) {
  (void)state;
  int count = 0, proven = 0;
  for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
    uint64_t random = seed;
    for (int length = 2; length <= 12; length++) {
      MemoryArena *arena = memory_arena_create();
      int64_t bytes[16];
      double costs[16];
      for (int i = 0; i <= length; i++) bytes[i] = random_below(&random, 100), costs[i] = 1 + random_below(&random, 20);
      const char *name = memory_format(arena, "chain %d of seed %llu", length, (unsigned long long)seed);
      compare_graph(name, chain_graph(arena, length, (seed + (uint64_t)length) & 1, bytes, costs), 4, &count, &proven);
      memory_arena_destroy(arena);
    }
  }
  print_message("chains: %d budgets, %d answers proven\n", count, proven);
  assert_int_equal(proven, count);
}

/* ---- graphs of up to 9 forward nodes ---- */

static void test_graphs(void **state) {
  (void)state;
  int count = 0, proven = 0;
  for (uint64_t seed = first_seed; seed <= last_seed; seed++)
    for (int forward = 6; forward <= 9; forward++) {
      MemoryArena *arena = memory_arena_create();
      PlanGraph *graph = random_graph(arena, seed * 100 + (uint64_t)forward, forward);
      const char *name = memory_format(arena, "graph %d of seed %llu", forward, (unsigned long long)seed);
      compare_graph(name, graph, 4, &count, &proven);
      memory_arena_destroy(arena);
    }
  print_message("graphs: %d budgets, %d answers proven\n", count, proven);
  assert_int_equal(proven, count);
}

/* ---- bounds where memory rises and falls between stages: what is held for a further run, and what must then be there
 * ---- */

static void test_bounds(void **state) {
  (void)state;
  int sharp = 0;
  for (uint64_t seed = 400 * first_seed; seed < 400 * (last_seed + 1); seed++) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = uneven_graph(arena, seed);
    int64_t smallest = exhaustive_smallest(graph), peak = plan_keep_all(arena, graph)->peak;
    for (int64_t budget = smallest; budget < peak; budget++) {
      double truth = exhaustive_cost(graph, budget);
      for (int32_t phases = 1; phases <= 5; phases++) {
        BoundOptions options = {.budget = budget, .phases = phases, .nodes = 200, .work = 2000000, .target = HUGE_VAL};
        BoundWork work;
        double bound = bound_cost(arena, graph, &options, &work);
        sharp += bound > graph->base_cost;
        if (bound > truth + 1e-6)
          fail_msg("seed %llu, %d phases at %lld: bound %g above the optimum %g", (unsigned long long)seed, (int)phases,
                   (long long)budget, bound, truth);
      }
    }
    memory_arena_destroy(arena);
  }
  assert_true(sharp > 100);
}

int main(int count, char **values) {
  if (count == 3) first_seed = strtoull(values[1], NULL, 10), last_seed = strtoull(values[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_searches_agree), cmocka_unit_test(test_chains),
                                     cmocka_unit_test(test_graphs), cmocka_unit_test(test_bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
