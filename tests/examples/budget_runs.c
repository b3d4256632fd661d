#include "tests/examples/budget_runs.h"

#include "passes/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SOLVER_NODES "--solver-nodes=10"

static const char *const labels[BUDGET_PROGRAMS] = {"unlimited", "keep-all", "middle", "smallest"};

static char *in_folder(const BudgetRuns *runs, const char *label, const char *name) {
  return memory_format(runs->arena, "%s/%s.%s", runs->folder, label, name);
}

static const char *read_text(const BudgetRuns *runs, const char *path, int64_t *length) {
  const char *error, *text = file_read(runs->arena, path, length, &error);
  if (!text) fail_msg("%s: %s: %s", runs->model, path, error);
  return text;
}

/* ---- compiling ---- */

static json_t *read_plan(const BudgetRuns *runs, const BudgetProgram *program) {
  const char *path = in_folder(runs, program->label, "plan"), *words[] = {program->path, "--plan", NULL};
  json_error_t error;
  assert_int_equal(run_command(words, path, NULL), EXIT_OK);
  json_t *plan = json_load_file(path, 0, &error);
  if (!plan) fail_msg("%s: --plan: %s", runs->model, error.text);
  return plan;
}

static int64_t count_further_runs(MemoryArena *arena, const json_t *plan) {
  StringMap seen = {.arena = arena};
  size_t i;
  json_t *step;
  int64_t runs = 0;
  json_array_foreach(json_object_get(plan, "schedule"), i, step) {
    if (!string_equal(json_string_value(json_array_get(step, 0)), "run")) continue;
    string_map_set(&seen, json_string_value(json_array_get(step, 1)), 0);
    runs++;
  }
  return runs - seen.count;
}

static int64_t count_clones(const Graph *graph) {
  int64_t count = 0;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    count += node->original != NO_NODE && !node_is_view(node);
  }
  return count;
}

static int64_t plan_bytes(const json_t *plan, const char *key) {
  return json_integer_value(json_object_get(plan, key));
}

static double plan_number(const json_t *plan, const char *key) { return json_number_value(json_object_get(plan, key)); }

static void compile_program(BudgetRuns *runs, int i, int64_t budget) {
  BudgetProgram *program = &runs->programs[i];
  *program = (BudgetProgram){.label = labels[i], .budget = budget, .path = in_folder(runs, labels[i], "program")};
  char *limit = budget < 0 ? NULL : memory_format(runs->arena, "--memory-budget=%lld", (long long)budget);
  const char *further[] = {SOLVER_NODES, "--cflags=-O1", limit, NULL};
  assert_int_equal(compile_model(runs->arena, runs->model, program->path, further), EXIT_OK);
  program->plan = read_plan(runs, program);
  program->further_runs = count_further_runs(runs->arena, program->plan);
  runs->interpreted[i] = model_run_create_within(runs->arena, runs->model, NULL, 0, EVAL_F32, budget);
  assert_non_null(runs->interpreted[i]);
  assert_int_equal(count_clones(runs->interpreted[i]->module->train), program->further_runs);
}

static void compare_plans(const BudgetRuns *runs) {
  const BudgetProgram *programs = runs->programs;
  assert_int_equal(programs[1].further_runs, programs[0].further_runs);
  for (int i = 1; i < BUDGET_PROGRAMS; i++) {
    const json_t *plan = programs[i].plan;
    assert_true(plan_bytes(plan, "peak") <= programs[i].budget);
    assert_true(plan_bytes(plan, "peak") <= plan_bytes(programs[0].plan, "peak"));
    assert_true(plan_number(plan, "lower_bound") <= plan_number(plan, "cost") * (1 + 1e-9));
    assert_true(plan_number(plan, "cost") * (1 + 1e-9) >= plan_number(programs[i - 1].plan, "cost"));
  }
}

BudgetRuns *compile_at_budgets(MemoryArena *arena, const char *folder, const char *model) {
  BudgetRuns *runs = NEW(arena, BudgetRuns);
  ModelBudgets found = model_find_budgets(arena, model, NULL, 0);
  *runs = (BudgetRuns){.arena = arena, .folder = folder, .model = model};
  assert_true(found.smallest <= found.keep_all);
  int64_t budgets[BUDGET_PROGRAMS] = {-1, found.keep_all, found.smallest + (found.keep_all - found.smallest) / 2,
                                      found.smallest};
  for (int i = 0; i < BUDGET_PROGRAMS; i++) compile_program(runs, i, budgets[i]);
  compare_plans(runs);
  return runs;
}

