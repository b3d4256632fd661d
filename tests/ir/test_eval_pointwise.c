/* Scalar expressions in the interpreter: broadcasting, data types, functions, fused bodies. */
#include "small_graph.h"

static void test_add_broadcasts(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2, 1, 3)), y = small_input(&small, F32, SHAPE(2, 1));
  ValueId sum = BUILD(small.graph, add, x, y), scalar = small_input(&small, F32, SCALAR);
  ValueId product = BUILD(small.graph, multiply, sum, scalar);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4, 5, 6);
  FILL(e, 1, 10, 20);
  FILL(e, 2, 2);
  small_run(e);
  EXPECT(e, sum, 0, 11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26);
  EXPECT(e, product, 0, 22, 24, 26, 42, 44, 46, 28, 30, 32, 48, 50, 52);
  small_graph_destroy(&small);
}

/* 2^24 + 1 is not a float. */
static void test_precision(void **state) {
  (void)state;
  for (int precision = EVAL_F32; precision <= EVAL_F64; precision++) {
    SmallGraph small = small_graph();
    ValueId x = small_input(&small, F32, SCALAR), sum = BUILD(small.graph, add, x, build_constant(small.graph, F32, 1));
    ValueId wide = BUILD(small.graph, add, build_cast(small.graph, x, F64), build_constant(small.graph, F64, 1));
    Evaluation *e = eval_create(small.arena, small.graph, (EvalPrecision)precision);
    FILL(e, 0, 16777216);
    small_run(e);
    EXPECT(e, sum, 0, precision == EVAL_F32 ? 16777216 : 16777217);
    EXPECT(e, wide, 0, 16777217);
    small_graph_destroy(&small);
  }
}

static void test_inputs_are_rounded(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SCALAR), h = build_cast(small.graph, x, F16),
          b = build_cast(small.graph, x, BF16);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 0.1);
  small_run(e);
  EXPECT(e, x, 0, (double)0.1f);
  EXPECT(e, h, 0, 0.0999755859375);
  EXPECT(e, b, 0, 0.10009765625);
  small_graph_destroy(&small);
}

static void test_integer_division(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, I32, SHAPE(6)), y = small_input(&small, I32, SHAPE(6));
  ValueId quotient = BUILD(small.graph, floor_divide, x, y), rest = BUILD(small.graph, modulo, x, y);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 7, -7, 7, -7, 6, 5);
  FILL(e, 1, 2, 2, -2, -2, -3, 0);
  small_run(e);
  EXPECT(e, quotient, 0, 3, -4, -4, 3, -2, 0);
  EXPECT(e, rest, 0, 1, 1, -1, -1, 0, 0);
  small_graph_destroy(&small);
}

static void test_integers_wrap(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, I32, SCALAR), y = small_input(&small, U8, SCALAR),
          z = small_input(&small, I64, SCALAR);
  ValueId sum = BUILD(small.graph, add, x, x), byte = BUILD(small.graph, add, y, y), minus = BUILD(small.graph, abs, z);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  e->inputs[0].integer[0] = INT32_MAX;
  e->inputs[1].integer[0] = 200;
  e->inputs[2].integer[0] = INT64_MIN;
  small_run(e);
  EXPECT(e, sum, 0, -2);
  EXPECT(e, byte, 0, 144);
  assert_true(eval_value(e, minus)->integer[0] == INT64_MIN);
  small_graph_destroy(&small);
}

static void test_casts(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(6));
  ValueId i32 = build_cast(small.graph, x, I32), u8 = build_cast(small.graph, x, U8),
          yes = build_cast(small.graph, x, BOOL);
  ValueId back = build_cast(small.graph, yes, F32);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 2.9, -2.9, 1e20, -1e20, NAN, 0);
  small_run(e);
  EXPECT(e, i32, 0, 2, -2, INT32_MAX, INT32_MIN, 0, 0);
  EXPECT(e, u8, 0, 2, 0, 255, 0, 0, 0);
  EXPECT(e, yes, 0, 1, 1, 1, 1, 1, 0);
  EXPECT(e, back, 0, 1, 1, 1, 1, 1, 0);
  small_graph_destroy(&small);
}

