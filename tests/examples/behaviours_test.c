/* Small models with known right values, in the interpreter after all passes and as compiled programs. Each entry of
 * behaviours.json names a model, what it is fed per micro-step, and what must come out: the loss of each step, outputs
 * and gradients of the first, weights and states after the last; or a part of the message about a fault of the data. */
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

static const double tolerance = 2e-6; /* relative, and absolute where 0 is expected */

static json_t *root;

static char *in_tests(MemoryArena *arena, const char *name) {
  return memory_format(arena, "%s/%s", EXAMPLES_TESTS, name);
}

static const char *model_of(MemoryArena *arena, const json_t *entry) {
  return in_tests(arena, json_string_value(json_object_get(entry, "model")));
}

static bool close_to(const json_t *entry, const char *where, const char *name, int64_t i, double found,
                     double expected) {
  if (fabs(found - expected) <= tolerance * fmax(1, fabs(expected))) return true;
  print_error("%s, %s: '%s' element %lld is %.9g, expected %.9g\n", json_string_value(json_object_get(entry, "model")),
              where, name, (long long)i, found, expected);
  return false;
}

/* ---- in the interpreter ---- */

static bool match_tensor(const json_t *entry, const char *name, const EvalTensor *found, const json_t *expected) {
  bool same = true;
  if (!found) print_error("%s: no '%s'\n", json_string_value(json_object_get(entry, "model")), name);
  assert_non_null(found);
  assert_int_equal(type_elements(&found->type), (int64_t)json_array_size(expected));
  for (int64_t i = 0; i < type_elements(&found->type); i++) {
    double value = json_number_value(json_array_get(expected, (size_t)i));
    same = close_to(entry, "interpreter", name, i, eval_tensor_get(found, i), value) && same;
  }
  return same;
}

/* Inputs of a micro-step; models that read constants keep what is set here for them. */
static void feed(ModelRun *run, const json_t *entry, size_t micro_step) {
  const json_t *inputs = json_object_get(entry, "inputs");
  const Training *training = &run->module->training;
  for (int64_t i = 0; i < run->module->inputs.count; i++) {
    EvalTensor *input = &run->evaluation->inputs[i];
    const json_t *values = json_object_get(json_array_get(inputs, micro_step), run->module->inputs.items[i].name);
    for (int64_t k = 0; k < type_elements(&input->type); k++)
      eval_tensor_set(input, k,
                      inputs ? json_number_value(json_array_get(values, (size_t)k)) : training->readers.items[0].value);
  }
}

static bool compare_first_step(ModelRun *run, const json_t *entry) {
  const char *name;
  json_t *expected;
  bool same = true;
  json_object_foreach(json_object_get(entry, "gradients"), name, expected) same =
      match_tensor(entry, name, model_run_gradient(run, name), expected) && same;
  json_object_foreach(json_object_get(entry, "outputs"), name, expected) same =
      match_tensor(entry, name, model_run_output(run, name), expected) && same;
  return same;
}

static bool interpret_entry(const json_t *entry) {
  MemoryArena *arena = memory_arena_create();
  ModelRun *run = model_run_create(arena, model_of(arena, entry), NULL, 0, EVAL_F32);
  assert_non_null(run);
  const json_t *losses = json_object_get(entry, "losses");
  bool same = true, fault = json_object_get(entry, "fault") != NULL;
  int64_t micro_steps = json_integer_value(json_object_get(entry, "steps")) * run->module->training.accumulate;
  for (int64_t micro = 0; micro < micro_steps; micro++) {
    feed(run, entry, (size_t)micro);
    bool ran = model_run_micro_step(run);
    assert_int_equal(ran, !fault);
    if (fault || (micro + 1) % run->module->training.accumulate) continue;
    int64_t step = micro / run->module->training.accumulate;
    same = close_to(entry, "interpreter", "loss", step, run->loss,
                    json_number_value(json_array_get(losses, (size_t)step))) &&
           same;
    if (step == 0) same = compare_first_step(run, entry) && same;
  }
  const char *name;
  json_t *expected;
  json_object_foreach(json_object_get(entry, "after"), name, expected) same =
      match_tensor(entry, name, model_run_persistent(run, name), expected) && same;
  memory_arena_destroy(arena);
  return same;
}

static void interpreter_has_the_values(void **state) {
  (void)state;
  size_t i;
  json_t *entry;
  bool same = true;
  json_array_foreach(root, i, entry) same = interpret_entry(entry) && same;
  assert_true(same);
}

/* ---- as a program ---- */

typedef struct Files {
  const char *folder, *program, *data, *log, *gradients, *weights, *errors;
} Files;

static Files name_files(MemoryArena *arena) {
  const char *folder = folder_create(arena);
#define NAME(name) memory_format(arena, "%s/" name, folder)
  return (Files){folder,          NAME("program"), NAME("inputs.csv"), NAME("run.log"), NAME("gradients"),
                 NAME("weights"), NAME("errors")};
#undef NAME
}

