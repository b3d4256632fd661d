/* Five updates of every optimizer against torch.optim, and the learning-rate schedules against torch's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <math.h>

#include "ir/build.h"
#include "passes/passes.h"
#include "runtime/schedule.h"
#include "tests/operators/build_case.h"

static json_t *root;

/* The parameters of every case and, as inputs, their gradients. */
static const struct {
  const char *name;
  Type type;
} parameters[] = {{"w", {.dtype = F32, .rank = 1, .dims = {3}}}, {"u", {.dtype = F32, .rank = 2, .dims = {2, 5}}}};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

static Attribute *make_settings(MemoryArena *arena, Op op, json_t *base, json_t *own) {
  const OpInfo *info = op_info(op);
  Attribute *settings = NEW_ARRAY(arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) settings[i] = info->attributes[i].initial;
  read_attributes(op, base, settings);
  read_attributes(op, own, settings);
  return settings;
}

/* loss = sum of parameter times gradient */
static Graph *build_model(MemoryArena *arena, json_t *vectors) {
  Module *module = module_create(arena, "optimizer", "case");
  Graph *graph = module->train = graph_create(module, false);
  Op op = op_find(json_string_value(json_object_get(vectors, "optimizer")));
  ValueId loss = build_constant(graph, F32, 0);
  module->training.has_optimizer = true;
  module->training.optimizer = op;
  module->training.clip = json_number_value(json_object_get(vectors, "clip"));
  for (int i = 0; i < PARAMETERS; i++) {
    json_t *own = json_object_get(json_object_get(vectors, "overrides"), parameters[i].name);
    Persistent persistent = {.name = parameters[i].name, .type = parameters[i].type, .trainable = true};
    persistent.optimizer_settings = make_settings(arena, op, json_object_get(vectors, "settings"), own);
    ValueId w = graph_persistent(graph, module_add_persistent(module, persistent));
    ModelInput input = {.name = memory_format(arena, "d%s", parameters[i].name), .type = parameters[i].type};
    ValueId g = graph_input(graph, module_add_input(module, input));
    loss = BUILD(graph, add, loss, build_reduce(graph, OP_sum, BUILD(graph, multiply, w, g), -1, NULL, false));
  }
  graph->loss.name = "loss";
  graph->loss.value = loss;
  return graph;
}

static void fill(MemoryArena *arena, EvalTensor *tensor, const json_t *numbers) {
  int64_t count = type_elements(&tensor->type);
  memcpy(tensor->real, vectors_numbers(arena, numbers, count), (size_t)count * sizeof(double));
}

static const json_t *field(const json_t *vectors, const char *list, size_t step, const char *name) {
  return json_object_get(json_array_get(json_object_get(vectors, list), step), name);
}

static bool run_updates(MemoryArena *arena, const Graph *graph, const json_t *vectors, EvalPrecision precision) {
  Evaluation *evaluation = eval_create(arena, graph, precision);
  const char *name = json_string_value(json_object_get(vectors, "name"));
  const json_t *factors = json_object_get(vectors, "factors");
  double tolerance = precision == EVAL_F64 ? 1e-11 : 1e-6;
  bool same = true;
  for (int i = 0; i < PARAMETERS; i++)
    fill(arena, &evaluation->persistents[i], json_object_get(json_object_get(vectors, "start"), parameters[i].name));
  for (size_t step = 0; step < json_array_size(factors); step++) {
    for (int i = 0; i < PARAMETERS; i++)
      fill(arena, &evaluation->inputs[i], field(vectors, "gradients", step, parameters[i].name));
    evaluation->control.micro_step = (int64_t)step;
    evaluation->control.update = (int64_t)step + 1;
    evaluation->control.learning_rate_scale = json_number_value(json_array_get(factors, step));
    assert_true(eval_run(evaluation));
    eval_commit(evaluation);
    for (int i = 0; i < PARAMETERS; i++) {
      const EvalTensor *found = &evaluation->persistents[i];
      const json_t *after = field(vectors, "after", step, parameters[i].name);
      char *what = memory_format(arena, "%s, step %d, %s, %s", name, (int)step, parameters[i].name,
                                 precision == EVAL_F64 ? "f64" : "f32");
      same =
          vectors_match(what, found, vectors_numbers(arena, after, type_elements(&found->type)), tolerance, 0) && same;
    }
  }
  return same;
}

