/* The kernels of the interpreter against values computed by hand. */
#include "small_graph.h"

/* softmax(ln 1, ln 2, ln 5) = (1, 2, 5) / 8, at any shift */
static void test_softmax(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3)), g = small_input(&small, F32, SHAPE(2, 3));
  ValueId y = BUILD(graph, softmax_rows, x), dx = BUILD(graph, softmax_rows_backward, y, g);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F64);
  FILL(e, 0, 0, log(2), log(5), 1000, 1000 + log(2), 1000 + log(5));
  FILL(e, 1, 1, 0, 0, 1, 1, 1);
  small_run(e);
  EXPECT(e, y, 1e-12, 0.125, 0.25, 0.625, 0.125, 0.25, 0.625);
  EXPECT(e, dx, 1e-12, 0.125 * 0.875, -0.25 * 0.125, -0.625 * 0.125, 0, 0, 0);
  small_graph_destroy(&small);
}

/* rows (1, 3) and (2, 2): mean 2, variance 1 and 0; eps 3 gives rstd 1/2 and 1/sqrt(3) */
static void test_layer_norm(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 2)), weight = small_input(&small, F32, SHAPE(2));
  ValueId bias = small_input(&small, F32, SHAPE(2)), outputs[3], plain[3];
  Attribute eps = attribute_float(3);
  graph_apply(graph, OP_layer_norm, 3, (ValueId[]){x, weight, bias}, &eps, outputs);
  graph_apply(graph, OP_layer_norm, 1, (ValueId[]){x}, &eps, plain);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F64);
  FILL(e, 0, 1, 3, 2, 2);
  FILL(e, 1, 4, 6);
  FILL(e, 2, 10, 20);
  small_run(e);
  EXPECT(e, outputs[0], 1e-14, 8, 23, 10, 20);
  EXPECT(e, outputs[1], 1e-14, 2, 2);
  EXPECT(e, outputs[2], 1e-14, 0.5, 0.577350269189626);
  EXPECT(e, plain[0], 1e-14, -0.5, 0.5, 0, 0);
  small_graph_destroy(&small);
}

/* For two columns with mean m: h = g w; dx = rstd (h - mean h - xhat mean(h xhat)). x = (1, 3), rstd 1/2, xhat = (-1/2,
 * 1/2), g = (1, 2), w = (4, 6): h = (4, 12), mean 8, mean(h xhat) = 2: dx = (4 - 8 + 1, 12 - 8 - 1) / 2 = (-1.5, 1.5).
 */
static void test_layer_norm_backward(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId g = small_input(&small, F32, SHAPE(1, 2)), x = small_input(&small, F32, SHAPE(1, 2));
  ValueId weight = small_input(&small, F32, SHAPE(2)), mean = small_input(&small, F32, SHAPE(1, 1));
  ValueId rstd = small_input(&small, F32, SHAPE(1, 1));
  ValueId weighted = BUILD(graph, layer_norm_backward, g, x, weight, mean, rstd);
  ValueId plain = BUILD(graph, layer_norm_backward, g, x, NO_VALUE, mean, rstd); /* h = (1, 2): dx = (-3/8, 3/8) / 2 */
  Evaluation *e = eval_create(small.arena, graph, EVAL_F64);
  FILL(e, 0, 1, 2);
  FILL(e, 1, 1, 3);
  FILL(e, 2, 4, 6);
  FILL(e, 3, 2);
  FILL(e, 4, 0.5);
  small_run(e);
  EXPECT(e, weighted, 1e-14, -1.5, 1.5);
  EXPECT(e, plain, 1e-14, -0.1875, 0.1875);
  small_graph_destroy(&small);
}

