/* Behaviours that are not single values: masks, shared optimizer slots, frozen parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "tests/examples/model_run.h"
#include "tests/examples/program_run.h"

static ModelRun *create(MemoryArena *arena, const char *name) {
  ModelRun *run =
      model_run_create(arena, memory_format(arena, "%s/behaviours/%s", EXAMPLES_TESTS, name), NULL, 0, EVAL_F32);
  assert_non_null(run);
  return run;
}

static void fill(EvalTensor *tensor, double first, double step, int64_t modulo) {
  for (int64_t i = 0; i < type_elements(&tensor->type); i++)
    eval_tensor_set(tensor, i, first + step * (double)(i % modulo));
}

static int count_differences(const EvalTensor *a, const EvalTensor *b) {
  int count = 0;
  for (int64_t i = 0; i < type_elements(&a->type); i++) count += eval_tensor_get(a, i) != eval_tensor_get(b, i);
  return count;
}

static EvalTensor copy(MemoryArena *arena, const EvalTensor *tensor) {
  EvalTensor result = eval_tensor_create(arena, &tensor->type);
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) eval_tensor_set(&result, i, eval_tensor_get(tensor, i));
  return result;
}

/* ---- dropout: L = sum h², h = dropout(1, 1/2): 4 per kept element, its gradient 8 ---- */

static void check_mask(const ModelRun *run) {
  const EvalTensor *h = model_run_output(run, "h"), *dx = model_run_gradient(run, "x");
  int kept = 0;
  for (int64_t i = 0; i < 1024; i++) {
    double value = eval_tensor_get(h, i);
    assert_true(value == 0 || value == 2);
    assert_true(eval_tensor_get(dx, i) == (value == 0 ? 0 : 8));
    kept += value != 0;
  }
  assert_in_range(kept, 512 - 80, 512 + 80); /* five standard deviations */
  assert_true(run->loss == 4.0 * kept);
  assert_in_range(count_differences(h, model_run_output(run, "other")), 512 - 80, 512 + 80);
}

static void masks_differ_between_dropouts_and_steps(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = create(arena, "dropout.rp");
  fill(model_run_input(run, "x"), 1, 0, 1);
  assert_true(model_run_micro_step(run));
  check_mask(run);
  EvalTensor first = copy(arena, model_run_output(run, "h"));
  assert_true(model_run_micro_step(run));
  check_mask(run);
  assert_in_range(count_differences(&first, model_run_output(run, "h")), 512 - 80, 512 + 80);
  memory_arena_destroy(arena);
}

static void program_draws_the_masks_of_the_interpreter(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = create(arena, "dropout.rp");
  const char *folder = folder_create(arena), *program = memory_format(arena, "%s/program", folder),
             *dump = memory_format(arena, "%s/dump", folder);
  const char *words[] = {program, "--steps", "1", "--dump-grads", dump, NULL};
  fill(model_run_input(run, "x"), 1, 0, 1);
  assert_true(model_run_micro_step(run));
  assert_int_equal(
      compile_model(arena, memory_format(arena, "%s/behaviours/dropout.rp", EXAMPLES_TESTS), program, NULL), 0);
  assert_int_equal(run_command(words, NULL, NULL), 0);
  static const char *const names[] = {"h", "other"};
  for (int n = 0; n < 2; n++) {
    int64_t count = 0;
    double *found = read_tensor(arena, dump, names[n], &count);
    assert_int_equal(count, 1024);
    for (int64_t i = 0; i < count; i++) assert_true(found[i] == eval_tensor_get(model_run_output(run, names[n]), i));
  }
  folder_remove(arena, folder);
  memory_arena_destroy(arena);
}

/* ---- one weight on two paths: one m, one v ---- */

static int count_slots(const ModelRun *run, const char *parameter) {
  int count = 0;
  for (int64_t i = 0; i < run->module->persistents.count; i++) {
    const Persistent *persistent = &run->module->persistents.items[i];
    count += persistent->role == ROLE_OPTIMIZER && string_ends(persistent->name, parameter);
  }
  return count;
}

static void tied_weight_has_one_pair_of_moments(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = create(arena, "tied_adam.rp");
  assert_int_equal(count_slots(run, ".w"), 2);
  assert_int_equal(run->module->train->gradients.count, 1);
  memory_arena_destroy(arena);
}

/* ---- frozen table, low-rank adapter ---- */

static int count_zeros(const EvalTensor *tensor) {
  int count = 0;
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) count += eval_tensor_get(tensor, i) == 0;
  return count;
}

static void adapter_learns_beside_a_frozen_table(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = create(arena, "adapter.rp");
  fill(model_run_input(run, "ids"), 0, 1, 10);
  fill(model_run_input(run, "label"), 0, 1, 5);
  EvalTensor table = copy(arena, model_run_persistent(run, "emb")), a = copy(arena, model_run_persistent(run, "A"));
  assert_int_equal(count_slots(run, ".emb"), 0);
  assert_null(model_run_gradient(run, "emb"));

  assert_true(model_run_micro_step(run)); /* B is zero: no gradient reaches A */
  assert_int_equal(count_zeros(model_run_gradient(run, "A")), 16);
  assert_int_equal(count_differences(&a, model_run_persistent(run, "A")), 0);
  assert_int_equal(count_zeros(model_run_persistent(run, "B_")), 0);

  assert_true(model_run_micro_step(run));
  assert_int_equal(count_zeros(model_run_gradient(run, "A")), 0);
  assert_int_equal(count_differences(&a, model_run_persistent(run, "A")), 16);
  assert_int_equal(count_differences(&table, model_run_persistent(run, "emb")), 0);
  memory_arena_destroy(arena);
}

static void frozen_layers_keep_nothing(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = create(arena, "frozen_stack.rp");
  const StorageTable *table = run->compilation->train.table;
  int64_t kept = 0;
  for (int64_t i = 0; i < table->storages.count; i++)
    if (table->storages.items[i].class == STORAGE_ACTIVATION) kept += table->storages.items[i].bytes;
  assert_int_equal(kept, 64 * 256 * 4);
  assert_int_equal(run->module->train->gradients.count, 2); /* weight and bias of the head */
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(masks_differ_between_dropouts_and_steps),
                                     cmocka_unit_test(program_draws_the_masks_of_the_interpreter),
                                     cmocka_unit_test(tied_weight_has_one_pair_of_moments),
                                     cmocka_unit_test(adapter_learns_beside_a_frozen_table),
                                     cmocka_unit_test(frozen_layers_keep_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
