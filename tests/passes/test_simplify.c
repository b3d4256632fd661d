/* simplify: what goes, what stays, and that no bit changes. */
#include "passes/passes.h"
#include "tests/ir/small_graph.h"

static void simplify(SmallGraph *small) {
  MemoryArena *scratch = memory_arena_create();
  simplify_graph(small->graph, scratch);
  const char *fault = graph_verify(scratch, small->graph);
  if (fault) fail_msg("%s", fault);
  memory_arena_destroy(scratch);
}

static int64_t count_kind(const Graph *graph, OpKind kind) {
  int64_t count = 0;
  for (int64_t i = 0; i < graph->nodes.count; i++) count += op_kind(graph->nodes.items[i].op) == kind;
  return count;
}

static void output(SmallGraph *small, const char *name, ValueId value) {
  GraphOutput entry = {.name = name, .value = value, .denominator = NO_VALUE};
  array_push(small->arena, &small->graph->outputs, entry);
}

static ValueId output_value(const SmallGraph *small, int index) { return small->graph->outputs.items[index].value; }

static const Node *output_node(const SmallGraph *small, int index) {
  return graph_node(small->graph, graph_value(small->graph, output_value(small, index))->producer);
}

static void dead_nodes_go(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(3)), p = small_parameter(&small, "p", 0, SHAPE(3));
  ValueId y = BUILD(small.graph, tanh, x);
  BUILD(small.graph, sin, BUILD(small.graph, cos, x));
  build_assign(small.graph, p, BUILD(small.graph, square, x));
  output(&small, "y", y);
  simplify(&small);
  assert_int_equal(small.graph->nodes.count, 3); /* tanh, and square for the assignment */
  small_graph_destroy(&small);
}

static void neutral_operands(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(3));
  ValueId one = build_constant(small.graph, F32, 1), zero = build_constant(small.graph, F32, 0);
  ValueId minus_zero = build_constant(small.graph, F32, -0.0);
  ValueId gone[] = {BUILD(small.graph, multiply, x, one),
                    BUILD(small.graph, multiply, one, x),
                    BUILD(small.graph, divide, x, one),
                    BUILD(small.graph, add, x, minus_zero),
                    BUILD(small.graph, subtract, x, zero),
                    build_apply(small.graph, OP_cast, (Attribute[]){attribute_dtype(F32)}, 1, &x),
                    BUILD(small.graph, stop, x)};
  ValueId stays[] = {BUILD(small.graph, add, x, zero), BUILD(small.graph, subtract, x, minus_zero),
                     BUILD(small.graph, subtract, one, x), BUILD(small.graph, divide, one, x),
                     BUILD(small.graph, multiply, build_full(small.graph, type_make(F32, SHAPE(2, 3)), 1), x)};
  small.graph->evaluation = true; /* nothing will be differentiated: stop(x) is x */
  for (int i = 0; i < 7; i++) output(&small, "gone", gone[i]);
  for (int i = 0; i < 5; i++) output(&small, "stays", stays[i]);
  simplify(&small);
  for (int i = 0; i < 7; i++) assert_int_equal(output_value(&small, i), x);
  for (int i = 7; i < 12; i++) assert_int_not_equal(output_value(&small, i), x);
  Evaluation *evaluation = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(evaluation, 0, -0.0, 2, -3);
  small_run(evaluation);
  assert_false(signbit(eval_value(evaluation, output_value(&small, 7))->real[0])); /* -0 + 0 = 0 */
  assert_false(signbit(eval_value(evaluation, output_value(&small, 8))->real[0])); /* -0 - -0 = 0 */
  small_graph_destroy(&small);
}

static void neutral_integers_and_bools(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId i = small_input(&small, I32, SHAPE(3)), b = small_input(&small, BOOL, SHAPE(3));
  output(&small, "i", BUILD(small.graph, add, i, build_integer(small.graph, I32, 0)));
  output(&small, "b", BUILD(small.graph, logical_and, b, build_integer(small.graph, BOOL, 1)));
  output(&small, "c", BUILD(small.graph, logical_or, b, build_integer(small.graph, BOOL, 1)));
  simplify(&small);
  assert_int_equal(output_value(&small, 0), i);
  assert_int_equal(output_value(&small, 1), b);
  assert_int_not_equal(output_value(&small, 2), b);
  small_graph_destroy(&small);
}

static void constants_fold(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2));
  ValueId third = BUILD(small.graph, divide, build_constant(small.graph, F32, 1), build_constant(small.graph, F32, 3));
  ValueId wide = build_expand(small.graph, BUILD(small.graph, exp, third), SHAPE(2));
  output(&small, "y", BUILD(small.graph, multiply, x, wide));
  output(&small, "overflow", BUILD(small.graph, exp, build_constant(small.graph, F32, 1000)));
  output(&small, "integer",
         BUILD(small.graph, floor_divide, build_integer(small.graph, I32, -7), build_integer(small.graph, I32, 2)));
  Evaluation *before = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(before, 0, 1, 2);
  small_run(before);
  double expected = eval_value(before, output_value(&small, 0))->real[1];
  simplify(&small);
  assert_int_equal(output_node(&small, 0)->input_count, 2);
  Evaluation *after = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(after, 0, 1, 2);
  small_run(after);
  assert_true(eval_value(after, output_value(&small, 0))->real[1] == expected);
  assert_true(isinf(eval_value(after, output_value(&small, 1))->real[0]));
  assert_int_equal(output_node(&small, 1)->input_count, 1); /* infinities are not written as constants */
  assert_int_equal(eval_value(after, output_value(&small, 2))->integer[0], -4);
  /* x * c, c, exp(1000), 1000, -4 */
  assert_int_equal(small.graph->nodes.count, 5);
  small_graph_destroy(&small);
}

