/* Behaviours that are not single values, in the interpreter and in programs at several budgets: masks, shared optimizer
 * slots, frozen parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "tests/examples/budget_runs.h"

/* A behaviour's model compiled at all budgets. */
typedef struct Budgeted {
  MemoryArena *arena;
  BudgetRuns *runs;
} Budgeted;

static char *model_path(MemoryArena *arena, const char *name) {
  return memory_format(arena, "%s/behaviours/%s", EXAMPLES_TESTS, name);
}

static Budgeted open_budgets(const char *name) {
  Budgeted test = {.arena = memory_arena_create()};
  test.runs = compile_at_budgets(test.arena, folder_create(test.arena), model_path(test.arena, name));
  return test;
}

static void close_budgets(Budgeted *test) {
  release_budget_runs(test->runs);
  folder_remove(test->arena, test->runs->folder);
  memory_arena_destroy(test->arena);
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

enum { MASK = 1024, MOST_OFF = 80 /* five standard deviations of a count of kept elements */ };

static void check_mask(const ModelRun *run) {
  const EvalTensor *h = model_run_output(run, "h"), *dx = model_run_gradient(run, "x");
  int kept = 0;
  for (int64_t i = 0; i < MASK; i++) {
    double value = eval_tensor_get(h, i);
    assert_true(value == 0 || value == 2);
    assert_true(eval_tensor_get(dx, i) == (value == 0 ? 0 : 8));
    kept += value != 0;
  }
  assert_in_range(kept, MASK / 2 - MOST_OFF, MASK / 2 + MOST_OFF);
  assert_true(run->loss == 4.0 * kept);
  assert_in_range(count_differences(h, model_run_output(run, "other")), MASK / 2 - MOST_OFF, MASK / 2 + MOST_OFF);
}

static void masks_differ_between_dropouts_and_steps(void **state) {
  (void)state;
  Budgeted test = open_budgets("dropout.rp");
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    ModelRun *run = test.runs->interpreted[i];
    fill(model_run_input(run, "x"), 1, 0, 1);
    assert_true(model_run_micro_step(run));
    check_mask(run);
    EvalTensor first = copy(test.arena, model_run_output(run, "h"));
    assert_true(model_run_micro_step(run));
    check_mask(run);
    assert_in_range(count_differences(&first, model_run_output(run, "h")), MASK / 2 - MOST_OFF, MASK / 2 + MOST_OFF);
  }
  close_budgets(&test);
}

static void expect_tensor_of_file(const Budgeted *test, const char *path, const char *name,
                                  const EvalTensor *expected) {
  int64_t count = 0;
  double *found = read_tensor(test->arena, path, name, &count);
  assert_non_null(found);
  assert_int_equal(count, type_elements(&expected->type));
  for (int64_t i = 0; i < count; i++) assert_true(found[i] == eval_tensor_get(expected, i));
}

/* Masks, gradients and the losses of four steps, each of which counts a new mask. */
static void programs_draw_the_masks_of_the_interpreter(void **state) {
  (void)state;
  Budgeted test = open_budgets("dropout.rp");
  ModelRun *run = test.runs->interpreted[0];
  compare_programs(test.runs, "masks", "4", NULL);
  check_memory_and_clones(test.runs, NULL);
  ProgramFiles files = files_of_run(test.runs, 0, "masks");
  LogLines losses = log_field(test.arena, files.log, "step", "loss");
  assert_int_equal(losses.count, 4);
  fill(model_run_input(run, "x"), 1, 0, 1);
  for (int64_t step = 0; step < 4; step++) {
    assert_true(model_run_micro_step(run));
    assert_true(losses.values[step] == run->loss);
    if (step) continue;
    expect_tensor_of_file(&test, files.gradients, "h", model_run_output(run, "h"));
    expect_tensor_of_file(&test, files.gradients, "other", model_run_output(run, "other"));
    expect_tensor_of_file(&test, files.gradients, "grad.x", model_run_gradient(run, "x"));
  }
  const BudgetProgram *smallest = &test.runs->programs[BUDGET_PROGRAMS - 1];
  assert_true(times_run(smallest->plan, "h") > 1 && times_run(smallest->plan, "other") > 1);
  close_budgets(&test);
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
  Budgeted test = open_budgets("tied_adam.rp");
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    assert_int_equal(count_slots(test.runs->interpreted[i], ".w"), 2);
    assert_int_equal(test.runs->interpreted[i]->module->train->gradients.count, 2); /* w, and what fills the peak */
  }
  close_budgets(&test);
}

/* ---- frozen table, low-rank adapter ---- */

static int count_zeros(const EvalTensor *tensor) {
  int count = 0;
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) count += eval_tensor_get(tensor, i) == 0;
  return count;
}

static void feed_adapter(void *context, ModelRun *run, int64_t micro_step) {
  (void)context, (void)micro_step;
  fill(model_run_input(run, "ids"), 0, 1, 10);
  fill(model_run_input(run, "label"), 0, 1, 5);
}

