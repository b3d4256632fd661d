/* The text form: printing, reading back, printing again gives the same bytes; malformed text gives one located error.
 */
#include "passes/passes.h"
#include "small_graph.h"

/* A module that uses every part of the form. */
static SmallGraph rich_module(void) {
  static const Source source = {"dir with \"quotes\"/m.rp", "line one\nline two\n\n   four\n", 27};
  SmallGraph small = small_graph();
  Module *module = small.module;
  Graph *graph = small.graph;
  Training *training = &module->training;
  *training = (Training){.present = true,
                         .has_optimizer = true,
                         .optimizer = OP_adamw,
                         .schedule = SCHEDULE_COSINE,
                         .warmup = 10,
                         .schedule_steps = 100,
                         .final = 0.1,
                         .factor = 1.0 / 3,
                         .clip = 1,
                         .accumulate = 2,
                         .steps = 5,
                         .seed = UINT64_MAX,
                         .shuffle = true};
  const Attribute values[] = {attribute_float(6e-4), attribute_floats(2, (double[]){0.9, 0.95}), attribute_float(1e-8),
                              attribute_float(0.1)};
  Attribute *settings = NEW_ARRAY(small.arena, Attribute, 4);
  memcpy(settings, values, sizeof values);
  training->optimizer_settings = settings;
  Reader reader = {.kind = READER_TOKENS, .path = "train_*.bin\ttab", .last = -1, .location = {&source, 9, 4}};
  array_push(small.arena, &reader.inputs, 0);
  array_push(small.arena, &training->readers, reader);
  array_push(small.arena, &training->test_readers,
             ((Reader){.kind = READER_CSV, .path = "t.csv", .header = true, .last = 7}));
  graph->location = (Location){&source, 22, 4};
  graph->module_path = "h.0";
  ValueId x = small_input(&small, I32, SHAPE(2, 3)), w = small_parameter(&small, "w", 1e-3, SHAPE(5, 4));
  ValueId b = small_parameter(&small, "b", -INFINITY, SHAPE(4)), s = small_parameter(&small, "s", NAN, SCALAR);
  module->persistents.items[0].optimizer_settings = module->persistents.items[1].optimizer_settings = settings;
  module->persistents.items[0].initial = (Initial){INITIAL_TRUNCATED_NORMAL, 0.02, 1e300};
  module->persistents.items[2].trainable = false;
  module->persistents.items[2].role = ROLE_STATE;
  Attribute p = attribute_float(0.1), tanh_form = attribute_choice(1);
  ValueId embedded = BUILD(graph, embed, w, x), dropped = build_apply(graph, OP_drop, &p, 1, &embedded);
  array_push(small.arena, &graph->recompute_parents, 0);
  graph->recompute_block = graph->recompute_block_count = 1;
  ValueId y = build_apply(graph, OP_gelu, &tanh_form, 1, (ValueId[]){BUILD(graph, layer_norm, dropped, NO_VALUE, b)});
  graph->recompute_block = 0;
  graph_value(graph, y)->name = "y";
  graph_value(graph, y)->constraint = CONSTRAINT_KEEP;
  graph_value(graph, dropped)->constraint = CONSTRAINT_RECOMPUTE;
  graph_value(graph, dropped)->location = (Location){0};
  graph_value(graph, y)->location = (Location){&source, 3, 2};
  build_assign(graph, s, build_full(graph, type_scalar(F32), 1.5));
  build_integer(graph, I64, INT64_MAX - 1); /* not what its number says */
  graph->loss = (GraphOutput){"loss", build_reduce(graph, OP_mean, y, -1, NULL, false), build_constant(graph, F32, 3),
                              graph->location};
  array_push(small.arena, &graph->outputs, ((GraphOutput){"y", y, NO_VALUE, {0}}));
  array_push(small.arena, &graph->gradient_requests, ((GraphOutput){"y", y, NO_VALUE, graph->location}));
  module->evaluation = graph_create(module, true);
  module->evaluation->outputs = graph->outputs;
  module->evaluation->outputs.count = 0;
  BUILD(module->evaluation, negate, graph_input(module->evaluation, 0));
  MemoryArena *scratch = memory_arena_create();
  differentiate_graph(graph, scratch);
  memory_arena_destroy(scratch);
  return small;
}