static void test_choice(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2, 2)), y = small_input(&small, F32, SHAPE(2));
  ValueId larger = BUILD(small.graph, greater, x, y), chosen = BUILD(small.graph, where, larger, x, y);
  ValueId both =
      BUILD(small.graph, logical_and, larger, BUILD(small.graph, logical_not, BUILD(small.graph, equal, x, y)));
  ValueId integers =
      BUILD(small.graph, where, larger, build_integer(small.graph, I32, 7), build_integer(small.graph, I32, -7));
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 0.25, 2, 3, -4);
  FILL(e, 1, 0.5, 0.75);
  small_run(e);
  EXPECT(e, larger, 0, 0, 1, 1, 0);
  EXPECT(e, chosen, 0, 0.5, 2, 3, 0.75);
  EXPECT(e, both, 0, 0, 1, 1, 0);
  EXPECT(e, integers, 0, -7, 7, 7, -7);
  small_graph_destroy(&small);
}

/* Published digits (Abramowitz & Stegun, and erf'(1) = 0.41510749742). */
static void test_functions(void **state) {
  (void)state;
  for (int precision = EVAL_F32; precision <= EVAL_F64; precision++) {
    SmallGraph small = small_graph();
    Graph *graph = small.graph;
    ValueId x = small_input(&small, F32, SHAPE(3)), p = small_input(&small, F32, SHAPE(2));
    Attribute tanh_form = attribute_choice(1);
    ValueId exponential = BUILD(graph, exp, x), tangent = BUILD(graph, tanh, x), error = BUILD(graph, erf, x);
    ValueId gelu = BUILD(graph, gelu, x), gelu_tanh = build_apply(graph, OP_gelu, &tanh_form, 1, &x);
    ValueId sigmoid = BUILD(graph, sigmoid, x), silu = BUILD(graph, silu, x), softplus = BUILD(graph, softplus, x);
    ValueId relu = BUILD(graph, relu, x), leaky = BUILD(graph, leaky_relu, x), sign = BUILD(graph, sign, x);
    ValueId gelu_slope = BUILD(graph, gelu_slope, x);
    ValueId logarithm = BUILD(graph, log, p), root = BUILD(graph, sqrt, p), inverse = BUILD(graph, rsqrt, p);
    ValueId power = BUILD(graph, power, p, build_constant(graph, F32, 1.5)), log1p = BUILD(graph, log1p, p);
    Evaluation *e = eval_create(small.arena, graph, (EvalPrecision)precision);
    FILL(e, 0, -2, 0, 1);
    FILL(e, 1, 2, 0.25);
    small_run(e);
    double near = precision == EVAL_F32 ? 3e-7 : 1e-11;
    EXPECT(e, exponential, near, 0.135335283236613, 1, 2.718281828459045);
    EXPECT(e, tangent, near, -0.964027580075817, 0, 0.761594155955765);
    EXPECT(e, error, near, -0.995322265018953, 0, 0.842700792949715);
    EXPECT(e, gelu, near, -0.045500263896358, 0, 0.841344746068543);
    EXPECT(e, gelu_tanh, near, -0.045402305912225, 0, 0.841191990608276);
    EXPECT(e, gelu_slope, near, -0.085231801078197, 0.5, 1.083315470587687);
    EXPECT(e, sigmoid, near, 0.119202922022118, 0.5, 0.731058578630005);
    EXPECT(e, silu, near, -0.238405844044235, 0, 0.731058578630005);
    EXPECT(e, softplus, near, 0.126928011042973, 0.693147180559945, 1.313261687518223);
    EXPECT(e, relu, 0, 0, 0, 1);
    EXPECT(e, leaky, near, -0.02, 0, 1);
    EXPECT(e, sign, 0, -1, 0, 1);
    EXPECT(e, logarithm, near, 0.693147180559945, -1.386294361119891);
    EXPECT(e, log1p, near, 1.09861228866811, 0.22314355131421);
    EXPECT(e, root, near, 1.414213562373095, 0.5);
    EXPECT(e, inverse, near, 0.707106781186548, 2);
    EXPECT(e, power, near, 2.82842712474619, 0.125);
    small_graph_destroy(&small);
  }
}

