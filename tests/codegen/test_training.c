/* Small training programs, compiled to C, against the interpreter running the graph that was compiled. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/build.h"
#include "tests/codegen/emitted.h"

enum { ROWS = 6, FEATURES = 5, HIDDEN = 19, CLASSES = 3 };

typedef struct Variant {
  Op optimizer;
  int64_t accumulate;
  double clip;
} Variant;

static Attribute *settings(MemoryArena *arena, Op optimizer) {
  const OpInfo *info = op_info(optimizer);
  Attribute *attributes = NEW_ARRAY(arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) attributes[i] = info->attributes[i].initial;
  attributes[op_attribute_index(optimizer, "lr")] = attribute_float(0.05);
  int momentum = op_attribute_index(optimizer, "momentum");
  if (momentum >= 0) attributes[momentum] = attribute_float(0.9);
  return attributes;
}

static ValueId parameter(Graph *graph, const char *name, int rank, const int64_t *dims) {
  Module *module = graph->module;
  Persistent persistent = {.name = name,
                           .type = type_make(F32, rank, dims),
                           .role = ROLE_PARAMETER,
                           .trainable = true,
                           .initial = {INITIAL_NORMAL, 0.5, 0}};
  persistent.optimizer_settings = settings(module->arena, module->training.optimizer);
  return graph_persistent(graph, module_add_persistent(module, persistent));
}

/* cross_entropy(layer_norm(drop(gelu(x w1 + b1))) w2, target), with a state that counts the micro-steps. */
static Module *build_model(MemoryArena *arena, const Variant *variant) {
  Module *module = module_create(arena, "small", "folder/small.rp");
  module->training.present = module->training.has_optimizer = true;
  module->training.optimizer = variant->optimizer;
  module->training.optimizer_settings = settings(arena, variant->optimizer);
  module->training.accumulate = variant->accumulate;
  module->training.clip = variant->clip;
  Graph *graph = module->train = graph_create(module, false);
  ValueId x = graph_input(
      graph,
      module_add_input(module, (ModelInput){.name = "x", .type = type_make(F32, 2, (int64_t[]){ROWS, FEATURES})}));
  ValueId target = graph_input(
      graph, module_add_input(module, (ModelInput){.name = "t", .type = type_make(I32, 1, (int64_t[]){ROWS})}));
  ValueId w1 = parameter(graph, "w1", 2, (int64_t[]){FEATURES, HIDDEN}),
          b1 = parameter(graph, "b1", 1, (int64_t[]){HIDDEN});
  ValueId weight = parameter(graph, "norm", 1, (int64_t[]){HIDDEN}),
          w2 = parameter(graph, "w2", 2, (int64_t[]){CLASSES, HIDDEN});
  ValueId count = graph_persistent(
      graph,
      module_add_persistent(module, (Persistent){.name = "count", .type = type_scalar(F32), .role = ROLE_STATE}));
  ValueId hidden = BUILD(graph, gelu, BUILD(graph, add, BUILD(graph, matmul, x, w1), b1));
  ValueId normal = BUILD(graph, layer_norm, BUILD(graph, dropout, hidden), weight, NO_VALUE);
  ValueId logits = BUILD(graph, matmul, normal, BUILD(graph, transpose, w2));
  graph->loss =
      (GraphOutput){.name = "loss", .value = BUILD(graph, cross_entropy, logits, target), .denominator = NO_VALUE};
  array_push(arena, &graph->outputs, ((GraphOutput){.name = "logits", .value = logits, .denominator = NO_VALUE}));
  build_assign(graph, count, BUILD(graph, add, count, build_constant(graph, F32, 1)));
  return module;
}

static void fill_inputs(Evaluation *evaluation, int step) {
  for (int i = 0; i < ROWS * FEATURES; i++) evaluation->inputs[0].real[i] = (float)sin(i * 1.7 + step);
  for (int i = 0; i < ROWS; i++) evaluation->inputs[1].integer[i] = (i + step) % CLASSES;
}

static void assert_close(const char *name, double found, double wanted) {
  if (!(fabs(found - wanted) <= 2e-4 * (0.05 + fabs(wanted))))
    fail_msg("%s: %.9g, the interpreter has %.9g", name, found, wanted);
}

static void compare_tensor(const RpTensor *tensor, const char *bytes, const EvalTensor *expected) {
  for (int64_t i = 0; i < emitted_elements(tensor); i++)
    assert_close(tensor->name, emitted_element(tensor, bytes, i), expected->real[i]);
}

static void compare_persistents(const Emitted *emitted, const Evaluation *evaluation) {
  for (int64_t i = 0; i < emitted->program->persistent_count; i++) {
    const RpTensor *tensor = &emitted->program->persistents[i].tensor;
    compare_tensor(tensor, emitted->arena + tensor->offset, &evaluation->persistents[i]);
  }
}