static Module *read_text(MemoryArena *arena, const char *text) {
  Source *source = NEW(arena, Source);
  *source = (Source){"text.ir", text, (int64_t)strlen(text)};
  return module_parse(arena, source);
}

static void expect_round_trip(MemoryArena *arena, const Module *module) {
  const char *text = module_print(arena, module);
  const Module *again = read_text(arena, text);
  if (!again) fail_msg("%s", diag_get(0)->message);
  assert_string_equal(module_print(arena, again), text);
}

static void test_round_trip(void **state) {
  (void)state;
  SmallGraph small = rich_module();
  expect_round_trip(small.arena, small.module);
  small_graph_destroy(&small);
}

/* What was read is the graph: it verifies, and runs to the same bits. */
static void test_read_graph_runs(void **state) {
  (void)state;
  SmallGraph small = rich_module();
  const Module *again = read_text(small.arena, module_print(small.arena, small.module));
  assert_non_null(again);
  assert_null(graph_verify(small.arena, again->train));
  assert_null(graph_verify(small.arena, again->evaluation));
  assert_int_equal(again->train->values.count, small.graph->values.count);
  Evaluation *runs[] = {eval_create(small.arena, small.graph, EVAL_F32),
                        eval_create(small.arena, again->train, EVAL_F32)};
  for (int k = 0; k < 2; k++) {
    FILL(runs[k], 0, 4, 3, 2, 1, 0, 4);
    for (int i = 0; i < 2; i++) small_fill_pattern(&runs[k]->persistents[i], i);
    small_run(runs[k]);
  }
  for (int64_t i = 0; i < small.graph->values.count; i++) {
    const EvalTensor *a = &runs[0]->values[i], *b = &runs[1]->values[i];
    if (a->real) assert_memory_equal(a->real, b->real, (size_t)type_elements(&a->type) * sizeof(double));
  }
  small_graph_destroy(&small);
}

static void test_places_and_fields_survive(void **state) {
  (void)state;
  SmallGraph small = rich_module();
  const Module *again = read_text(small.arena, module_print(small.arena, small.module));
  assert_non_null(again);
  const Graph *graph = again->train;
  assert_string_equal(location_text(small.arena, graph->nodes.items[0].location), "dir with \"quotes\"/m.rp:4:4");
  assert_string_equal(location_text(small.arena, again->training.readers.items[0].location),
                      "dir with \"quotes\"/m.rp:2:1");
  assert_string_equal(graph->nodes.items[0].module, "h.0");
  assert_null(graph->values.items[graph->nodes.items[1].outputs[0]].location.source);
  const Node *gelu = &graph->nodes.items[3];
  assert_string_equal(location_text(small.arena, gelu->location), "dir with \"quotes\"/m.rp:4:4");
  assert_string_equal(location_text(small.arena, graph_value(graph, gelu->outputs[0])->location),
                      "dir with \"quotes\"/m.rp:1:4");
  bool found = false;
  for (int64_t i = 0; i < graph->nodes.count; i++)
    found =
        found || (graph->nodes.items[i].op == OP_full && graph->nodes.items[i].attributes[1].integer == INT64_MAX - 1);
  assert_true(found);
  assert_true(again->training.seed == UINT64_MAX && again->training.factor == 1.0 / 3);
  assert_true(again->persistents.items[1].initial.value == -INFINITY &&
              isnan(again->persistents.items[2].initial.value));
  assert_true(graph->nodes.items[1].random_id == small.graph->nodes.items[1].random_id);
  assert_int_equal(graph->recompute_block_count, 1);
  assert_true(graph->gradients.items[0].divisor == small.graph->gradients.items[0].divisor);
  assert_int_equal(again->persistents.items[0].optimizer_settings[1].count, 2);
  /* a graph that was read can be built on: inputs are found, draws stay distinct */
  assert_int_equal(graph_input(again->train, 0), graph_input(small.graph, 0));
  Attribute p = attribute_float(0.1);
  again->train->module_path = "h.0";
  ValueId drawn = build_apply(again->train, OP_drop, &p, 1, (ValueId[]){graph->loss.value});
  assert_true(graph_node(graph, graph_value(graph, drawn)->producer)->random_id != graph->nodes.items[1].random_id);
  small_graph_destroy(&small);
}