static void test_constants_and_indices(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  Attribute whole[] = {attribute_ints(SHAPE(2, 2)), attribute_dtype(I64)};
  ValueId indices = graph_apply(graph, OP_arange, 0, NULL, whole, NULL);
  ValueId real = build_full(graph, type_make(F32, SHAPE(3)), 0.5),
          integer = build_integer(graph, I64, INT64_C(1) << 60);
  Attribute scalar[] = {attribute_ints(0, NULL), attribute_dtype(F32)},
            wide[] = {attribute_ints(0, NULL), attribute_dtype(F64)};
  ValueId rate = graph_apply(graph, OP_learning_rate_scale, 0, NULL, scalar, NULL);
  ValueId update = graph_apply(graph, OP_update_number, 0, NULL, wide, NULL);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  e->control.learning_rate_scale = 0.25;
  e->control.update = 17;
  small_run(e);
  EXPECT(e, indices, 0, 0, 1, 2, 3);
  EXPECT(e, real, 0, 0.5, 0.5, 0.5);
  assert_true(eval_value(e, integer)->integer[0] == INT64_C(1) << 60);
  EXPECT(e, rate, 0, 0.25);
  EXPECT(e, update, 0, 17);
  small_graph_destroy(&small);
}

static void test_causal_fill(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(2, 2, 3));
  Attribute attributes[] = {attribute_int(2), attribute_int(3), attribute_float(-9)};
  ValueId masked = build_apply(small.graph, OP_causal_fill, attributes, 1, &x);
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  FILL(e, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  small_run(e);
  EXPECT(e, masked, 0, 1, 2, -9, 4, 5, 6, 7, 8, -9, 10, 11, 12);
  small_graph_destroy(&small);
}

/* A hand-made body over more than one block of elements: y = (x + b)², and b <- b · 2 elementwise, with b broadcast
 * nowhere. */
static void test_fused_body_with_write(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(1000)), b = small_parameter(&small, "b", 3, SHAPE(1000));
  ValueId y = graph_new_value(graph, type_make(F32, SHAPE(1000)), NULL, (Location){0});
  Instruction instructions[] = {
      {.op = OP_add, .dtype = F32, .operand_count = 2, .operands = {~0, ~1}},
      {.op = OP_square, .dtype = F32, .operand_count = 1, .operands = {0}},
      {.op = OP_add, .dtype = F32, .operand_count = 2, .operands = {~1, ~1}},
  };
  int results[] = {1, 2};
  Body body = {3, 2, instructions, results};
  ValueId inputs[] = {x, b}, outputs[] = {y}, writes[] = {b};
  graph_append(graph, (Node){.op = OP_square,
                             .input_count = 2,
                             .output_count = 1,
                             .write_count = 1,
                             .inputs = inputs,
                             .outputs = outputs,
                             .writes = writes,
                             .body = &body,
                             .original = NO_NODE,
                             .module = "",
                             .iteration = type_make(F32, SHAPE(1000))});
  ValueId after = BUILD(graph, add, y, x);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  eval_fill_initial(e, 1);
  for (int i = 0; i < 1000; i++) e->inputs[0].real[i] = i;
  small_run(e);
  for (int i = 0; i < 1000; i++) {
    assert_true(eval_value(e, y)->real[i] == (i + 3) * (i + 3));
    assert_true(eval_value(e, after)->real[i] == (i + 3) * (i + 3) + i);
    assert_true(e->persistents[0].real[i] == 3 && e->written[0].real[i] == 6);
  }
  eval_commit(e);
  assert_true(e->persistents[0].real[999] == 6 && eval_value(e, b)->real[0] == 6);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add_broadcasts),
      cmocka_unit_test(test_precision),
      cmocka_unit_test(test_inputs_are_rounded),
      cmocka_unit_test(test_integer_division),
      cmocka_unit_test(test_integers_wrap),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_constants_and_indices),
      cmocka_unit_test(test_causal_fill),
      cmocka_unit_test(test_fused_body_with_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