/* Observables of the phase whose values the interpreter has at this time. */
static void compare_observed(const Emitted *emitted, const RpPhase *phase, const Evaluation *evaluation) {
  const Graph *graph = evaluation->graph;
  int64_t gradients = 0;
  for (int64_t i = 0; i < phase->observable_count; i++) {
    const RpObservable *observable = &phase->observables[i];
    ValueId value = observable->kind == RP_OBSERVE_LOSS     ? graph->loss.value
                    : observable->kind == RP_OBSERVE_OUTPUT ? graph->outputs.items[0].value
                                                            : graph->gradients.items[gradients++].gradient;
    compare_tensor(&observable->tensor, emitted->observed[i], eval_value(evaluation, value));
  }
}

static void update(Emitted *emitted, Evaluation *evaluation, int number, int64_t accumulate) {
  for (int64_t k = 0; k < accumulate; k++) {
    int64_t step = number * accumulate + k;
    evaluation->control.micro_step = step;
    evaluation->control.update = number + 1;
    fill_inputs(evaluation, (int)step);
    emitted_fill(emitted, evaluation);
    emitted_run(emitted, &emitted->program->micro_step);
    assert_true(eval_run_phases(evaluation, PHASE_FORWARD, accumulate > 1 ? PHASE_BACKWARD : PHASE_UPDATE));
    compare_observed(emitted, &emitted->program->micro_step, evaluation);
    eval_commit(evaluation);
    compare_persistents(emitted, evaluation);
  }
  if (accumulate == 1) return;
  emitted_fill(emitted, evaluation);
  emitted_run(emitted, &emitted->program->update);
  assert_true(eval_run_phases(evaluation, PHASE_UPDATE, PHASE_UPDATE));
  compare_observed(emitted, &emitted->program->update, evaluation);
  eval_commit(evaluation);
  compare_persistents(emitted, evaluation);
}

static Compilation *compile(MemoryArena *memory, const Variant *variant) {
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(build_model(memory, variant), &options);
  assert_non_null(compilation);
  return compilation;
}

static void check_variant(const Variant *variant) {
  MemoryArena *memory = memory_arena_create();
  Compilation *compilation = compile(memory, variant);
  Emitted *emitted = emitted_load(memory, compilation);
  Evaluation *evaluation = eval_create(memory, compilation->train.graph, EVAL_F32);
  const RpProgram *program = emitted->program;
  assert_int_equal(program->update.run != NULL, variant->accumulate > 1);
  assert_int_equal(program->micro_step.scalar_count, 1);
  assert_string_equal(program->source, "small.rp");
  assert_true(program->learning_rate == 0.05);
  eval_fill_initial(evaluation, 3);
  for (int number = 0; number < 3; number++) update(emitted, evaluation, number, variant->accumulate);
  assert_true(evaluation->persistents[4].real[0] == 3.0 * (double)variant->accumulate);
  free(emitted->arena);
  memory_arena_destroy(memory);
}

static void sgd_at_once(void **state) {
  (void)state;
  check_variant(&(Variant){OP_sgd, 1, 0});
}

static void adamw_accumulated_and_clipped(void **state) {
  (void)state;
  check_variant(&(Variant){OP_adamw, 3, 0.5});
}

static void a_wrong_class_is_a_fault(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  Compilation *compilation = compile(memory, &(Variant){OP_sgd, 1, 0});
  Emitted *emitted = emitted_load(memory, compilation);
  Evaluation *evaluation = eval_create(memory, compilation->train.graph, EVAL_F32);
  eval_fill_initial(evaluation, 3);
  fill_inputs(evaluation, 0);
  evaluation->inputs[1].integer[2] = CLASSES;
  emitted_fill(emitted, evaluation);
  emitted_run(emitted, &emitted->program->micro_step);
  assert_int_equal(emitted->control->fault, 1);
  assert_non_null(strstr(emitted->program->checks[0].message, "expected 0..2"));
  free(emitted->arena);
  memory_arena_destroy(memory);
}

static void what_the_target_lacks_is_told(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  Module *module = module_create(memory, "half", "half.rp");
  Graph *graph = module->evaluation = graph_create(module, true);
  ValueId x = graph_input(
      graph, module_add_input(module, (ModelInput){.name = "x", .type = type_make(BF16, 1, (int64_t[]){4})}));
  array_push(memory, &graph->outputs,
             ((GraphOutput){.name = "y", .value = BUILD(graph, exp, x), .denominator = NO_VALUE}));
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(module, &options);
  assert_null(emitted_source(memory, compilation));
  assert_int_equal(diag_error_count(), 1);
  assert_non_null(strstr(diag_get(0)->message, "bf16"));
  diag_reset();
  memory_arena_destroy(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sgd_at_once),
      cmocka_unit_test(adamw_accumulated_and_clipped),
      cmocka_unit_test(a_wrong_class_is_a_fault),
      cmocka_unit_test(what_the_target_lacks_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
