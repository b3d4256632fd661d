/* Small models with known right values, in the interpreter and as compiled programs, without a budget and at three:
 * that of keeping everything, the smallest that has a plan, and one between them.
 *
 *   examples_behaviours [NAME...]      all entries of behaviours.json, or those named
 *
 * An entry names a model (default: behaviours/NAME.rp), what it is fed per micro-step, and what must come out: the loss
 * of each of `steps` updates, outputs and gradients of the first, weights and states after the last, each where it is
 * known; or `fault`, a part of the message about the data. Of its plans, `runs` says by budget what is made once (1),
 * and what at least so often; `kept` names what every plan keeps; the smallest has at least `clones` further runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <jansson.h>
#include <math.h>

#include "tests/examples/budget_runs.h"

static const double tolerance = 2e-6; /* relative, and absolute where 0 is expected */

#define COMPARED_STEPS "4" /* updates after which budgets are compared */

typedef struct Entry {
  const char *name;
  const json_t *json;
  MemoryArena *arena;
  const char *model, *folder, *data;
  BudgetRuns *runs;
} Entry;

static bool close_to(const Entry *entry, const char *where, const char *name, int64_t i, double found,
                     double expected) {
  if (fabs(found - expected) <= tolerance * fmax(1, fabs(expected))) return true;
  print_error("%s, %s: '%s' element %lld is %.9g, expected %.9g\n", entry->name, where, name, (long long)i, found,
              expected);
  return false;
}

static const json_t *field_of(const Entry *entry, const char *field) { return json_object_get(entry->json, field); }

/* ---- in the interpreter ---- */

static bool match_tensor(const Entry *entry, const char *where, const char *name, const EvalTensor *found,
                         const json_t *expected) {
  bool same = true;
  if (!found) fail_msg("%s: no '%s'", entry->name, name);
  assert_int_equal(type_elements(&found->type), (int64_t)json_array_size(expected));
  for (int64_t i = 0; i < type_elements(&found->type); i++)
    same = close_to(entry, where, name, i, eval_tensor_get(found, i),
                    json_number_value(json_array_get(expected, (size_t)i))) &&
           same;
  return same;
}

/* Inputs of a micro-step; models that read constants get those of their first reader. */
static void feed(void *context, ModelRun *run, int64_t micro_step) {
  const Entry *entry = context;
  const json_t *inputs = field_of(entry, "inputs");
  const Training *training = &run->module->training;
  size_t record = json_array_size(inputs) ? (size_t)micro_step % json_array_size(inputs) : 0;
  for (int64_t i = 0; i < run->module->inputs.count; i++) {
    EvalTensor *input = &run->evaluation->inputs[i];
    const json_t *values = json_object_get(json_array_get(inputs, record), run->module->inputs.items[i].name);
    for (int64_t k = 0; k < type_elements(&input->type); k++)
      eval_tensor_set(input, k,
                      inputs ? json_number_value(json_array_get(values, (size_t)k)) : training->readers.items[0].value);
  }
}

static bool match_interpreted_first(const Entry *entry, const char *where, ModelRun *run) {
  const char *name;
  json_t *expected;
  bool same = true;
  json_object_foreach((json_t *)field_of(entry, "gradients"), name, expected) same =
      match_tensor(entry, where, name, model_run_gradient(run, name), expected) && same;
  json_object_foreach((json_t *)field_of(entry, "outputs"), name, expected) same =
      match_tensor(entry, where, name, model_run_output(run, name), expected) && same;
  return same;
}

static bool match_interpreted(const Entry *entry, int budget) {
  ModelRun *run = entry->runs->interpreted[budget];
  const char *where = memory_format(entry->arena, "interpreter, %s budget", entry->runs->programs[budget].label), *name;
  const json_t *losses = field_of(entry, "losses");
  int64_t accumulate = run->module->training.accumulate, micro = 0;
  bool same = true;
  for (int64_t step = 0; step < json_integer_value(field_of(entry, "steps")); step++) {
    for (int64_t i = 0; i < accumulate; i++, micro++) {
      feed((void *)(uintptr_t)entry, run, micro);
      assert_true(model_run_micro_step(run));
    }
    if (losses)
      same = close_to(entry, where, "loss", step, run->loss, json_number_value(json_array_get(losses, (size_t)step))) &&
             same;
    if (step == 0) same = match_interpreted_first(entry, where, run) && same;
  }
  json_t *expected;
  json_object_foreach((json_t *)field_of(entry, "after"), name, expected) same =
      match_tensor(entry, where, name, model_run_persistent(run, name), expected) && same;
  return same;
}