static void views_of_views(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2, 3, 4));
  ValueId turned = build_permute(small.graph, x, (int64_t[]){1, 2, 0});
  output(&small, "x", build_permute(small.graph, turned, (int64_t[]){2, 0, 1}));
  output(&small, "flat", build_reshape(small.graph, build_reshape(small.graph, x, SHAPE(6, 4)), SHAPE(24)));
  output(&small, "x", build_reshape(small.graph, build_reshape(small.graph, x, SHAPE(6, 4)), SHAPE(2, 3, 4)));
  output(&small, "part", build_slice(small.graph, build_slice(small.graph, x, 2, 1, 4, 1), 2, 1, 3, 1));
  output(&small, "flat", build_reshape(small.graph, build_swap(small.graph, x, 0, 1), SHAPE(24)));
  simplify(&small);
  assert_int_equal(output_value(&small, 0), x);
  assert_int_equal(output_node(&small, 1)->inputs[0], x);
  assert_int_equal(output_value(&small, 2), x);
  assert_int_not_equal(output_node(&small, 3)->inputs[0], x);
  assert_int_not_equal(output_node(&small, 4)->inputs[0], x);
  assert_int_equal(count_kind(small.graph, KIND_VIEW), 5);
  small_graph_destroy(&small);
}

static void equal_nodes_merge(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2)), y = small_input(&small, F32, SHAPE(2));
  Attribute half = attribute_float(0.5), third = attribute_float(1.0 / 3);
  output(&small, "a", BUILD(graph, add, x, y));
  output(&small, "b", BUILD(graph, add, y, x));
  output(&small, "c", BUILD(graph, subtract, x, y));
  output(&small, "d", BUILD(graph, subtract, y, x));
  output(&small, "e", build_apply(graph, OP_leaky_relu, &half, 1, &x));
  output(&small, "f", build_apply(graph, OP_leaky_relu, &third, 1, &x));
  output(&small, "g", build_apply(graph, OP_drop, &half, 1, &x));
  output(&small, "h", build_apply(graph, OP_drop, &half, 1, &x));
  graph->phase = PHASE_BACKWARD;
  output(&small, "i", BUILD(graph, add, x, y));
  simplify(&small);
  assert_int_equal(output_value(&small, 0), output_value(&small, 1));
  for (int i = 2; i < 9; i++)
    for (int j = 1; j < i; j++) assert_int_not_equal(output_value(&small, i), output_value(&small, j));
  small_graph_destroy(&small);
}

static void marked_values_stay(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2)), one = build_constant(graph, F32, 1);
  ValueId asked = BUILD(graph, tanh, x), twin = BUILD(graph, tanh, x), kept = BUILD(graph, multiply, x, one);
  graph_value(graph, kept)->constraint = CONSTRAINT_KEEP;
  GraphOutput request = {.name = "asked", .value = asked, .denominator = NO_VALUE};
  array_push(small.arena, &graph->gradient_requests, request);
  graph->recompute_block = ++graph->recompute_block_count;
  array_push(small.arena, &graph->recompute_parents, 0);
  ValueId inside = BUILD(graph, tanh, x);
  graph->recompute_block = 0;
  output(&small, "twin", twin);
  output(&small, "kept", kept);
  output(&small, "inside", inside);
  output(&small, "stop", BUILD(graph, stop, x));
  simplify(&small);
  assert_int_equal(output_value(&small, 0), twin);
  assert_int_equal(output_value(&small, 1), kept);
  assert_int_equal(output_value(&small, 2), inside);
  assert_int_not_equal(output_value(&small, 3), x); /* it still has to stop the gradient */
  assert_int_equal(graph->gradient_requests.items[0].value, asked);
  small_graph_destroy(&small);
}

static void turned_products(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId a = small_input(&small, F32, SHAPE(3, 2)), b = small_input(&small, F32, SHAPE(3, 4));
  ValueId product = BUILD(graph, contract, build_swap(graph, a, 0, 1), b); /* aᵀ b */
  output(&small, "turned", build_swap(graph, product, 0, 1));              /* bᵀ a */
  ValueId shared = BUILD(graph, contract, a, build_swap(graph, a, 0, 1));
  output(&small, "shared", build_swap(graph, shared, 0, 1)); /* the product itself is needed too */
  output(&small, "product", shared);
  simplify(&small);
  const Node *node = output_node(&small, 0);
  assert_int_equal(op_kind(node->op), KIND_CONTRACTION);
  assert_int_equal(node->inputs[1], a);
  assert_int_equal(op_kind(output_node(&small, 1)->op), KIND_VIEW);
  assert_int_equal(count_kind(graph, KIND_CONTRACTION), 2);
  Evaluation *evaluation = eval_create(small.arena, graph, EVAL_F32);
  FILL(evaluation, 0, 1, 2, 3, 4, 5, 6);
  FILL(evaluation, 1, 1, 0, 0, 2, 0, 1, 0, 2, 0, 0, 1, 2);
  small_run(evaluation);
  EXPECT(evaluation, output_value(&small, 0), 0, 1, 2, 3, 4, 5, 6, 18, 24);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dead_nodes_go),      cmocka_unit_test(neutral_operands),
      cmocka_unit_test(constants_fold),     cmocka_unit_test(neutral_integers_and_bools),
      cmocka_unit_test(views_of_views),     cmocka_unit_test(equal_nodes_merge),
      cmocka_unit_test(marked_values_stay), cmocka_unit_test(turned_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
