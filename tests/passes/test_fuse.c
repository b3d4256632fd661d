/* fuse: which nodes become one, and which must not. */
#include "passes/passes.h"
#include "tests/ir/small_graph.h"

static void fuse(SmallGraph *small) {
  MemoryArena *scratch = memory_arena_create();
  fuse_graph(small->graph, scratch);
  const char *fault = graph_verify(scratch, small->graph);
  if (fault) fail_msg("%s", fault);
  memory_arena_destroy(scratch);
}

static void output(SmallGraph *small, ValueId value) {
  GraphOutput entry = {.name = "output", .value = value, .denominator = NO_VALUE};
  array_push(small->arena, &small->graph->outputs, entry);
}

/* Nodes that run. */
static int count_nodes(const SmallGraph *small) {
  int count = 0;
  for (int64_t i = 0; i < small->graph->nodes.count; i++)
    count += op_kind(small->graph->nodes.items[i].op) != KIND_VIEW;
  return count;
}

static const Node *producer(const SmallGraph *small, ValueId value) {
  return graph_node(small->graph, graph_value(small->graph, value)->producer);
}

static void chains_are_one_node(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3)), bias = small_input(&small, F32, SHAPE(3));
  ValueId a = BUILD(graph, add, x, bias), b = BUILD(graph, multiply, a, build_constant(graph, F32, 0.5));
  ValueId c = BUILD(graph, tanh, b), d = BUILD(graph, multiply, c, a);
  graph->phase = PHASE_BACKWARD;
  ValueId later = BUILD(graph, square, b);
  output(&small, d);
  output(&small, later);
  fuse(&small);
  assert_int_equal(count_nodes(&small), 2);
  const Node *node = producer(&small, d);
  assert_int_equal(node->output_count, 2); /* d, and b for the backward phase */
  assert_int_equal(node->outputs[0], b);
  assert_int_equal(node->outputs[1], d);
  assert_int_equal(node->input_count, 2);
  assert_int_equal(node->body->instruction_count, 5);
  small_graph_destroy(&small);
}

static void small_tensors_stay_small(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3)), s = small_input(&small, F32, SCALAR);
  output(&small, BUILD(graph, multiply, x, BUILD(graph, exp, s)));
  fuse(&small);
  assert_int_equal(count_nodes(&small), 2);
  small_graph_destroy(&small);
}

/* The sum needs a product of y: it cannot join y's group. */
static void groups_stay_convex(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  ValueId y = BUILD(graph, relu, x), product = BUILD(graph, contract, y, x);
  ValueId z = BUILD(graph, tanh, y), sum = BUILD(graph, add, z, product);
  output(&small, sum);
  fuse(&small);
  assert_int_equal(count_nodes(&small), 3);
  small_graph_destroy(&small);
}

/* tanh could join relu, but would then live while the product is made. */
static void results_do_not_come_early(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3)), y = BUILD(graph, relu, x);
  output(&small, BUILD(graph, contract, y, x));
  output(&small, BUILD(graph, tanh, y));
  fuse(&small);
  assert_int_equal(count_nodes(&small), 3);
  small_graph_destroy(&small);
}

/* Adding up many products: each may die as soon as it is added. */
static void sums_do_not_wait(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3)), sum = BUILD(graph, contract, x, x);
  for (int i = 0; i < 5; i++)
    sum = BUILD(graph, add, sum, BUILD(graph, contract, x, small_input(&small, F32, SHAPE(3, 3))));
  output(&small, sum);
  fuse(&small);
  assert_int_equal(count_nodes(&small), 11);
  small_graph_destroy(&small);
}

static void reductions_take_bodies(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 3)), y = small_input(&small, F32, SHAPE(3));
  int64_t axis = 0;
  ValueId squares = BUILD(graph, square, BUILD(graph, subtract, x, y));
  ValueId sum = build_reduce(graph, OP_sum, squares, 1, &axis, false);
  ValueId shared = BUILD(graph, tanh, x);
  ValueId largest = build_reduce(graph, OP_max, shared, -1, NULL, false);
  ValueId mean = build_reduce(graph, OP_mean, shared, -1, NULL, false);
  output(&small, sum);
  output(&small, largest);
  output(&small, mean);
  fuse(&small);
  assert_int_equal(count_nodes(&small), 4);
  const Node *node = producer(&small, sum);
  assert_non_null(node->body);
  assert_int_equal(node->body->instruction_count, 2);
  assert_int_equal(node->iteration.rank, 2);
  assert_null(producer(&small, largest)->body);
  Evaluation *evaluation = eval_create(small.arena, graph, EVAL_F32);
  FILL(evaluation, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  FILL(evaluation, 1, 1, 2, 3);
  small_run(evaluation);
  EXPECT(evaluation, sum, 0, 126, 126, 126);
  small_graph_destroy(&small);
}

