/* Gradients of the op table against finite differences in double: every pointwise operator that has one, at odd sizes,
 * with views and broadcasts as inputs; reductions, views, assemblies, contractions, kernels; and that a wrong gradient
 * is seen. */
#include "passes/passes.h"
#include "small_graph.h"

static const double near_enough = 2e-5; /* rounding of a loss of 3000 terms, over a step of 3e-5 */

/* loss = sum(value · c), c a pattern, so that no gradient is uniform; then the backward pass. */
static bool differentiate(SmallGraph *small, ValueId value) {
  Type type = *value_type(small->graph, value);
  ValueId pattern = small_input(small, type.dtype, type.rank, type.dims);
  small->graph->loss.value =
      build_reduce(small->graph, OP_sum, BUILD(small->graph, multiply, value, pattern), -1, NULL, false);
  MemoryArena *scratch = memory_arena_create();
  differentiate_graph(small->graph, scratch);
  memory_arena_destroy(scratch);
  const char *fault = diag_error_count() ? NULL : graph_verify(small->arena, small->graph);
  if (fault) fail_msg("%s", fault);
  return diag_error_count() == 0;
}

/* Every real in [lowest, lowest + 1), every integer 0, 1, 2, 0, … */
static void fill(EvalTensor *tensor, double lowest, double phase) {
  for (int64_t i = 0; i < type_elements(&tensor->type); i++)
    eval_tensor_set(tensor, i, tensor->real ? lowest + 0.5 + 0.49 * sin(1.7 * (double)i + phase) : (double)(i % 3));
}

static GradientCheck check_gradients(SmallGraph *small, double lowest) {
  Evaluation *e = eval_create(small->arena, small->graph, EVAL_F64);
  GradientCheck check;
  for (int64_t i = 0; i < small->module->inputs.count; i++) fill(&e->inputs[i], lowest, (double)i + 0.5);
  for (int64_t i = 0; i < small->module->persistents.count; i++) fill(&e->persistents[i], lowest, (double)i);
  if (!eval_gradient_check(e, 40, &check)) fail_msg("%s", e->fault);
  return check;
}

static void expect_good(const char *what, GradientCheck check) {
  if (!check.checked || check.worst > near_enough || check.skipped > check.checked / 4)
    fail_msg("%s: %d elements, %d skipped; %s element %d: %.12g by the table, %.12g by differences", what,
             (int)check.checked, (int)check.skipped, check.name ? check.name : "-", (int)check.element, check.analytic,
             check.numeric);
}

static void check_value(SmallGraph *small, ValueId value, double lowest, const char *what) {
  assert_true(value != NO_VALUE);
  if (!differentiate(small, value)) fail_msg("%s: %s", what, diag_get(0)->message);
  expect_good(what, check_gradients(small, lowest));
  small_graph_destroy(small);
}

/* ---- pointwise operators, straight from the table ---- */

static bool is_differentiable(Op op) {
  const OpInfo *info = op_info(op);
  bool real = info->operands == NUMBERS_TO_SAME || info->operands == REALS_TO_SAME || info->operands == ANY_TO_SAME;
  return info->kind == KIND_POINTWISE && real && info->input_count &&
         !(info->properties & (OP_ZERO_GRADIENT | OP_EFFECT));
}

/* Attributes that have no default: small numbers that suit a [3, n] tensor. */
static Attribute *choose_attributes(MemoryArena *arena, const OpInfo *info, int64_t n) {
  Attribute *attributes = NEW_ARRAY(arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) {
    const AttributeInfo *attribute = &info->attributes[i];
    attributes[i] = attribute->initial;
    if (!attribute->required) continue;
    if (attribute->kind == ATTRIBUTE_INT) attributes[i] = attribute_int(i == 0 ? 3 : n);
    if (attribute->kind == ATTRIBUTE_FLOAT) attributes[i] = attribute_float(0.25);
  }
  return attributes;
}

/* op(x, y) with x a transposed parameter [3, n] and y a parameter [n] that broadcasts. False: the table has no
 * gradient. */