static void test_fused_clones_and_gaps(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  Type type = type_make(F32, SHAPE(3)), scalar = type_scalar(F32);
  ValueId x = small_input(&small, F32, SHAPE(3)), s = small_parameter(&small, "s", 0, SHAPE(3));
  ValueId gone = graph_new_value(graph, type, "u", (Location){0}),
          y = graph_new_value(graph, type, NULL, (Location){0});
  ValueId copy = graph_new_value(graph, scalar, NULL, (Location){0}),
          total = graph_new_value(graph, scalar, NULL, (Location){0});
  Attribute p = attribute_float(0.5), axes[] = {attribute_ints(SHAPE(0)), attribute_bool(false)};
  Instruction instructions[] = {
      {.op = OP_drop, .dtype = F32, .attributes = &p, .random_id = 99, .operand_count = 1, .operands = {~0}},
      {.op = OP_add, .dtype = F32, .operand_count = 2, .operands = {0, ~1}}};
  int results[] = {1, 0};
  Body body = {2, 2, instructions, results}, summed = {1, 1, &instructions[1], results};
  summed.instructions = &(Instruction){.op = OP_square, .dtype = F32, .operand_count = 1, .operands = {~0}};
  summed.results = &results[1];
  Node node = {.op = OP_add,
               .input_count = 2,
               .output_count = 1,
               .write_count = 1,
               .inputs = (ValueId[]){x, s},
               .outputs = &y,
               .writes = &s,
               .body = &body,
               .iteration = type,
               .original = NO_NODE,
               .module = "",
               .workspace = 640};
  graph_append(graph, node);
  Node reduction = {.op = OP_sum,
                    .input_count = 1,
                    .output_count = 1,
                    .inputs = &y,
                    .outputs = &total,
                    .attributes = axes,
                    .body = &summed,
                    .iteration = type,
                    .original = NO_NODE,
                    .module = "m"};
  graph_append(graph, reduction);
  reduction.original = 1;
  reduction.phase = PHASE_BACKWARD;
  reduction.outputs = &copy;
  graph_append(graph, reduction);
  array_push(small.arena, &graph->gradients,
             ((GraphGradient){.name = "u", .of = gone, .gradient = y, .divisor = NO_VALUE}));
  assert_null(graph_verify(small.arena, graph));
  const char *text = module_print(small.arena, small.module);
  assert_non_null(
      strstr(text,
             "  2: backward %4: f32[] = sum(%3; axis=[0], keepdims=false) clone 1 in \"m\"\n    over [3] {\n"
             "      t0: f32 = square($0)\n      results t0\n    }\n"));
  assert_non_null(strstr(text, "  gone %2: f32[3] \"u\"\n"));
  assert_non_null(strstr(text, " workspace 640\n"));
  expect_round_trip(small.arena, small.module);
  assert_null(graph_verify(small.arena, read_text(small.arena, text)->train));
  small_graph_destroy(&small);
}

static const char *minimal =
    "module \"M\" from \"m.rp\"\n"
    "input \"x\" f32[2]\n"
    "graph train {\n"
    "  input 0 %0: f32[2]\n"
    "  0: forward %1: f32[2] = negate(%0)\n"
    "}\n";

static void test_numbers_are_exact(void **state) {
  (void)state;
  const double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, INFINITY, 123456789.125};
  for (int i = 0; i < 7; i++) {
    SmallGraph small = small_graph();
    small_parameter(&small, "p", values[i], SCALAR);
    const Module *again = read_text(small.arena, module_print(small.arena, small.module));
    assert_memory_equal(&again->persistents.items[0].initial.value, &values[i], sizeof(double));
    small_graph_destroy(&small);
  }
}