static void outputs_are_bounded(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3));
  for (int i = 0; i < 3 * MAX_OP_OUTPUTS; i++) output(&small, x = BUILD(graph, tanh, x));
  fuse(&small);
  assert_int_equal(count_nodes(&small), 3);
  for (int64_t i = 0; i < graph->nodes.count; i++) assert_int_equal(graph->nodes.items[i].output_count, MAX_OP_OUTPUTS);
  small_graph_destroy(&small);
}

static void constraints_are_walls(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3));
  ValueId a = BUILD(graph, tanh, x), b = BUILD(graph, sin, a);
  graph_value(graph, a)->constraint = CONSTRAINT_KEEP;
  graph->recompute_block = ++graph->recompute_block_count;
  array_push(small.arena, &graph->recompute_parents, 0);
  ValueId c = BUILD(graph, cos, b), d = BUILD(graph, square, c);
  graph->recompute_block = 0;
  output(&small, BUILD(graph, negate, d));
  fuse(&small);
  assert_int_equal(count_nodes(&small), 3);
  assert_int_equal(producer(&small, a)->output_count, 2); /* kept: made although only its group reads it */
  assert_int_equal(producer(&small, d)->output_count, 1);
  small_graph_destroy(&small);
}

static void updates_are_one_node(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  Training *training = &small.module->training;
  const OpInfo *adamw = op_info(OP_adamw);
  training->has_optimizer = true;
  training->optimizer = OP_adamw;
  ValueId w = small_parameter(&small, "w", 1, SHAPE(3, 3));
  Attribute *settings = NEW_ARRAY(small.arena, Attribute, adamw->attribute_count);
  for (int i = 0; i < adamw->attribute_count; i++) settings[i] = adamw->attributes[i].initial;
  small.module->persistents.items[0].optimizer_settings = settings;
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  ValueId loss = build_reduce(graph, OP_sum, BUILD(graph, contract, x, w), -1, NULL, false);
  graph->loss = (GraphOutput){.name = "loss", .value = loss, .denominator = NO_VALUE};
  differentiate_graph(graph, small.arena);
  simplify_graph(graph, small.arena);
  fuse(&small);
  int writing = 0;
  for (int64_t i = 0; i < graph->nodes.count; i++) {
    const Node *node = &graph->nodes.items[i];
    if (!node->write_count) continue;
    writing++;
    assert_int_equal(node->write_count, 3); /* m, v, w */
    assert_int_equal(node->output_count, 0);
  }
  assert_int_equal(writing, 1);
  small_graph_destroy(&small);
}

/* p ← p + pᵀ in one loop would read elements that were overwritten. */
static void overwritten_views_are_read_first(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId p = small_parameter(&small, "p", 1, SHAPE(3, 3)), q = small_parameter(&small, "q", 1, SHAPE(3, 3));
  graph->phase = PHASE_UPDATE;
  build_assign(graph, p, BUILD(graph, add, p, build_swap(graph, p, 0, 1)));
  build_assign(graph, q, BUILD(graph, add, q, q));
  fuse(&small);
  assert_int_equal(count_nodes(&small), 3);
  small_graph_destroy(&small);
}

static void assert_schedulable(SmallGraph *small) {
  fuse(small);
  StorageTable *table = assign_storages(small->graph, 1, small->arena);
  Schedule *schedule = order_graph(small->graph, table, small->arena);
  assert_null(replay_schedule(small->graph, table, schedule, NULL, small->arena));
}

/* A state is overwritten only after its last reader, here one that needs the new value too: writing it cannot be part
 * of making it. */
static void states_wait_for_readers(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId p = small_parameter(&small, "p", 1, SHAPE(3, 3)), x = small_input(&small, F32, SHAPE(3, 3));
  ValueId next = BUILD(graph, add, p, x);
  build_assign(graph, p, next);
  output(&small, BUILD(graph, contract, next, p));
  assert_schedulable(&small);
  small_graph_destroy(&small);
}

/* sin(p) must not wait for the sum, which needs what is made together with the new p. */
static void readers_do_not_pass_writers(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId p = small_parameter(&small, "p", 1, SHAPE(3, 3)), x = small_input(&small, F32, SHAPE(3, 3));
  ValueId old = BUILD(graph, sin, p), next = BUILD(graph, cos, x);
  build_assign(graph, p, next);
  output(&small, BUILD(graph, add, old, BUILD(graph, contract, next, x)));
  assert_schedulable(&small);
  assert_int_equal(count_nodes(&small), 4);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_are_one_node),
      cmocka_unit_test(small_tensors_stay_small),
      cmocka_unit_test(groups_stay_convex),
      cmocka_unit_test(sums_do_not_wait),
      cmocka_unit_test(reductions_take_bodies),
      cmocka_unit_test(outputs_are_bounded),
      cmocka_unit_test(constraints_are_walls),
      cmocka_unit_test(updates_are_one_node),
      cmocka_unit_test(overwritten_views_are_read_first),
      cmocka_unit_test(states_wait_for_readers),
      cmocka_unit_test(readers_do_not_pass_writers),
      cmocka_unit_test(results_do_not_come_early),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
