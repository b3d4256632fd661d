/* Reductions, views, assemblies and contractions in the interpreter. */
#include "small_graph.h"

/* Sum over rows of an [n, n + 1] matrix of i + 2 j against the closed form, at odd sizes. */
static void test_sums_of_odd_sizes(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 3, 17, 1000};
  for (int k = 0; k < 4; k++) {
    int64_t n = sizes[k], m = n + 1, first = 0, last = 1;
    SmallGraph small = small_graph();
    ValueId x = small_input(&small, F64, SHAPE(n, m));
    ValueId columns = build_reduce(small.graph, OP_sum, x, 1, &first, false);
    ValueId rows = build_reduce(small.graph, OP_mean, x, 1, &last, true);
    ValueId all = build_reduce(small.graph, OP_sum, x, -1, NULL, false);
    Evaluation *e = eval_create(small.arena, small.graph, EVAL_F64);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < m; j++) e->inputs[0].real[i * m + j] = (double)(i + 2 * j);
    small_run(e);
    assert_int_equal(eval_value(e, rows)->type.rank, 2);
    for (int64_t j = 0; j < m; j++)
      assert_true(eval_value(e, columns)->real[j] == (double)(n * (n - 1) / 2 + 2 * j * n));
    for (int64_t i = 0; i < n; i++) assert_true(eval_value(e, rows)->real[i] == (double)(i + m - 1));
    EXPECT(e, all, 0, (double)(m * n * (n - 1) / 2 + n * m * (m - 1)));
    small_graph_destroy(&small);
  }
}

static void test_middle_axis_and_extremes(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3, 2)), i = small_input(&small, I32, SHAPE(3));
  int64_t middle = 1, outer[] = {-1, 0};
  ValueId sum = build_reduce(graph, OP_sum, x, 1, &middle, false),
          largest = build_reduce(graph, OP_max, x, 1, &middle, true);
  ValueId both = build_reduce(graph, OP_min, x, 2, outer, false), none = build_reduce(graph, OP_sum, x, 0, NULL, false);
  ValueId integers = build_reduce(graph, OP_sum, i, -1, NULL, false),
          lowest = build_reduce(graph, OP_min, i, -1, NULL, false);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12);
  FILL(e, 1, 5, -3, 4);
  small_run(e);
  EXPECT(e, sum, 0, 9, -12, 27, -30);
  EXPECT(e, largest, 0, 5, -2, 11, -8);
  EXPECT(e, both, 0, -8, -10, -12);
  EXPECT(e, none, 0, 1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12);
  EXPECT(e, integers, 0, 6);
  EXPECT(e, lowest, 0, -3);
  small_graph_destroy(&small);
}

/* Sums are taken in double and rounded once: 1 + 1000 times 2^-24 in float steps would stay 1. */
static void test_sum_is_rounded_once(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(1001)), sum = build_reduce(small.graph, OP_sum, x, -1, NULL, false);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  e->inputs[0].real[0] = 1;
  for (int i = 1; i <= 1000; i++) e->inputs[0].real[i] = 0x1p-24;
  small_run(e);
  EXPECT(e, sum, 0, (double)(float)(1 + 1000 * 0x1p-24));
  small_graph_destroy(&small);
}

/* sum over axis 1 of (x - y)², y broadcast, as one node with a body */
static void test_fused_reduction(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 3)), y = small_input(&small, F32, SHAPE(3));
  ValueId result = graph_new_value(graph, type_make(F32, SHAPE(2)), NULL, (Location){0});
  Instruction instructions[] = {{.op = OP_subtract, .dtype = F32, .operand_count = 2, .operands = {~0, ~1}},
                                {.op = OP_square, .dtype = F32, .operand_count = 1, .operands = {0}}};
  int results[] = {1};
  Body body = {2, 1, instructions, results};
  Attribute attributes[] = {attribute_ints(SHAPE(1)), attribute_bool(false)};
  ValueId inputs[] = {x, y}, outputs[] = {result};
  graph_append(graph, (Node){.op = OP_sum,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = inputs,
                             .outputs = outputs,
                             .attributes = attributes,
                             .body = &body,
                             .original = NO_NODE,
                             .module = "",
                             .iteration = type_make(F32, SHAPE(2, 3))});
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4, 5, 6);
  FILL(e, 1, 1, 1, 2);
  small_run(e);
  EXPECT(e, result, 0, 0 + 1 + 1, 9 + 16 + 16);
  small_graph_destroy(&small);
}

static void test_views_of_views(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, I32, SHAPE(2, 6));
  ValueId cube = build_reshape(graph, x, SHAPE(2, 3, 2));
  ValueId turned = build_permute(graph, cube, (int64_t[]){2, 0, 1}); /* [2, 2, 3]: t[c, a, b] = x[a, 2 b + c] */
  ValueId part = build_slice(graph, turned, 2, 0, 3, 2);             /* [2, 2, 2]: b in {0, 2} */
  ValueId flat = build_reshape(graph, part, SHAPE(8));
  ValueId row = build_slice(graph, flat, 0, 5, 6, 1), wide = build_expand(graph, row, SHAPE(2, 3));
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15);
  small_run(e);
  EXPECT(e, turned, 0, 0, 2, 4, 10, 12, 14, 1, 3, 5, 11, 13, 15);
  EXPECT(e, flat, 0, 0, 4, 10, 14, 1, 5, 11, 15);
  EXPECT(e, wide, 0, 5, 5, 5, 5, 5, 5);
  small_graph_destroy(&small);
}

static void test_assemblies(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(2, 2)), y = small_input(&small, F32, SHAPE(2, 1));
  ValueId joined = build_concat(graph, 3, (ValueId[]){x, y, x}, 1);
  Attribute attributes[] = {attribute_int(0), attribute_int(1), attribute_int(2), attribute_int(5)};
  ValueId placed = build_apply(graph, OP_place, attributes, 1, &x);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4);
  FILL(e, 1, 8, 9);
  small_run(e);
  EXPECT(e, joined, 0, 1, 2, 8, 1, 2, 3, 4, 9, 3, 4);
  EXPECT(e, placed, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0);
  small_run(e);
  EXPECT(e, placed, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0);
  small_graph_destroy(&small);
}

static void test_contraction(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId a = small_input(&small, F32, SHAPE(2, 1, 2, 3)), b = small_input(&small, F32, SHAPE(2, 3, 1));
  ValueId product = BUILD(graph, contract, a, b); /* batch [2, 1] and [2] -> [2, 2] */
  ValueId i = small_input(&small, I32, SHAPE(1, 2)), j = small_input(&small, I32, SHAPE(2, 1));
  ValueId integers = BUILD(graph, contract, i, j);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  FILL(e, 1, 1, 0, 0, 1, 1, 1);
  FILL(e, 2, 3, -4);
  FILL(e, 3, 5, 6);
  small_run(e);
  EXPECT(e, product, 0, 1, 4, 6, 15, 7, 10, 24, 33);
  EXPECT(e, integers, 0, -9);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_of_odd_sizes),   cmocka_unit_test(test_middle_axis_and_extremes),
      cmocka_unit_test(test_sum_is_rounded_once), cmocka_unit_test(test_fused_reduction),
      cmocka_unit_test(test_views_of_views),      cmocka_unit_test(test_assemblies),
      cmocka_unit_test(test_contraction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