static void test_cross_entropy(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3)), target = small_input(&small, I32, SHAPE(3));
  ValueId g = small_input(&small, F32, SHAPE(3)), outputs[2], smooth[2];
  Attribute sharp_settings[] = {attribute_int(-1), attribute_float(0)};
  Attribute smooth_settings[] = {attribute_int(-1), attribute_float(0.3)};
  graph_apply(graph, OP_cross_entropy_rows, 2, (ValueId[]){x, target}, sharp_settings, outputs);
  graph_apply(graph, OP_cross_entropy_rows, 2, (ValueId[]){x, target}, smooth_settings, smooth);
  ValueId operands[] = {x, target, outputs[1], g};
  ValueId dx = graph_apply(graph, OP_cross_entropy_rows_backward, 4, operands, sharp_settings, NULL);
  ValueId smooth_dx = graph_apply(graph, OP_cross_entropy_rows_backward, 4, operands, smooth_settings, NULL);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F64);
  FILL(e, 0, 0, 0, 0, 0, 0, 0, 0, log(2), log(5));
  FILL(e, 1, -1, 1, 0);
  FILL(e, 2, 2, 2, 8);
  small_run(e);
  double ln3 = 1.09861228866811, ln8 = 2.07944154167984, ln10 = 2.30258509299405;
  EXPECT(e, outputs[0], 1e-13, 0, ln3, ln8);
  EXPECT(e, outputs[1], 1e-13, ln3, ln3, ln8);
  /* mean over j of lse - x_j = ln 8 - ln 10 / 3 */
  EXPECT(e, smooth[0], 1e-13, 0, ln3, 0.7 * ln8 + 0.3 * (ln8 - ln10 / 3));
  EXPECT(e, dx, 1e-13, 0, 0, 0, 2. / 3, -4. / 3, 2. / 3, -7, 2, 5);
  EXPECT(e, smooth_dx, 1e-13, 0, 0, 0, 2. / 3 - 0.2, 2. / 3 - 1.6, 2. / 3 - 0.2, 1 - 6.4, 2 - 0.8, 5 - 0.8);
  small_graph_destroy(&small);
}

static void test_class_out_of_range(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2, 3)), target = small_input(&small, I32, SHAPE(2));
  BUILD(small.graph, cross_entropy, x, target);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 1, 2, 3);
  assert_false(eval_run(e));
  assert_string_equal(e->fault, "class index 3 is out of range: expected 0..2");
  assert_int_equal(graph_node(small.graph, e->fault_node)->op, OP_cross_entropy_rows);
  FILL(e, 1, 2, -1);
  assert_false(eval_run(e));
  FILL(e, 1, 2, 0);
  assert_true(eval_run(e));
  assert_null(e->fault);
  small_graph_destroy(&small);
}

static void test_argmax_takes_the_first(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(3, 4)), best = BUILD(small.graph, argmax_rows, x);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 1, 5, 5, 2, -1, -2, -3, -1, 0, 0, 0, 1);
  small_run(e);
  EXPECT(e, best, 0, 1, 0, 3);
  small_graph_destroy(&small);
}

static void test_embed(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId table = small_input(&small, F32, SHAPE(3, 2)), indices = small_input(&small, I32, SHAPE(2, 2));
  ValueId rows = BUILD(graph, embed, table, indices), g = small_input(&small, F32, SHAPE(2, 2, 2));
  Attribute size = attribute_int(3);
  ValueId gradient = build_apply(graph, OP_embed_backward, &size, 2, (ValueId[]){g, indices});
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4, 5, 6);
  FILL(e, 1, 2, 0, 2, 2);
  FILL(e, 2, 1, 10, 2, 20, 3, 30, 4, 40);
  small_run(e);
  EXPECT(e, rows, 0, 5, 6, 1, 2, 5, 6, 5, 6);
  EXPECT(e, gradient, 0, 2, 20, 0, 0, 8, 80);
  FILL(e, 1, 2, 0, 3, 2);
  assert_false(eval_run(e));
  assert_string_equal(e->fault, "index 3 is out of range: expected 0..2");
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_layer_norm),
      cmocka_unit_test(test_layer_norm_backward),
      cmocka_unit_test(test_cross_entropy),
      cmocka_unit_test(test_class_out_of_range),
      cmocka_unit_test(test_argmax_takes_the_first),
      cmocka_unit_test(test_embed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
