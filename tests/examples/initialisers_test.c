/* Initial values: kinds and widths against torch.nn.init, elements by the project's rule written a second time
 * (tests/reference/initialisers.py), statistics of what is drawn, and the same values from the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <jansson.h>
#include <math.h>

#include "tests/examples/model_run.h"
#include "tests/examples/program_run.h"

static const char model[] = EXAMPLES_TESTS "/behaviours/initialisers.rp";
static json_t *root;

static double number(const json_t *entry, const char *field) {
  return json_number_value(json_object_get(entry, field));
}

static InitialKind kind_of(const json_t *entry) {
  const char *kind = json_string_value(json_object_get(entry, "kind"));
  if (string_equal(kind, "uniform")) return INITIAL_UNIFORM;
  if (string_equal(kind, "normal")) return INITIAL_NORMAL;
  return string_equal(kind, "truncated") ? INITIAL_TRUNCATED_NORMAL : INITIAL_CONSTANT;
}

static const Persistent *find(const ModelRun *run, const char *name) {
  for (int64_t i = 0; i < run->module->persistents.count; i++)
    if (string_equal(run->module->persistents.items[i].name, name)) return &run->module->persistents.items[i];
  fail_msg("no weight '%s'", name);
  return NULL;
}

static void check_first(const json_t *entry, const char *name, double (*element)(const void *, int64_t),
                        const void *values) {
  size_t i;
  json_t *value;
  json_array_foreach(json_object_get(entry, "first"), i, value) {
    double expected = json_number_value(value), found = element(values, (int64_t)i);
    if (fabs(found - expected) > 1e-7 * fmax(1, fabs(expected)))
      fail_msg("'%s' element %d is %.9g, expected %.9g", name, (int)i, found, expected);
  }
}

/* Mean and deviation within five standard errors; bounds never passed. A normal cut at two deviations has 0.880 of one.
 */
static void check_statistics(const json_t *entry, const char *name, const EvalTensor *tensor) {
  double sum = 0, squares = 0, largest = 0, mean = number(entry, "mean"), width = number(entry, "width");
  int64_t count = type_elements(&tensor->type);
  for (int64_t i = 0; i < count; i++) {
    double value = eval_tensor_get(tensor, i) - mean;
    sum += value;
    squares += value * value;
    largest = fmax(largest, fabs(value));
  }
  InitialKind kind = kind_of(entry);
  double deviation = kind == INITIAL_UNIFORM ? width / sqrt(3) : kind == INITIAL_NORMAL ? width : 0.8796 * width;
  if (fabs(sum / (double)count) > 5 * deviation / sqrt((double)count))
    fail_msg("'%s' has mean %g", name, sum / (double)count);
  double found = sqrt(squares / (double)count);
  if (fabs(found / deviation - 1) > 5 / sqrt(2.0 * (double)count))
    fail_msg("'%s' has deviation %g, expected %g", name, found, deviation);
  if (kind == INITIAL_UNIFORM) assert_true(largest <= width && largest > 0.99 * width);
  if (kind == INITIAL_TRUNCATED_NORMAL) assert_true(largest <= 2 * width && largest > 1.95 * width);
}

static double tensor_element(const void *values, int64_t i) { return eval_tensor_get(values, i); }
static double array_element(const void *values, int64_t i) { return ((const double *)values)[i]; }

static void initial_values_are_those_of_torch(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = model_run_create(arena, model, NULL, 0, EVAL_F32);
  size_t i;
  json_t *entry;
  assert_non_null(run);
  assert_int_equal(json_array_size(root), 15);
  json_array_foreach(root, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    const Initial *initial = &find(run, name)->initial;
    assert_int_equal(initial->kind, kind_of(entry));
    assert_true(fabs(initial->value - number(entry, "width")) <= 1e-11);
    assert_true(initial->mean == number(entry, "mean"));
    check_first(entry, name, tensor_element, model_run_persistent(run, name));
    if (initial->kind != INITIAL_CONSTANT) check_statistics(entry, name, model_run_persistent(run, name));
  }
  memory_arena_destroy(arena);
}

static void programs_start_from_the_same_values(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = model_run_create(arena, model, NULL, 0, EVAL_F32);
  const char *folder = folder_create(arena), *program = memory_format(arena, "%s/program", folder),
             *weights = memory_format(arena, "%s/weights", folder);
  const char *words[] = {program, "--steps", "1", "--save", weights, NULL};
  size_t i;
  json_t *entry;
  assert_int_equal(compile_model(arena, model, program, NULL), EXIT_OK);
  assert_int_equal(run_command(words, NULL, NULL), EXIT_OK);
  json_array_foreach(root, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    const EvalTensor *interpreted = model_run_persistent(run, name);
    int64_t count = 0;
    double *found = read_tensor(arena, weights, name, &count);
    assert_non_null(found);
    assert_int_equal(count, type_elements(&interpreted->type));
    check_first(entry, name, array_element, found);
    for (int64_t k = 0; k < count; k++) assert_true(found[k] == eval_tensor_get(interpreted, k));
  }
  folder_remove(arena, folder);
  memory_arena_destroy(arena);
}

int main(void) {
  json_error_t error;
  root = json_load_file(REPRISE_SOURCE "/tests/reference/initialisers.json", 0, &error);
  if (!root) die("initialisers.json:%d: %s", error.line, error.text);
  const struct CMUnitTest tests[] = {cmocka_unit_test(initial_values_are_those_of_torch),
                                     cmocka_unit_test(programs_start_from_the_same_values)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(root);
  return failed;
}