static bool build_pointwise(SmallGraph *small, Op op, int64_t n, int64_t choice) {
  Graph *graph = small->graph;
  const OpInfo *info = op_info(op);
  ValueId operands[MAX_POINTWISE_INPUTS];
  operands[0] = build_swap(graph, small_parameter(small, "x", 0, SHAPE(n, 3)), 0, 1);
  for (int i = 1; i < info->input_count; i++) operands[i] = small_parameter(small, "y", 0, SHAPE(n));
  Attribute *attributes = choose_attributes(small->arena, info, n);
  for (int i = 0; i < info->attribute_count; i++)
    if (info->attributes[i].kind == ATTRIBUTE_CHOICE) attributes[i] = attribute_choice(choice);
  bool done = differentiate(small, graph_apply(graph, op, info->input_count, operands, attributes, NULL));
  if (!done) diag_reset();
  return done;
}

static bool has_choice(Op op) {
  const OpInfo *info = op_info(op);
  for (int i = 0; i < info->attribute_count; i++)
    if (info->attributes[i].kind == ATTRIBUTE_CHOICE) return true;
  return false;
}

/* Operators that gradients are made of and that have none themselves. */
static bool is_slope(Op op) { return string_ends(op_info(op)->name, "_slope"); }

static int check_pointwise(Op op, int64_t n, double lowest, int64_t choice) {
  SmallGraph small = small_graph();
  if (!build_pointwise(&small, op, n, choice)) {
    assert_true(is_slope(op));
    small_graph_destroy(&small);
    return 0;
  }
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F64);
  for (int64_t i = 0; i < small.module->persistents.count; i++) fill(&e->persistents[i], lowest, (double)i);
  small_run(e);
  bool defined = !isnan(eval_value(e, small.graph->loss.value)->real[0]); /* no logarithms of negative numbers */
  if (defined) expect_good(op_info(op)->name, check_gradients(&small, lowest));
  small_graph_destroy(&small);
  return defined;
}

static void test_every_pointwise_operator(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 3, 17, 1000};
  int operators = 0;
  for (int op = 1; op < OP_COUNT; op++) {
    if (!is_differentiable((Op)op)) continue;
    int checks = 0;
    for (int k = 0; k < 4; k++)
      for (int choice = 0; choice <= has_choice((Op)op); choice++) {
        checks += check_pointwise((Op)op, sizes[k], 0.3, choice);
        checks += check_pointwise((Op)op, sizes[k], -1.4, choice);
        checks += check_pointwise((Op)op, sizes[k], -0.45, choice);
      }
    assert_true(checks >= 4 || is_slope((Op)op));
    operators += checks > 0;
  }
  assert_true(operators >= 24);
}

static void test_where_and_cast(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_parameter(&small, "x", 0, SHAPE(3, 5)), y = small_parameter(&small, "y", 0, SHAPE(5));
  ValueId wide = build_cast(graph, BUILD(graph, where, BUILD(graph, less, x, y), BUILD(graph, square, x), y), F64);
  check_value(&small, wide, -0.5, "where, cast");
}

/* ---- the other kinds ---- */

static void test_reductions(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 3, 17, 1000};
  for (int op = 1; op < OP_COUNT; op++)
    for (int k = 0; k < 4 && op_kind((Op)op) == KIND_REDUCTION; k++)
      for (int keepdims = 0; keepdims <= 1; keepdims++) {
        SmallGraph small = small_graph();
        ValueId x = small_parameter(&small, "x", 0, SHAPE(2, sizes[k], 3));
        int64_t axes[] = {0, 1};
        ValueId kept = build_reduce(small.graph, (Op)op, build_swap(small.graph, x, 1, 2), 1, &axes[1], keepdims);
        ValueId all = build_reduce(small.graph, (Op)op, x, 2, axes, false);
        ValueId sum = build_reduce(small.graph, OP_sum, kept, -1, NULL, false);
        check_value(&small, BUILD(small.graph, multiply, BUILD(small.graph, square, sum), all), 0.25,
                    op_info((Op)op)->name);
      }
}

static void test_views_and_assemblies(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_parameter(&small, "x", 0, SHAPE(4, 6)), y = small_parameter(&small, "y", 0, SHAPE(2, 1));
  ValueId turned = build_permute(graph, build_reshape(graph, x, SHAPE(2, 2, 6)), (int64_t[]){2, 0, 1}); /* [6, 2, 2] */
  ValueId part = build_slice(graph, turned, 0, 1, 6, 2), wide = build_expand(graph, y, SHAPE(3, 2, 2));
  Attribute attributes[] = {attribute_int(1), attribute_int(1), attribute_int(2), attribute_int(6)};
  ValueId placed = build_apply(graph, OP_place, attributes, 1, (ValueId[]){part}); /* [3, 6, 2] */
  ValueId joined = build_concat(graph, 4, (ValueId[]){placed, wide, part, part}, 1);
  check_value(&small, BUILD(graph, square, joined), -0.4, "views and assemblies");
}