/* ---- as programs ---- */

/* One line per record; the first axis of the inputs counts the records of a micro-step. */
static void write_inputs(const Entry *entry, const Module *module) {
  ARRAY(char) text = {0};
  size_t micro_step, records = module->inputs.items[0].type.rank ? (size_t)module->inputs.items[0].type.dims[0] : 1;
  const char *name, *error;
  json_t *fed, *values;
  json_array_foreach(field_of(entry, "inputs"), micro_step, fed) {
    for (size_t record = 0; record < records; record++) {
      bool first = true;
      json_object_foreach(fed, name, values) {
        size_t width = json_array_size(values) / records;
        for (size_t k = 0; k < width; k++, first = false) {
          double value = json_number_value(json_array_get(values, record * width + k));
          for (char *number = memory_format(entry->arena, "%s%.17g", first ? "" : ",", value); *number; number++)
            array_push(entry->arena, &text, *number);
        }
      }
      array_push(entry->arena, &text, '\n');
    }
  }
  assert_true(file_write(entry->arena, entry->data, text.items, text.count, &error));
}

static bool match_file(const Entry *entry, const char *where, const char *path, const char *prefix, const char *list) {
  const char *name;
  json_t *expected;
  bool same = true;
  json_object_foreach((json_t *)field_of(entry, list), name, expected) {
    int64_t count = 0;
    double *found = read_tensor(entry->arena, path, memory_format(entry->arena, "%s%s", prefix, name), &count);
    if (!found) fail_msg("%s: the file has no '%s%s'", entry->name, prefix, name);
    assert_int_equal(count, (int64_t)json_array_size(expected));
    for (int64_t i = 0; i < count; i++)
      same = close_to(entry, where, name, i, found[i], json_number_value(json_array_get(expected, (size_t)i))) && same;
  }
  return same;
}

static bool match_losses(const Entry *entry, const char *log) {
  LogLines found = log_field(entry->arena, log, "step", "loss");
  const json_t *expected = field_of(entry, "losses");
  bool same = true;
  if (!expected) return true;
  assert_int_equal(found.count, (int64_t)json_array_size(expected));
  for (int64_t i = 0; i < found.count; i++)
    same = close_to(entry, "program", "loss", i, found.values[i],
                    json_number_value(json_array_get(expected, (size_t)i))) &&
           same;
  return same;
}

/* The words that name the data, or an empty list. */
static const char *const *data_words(const Entry *entry) {
  const char **words = NEW_ARRAY(entry->arena, const char *, 3);
  if (field_of(entry, "inputs")) words[0] = "--data", words[1] = entry->data;
  return words;
}

static void expect_message(const Entry *entry, const char *path, const char *part) {
  int64_t length;
  const char *error, *text = file_read(entry->arena, path, &length, &error);
  if (!text || !strstr(text, part)) fail_msg("%s: expected a message with '%s', found: %s", entry->name, part, text);
}

/* ---- entries ---- */

static void check_fault(const Entry *entry) {
  const char *part = json_string_value(field_of(entry, "fault"));
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    ModelRun *run = entry->runs->interpreted[i];
    const char *errors = files_of_run(entry->runs, i, "fault").log;
    const char *words[] = {entry->runs->programs[i].path, "--steps", "1", "--data", entry->data, NULL};
    feed((void *)(uintptr_t)entry, run, 0);
    assert_false(model_run_micro_step(run));
    if (!strstr(run->evaluation->fault, part)) fail_msg("%s: %s", entry->name, run->evaluation->fault);
    assert_int_equal(run_command(words, NULL, errors), EXIT_SOURCE_ERROR);
    expect_message(entry, errors, part);
  }
}