void release_budget_runs(BudgetRuns *runs) {
  for (int i = 0; i < BUDGET_PROGRAMS; i++) json_decref(runs->programs[i].plan);
}

/* ---- running ---- */

ProgramFiles files_of_run(const BudgetRuns *runs, int program, const char *name) {
  const char *label = runs->programs[program].label;
#define NAME(suffix) in_folder(runs, label, memory_format(runs->arena, "%s." suffix, name))
  return (ProgramFiles){NAME("log"), NAME("gradients"), NAME("weights")};
#undef NAME
}

static void run_words(const BudgetRuns *runs, int program, const char *const *first, const char *const *further,
                      const char *output) {
  const char *words[32] = {runs->programs[program].path}, *errors = in_folder(runs, labels[program], "errors");
  int count = 1;
  int64_t length;
  for (int i = 0; first[i]; i++) words[count++] = first[i];
  for (int i = 0; further && further[i]; i++) words[count++] = further[i];
  int code = run_command(words, output, errors);
  if (code != EXIT_OK)
    fail_msg("%s, %s budget: exit code %d\n%s", runs->model, labels[program], code, read_text(runs, errors, &length));
}

static void expect_same_bytes(const BudgetRuns *runs, int program, const char *found_path, const char *expected_path) {
  int64_t found_length, expected_length;
  const char *found = read_text(runs, found_path, &found_length),
             *expected = read_text(runs, expected_path, &expected_length);
  if (found_length != expected_length || memcmp(found, expected, (size_t)found_length) != 0)
    fail_msg("%s: %s at %lld bytes (%s) is not that of the program without a budget", runs->model, found_path,
             (long long)runs->programs[program].budget, runs->programs[program].label);
}

static void expect_same_losses(const BudgetRuns *runs, int program, const char *found_path, const char *expected_path) {
  LogLines found = log_field(runs->arena, found_path, "step", "loss"),
           expected = log_field(runs->arena, expected_path, "step", "loss");
  assert_int_equal(found.count, expected.count);
  assert_true(found.count > 0);
  for (int64_t i = 0; i < found.count; i++)
    if (found.values[i] != expected.values[i])
      fail_msg("%s: loss of step %lld is %.9g at the %s budget, %.9g without", runs->model, (long long)i + 1,
               found.values[i], runs->programs[program].label, expected.values[i]);
}

void compare_programs(const BudgetRuns *runs, const char *name, const char *steps, const char *const *words) {
  ProgramFiles expected = files_of_run(runs, 0, name);
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    ProgramFiles files = files_of_run(runs, i, name);
    const char *first[] = {"--steps",       steps,    "--poison",    "--dump-grads",
                           files.gradients, "--save", files.weights, NULL};
    run_words(runs, i, first, words, files.log);
    expect_same_losses(runs, i, files.log, expected.log);
    expect_same_bytes(runs, i, files.gradients, expected.gradients);
    expect_same_bytes(runs, i, files.weights, expected.weights);
  }
}

/* ---- in the interpreter ---- */

static void expect_same_tensor(const BudgetRuns *runs, int program, const char *name, const EvalTensor *found,
                               const EvalTensor *expected) {
  for (int64_t i = 0; i < type_elements(&expected->type); i++)
    if (eval_tensor_get(found, i) != eval_tensor_get(expected, i))
      fail_msg("%s, interpreter: element %lld of '%s' is %.17g at the %s budget, %.17g without", runs->model,
               (long long)i, name, eval_tensor_get(found, i), labels[program], eval_tensor_get(expected, i));
}

