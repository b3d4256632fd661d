/* Every operator of the language against PyTorch in compiled C: many cases in one program, freed bytes overwritten with
 * NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdlib.h>

#include "tests/codegen/emitted.h"
#include "tests/operators/build_case.h"

enum { CASES_PER_PROGRAM = 60, MOST_PROGRAMS = 32 };

static VectorCases cases;

static int find_observable(const RpPhase *phase, const char *name) {
  for (int64_t i = 0; i < phase->observable_count; i++)
    if (string_equal(phase->observables[i].tensor.name, name)) return (int)i;
  fail_msg("the program does not show '%s'", name);
  return -1;
}

static bool match(const Emitted *emitted, const BuiltCase *built, const char *name, const Type *type,
                  const double *expected) {
  const RpPhase *phase = &emitted->program->micro_step;
  int index = find_observable(phase, name);
  const RpTensor *tensor = &phase->observables[index].tensor;
  Tolerance tolerance = case_tolerance(built->vectors, EVAL_F32);
  assert_int_equal(tensor->type, type->dtype);
  assert_int_equal(emitted_elements(tensor), type_elements(type));
  EvalTensor found = eval_tensor_create(emitted->memory, type);
  for (int64_t i = 0; i < type_elements(type); i++)
    eval_tensor_set(&found, i, emitted_element(tensor, emitted->observed[index], i));
  char *what = memory_format(emitted->memory, "%s (%s), compiled, %s", built->vectors->op, built->vectors->name, name);
  return vectors_match(what, &found, expected, tolerance.relative, tolerance.absolute);
}

static bool match_case(const Emitted *emitted, const BuiltCase *built) {
  const VectorCase *vectors = built->vectors;
  MemoryArena *arena = emitted->memory;
  bool same = true;
  for (int i = 0; i < vectors->output_count; i++)
    same = match(emitted, built, memory_format(arena, "%sy%d", built->prefix, i), &vectors->outputs[i].type,
                 vectors->outputs[i].data) &&
           same;
  for (int i = 0; i < vectors->input_count; i++)
    if (vectors->inputs[i].gradient)
      same = match(emitted, built, memory_format(arena, "grad.%sx%d", built->prefix, i),
                   &vectors->inputs[i].tensor.type, expected_gradient(arena, built, i)) &&
             same;
  return same;
}

static int run_cases(int64_t first, int64_t last) {
  MemoryArena *arena = memory_arena_create();
  Module *module = module_create(arena, "Cases", "cases");
  BuiltCase built[CASES_PER_PROGRAM];
  PipelineOptions options = emitted_pipeline();
  int failed = 0;
  module->train = graph_create(module, false);
  for (int64_t i = first; i < last; i++)
    assert_true(build_case(module->train, &cases.items[i], memory_format(arena, "c%d.", (int)i), &built[i - first]));
  Compilation *compilation = compile_module(module, &options);
  if (!compilation) diag_print(stderr, false);
  assert_non_null(compilation);
  Evaluation *evaluation = eval_create(arena, module->train, EVAL_F32);
  for (int64_t i = first; i < last; i++) fill_case(evaluation, &built[i - first]);
  Emitted *emitted = emitted_load(arena, compilation);
  emitted->set_threads(1);
  emitted_fill(emitted, evaluation);
  emitted_run(emitted, &emitted->program->micro_step);
  for (int64_t i = first; i < last; i++) failed += !match_case(emitted, &built[i - first]);
  free(emitted->arena);
  memory_arena_destroy(arena);
  return failed;
}

/* state: the first case of a program. */
static void vectors_hold_in_a_program(void **state) {
  int64_t first = *(const int64_t *)*state, last = first + CASES_PER_PROGRAM;
  int failed = run_cases(first, last < cases.count ? last : cases.count);
  if (failed) print_error("%d of the cases from %lld on failed\n", failed, (long long)first);
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  if (argc != 2) die("usage: operators_programs_test VECTORS");
  MemoryArena *arena = memory_arena_create();
  json_t *root = vectors_read(arena, argv[1], &cases);
  struct CMUnitTest tests[MOST_PROGRAMS] = {{0}};
  static int64_t firsts[MOST_PROGRAMS];
  int programs = 0;
  for (int64_t first = 0; first < cases.count; first += CASES_PER_PROGRAM, programs++) {
    if (programs == MOST_PROGRAMS) die("more cases than programs_test holds");
    firsts[programs] = first;
    tests[programs] = (struct CMUnitTest){.name = memory_format(arena, "cases from %d on", (int)first),
                                          .test_func = vectors_hold_in_a_program,
                                          .initial_state = &firsts[programs]};
  }
  int failed = _cmocka_run_group_tests("programs", tests, (size_t)programs, NULL, NULL);
  json_decref(root);
  memory_arena_destroy(arena);
  return failed;
}