/* One line per record; the first axis of the inputs counts the records of a micro-step. */
static void write_inputs(MemoryArena *arena, const Files *files, const json_t *entry, size_t records) {
  ARRAY(char) text = {0};
  size_t micro_step;
  const char *name, *error;
  json_t *fed, *values;
  json_array_foreach(json_object_get(entry, "inputs"), micro_step, fed) {
    for (size_t record = 0; record < records; record++) {
      bool first = true;
      json_object_foreach(fed, name, values) {
        size_t width = json_array_size(values) / records;
        for (size_t k = 0; k < width; k++, first = false) {
          char *number = memory_format(arena, "%s%.17g", first ? "" : ",",
                                       json_number_value(json_array_get(values, record * width + k)));
          for (; *number; number++) array_push(arena, &text, *number);
        }
      }
      array_push(arena, &text, '\n');
    }
  }
  assert_true(file_write(arena, files->data, text.items, text.count, &error));
}

static bool match_file(MemoryArena *arena, const json_t *entry, const char *path, const char *prefix,
                       const char *list) {
  const char *name;
  json_t *expected;
  bool same = true;
  json_object_foreach(json_object_get(entry, list), name, expected) {
    int64_t count = 0;
    double *found = read_tensor(arena, path, memory_format(arena, "%s%s", prefix, name), &count);
    if (!found)
      print_error("%s: the file has no '%s%s'\n", json_string_value(json_object_get(entry, "model")), prefix, name);
    assert_non_null(found);
    assert_int_equal(count, (int64_t)json_array_size(expected));
    for (int64_t i = 0; i < count; i++)
      same =
          close_to(entry, "program", name, i, found[i], json_number_value(json_array_get(expected, (size_t)i))) && same;
  }
  return same;
}

static bool match_losses(MemoryArena *arena, const json_t *entry, const char *log) {
  LogLines found = log_field(arena, log, "step", "loss");
  const json_t *expected = json_object_get(entry, "losses");
  bool same = true;
  assert_int_equal(found.count, (int64_t)json_array_size(expected));
  for (int64_t i = 0; i < found.count; i++)
    same = close_to(entry, "program", "loss", i, found.values[i],
                    json_number_value(json_array_get(expected, (size_t)i))) &&
           same;
  return same;
}

static int run_program(MemoryArena *arena, const Files *files, const json_t *entry) {
  const char *steps = memory_format(arena, "%d", (int)json_integer_value(json_object_get(entry, "steps")));
  const char *words[] = {files->program,
                         "--steps",
                         steps,
                         "--dump-grads",
                         files->gradients,
                         "--save",
                         files->weights,
                         "--poison",
                         json_object_get(entry, "inputs") ? "--data" : NULL,
                         files->data,
                         NULL};
  return run_command(words, files->log, files->errors);
}

static size_t records_of(const ModelRun *run) {
  const Type *type = &run->module->inputs.items[0].type;
  return type->rank ? (size_t)type->dims[0] : 1;
}

static void expect_message(MemoryArena *arena, const char *path, const char *part) {
  int64_t length;
  const char *error, *text = file_read(arena, path, &length, &error);
  if (!text || !strstr(text, part)) fail_msg("expected a message with '%s', found: %s", part, text);
}

static bool run_entry(const json_t *entry) {
  MemoryArena *arena = memory_arena_create();
  Files files = name_files(arena);
  ModelRun *run = model_run_create(arena, model_of(arena, entry), NULL, 0, EVAL_F32);
  assert_non_null(run);
  write_inputs(arena, &files, entry, records_of(run));
  assert_int_equal(compile_model(arena, model_of(arena, entry), files.program, NULL), EXIT_OK);
  int code = run_program(arena, &files, entry);
  bool same = true;
  const char *fault = json_string_value(json_object_get(entry, "fault"));
  if (fault) {
    assert_int_equal(code, EXIT_SOURCE_ERROR);
    expect_message(arena, files.errors, fault);
  } else {
    assert_int_equal(code, EXIT_OK);
    same = match_losses(arena, entry, files.log);
    same = match_file(arena, entry, files.gradients, "grad.", "gradients") && same;
    same = match_file(arena, entry, files.gradients, "", "outputs") && same;
    same = match_file(arena, entry, files.weights, "", "after") && same;
  }
  folder_remove(arena, files.folder);
  memory_arena_destroy(arena);
  return same;
}

static void programs_have_the_values(void **state) {
  (void)state;
  size_t i;
  json_t *entry;
  bool same = true;
  json_array_foreach(root, i, entry) same = run_entry(entry) && same;
  assert_true(same);
}

int main(int argc, char **argv) {
  (void)argc;
  json_error_t error;
  MemoryArena *arena = memory_arena_create();
  root = json_load_file(in_tests(arena, "behaviours.json"), 0, &error);
  if (!root) die("%s: behaviours.json:%d: %s", argv[0], error.line, error.text);
  const struct CMUnitTest tests[] = {cmocka_unit_test(interpreter_has_the_values),
                                     cmocka_unit_test(programs_have_the_values)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(root);
  memory_arena_destroy(arena);
  return failed;
}
