/* kernels: where copies are made, and that one serves all readers of a phase. */
#include "passes/passes.h"
#include "tests/ir/small_graph.h"

static int64_t choose(SmallGraph *small) {
  int64_t before = small->graph->nodes.count;
  MemoryArena *scratch = memory_arena_create();
  choose_kernels(small->graph, scratch);
  const char *fault = graph_verify(scratch, small->graph);
  if (fault) fail_msg("%s", fault);
  memory_arena_destroy(scratch);
  return small->graph->nodes.count - before;
}

static void output(SmallGraph *small, ValueId value) {
  GraphOutput entry = {.name = "output", .value = value, .denominator = NO_VALUE};
  array_push(small->arena, &small->graph->outputs, entry);
}

static void contractions_read_turned_matrices(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(6, 6)), turned = build_swap(graph, x, 0, 1);
  BUILD(graph, contract, x, turned);
  BUILD(graph, contract, build_slice(graph, x, 1, 0, 3, 1), build_slice(graph, turned, 0, 0, 3, 1));
  BUILD(graph, contract, build_slice(graph, x, 0, 0, 1, 1), x);
  assert_int_equal(choose(&small), 0);
  ValueId columns = build_slice(graph, build_slice(graph, x, 1, 0, 6, 2), 0, 0, 3, 1); /* strides 6 and 2 */
  BUILD(graph, contract, x, build_expand(graph, build_slice(graph, x, 0, 0, 1, 1), SHAPE(6, 6)));
  BUILD(graph, contract, columns, columns); /* one copy for both */
  assert_int_equal(choose(&small), 2);
  small_graph_destroy(&small);
}

static void kernels_read_rows(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 6)), turned = build_swap(graph, x, 0, 1);
  BUILD(graph, softmax_rows, build_slice(graph, x, 0, 1, 3, 1)); /* whole rows: no copy */
  BUILD(graph, softmax_rows, turned);
  BUILD(graph, softmax_rows, turned); /* the same copy */
  graph->phase = PHASE_BACKWARD;
  BUILD(graph, softmax_rows, turned); /* a copy of its own: the forward one need not live that long */
  assert_int_equal(choose(&small), 2);
  small_graph_destroy(&small);
}

static void reshapes_of_turned_values(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3, 4));
  output(&small, BUILD(graph, tanh, build_reshape(graph, build_swap(graph, x, 0, 1), SHAPE(6, 4))));
  output(&small, BUILD(graph, tanh, build_reshape(graph, build_swap(graph, x, 0, 1), SHAPE(3, 2, 2, 2))));
  assert_int_equal(choose(&small), 1);
  const StorageTable *table = assign_storages(graph, 64, small.arena);
  assert_non_null(table);
  small_graph_destroy(&small);
}

static void named_values_are_dense(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 6)), turned = build_swap(graph, BUILD(graph, tanh, x), 0, 1);
  ValueId reader = BUILD(graph, exp, turned);
  output(&small, turned);
  output(&small, build_slice(graph, x, 0, 1, 3, 1));
  assert_int_equal(choose(&small), 1);
  ValueId named = graph->outputs.items[0].value;
  assert_int_not_equal(named, turned);
  assert_int_equal(graph_node(graph, graph_value(graph, reader)->producer)->inputs[0], named);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contractions_read_turned_matrices),
      cmocka_unit_test(kernels_read_rows),
      cmocka_unit_test(reshapes_of_turned_values),
      cmocka_unit_test(named_values_are_dense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
