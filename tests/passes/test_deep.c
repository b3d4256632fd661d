/* A chain of 100,000 nodes, and 100,000 nodes side by side, through every pass on a small stack. */
#include <sys/resource.h>

#include "passes/passes.h"
#include "tests/ir/small_graph.h"

enum { DEPTH = 100000 };

static void run_passes(SmallGraph *small) {
  Graph *graph = small->graph;
  MemoryArena *scratch = memory_arena_create();
  simplify_graph(graph, scratch);
  differentiate_graph(graph, scratch);
  memory_arena_reset(scratch);
  simplify_graph(graph, scratch);
  memory_arena_reset(scratch);
  fuse_graph(graph, scratch);
  memory_arena_reset(scratch);
  choose_kernels(graph, scratch);
  assert_null(graph_verify(scratch, graph));
  memory_arena_reset(scratch);
  StorageTable *table = assign_storages(graph, 64, small->arena);
  Schedule *schedule = order_graph(graph, table, small->arena);
  table = place_parts(graph, table, &schedule, small->arena);
  MemoryMap *map = plan_memory(graph, table, schedule, -1, 0, small->arena);
  assert_null(check_memory(graph, table, schedule, map, scratch));
  assert_int_equal(map->arena_bytes, schedule->live_peak);
  memory_arena_destroy(scratch);
}

static void set_loss(SmallGraph *small, ValueId value) {
  ValueId loss = build_reduce(small->graph, OP_sum, value, -1, NULL, false);
  small->graph->loss = (GraphOutput){.name = "loss", .value = loss, .denominator = NO_VALUE};
}

static void long_chain(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_parameter(&small, "w", 1, SHAPE(4, 4));
  for (int i = 0; i < DEPTH; i++) {
    x = BUILD(small.graph, tanh, x);
    if (i % 5 == 0) x = build_swap(small.graph, x, 0, 1);
    if (i % 7 == 0) x = BUILD(small.graph, contract, x, x);
  }
  set_loss(&small, x);
  run_passes(&small);
  small_graph_destroy(&small);
}

static void many_branches(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId w = small_parameter(&small, "w", 1, SHAPE(4, 4)), sum = w;
  for (int i = 0; i < DEPTH / 4; i++) {
    ValueId factor = build_constant(small.graph, F32, i + 2);
    sum = BUILD(small.graph, add, sum, BUILD(small.graph, tanh, BUILD(small.graph, multiply, w, factor)));
  }
  set_loss(&small, sum);
  run_passes(&small);
  small_graph_destroy(&small);
}

/* Every third link is made of halves, whose gradients are halves of one as well. */
static void many_parts(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_parameter(&small, "w", 1, SHAPE(4, 4));
  for (int i = 0; i < DEPTH / 10; i++) {
    ValueId a = BUILD(small.graph, tanh, build_slice(small.graph, x, 1, 0, 2, 1));
    ValueId b = BUILD(small.graph, sin, build_slice(small.graph, x, 1, 2, 4, 1));
    x = build_concat(small.graph, 2, (ValueId[]){a, b}, 1);
  }
  set_loss(&small, x);
  run_passes(&small);
  small_graph_destroy(&small);
}

int main(void) {
  struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 8 << 20};
  if (setrlimit(RLIMIT_STACK, &limit)) return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_chain), cmocka_unit_test(many_branches),
                                     cmocka_unit_test(many_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