static void expect_same_run(const BudgetRuns *runs, int program) {
  const ModelRun *found = runs->interpreted[program], *expected = runs->interpreted[0];
  const Graph *graph = expected->module->train;
  if (found->loss != expected->loss)
    fail_msg("%s, interpreter: loss %.17g at the %s budget, %.17g without", runs->model, found->loss, labels[program],
             expected->loss);
  for (int64_t g = 0; g < graph->gradients.count; g++)
    expect_same_tensor(runs, program, graph->gradients.items[g].name, &found->gradients[g], &expected->gradients[g]);
  for (int64_t p = 0; p < expected->module->persistents.count; p++)
    expect_same_tensor(runs, program, expected->module->persistents.items[p].name, &found->evaluation->persistents[p],
                       &expected->evaluation->persistents[p]);
}

void compare_interpreted(const BudgetRuns *runs, int64_t steps,
                         void (*feed)(void *context, ModelRun *run, int64_t micro_step), void *context) {
  int64_t micro_steps = steps * runs->interpreted[0]->module->training.accumulate;
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    for (int64_t micro = 0; micro < micro_steps; micro++) {
      if (feed) feed(context, runs->interpreted[i], micro);
      assert_true(model_run_micro_step(runs->interpreted[i]));
    }
    expect_same_run(runs, i);
  }
}

/* ---- memory and clones ---- */

static double memory_bytes(const BudgetRuns *runs, const char *log, const char *field) {
  LogLines found = log_field(runs->arena, log, "memory", field);
  assert_int_equal(found.count, 1);
  return found.values[0];
}

static void check_memory_event(const BudgetRuns *runs, int program, const char *log) {
  const BudgetProgram *planned = &runs->programs[program];
  double live = memory_bytes(runs, log, "live_peak"), arena = memory_bytes(runs, log, "arena"),
         high_water = memory_bytes(runs, log, "high_water");
  bool good = live <= arena && arena == high_water && (planned->budget < 0 || arena <= (double)planned->budget) &&
              live == (double)plan_bytes(planned->plan, "peak");
  if (!good)
    fail_msg("%s, %s budget %lld: live_peak %.0f (planned %lld), arena %.0f, high_water %.0f", runs->model,
             planned->label, (long long)planned->budget, live, (long long)plan_bytes(planned->plan, "peak"), arena,
             high_water);
}

static int64_t count_traced_clones(const char *path) {
  json_error_t error;
  json_t *trace = json_load_file(path, 0, &error), *event;
  size_t i;
  int64_t count = 0;
  if (!trace) fail_msg("%s: %s", path, error.text);
  json_array_foreach(json_object_get(trace, "traceEvents"), i, event) count +=
      json_is_true(json_object_get(json_object_get(event, "args"), "recomputed"));
  json_decref(trace);
  return count;
}

void check_memory_and_clones(const BudgetRuns *runs, const char *const *words) {
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    const char *log = in_folder(runs, labels[i], "memory.log"), *trace = in_folder(runs, labels[i], "trace");
    const char *measure[] = {"--memory", NULL}, *traced[] = {"--steps", "1", "--trace", trace, NULL};
    run_words(runs, i, measure, words, log);
    check_memory_event(runs, i, log);
    run_words(runs, i, traced, words, NULL);
    assert_int_equal(count_traced_clones(trace),
                     runs->programs[i].further_runs * runs->interpreted[i]->module->training.accumulate);
  }
}

static const json_t *decision_on(const json_t *plan, const char *storage) {
  size_t i;
  json_t *decision;
  json_array_foreach(
      json_object_get(plan, "decisions"), i,
      decision) if (string_equal(json_string_value(json_object_get(decision, "storage")), storage)) return decision;
  return NULL;
}

int64_t times_run(const json_t *plan, const char *storage) {
  return json_integer_value(json_object_get(decision_on(plan, storage), "runs"));
}

static bool says_keep(const json_t *decision) {
  return decision && string_equal(json_string_value(json_object_get(decision, "decision")), "keep");
}

bool is_kept(const json_t *plan, const char *storage) { return says_keep(decision_on(plan, storage)); }

int64_t kept_bytes(const json_t *plan) {
  size_t i;
  json_t *decision;
  int64_t bytes = 0;
  json_array_foreach(json_object_get(plan, "decisions"), i,
                     decision) if (string_equal(json_string_value(json_object_get(decision, "decision")), "keep"))
      bytes += plan_bytes(decision, "bytes");
  return bytes;
}
