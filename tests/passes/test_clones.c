/* Random plans: nodes run again anywhere behind the loss become clones, and the graph with clones gives the same bits,
 * out of an arena whose freed bytes are poisoned, with the peak that the planner's own replay finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_run.h"
#include "passes/rematerialize.h"
#include "random_graph.h"

enum { GRAPHS = 300 };

/* Every node once in order; behind the first stage, before a node, now and then one that has run and may run again. */
static RunList random_runs(MemoryArena *arena, const PlanGraph *graph, Random *random) {
  RunList runs = {0};
  for (int32_t node = 0; node < graph->nodes.count; node++) {
    for (int tries = random_below(random, 4); tries > 0 && node > graph->first_stage; tries--) {
      int32_t again = random_below(random, node);
      if (plan_graph_may_rerun(graph, again, node)) array_push(arena, &runs, again);
    }
    array_push(arena, &runs, node);
  }
  return runs;
}

static int64_t count_clones(const Graph *graph) {
  int64_t count = 0;
  for (int64_t i = 0; i < graph->nodes.count; i++)
    count += graph->nodes.items[i].original != NO_NODE && op_kind(graph->nodes.items[i].op) != KIND_VIEW;
  return count;
}

static void check_plan(MemoryArena *arena, Graph *graph, uint64_t seed, const Results *expected, int64_t *clones) {
  StorageTable *table = assign_storages(graph, 64, arena);
  Schedule *schedule = order_graph(graph, table, arena);
  table = place_parts(graph, table, &schedule, arena);
  double *costs = NEW_ARRAY(arena, double, graph->nodes.count);
  for (int64_t i = 0; i < graph->nodes.count; i++) costs[i] = 1;
  PlanningProblem *problem = state_problem(graph, table, schedule, costs, arena);
  Random random = {seed};
  RunList runs = random_runs(arena, problem->plan_graph, &random);
  Plan *plan = plan_from_runs(arena, problem->plan_graph, runs.items, runs.count);
  CompiledGraph compiled = insert_clones(graph, table, problem, plan, arena);
  const char *fault = graph_verify(arena, compiled.graph);
  if (fault) fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
  fault = replay_schedule(compiled.graph, compiled.table, compiled.schedule, NULL, arena);
  if (fault) fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
  assert_int_equal(compiled.schedule->live_peak, plan->peak);
  assert_int_equal(count_clones(compiled.graph), runs.count - problem->plan_graph->nodes.count);
  MemoryMap *map = plan_memory(compiled.graph, compiled.table, compiled.schedule, -1, 0, arena);
  fault = check_memory(compiled.graph, compiled.table, compiled.schedule, map, arena);
  if (fault) fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
  Results found = run_from_arena(arena, compiled.graph, compiled.table, compiled.schedule, map);
  if (!results_equal(expected, &found)) fail_msg("seed %llu: clones changed a result", (unsigned long long)seed);
  *clones += count_clones(compiled.graph);
}

static void random_plans(void **state) {
  (void)state;
  int64_t clones = 0;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    MemoryArena *arena = memory_arena_create(), *scratch = memory_arena_create();
    Graph *graph = random_module(arena, seed, 10 + (int)(seed % 40))->train;
    Results expected = evaluate_graph(arena, graph);
    simplify_graph(graph, scratch);
    fuse_graph(graph, scratch);
    choose_kernels(graph, scratch);
    check_plan(arena, graph, seed, &expected, &clones);
    diag_reset();
    memory_arena_destroy(scratch);
    memory_arena_destroy(arena);
  }
  assert_true(clones > 10 * GRAPHS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