static void test_contraction(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId a = small_parameter(&small, "a", 0, SHAPE(2, 1, 5, 3)), b = small_parameter(&small, "b", 0, SHAPE(4, 7, 3));
  ValueId product = BUILD(small.graph, contract, a, build_swap(small.graph, b, -1, -2)); /* [2, 4, 5, 7] */
  check_value(&small, BUILD(small.graph, square, product), -0.4, "contract");
}

/* Rows of x, as columns of a parameter: [2, n]. */
static ValueId row_parameter(SmallGraph *small, int64_t n) {
  return build_swap(small->graph, small_parameter(small, "x", 0, SHAPE(n, 2)), 0, 1);
}

static void test_softmax_and_norms(void **state) {
  (void)state;
  const int64_t sizes[] = {3, 17, 1000};
  for (int k = 0; k < 3; k++) {
    SmallGraph small = small_graph();
    check_value(&small, BUILD(small.graph, softmax, row_parameter(&small, sizes[k])), 0.2, "softmax");
    small = small_graph();
    int64_t classes = sizes[k] < 200 ? sizes[k] : 200; /* a loss of more logarithms rounds too much for differences */
    ValueId logarithms = BUILD(small.graph, log_softmax, row_parameter(&small, classes));
    check_value(&small, logarithms, 0.2, "log_softmax");
    small = small_graph();
    ValueId x = row_parameter(&small, sizes[k]), weight = small_parameter(&small, "w", 0, SHAPE(sizes[k]));
    ValueId bias = small_parameter(&small, "b", 0, SHAPE(sizes[k]));
    ValueId whole = BUILD(small.graph, layer_norm, x, weight, bias), plain = BUILD(small.graph, layer_norm, x);
    check_value(&small, BUILD(small.graph, add, whole, plain), 0.2, "layer_norm");
    small = small_graph();
    x = row_parameter(&small, sizes[k]);
    weight = small_parameter(&small, "w", 0, SHAPE(sizes[k]));
    check_value(&small, BUILD(small.graph, rms_norm, x, weight), 0.2, "rms_norm");
  }
}

static void test_losses_and_tables(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId table = small_parameter(&small, "table", 0, SHAPE(3, 5)), target = small_input(&small, I32, SHAPE(2, 3));
  ValueId logits = BUILD(graph, embed, table, target); /* classes 0..2 of 5; row 1 is ignored */
  Attribute settings[] = {attribute_int(1), attribute_float(0.1), attribute_choice(0)};
  ValueId smooth = build_apply(graph, OP_cross_entropy, settings, 2, (ValueId[]){logits, target});
  ValueId plain = BUILD(graph, cross_entropy, logits, target),
          mse = BUILD(graph, mse, logits, build_constant(graph, F32, 0.5));
  check_value(&small, BUILD(graph, add, BUILD(graph, multiply, smooth, plain), mse), -0.5, "losses and tables");
}

static void test_attention(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId q = small_parameter(&small, "q", 0, SHAPE(2, 2, 3, 4)),
          k = small_parameter(&small, "k", 0, SHAPE(2, 2, 3, 4));
  ValueId v = small_parameter(&small, "v", 0, SHAPE(2, 2, 3, 5));
  Attribute settings[MAX_OP_ATTRIBUTES] = {{0}};
  settings[op_attribute_index(OP_attention, "causal")] = attribute_bool(true);
  settings[op_attribute_index(OP_attention, "dropout")] = attribute_float(0.25);
  settings[op_attribute_index(OP_attention, "scale")] = attribute_none(ATTRIBUTE_FLOAT);
  check_value(&small, build_apply(graph, OP_attention, settings, 3, (ValueId[]){q, k, v}), -0.4, "attention");
}

/* ---- what the check itself does ---- */