static void check_runs(const Entry *entry, const BudgetProgram *program) {
  const char *storage;
  json_t *runs;
  json_object_foreach(json_object_get(field_of(entry, "runs"), program->label), storage, runs) {
    int64_t found = times_run(program->plan, storage), expected = json_integer_value(runs);
    if (expected == 1 ? found != 1 : found < expected)
      fail_msg("%s: '%s' is made %lld times at the %s budget, expected %lld", entry->name, storage, (long long)found,
               program->label, (long long)expected);
  }
}

static void check_plans(const Entry *entry) {
  const BudgetProgram *smallest = &entry->runs->programs[BUDGET_PROGRAMS - 1];
  size_t k;
  json_t *name;
  if (smallest->further_runs < json_integer_value(field_of(entry, "clones")))
    fail_msg("%s: %lld further runs at the smallest budget", entry->name, (long long)smallest->further_runs);
  for (int i = 0; i < BUDGET_PROGRAMS; i++) {
    check_runs(entry, &entry->runs->programs[i]);
    json_array_foreach(field_of(entry, "kept"), k,
                       name) if (!is_kept(entry->runs->programs[i].plan, json_string_value(name)))
        fail_msg("%s: '%s' is not kept at the %s budget", entry->name, json_string_value(name),
                 entry->runs->programs[i].label);
  }
}

static void check_values(const Entry *entry) {
  const char *steps = memory_format(entry->arena, "%d", (int)json_integer_value(field_of(entry, "steps")));
  const char *const *words = data_words(entry);
  bool same = true;
  compare_programs(entry->runs, "values", steps, words);
  ProgramFiles files = files_of_run(entry->runs, 0, "values");
  same = match_losses(entry, files.log);
  same = match_file(entry, "program", files.gradients, "grad.", "gradients") && same;
  same = match_file(entry, "program", files.gradients, "", "outputs") && same;
  same = match_file(entry, "program", files.weights, "", "after") && same;
  for (int i = 0; i < BUDGET_PROGRAMS; i++) same = match_interpreted(entry, i) && same;
  assert_true(same);
  compare_programs(entry->runs, "steps", COMPARED_STEPS, words);
  compare_interpreted(entry->runs, 4, feed, (void *)(uintptr_t)entry);
  check_memory_and_clones(entry->runs, words);
}

static void check_entry(void **state) {
  Entry *entry = *state;
  const char *model = json_string_value(field_of(entry, "model"));
  char *file =
      model ? memory_string(entry->arena, model) : memory_format(entry->arena, "behaviours/%s.rp", entry->name);
  entry->model = memory_format(entry->arena, "%s/%s", EXAMPLES_TESTS, file);
  entry->folder = folder_create(entry->arena);
  entry->data = memory_format(entry->arena, "%s/inputs.csv", entry->folder);
  entry->runs = compile_at_budgets(entry->arena, entry->folder, entry->model);
  write_inputs(entry, entry->runs->interpreted[0]->module);
  check_plans(entry);
  if (field_of(entry, "fault"))
    check_fault(entry);
  else
    check_values(entry);
  release_budget_runs(entry->runs);
  folder_remove(entry->arena, entry->folder);
}

static bool is_wanted(const char *name, int count, char **names) {
  for (int i = 0; i < count; i++)
    if (string_equal(names[i], name)) return true;
  return count == 0;
}

int main(int argc, char **argv) {
  json_error_t error;
  MemoryArena *arena = memory_arena_create();
  json_t *root = json_load_file(EXAMPLES_TESTS "/behaviours.json", JSON_REJECT_DUPLICATES, &error), *json;
  if (!root) die("behaviours.json:%d: %s", error.line, error.text);
  ARRAY(struct CMUnitTest) tests = {0};
  const char *name;
  json_object_foreach(root, name, json) {
    Entry *entry = NEW(arena, Entry);
    *entry = (Entry){.name = name, .json = json, .arena = arena};
    struct CMUnitTest test = {name, check_entry, NULL, NULL, entry};
    if (is_wanted(name, argc - 1, argv + 1)) array_push(arena, &tests, test);
  }
  if (!tests.count) die("no such entry in behaviours.json");
  int failed = _cmocka_run_group_tests("behaviours", tests.items, (size_t)tests.count, NULL, NULL);
  json_decref(root);
  memory_arena_destroy(arena);
  return failed;
}