static bool check_optimizer(json_t *vectors) {
  MemoryArena *arena = memory_arena_create(), *scratch = memory_arena_create();
  Graph *graph = build_model(arena, vectors);
  differentiate_graph(graph, scratch);
  assert_int_equal(diag_error_count(), 0);
  bool same = run_updates(arena, graph, vectors, EVAL_F64);
  simplify_graph(graph, scratch);
  fuse_graph(graph, scratch);
  choose_kernels(graph, scratch);
  const char *fault = graph_verify(arena, graph);
  if (fault) print_error("%s\n", fault);
  assert_null(fault);
  same = run_updates(arena, graph, vectors, EVAL_F64) && same;
  same = run_updates(arena, graph, vectors, EVAL_F32) && same;
  memory_arena_destroy(scratch);
  memory_arena_destroy(arena);
  return same;
}

static void updates_are_those_of_torch(void **state) {
  (void)state;
  bool seen[OP_COUNT] = {false}, same = true;
  size_t i;
  json_t *vectors;
  json_array_foreach(json_object_get(root, "optimizers"), i, vectors) {
    seen[op_find(json_string_value(json_object_get(vectors, "optimizer")))] = true;
    same = check_optimizer(vectors) && same;
  }
  assert_true(same);
  for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
    if (op_kind((Op)op) != KIND_OPTIMIZER || seen[op]) continue;
    print_error("optimizer '%s' has no vector: add a case to tests/reference/optimizers.py\n", op_info((Op)op)->name);
    fail();
  }
}

static RpScheduleKind schedule_kind(const char *name) {
  if (string_equal(name, "cosine")) return RP_SCHEDULE_COSINE;
  if (string_equal(name, "linear")) return RP_SCHEDULE_LINEAR;
  return string_equal(name, "step") ? RP_SCHEDULE_STEP : RP_SCHEDULE_CONSTANT;
}

static void schedules_are_those_of_torch(void **state) {
  (void)state;
  size_t i, t;
  json_t *vectors, *expected;
  assert_int_equal(json_array_size(json_object_get(root, "schedules")), 6);
  json_array_foreach(json_object_get(root, "schedules"), i, vectors) {
    RpSchedule schedule = {.kind = schedule_kind(json_string_value(json_object_get(vectors, "kind"))),
                           .warmup = json_integer_value(json_object_get(vectors, "warmup")),
                           .steps = json_integer_value(json_object_get(vectors, "steps")),
                           .every = json_integer_value(json_object_get(vectors, "every")),
                           .final = json_number_value(json_object_get(vectors, "final")),
                           .factor = json_number_value(json_object_get(vectors, "factor"))};
    json_array_foreach(json_object_get(vectors, "factors"), t, expected) {
      double found = rp_schedule_factor(&schedule, (int64_t)t);
      if (fabs(found - json_number_value(expected)) <= 1e-11) continue;
      print_error("%s at update %d: %.12g, expected %.12g\n", json_string_value(json_object_get(vectors, "name")),
                  (int)t, found, json_number_value(expected));
      fail();
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 2) die("usage: optimizers_test VECTORS");
  json_error_t error;
  root = json_load_file(argv[1], 0, &error);
  if (!root) die("%s:%d: %s", argv[1], error.line, error.text);
  const struct CMUnitTest tests[] = {cmocka_unit_test(updates_are_those_of_torch),
                                     cmocka_unit_test(schedules_are_those_of_torch)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  json_decref(root);
  return failed;
}