/* The text with one piece replaced must be refused at `column` of `line`, with these words. */
static void expect_refusal(const char *from, const char *to, const char *place, const char *words) {
  MemoryArena *arena = memory_arena_create();
  const char *at = strstr(minimal, from);
  assert_non_null(at);
  const char *text = memory_format(arena, "%.*s%s%s", (int)(at - minimal), minimal, to, at + strlen(from));
  assert_null(read_text(arena, text));
  assert_int_equal(diag_error_count(), 1);
  if (!strstr(diag_get(0)->message, words)) fail_msg("expected '%s', found '%s'", words, diag_get(0)->message);
  if (place) assert_string_equal(location_text(arena, diag_get(0)->location), place);
  diag_reset();
  memory_arena_destroy(arena);
}

static void test_malformed_text(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  assert_non_null(read_text(arena, minimal));
  memory_arena_destroy(arena);
  expect_refusal("negate", "negat", "text.ir:5:27", "expected an operator, found 'negat'");
  expect_refusal("negate", "softmax", NULL, "expected an operator");
  expect_refusal("(%0)", "(%7)", NULL, "value %7 is not declared before");
  expect_refusal("(%0)", "(%99999999)", NULL, "expected an integer");
  expect_refusal("%1", "%0", NULL, "value %0 is declared twice");
  expect_refusal("input 0", "input 1", NULL, "expected an integer from 0 to 0");
  expect_refusal("0: forward", "1: forward", NULL, "expected node 0");
  expect_refusal("forward", "sideways", "text.ir:5:6", "expected forward, backward or update, found 'sideways'");
  expect_refusal("(%0)", "(%0; axis=1)", NULL, "'negate' has no attribute 'axis'");
  expect_refusal("f32[2] =", "f31[2] =", NULL, "expected a type");
  expect_refusal("f32[2] =", "f32[0] =", NULL, "at least 1");
  expect_refusal("f32[2] =", "f32[1,1,1,1,1,1,1,1,1] =", NULL, "at most 8");
  expect_refusal("f32[2] =", "f32[4294967296, 4294967296] =", NULL, "64-bit size");
  expect_refusal("\"m.rp\"", "\"m.rp", NULL, "no closing");
  expect_refusal("\"m.rp\"", "\"m\\q\"", NULL, "expected '\\\"'");
  expect_refusal("(%0)", "(%0) at \"m.rp\"", NULL, "file:line:column");
  expect_refusal("(%0)", "(%0) at \"m.rp:60000000:60000000\"", NULL, "too far apart");
  expect_refusal("(%0)", "(%0) over [2] { results t0 }", NULL, "expected an integer");
  expect_refusal("(%0)", "(%0) over [2] { t0: f32 = sum($0) results t0 }", NULL, "a pointwise operator");
  expect_refusal("}", "", "text.ir:7:1", "expected a node or an item of a graph");
  expect_refusal("module", "modul", "text.ir:1:1", "expected 'module'");
}

/* Changes bytes of a good text at random: it is read or refused, and what is read prints and can be verified. */
static void test_damaged_text(void **state) {
  (void)state;
  SmallGraph small = rich_module();
  const char *text = module_print(small.arena, small.module);
  size_t length = strlen(text);
  uint64_t random = 88172645463325252u;
  int refused = 0;
  for (int round = 0; round < 3000; round++) {
    MemoryArena *arena = memory_arena_create();
    char *damaged = memory_string(arena, text);
    for (int k = 0; k <= round % 3; k++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
      size_t at = random % length;
      if (random >> 60 < 4)
        damaged[at] = '\0';
      else if (random >> 60 < 10)
        damaged[at] = "0123456789%\"[](){}-,:;=$t "[(random >> 32) % 26];
      else
        memmove(damaged + at, damaged + at + 1, strlen(damaged + at));
      length = strlen(damaged) ? strlen(damaged) : 1;
    }
    Module *module = read_text(arena, damaged);
    assert_int_equal(module == NULL, diag_error_count() > 0);
    refused += !module;
    if (module) module_print(arena, module);
    if (module && module->train) graph_verify(arena, module->train);
    diag_reset();
    memory_arena_destroy(arena);
    length = strlen(text);
  }
  assert_in_range(refused, 1000, 2999);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_read_graph_runs),
      cmocka_unit_test(test_places_and_fields_survive),
      cmocka_unit_test(test_fused_clones_and_gaps),
      cmocka_unit_test(test_numbers_are_exact),
      cmocka_unit_test(test_malformed_text),
      cmocka_unit_test(test_damaged_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
