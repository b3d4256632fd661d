/* tests/planner/test_strategies.c - the simple strategies, and the source's constraints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/planner/replay.h"
#include "passes/planner/strategies.h"
#include "tests/planner/sample_graphs.h"

static Plan *plan_for(MemoryArena *arena, const PlanGraph *graph, PlanStrategy strategy, int64_t budget) {
  const char *error;
  bool usage;
  Plan *plan = plan_by_strategy(arena, graph, strategy, budget, &error, &usage);
  if (!plan) fail_msg("%s", error);
  assert_int_equal(replay_plan(arena, graph, plan)->faults.count, 0);
  return plan;
}

static void test_none_never_recomputes(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  Plan *plan = plan_for(arena, graph, PLAN_STRATEGY_NONE, 4 << 20);
  assert_int_equal(plan->peak, 10 << 20);
  assert_true(plan->cost == 16);
  memory_arena_destroy(arena);
}

static void test_greedy_on_a_chain(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  for (int mib = 7; mib <= 10; mib++) {
    Plan *plan = plan_for(arena, graph, PLAN_STRATEGY_GREEDY, (int64_t)mib << 20);
    assert_true(plan->peak <= (int64_t)mib << 20);
    assert_true(plan->cost == 16 + 10 - mib);
  }
  memory_arena_destroy(arena);
}

/* 16 equal layers in √16 segments: the boundaries and one segment are live, each layer runs at most twice. */
static void test_sqrt_on_a_chain(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 16, false, NULL, NULL);
  Plan *plan = plan_for(arena, graph, PLAN_STRATEGY_SQRT, 1);
  assert_true(plan->peak <= 10 << 20);
  assert_true(plan->cost <= 32 + 16);
  memory_arena_destroy(arena);
}

static void test_missing_keys(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 4, false, NULL, NULL);
  const char *error;
  bool usage;
  assert_null(plan_by_strategy(arena, graph, PLAN_STRATEGY_BLOCKS, 1, &error, &usage));
  assert_true(usage);
  assert_non_null(strstr(error, "\"module\""));
  assert_null(plan_by_strategy(arena, graph, PLAN_STRATEGY_SELECTIVE, 1, &error, &usage));
  assert_true(usage);
  assert_non_null(strstr(error, "\"op\""));
  memory_arena_destroy(arena);
}

/* Two layers of three nodes; ops a (cheap) and b (dear). */
static PlanGraph *layered_graph(MemoryArena *arena) {
  PlanGraph *graph = chain_graph(arena, 6, false, NULL, NULL);
  for (int i = 1; i <= 6; i++) {
    PlanNode *node = &graph->nodes.items[plan_graph_node(graph, memory_format(arena, "f%d", i))];
    node->module = memory_format(arena, "h.%d.mlp", (i - 1) / 3);
    node->op = i % 3 == 1 ? "b" : "a";
    node->cost = i % 3 == 1 ? 50 : 1;
  }
  plan_graph_finish(graph);
  return graph;
}

static void test_blocks_and_selective(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = layered_graph(arena);
  Plan *blocks = plan_for(arena, graph, PLAN_STRATEGY_BLOCKS, 1);
  /* h3 and h6 are read outside their layer; h1, h2, h4, h5 run again. h6 is read by the loss alone. */
  assert_true(blocks->cost == graph->base_cost + 2 * 51);
  Plan *selective = plan_for(arena, graph, PLAN_STRATEGY_SELECTIVE, 1);
  assert_true(selective->cost == graph->base_cost + 4);
  memory_arena_destroy(arena);
}

/* ---- keep and recompute ---- */

static void test_decisions(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  int32_t h3 = plan_graph_storage(graph, "h3"), h5 = plan_graph_storage(graph, "h5"), broken;
  Plan *free_plan = plan_for(arena, graph, PLAN_STRATEGY_GREEDY, 6 << 20);
  graph->storages.items[h3].decision = PLAN_KEEP;
  graph->storages.items[h5].decision = PLAN_RECOMPUTE;
  for (int mib = 6; mib <= 12; mib++) {
    Plan *plan = plan_for(arena, graph, PLAN_STRATEGY_GREEDY, (int64_t)mib << 20);
    assert_true(plan_obeys_decisions(arena, graph, plan, &broken));
    Replay *replay = replay_plan(arena, graph, plan);
    assert_int_equal(replay->runs[graph->storages.items[h5].producer], 2);
    DecisionList list = plan_decisions(arena, graph, plan);
    for (int64_t i = 0; i < list.count; i++) {
      if (list.items[i].storage == h3) assert_true(list.items[i].kept);
      if (list.items[i].storage == h5) assert_false(list.items[i].kept);
    }
  }
  assert_false(
      plan_obeys_decisions(arena, graph, plan_keep_all(arena, chain_graph(arena, 8, false, NULL, NULL)), &broken));
  assert_int_equal(broken, h5);
  (void)free_plan;
  memory_arena_destroy(arena);
}

/* A storage that must be recomputed by a node that may run only once is a contradiction, not a plan. */
static void test_contradiction(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 4, false, NULL, NULL);
  int32_t h2 = plan_graph_storage(graph, "h2");
  graph->storages.items[h2].decision = PLAN_RECOMPUTE;
  graph->nodes.items[graph->storages.items[h2].producer].recompute = false;
  const char *error;
  bool usage;
  assert_null(plan_by_strategy(arena, graph, PLAN_STRATEGY_NONE, 0, &error, &usage));
  assert_false(usage);
  assert_non_null(strstr(error, "\"h2\" must be recomputed"));
  memory_arena_destroy(arena);
}

/* Past the update of the weight it reads, a node may not run again: whatever is asked, no plan does it. */
static void test_writes_forbid_clones(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  for (uint64_t seed = 1; seed < 200; seed++) {
    PlanGraph *graph = random_graph(arena, seed, 8);
    for (int s = PLAN_STRATEGY_SQRT; s < PLAN_STRATEGY_COUNT; s++)
      if (s != PLAN_STRATEGY_SELECTIVE) plan_for(arena, graph, (PlanStrategy)s, 1);
  }
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_none_never_recomputes), cmocka_unit_test(test_greedy_on_a_chain),
      cmocka_unit_test(test_sqrt_on_a_chain),       cmocka_unit_test(test_missing_keys),
      cmocka_unit_test(test_blocks_and_selective),  cmocka_unit_test(test_decisions),
      cmocka_unit_test(test_contradiction),         cmocka_unit_test(test_writes_forbid_clones)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