static void adapter_learns_beside_a_frozen_table(void **state) {
  (void)state;
  Budgeted test = open_budgets("adapter.rp");
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    ModelRun *run = test.runs->interpreted[i];
    EvalTensor table = copy(test.arena, model_run_persistent(run, "emb")),
               a = copy(test.arena, model_run_persistent(run, "A"));
    feed_adapter(NULL, run, 0);
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
  }
  compare_interpreted(test.runs, 2, feed_adapter, NULL);
  close_budgets(&test);
}

static int count_changed(const Budgeted *test, const char *before, const char *after, const char *name) {
  int64_t count = 0, again = 0;
  int changed = 0;
  double *old = read_tensor(test->arena, before, name, &count), *new = read_tensor(test->arena, after, name, &again);
  assert_true(old && new &&count == again);
  for (int64_t i = 0; i < count; i++) changed += old[i] != new[i];
  return changed;
}

static const char *write_adapter_data(const Budgeted *test) {
  const char *path = memory_format(test->arena, "%s/inputs.csv", test->runs->folder), *error;
  ARRAY(char) text = {0};
  for (int record = 0; record < 4; record++)
    for (const char *line =
             memory_format(test->arena, "%d,%d,%d,%d,%d,%d\n", 3 * record % 10, (3 * record + 1) % 10,
                           (3 * record + 2) % 10, 3 * record % 5, (3 * record + 1) % 5, (3 * record + 2) % 5);
         *line; line++)
      array_push(test->arena, &text, *line);
  assert_true(file_write(test->arena, path, text.items, text.count, &error));
  return path;
}

/* The same from outside: weights before training, after one step and after two. */
static void adapter_program_learns_beside_a_frozen_table(void **state) {
  (void)state;
  Budgeted test = open_budgets("adapter.rp");
  const char *words[] = {"--data", write_adapter_data(&test), NULL};
  const char *still[] = {"--data", words[1], "--lr", "0", NULL};
  compare_programs(test.runs, "initial", "1", still);
  compare_programs(test.runs, "one", "1", words);
  compare_programs(test.runs, "two", "2", words);
  check_memory_and_clones(test.runs, words);
  ProgramFiles before = files_of_run(test.runs, 0, "initial"), one = files_of_run(test.runs, 0, "one"),
               two = files_of_run(test.runs, 0, "two");
  assert_int_equal(count_changed(&test, before.weights, one.weights, "A"), 0);
  assert_int_equal(count_changed(&test, before.weights, one.weights, "B_"), 16);
  assert_int_equal(count_changed(&test, before.weights, one.weights, "head"), 40);
  assert_int_equal(count_changed(&test, one.weights, two.weights, "A"), 16);
  assert_int_equal(count_changed(&test, before.weights, two.weights, "emb"), 0);
  int64_t count = 0;
  double *gradient = read_tensor(test.arena, one.gradients, "grad.A", &count);
  assert_int_equal(count, 16);
  for (int64_t i = 0; i < count; i++) assert_true(gradient[i] == 0);
  close_budgets(&test);
}

/* ---- a frozen stack ---- */

/* Kept: what the head reads, 64 × 256 floats. No gradient of frozen weights, no backward pass through their layers. */
static void frozen_layers_keep_nothing(void **state) {
  (void)state;
  Budgeted test = open_budgets("frozen_stack.rp");
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    const ModelRun *run = test.runs->interpreted[i];
    const StorageTable *table = run->compilation->train.table;
    const Graph *graph = run->module->train;
    int64_t kept = 0;
    for (int64_t s = 0; s < table->storages.count; s++)
      if (table->storages.items[s].class == STORAGE_ACTIVATION) kept += table->storages.items[s].bytes;
    assert_int_equal(kept, 64 * 256 * 4);
    assert_int_equal(kept_bytes(test.runs->programs[i].plan), kept);
    assert_int_equal(graph->gradients.count, 2); /* weight and bias of the head */
    for (int64_t id = 0; id < graph->nodes.count; id++) {
      const Node *node = graph_node(graph, (NodeId)id);
      assert_false(node->phase != PHASE_FORWARD && string_starts(node->module, "fc"));
    }
  }
  compare_programs(test.runs, "steps", "4", NULL);
  check_memory_and_clones(test.runs, NULL);
  close_budgets(&test);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(masks_differ_between_dropouts_and_steps),
                                     cmocka_unit_test(programs_draw_the_masks_of_the_interpreter),
                                     cmocka_unit_test(tied_weight_has_one_pair_of_moments),
                                     cmocka_unit_test(adapter_learns_beside_a_frozen_table),
                                     cmocka_unit_test(adapter_program_learns_beside_a_frozen_table),
                                     cmocka_unit_test(frozen_layers_keep_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
