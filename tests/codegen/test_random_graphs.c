/* Random graphs, compiled by the target under test, against the interpreter running the same graphs as they were before
 * the passes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/codegen/emitted.h"
#include "tests/codegen/random_graph.h"

enum { CASES = 60 };
static const uint64_t seed = 20240607;

static void fill_inputs(Evaluation *evaluation) {
  uint64_t state = 99;
  for (int64_t k = 0; k < evaluation->graph->module->inputs.count; k++) {
    EvalTensor *tensor = &evaluation->inputs[k];
    int64_t elements = type_elements(&tensor->type);
    for (int64_t i = 0; i < elements; i++) {
      int64_t drawn = random_below(&state, 1 << 20);
      bool bool_or_byte = tensor->type.dtype == BOOL || tensor->type.dtype == U8;
      if (tensor->real)
        tensor->real[i] = (float)((double)drawn / (1 << 18) - 2);
      else
        tensor->integer[i] = tensor->type.dtype == BOOL ? drawn % 2 : bool_or_byte ? drawn % 9 : drawn % 19 - 9;
    }
  }
}

static Evaluation *interpret(MemoryArena *memory) {
  RandomGraph random = random_graph(memory, seed, CASES);
  Evaluation *evaluation = eval_create(memory, random.module->evaluation, EVAL_F32);
  evaluation->control.seed = 7;
  fill_inputs(evaluation);
  assert_true(eval_run(evaluation));
  return evaluation;
}

static double expected_element(const EvalTensor *tensor, int64_t i) {
  return tensor->real ? tensor->real[i] : (double)tensor->integer[i];
}

static void compare_output(const RpObservable *observable, const char *bytes, const EvalTensor *expected, bool exact) {
  const RpTensor *tensor = &observable->tensor;
  assert_int_equal(tensor->rank, expected->type.rank);
  double tolerance = exact ? 0 : tensor->type == RP_F64 ? 1e-10 : 2e-4;
  for (int64_t i = 0; i < emitted_elements(tensor); i++) {
    double found = emitted_element(tensor, bytes, i), wanted = expected_element(expected, i);
    bool same = found == wanted || (isnan(found) && isnan(wanted));
    if (!same && !(fabs(found - wanted) <= tolerance * (1 + fabs(wanted))))
      fail_msg("%s[%lld]: %.9g, the interpreter has %.9g (%s)", tensor->name, (long long)i, found, wanted,
               exact ? "exact" : "rounded");
  }
}

static Compilation *compile(MemoryArena *memory, RandomGraph *random) {
  *random = random_graph(memory, seed, CASES);
  assert_int_equal(diag_error_count(), 0);
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(random->module, &options);
  assert_non_null(compilation);
  return compilation;
}

static void agrees_with_the_interpreter(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  RandomGraph random;
  Emitted *emitted = emitted_load(memory, compile(memory, &random));
  Evaluation *evaluation = interpret(memory);
  const RpPhase *phase = &emitted->program->evaluation;
  char **first = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    emitted->set_threads(threads);
    emitted_fill(emitted, evaluation);
    emitted_run(emitted, phase);
    assert_int_equal(emitted->control->fault, 0);
    assert_int_equal(phase->observable_count, evaluation->graph->outputs.count);
    for (int64_t i = 0; i < phase->observable_count; i++) {
      const RpTensor *tensor = &phase->observables[i].tensor;
      if (first)
        assert_memory_equal(first[i], emitted->observed[i], emitted_bytes(tensor));
      else
        compare_output(&phase->observables[i], emitted->observed[i],
                       eval_value(evaluation, evaluation->graph->outputs.items[i].value),
                       random.exact[i] && emitted_is_exact());
    }
    first = emitted->observed;
  }
  free(emitted->arena);
  memory_arena_destroy(memory);
}

static void text_is_clean_and_stable(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  RandomGraph random;
  char *source = emitted_text(memory, compile(memory, &random));
  char *second = emitted_text(memory, compile(memory, &random));
  assert_true(string_equal(source, second));
  assert_null(strstr(source, TEST_INCLUDE));
  assert_true(emitted_is_clean(source, strstr(TEST_CC, "clang") ? "gcc" : "clang")); /* the other one loaded it */
  memory_arena_destroy(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_the_interpreter),
      cmocka_unit_test(text_is_clean_and_stable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
