/* Every operator of the language against PyTorch: outputs and gradients, in float64 and float32, in the graph as built
 * and after each pass that rewrites it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdlib.h>

#include "passes/passes.h"
#include "tests/operators/build_case.h"

/* Operators of the table that need no vector of their own, and why. */
typedef struct Internal {
  const char *op, *reason;
} Internal;

static const Internal internals[] = {
    {"learning_rate_scale", "read by optimizers only: optimizer vectors"},
    {"update_number", "read by optimizers only: optimizer vectors"},
    {"silu_slope", "the gradient of silu: its vectors"},
    {"gelu_slope", "the gradient of gelu: its vectors"},
    {"assign", "an effect without result: optimizer vectors"},
    {"causal_fill", "what causal_mask expands into: its vectors"},
    {"drop", "what dropout expands into: its vectors"},
    {"place", "the gradient of slice: its vectors"},
    {"softmax_rows_backward", "the gradient of softmax_rows: its vectors"},
    {"layer_norm_backward", "the gradient of layer_norm: its vectors"},
    {"cross_entropy_rows_backward", "the gradient of cross_entropy_rows: its vectors"},
    {"embed_backward", "the gradient of embed: its vectors"},
};
/* Offered by the language beside the table. */
static const char *const specials[] = {"rearrange", "split", "unstack", "index"};

static VectorCases cases;

static bool is_internal(const char *op) {
  for (size_t i = 0; i < sizeof internals / sizeof *internals; i++)
    if (string_equal(internals[i].op, op)) return true;
  return false;
}

static bool has_vector(const char *op) {
  for (int64_t i = 0; i < cases.count; i++)
    if (string_equal(cases.items[i].op, op)) return true;
  return false;
}

static void every_operator_has_a_vector(void **state) {
  (void)state;
  int missing = 0;
  for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info((Op)op);
    if (info->kind == KIND_OPTIMIZER || is_internal(info->name) || has_vector(info->name)) continue;
    print_error("operator '%s' has no vector: add a case to tests/reference/operators.py\n", info->name);
    missing++;
  }
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) assert_true(has_vector(specials[i]));
  for (size_t i = 0; i < sizeof internals / sizeof *internals; i++) {
    assert_int_not_equal(op_find(internals[i].op), OP_NONE);
    assert_false(has_vector(internals[i].op));
  }
  assert_int_equal(missing, 0);
}

/* ---- comparison ---- */

static const GraphGradient *find_gradient(const Graph *graph, const char *name) {
  for (int64_t i = 0; i < graph->gradients.count; i++)
    if (string_equal(graph->gradients.items[i].name, name)) return &graph->gradients.items[i];
  return NULL;
}

static bool compare_outputs(const Evaluation *evaluation, const VectorCase *vectors, const char *what,
                            Tolerance tolerance) {
  bool same = true;
  for (int i = 0; i < vectors->output_count; i++) {
    const EvalTensor *found = eval_value(evaluation, evaluation->graph->outputs.items[i].value);
    if (!type_equal(&found->type, &vectors->outputs[i].type)) {
      print_error("%s: output %d is %s, expected %s\n", what, i, type_text(evaluation->arena, &found->type),
                  type_text(evaluation->arena, &vectors->outputs[i].type));
      return false;
    }
    char *name = memory_format(evaluation->arena, "%s, output %d", what, i);
    same = vectors_match(name, found, vectors->outputs[i].data, tolerance.relative, tolerance.absolute) && same;
  }
  return same;
}

static bool compare_gradients(const Evaluation *evaluation, const BuiltCase *built, const char *what,
                              Tolerance tolerance) {
  MemoryArena *arena = evaluation->arena;
  bool same = true;
  for (int i = 0; i < built->vectors->input_count; i++) {
    if (!built->vectors->inputs[i].gradient) continue;
    const GraphGradient *gradient = find_gradient(evaluation->graph, memory_format(arena, "x%d", i));
    assert_non_null(gradient);
    const EvalTensor *found = eval_value(evaluation, gradient->gradient);
    assert_true(type_equal(&found->type, &built->vectors->inputs[i].tensor.type));
    char *name = memory_format(arena, "%s, gradient %d", what, i);
    same =
        vectors_match(name, found, expected_gradient(arena, built, i), tolerance.relative, tolerance.absolute) && same;
  }
  return same;
}

static bool evaluate(const Graph *graph, const BuiltCase *built, EvalPrecision precision, const char *stage,
                     bool gradients) {
  MemoryArena *arena = memory_arena_create();
  const VectorCase *vectors = built->vectors;
  const char *fault = graph_verify(arena, graph);
  char *what =
      memory_format(arena, "%s (%s), %s, %s", vectors->op, vectors->name, stage, precision == EVAL_F64 ? "f64" : "f32");
  if (fault) print_error("%s: %s\n", what, fault);
  assert_null(fault);
  Evaluation *evaluation = eval_create(arena, graph, precision);
  fill_case(evaluation, built);
  Tolerance tolerance = case_tolerance(vectors, precision);
  bool same = eval_run(evaluation);
  if (!same) print_error("%s: %s\n", what, evaluation->fault);
  same = same && compare_outputs(evaluation, vectors, what, tolerance);
  if (gradients) same = same && compare_gradients(evaluation, built, what, tolerance);
  memory_arena_destroy(arena);
  return same;
}

/* The pipeline up to where storages are assigned; every graph on the way has the same values. */
static const struct {
  const char *name;
  void (*run)(Graph *graph, MemoryArena *scratch);
} stages[] = {{"simplified forward", simplify_graph},
              {"differentiated", differentiate_graph},
              {"simplified", simplify_graph},
              {"fused", fuse_graph},
              {"with kernels chosen", choose_kernels}};

enum { DIFFERENTIATED = 1 }; /* gradients are there from this stage on */

static bool check_stages(Graph *graph, const BuiltCase *built, MemoryArena *scratch) {
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    stages[i].run(graph, scratch);
    if (diag_error_count()) return false;
    bool gradients = i >= DIFFERENTIATED;
    bool same = evaluate(graph, built, EVAL_F64, stages[i].name, gradients);
    if (!evaluate(graph, built, EVAL_F32, stages[i].name, gradients) || !same) return false;
  }
  return true;
}

static bool check_case(const VectorCase *vectors) {
  MemoryArena *arena = memory_arena_create(), *scratch = memory_arena_create();
  Module *module = module_create(arena, vectors->op, "case");
  BuiltCase built;
  module->train = graph_create(module, false);
  bool same = build_case(module->train, vectors, "", &built) && check_stages(module->train, &built, scratch);
  if (diag_error_count()) {
    print_error("%s (%s):\n", vectors->op, vectors->name);
    diag_print(stderr, false);
  }
  diag_reset();
  memory_arena_destroy(scratch);
  memory_arena_destroy(arena);
  return same;
}

static void vectors_hold(void **state) {
  (void)state;
  int failed = 0;
  for (int64_t i = 0; i < cases.count; i++) failed += !check_case(&cases.items[i]);
  if (failed) print_error("%d of %lld cases failed\n", failed, (long long)cases.count);
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  if (argc != 2) die("usage: operators_test VECTORS");
  MemoryArena *arena = memory_arena_create();
  json_t *root = vectors_read(arena, argv[1], &cases);
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_has_a_vector), cmocka_unit_test(vectors_hold)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(root);
  memory_arena_destroy(arena);
  return failed;
}