/* x - stop(x²): the gradient is 1, though a difference of the loss would see more. */
static void test_stop_is_held(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_parameter(&small, "x", 0, SHAPE(3));
  check_value(&small, BUILD(small.graph, subtract, x, BUILD(small.graph, stop, BUILD(small.graph, square, x))), 0.5,
              "stop");
}

static void test_wrong_gradient_is_seen(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_parameter(&small, "x", 0, SHAPE(5));
  graph->loss.value = build_reduce(graph, OP_sum, BUILD(graph, square, x), -1, NULL, false);
  graph->phase = PHASE_BACKWARD;
  ValueId wrong = BUILD(graph, multiply, x, build_constant(graph, F32, 2.001));
  GraphGradient gradient = {.name = "x", .of = x, .gradient = wrong, .divisor = NO_VALUE};
  array_push(small.arena, &graph->gradients, gradient);
  GradientCheck check = check_gradients(&small, 0.5);
  assert_int_equal(check.checked, 5);
  assert_true(check.worst > 4e-4 && check.worst < 6e-4);
  assert_string_equal(check.name, "x");
  small_graph_destroy(&small);
}

/* |x| at 0 and within a step of it: not compared; everywhere else it is. */
static void test_kinks_are_skipped(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_parameter(&small, "x", 0, SHAPE(6));
  differentiate(&small, BUILD(small.graph, abs, x));
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F64);
  const double values[] = {0, 3e-6, -9e-6, 2e-5, 0.5, -2};
  for (int i = 0; i < 6; i++) e->persistents[0].real[i] = values[i];
  for (int i = 0; i < 6; i++) e->inputs[0].real[i] = 1 + i;
  GradientCheck check;
  assert_true(eval_gradient_check(e, 6, &check));
  assert_int_equal(check.skipped, 4);
  assert_int_equal(check.checked, 2);
  assert_true(check.worst < near_enough);
  for (int i = 0; i < 6; i++) assert_true(e->persistents[0].real[i] == values[i]);
  assert_false(e->was_written[0]);
  small_graph_destroy(&small);
}

/* Gradients of an input and of a value in the middle. */
static void test_requested_gradients(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4)), u = BUILD(graph, exp, x),
          y = BUILD(graph, multiply, BUILD(graph, square, u), x);
  GraphOutput requests[] = {{.name = "x", .value = x, .denominator = NO_VALUE},
                            {.name = "u", .value = u, .denominator = NO_VALUE}};
  array_push(small.arena, &graph->gradient_requests, requests[0]);
  array_push(small.arena, &graph->gradient_requests, requests[1]);
  assert_true(differentiate(&small, y));
  assert_int_equal(graph->gradients.count, 2);
  GradientCheck check = check_gradients(&small, -0.5);
  expect_good("requested", check);
  assert_int_equal(check.checked, 8);
  small_graph_destroy(&small);
}

/* Mean over micro-batches and `loss a per b`, once and accumulated. */
static void test_accumulated_and_weighted_losses(void **state) {
  (void)state;
  for (int accumulate = 1; accumulate <= 4; accumulate += 3)
    for (int weighted = 0; weighted <= 1; weighted++) {
      SmallGraph small = small_graph();
      Graph *graph = small.graph;
      ValueId w = small_parameter(&small, "w", 0, SHAPE(3)), b = small_input(&small, F32, SCALAR);
      small.module->training.accumulate = accumulate;
      small.module->training.has_optimizer = true;
      small.module->training.optimizer = OP_sgd;
      Attribute settings[] = {attribute_float(0.1), attribute_float(0), attribute_float(0), attribute_bool(false)};
      small.module->persistents.items[0].optimizer_settings = settings;
      if (weighted) graph->loss.denominator = b;
      check_value(&small, BUILD(graph, square, w), 0.7, "weighted losses");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_pointwise_operator),
      cmocka_unit_test(test_where_and_cast),
      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_views_and_assemblies),
      cmocka_unit_test(test_contraction),
      cmocka_unit_test(test_softmax_and_norms),
      cmocka_unit_test(test_losses_and_tables),
      cmocka_unit_test(test_attention),
      cmocka_unit_test(test_stop_is_held),
      cmocka_unit_test(test_wrong_gradient_is_seen),
      cmocka_unit_test(test_kinks_are_skipped),
      cmocka_unit_test(test_requested_gradients),
      cmocka_unit_test(test_accumulated_and_weighted_losses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
