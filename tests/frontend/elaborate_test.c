/* tests/frontend/elaborate_test.c - what elaboration makes of modules, paths, states, freezing, train blocks, imports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <math.h>

#include "frontend/elaborate.h"
#include "frontend/parser.h"
#include "ir/eval.h"
#include "tests/frontend/support.h"

static MemoryArena *arena;

static int create_arena(void **state) {
  (void)state;
  arena = memory_arena_create();
  return 0;
}

static int destroy_arena(void **state) {
  (void)state;
  diag_reset();
  memory_arena_destroy(arena);
  return 0;
}

static Module *check_module(Module *module) {
  if (!module) {
    diag_print(stderr, false);
    fail_msg("no module");
  }
  const char *fault = graph_verify(arena, module->train);
  if (!fault) fault = graph_verify(arena, module->evaluation);
  if (fault) fail_msg("%s", fault);
  return module;
}

static Module *elaborate_text(const char *text) {
  File *file = parse_source(arena, source_from(arena, "case.rp", text));
  return check_module(diag_error_count() ? NULL : elaborate_file(arena, file, NULL, 0));
}

static const Persistent *find_persistent(const Module *module, const char *name) {
  for (int64_t i = 0; i < module->persistents.count; i++)
    if (string_equal(module->persistents.items[i].name, name)) return &module->persistents.items[i];
  fail_msg("there is no parameter or state %s", name);
  return NULL;
}

static int64_t count_parameters(const Module *module) {
  int64_t count = 0;
  for (int64_t i = 0; i < module->persistents.count; i++)
    if (module->persistents.items[i].role == ROLE_PARAMETER) count += type_elements(&module->persistents.items[i].type);
  return count;
}

static int count_nodes(const Graph *graph, const char *op) {
  int count = 0;
  for (int64_t i = 0; i < graph->nodes.count; i++) count += string_equal(op_info(graph->nodes.items[i].op)->name, op);
  return count;
}

/* ---- the models that the language was designed with ---- */

typedef struct ModelCase {
  const char *file;
  int64_t parameters;
  const char *names[3];
} ModelCase;

static void test_models(void **state) {
  (void)state;
  static const ModelCase cases[] = {
      {"gpt2.rp", 124439808, {"wte.weight", "h.0.attn.c_attn.weight", "h.11.mlp.c_proj.bias"}},
      {"k_mlm.rp",
       109514298,
       {"bert.embeddings.word_embeddings.weight", "bert.encoder.layer.11.attention.self.query.bias",
        "cls.predictions.bias"}},
      {"a_mlp.rp", 784 * 512 + 512 + 512 * 10 + 10, {"fc1.weight", "fc1.bias", "fc2.weight"}},
      {"g_lstm.rp", 1020160, {"embed.weight", "cell.1.weight_ih", "head.bias"}},
      {"l_trace.rp", 2, {"a", "b", "a"}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *io_error;
    Module *module = elaborate_path(arena, memory_format(arena, "%s/models/%s", REPRISE_SHARED_DATA, cases[i].file),
                                    NULL, 0, &io_error);
    if (io_error) {
      print_message("skipped: %s\n", io_error);
      skip();
    }
    check_module(module);
    assert_int_equal(count_parameters(module), cases[i].parameters);
    for (int k = 0; k < 3; k++) find_persistent(module, cases[i].names[k]);
  }
}

/* ---- paths and sharing ---- */

static void test_paths(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "module L(x: [..., I], O, use_bias = true) {\n"
      "  param weight: [O, I] = normal(0.1)\n  param bias: [O] = zeros if use_bias\n  return linear(x, weight, "
      "bias)\n}\n"
      "module Two(x: [...]) { return b:L(a:L(x, 3, use_bias=false), 3) }\n"
      "module Plain(x: [...]) { return L(x, 3) }\n"
      "model M(x: [2, 3]) {\n"
      "  for i in 0..2 { x = block{i+1}.{\"in\"}:Two(x) }\n  x = p:Plain(x)\n  output x\n}\n");
  static const char *const names[] = {
      "block1.in.a.weight", "block1.in.b.weight", "block1.in.b.bias", "block2.in.a.weight",
      "block2.in.b.weight", "block2.in.b.bias",   "p.weight",         "p.bias"};
  assert_int_equal(module->persistents.count, 8);
  for (int i = 0; i < 8; i++) assert_string_equal(module->persistents.items[i].name, names[i]);
  assert_string_equal(module->train->nodes.items[0].module, "block1.in.a");
  assert_string_equal(graph_value(module->train, module->train->outputs.items[0].value)->name, "x");
}

static void test_shared(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "module Cell(x: [N]) {\n  param w: [N] = ones\n  state s: [N] = zeros\n  update s = s + x\n  return w*x + s\n}\n"
      "model M(x: [2]) {\n  shared cell.{0..2}\n"
      "  for t in 0..3 { for l in 0..2 { x = cell.{l}:Cell(x) } }\n  output x\n}\n");
  assert_int_equal(module->persistents.count, 4);
  assert_string_equal(module->persistents.items[2].name, "cell.1.w");
  assert_int_equal(count_nodes(module->train, "assign"), 2); /* each state is stored once */
  assert_int_equal(count_nodes(module->evaluation, "assign"), 0);
  /* cell.0 sees its own state across uses: x=1: s0=1, x=1+1=2; s1=2, x=2+2=4; s0=5, x=4+5=9; s1=11, … */
  Evaluation *evaluation = eval_create(arena, module->train, EVAL_F64);
  eval_fill_initial(evaluation, 0);
  eval_tensor_set(&evaluation->inputs[0], 0, 1);
  assert_true(eval_run(evaluation));
  eval_commit(evaluation);
  /* third round: x=20, s0=25, x=45, s1=56 */
  assert_float_equal(eval_tensor_get(&evaluation->persistents[1], 0), 25, 0);
  assert_float_equal(eval_tensor_get(&evaluation->persistents[3], 0), 56, 0);
}

/* ---- initial values ---- */

static void check_initial(const Module *module, const char *name, InitialKind kind, double value, double mean) {
  const Initial *initial = &find_persistent(module, name)->initial;
  assert_int_equal(initial->kind, kind);
  assert_float_equal(initial->value, value, 1e-12);
  assert_float_equal(initial->mean, mean, 0);
}

static void test_initialisers(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "model M(x: []) {\n"
      "  param a: [3] = constant(1.5)\n  param b: [3] = uniform(0.25)\n  param c: [3] = normal(0.1, mean=2)\n"
      "  param d: [3] = trunc_normal(std=0.02)\n"
      "  param e: [8, 2, 3, 3] = kaiming_normal(mode=\"fan_out\")\n  param f: [8, 2, 3, 3] = kaiming_uniform\n"
      "  param g: [8, 2] = xavier_normal\n  param h: [8, 2] = xavier_uniform(gain=2)\n  param i: [8] = "
      "kaiming_normal(fan=8)\n"
      "  state n: i64[] = constant(7)\n"
      "  output y = x + sum(a+b+c+d) + sum(e+f) + sum(g+h) + sum(i)\n}\n");
  check_initial(module, "a", INITIAL_CONSTANT, 1.5, 0);
  check_initial(module, "b", INITIAL_UNIFORM, 0.25, 0);
  check_initial(module, "c", INITIAL_NORMAL, 0.1, 2);
  check_initial(module, "d", INITIAL_TRUNCATED_NORMAL, 0.02, 0);
  check_initial(module, "e", INITIAL_NORMAL, sqrt(2.0 / 72), 0); /* fan_out = 8*9 */
  check_initial(module, "f", INITIAL_UNIFORM, sqrt(3.0) * sqrt(2.0 / 18), 0);
  check_initial(module, "g", INITIAL_NORMAL, sqrt(2.0 / 10), 0);
  check_initial(module, "h", INITIAL_UNIFORM, sqrt(3.0) * 2 * sqrt(2.0 / 10), 0);
  check_initial(module, "i", INITIAL_NORMAL, 0.5, 0);
  check_initial(module, "n", INITIAL_CONSTANT, 7, 0);
  assert_int_equal(find_persistent(module, "n")->type.dtype, I64);
}

/* ---- constraints ---- */

static void test_recompute_and_keep(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "model M(x: [2]) {\n  keep a = exp(x)\n  recompute {\n    b = exp(a)\n    recompute { c = exp(b) }\n  }\n"
      "  recompute { d = exp(c) }\n  output d\n}\n");
  const Graph *graph = module->train;
  int32_t blocks[4], index = 0;
  for (int64_t i = 0; i < graph->nodes.count; i++)
    blocks[index++] = graph_value(graph, graph->nodes.items[i].outputs[0])->recompute_block;
  assert_int_equal(graph_value(graph, graph->nodes.items[0].outputs[0])->constraint, CONSTRAINT_KEEP);
  assert_int_equal(blocks[0], 0);
  assert_int_equal(blocks[1], 1);
  assert_int_equal(blocks[2], 2);
  assert_int_equal(blocks[3], 3);
  assert_int_equal(graph->recompute_block_count, 3);
  assert_int_equal(graph->recompute_parents.items[0], 0);
  assert_int_equal(graph->recompute_parents.items[1], 1);
  assert_int_equal(graph->recompute_parents.items[2], 0);
}

static void test_freeze(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "module D(x: [N]) {\n  param w: [N] = ones\n  state s: [N] = zeros\n  update s = s + x\n  return w*x\n}\n"
      "model M(x: [2]) {\n  shared d\n  freeze { y = d:D(x); z = only:D(x) }\n  y = y + z + d:D(x)\n  output y\n}\n");
  assert_true(find_persistent(module, "d.w")->trainable);
  assert_false(find_persistent(module, "only.w")->trainable);
  assert_int_equal(count_nodes(module->train, "assign"), 1); /* of d.s, by the use outside of freeze */
}

/* ---- train blocks ---- */

static const char *const train_model =
    "module L(x: [N, I], O) {\n  param weight: [O, I] = ones\n  param bias: [O] = zeros\n  state n: [] = zeros\n"
    "  update n = n + 1\n  return linear(x, weight, bias)\n}\n"
    "model M(x: [4, 3], t: i32[4]) {\n  y = head:L(body.1:L(body.0:L(x, 5), 5), 2)\n  loss cross_entropy(y, t)\n}\n";

static double setting_of(const Module *module, const char *parameter, const char *setting) {
  int index = op_attribute_index(module->training.optimizer, setting);
  return find_persistent(module, parameter)->optimizer_settings[index].number;
}

static void test_train(void **state) {
  (void)state;
  Module *module = elaborate_text(memory_format(
      arena,
      "%strain M {\n"
      "  data x = npy(\"x.npy\", records=10..90)\n  data t = csv(\"t.csv\", header=true)\n"
      "  test x = npy(\"x.npy\", records=0..10); test t = constant(1)\n"
      "  optimizer adamw(lr=0.5, betas=[0.8, 0.9]) {\n"
      "    wd = 0 where rank < 2 or match(\"head.bias\")\n    lr = lr/2, eps = 1e-3 where match(\"body.*.weight\") and "
      "size > 15\n"
      "    lr = 2*lr where match(\"**.weight\")\n  }\n"
      "  schedule cosine(warmup=5, steps=100, final=0.1)\n  clip 1; accumulate 4; seed 7; epochs 3; shuffle false\n"
      "  freeze \"body.**\", \"!body.1.*\"\n}\n",
      train_model));
  const Training *training = &module->training;
  assert_true(training->present && training->has_optimizer && !training->shuffle);
  assert_string_equal(op_info(training->optimizer)->name, "adamw");
  assert_int_equal(training->readers.count, 2);
  assert_int_equal(training->readers.items[0].first, 10);
  assert_int_equal(training->readers.items[0].last, 90);
  assert_int_equal(training->readers.items[1].kind, READER_CSV);
  assert_int_equal(training->readers.items[1].last, -1);
  assert_true(training->readers.items[1].header);
  assert_int_equal(training->test_readers.count, 2);
  assert_int_equal(training->schedule, SCHEDULE_COSINE);
  assert_int_equal(training->warmup, 5);
  assert_int_equal(training->schedule_steps, 100);
  assert_float_equal(training->final, 0.1, 0);
  assert_float_equal(training->clip, 1, 0);
  assert_int_equal(training->accumulate, 4);
  assert_int_equal(training->seed, 7);
  assert_int_equal(training->epochs, 3);
  assert_false(find_persistent(module, "body.0.weight")->trainable);
  assert_true(find_persistent(module, "body.1.weight")->trainable);
  assert_true(find_persistent(module, "head.bias")->trainable);
  assert_int_equal(count_nodes(module->train, "assign"), 2); /* body.0.n is frozen too */
  assert_float_equal(setting_of(module, "body.1.weight", "lr"), 0.5, 0);
  assert_float_equal(setting_of(module, "body.1.weight", "eps"), 1e-3, 0);
  assert_float_equal(setting_of(module, "head.weight", "lr"), 1, 0);
  assert_float_equal(setting_of(module, "head.weight", "wd"), 0.01, 0);
  assert_float_equal(setting_of(module, "head.bias", "wd"), 0, 0);
  assert_float_equal(find_persistent(module, "head.bias")->optimizer_settings[1].numbers[0], 0.8, 0);
}

/* ---- constants from outside ---- */

static void test_definitions(void **state) {
  (void)state;
  File *file = parse_source(arena, source_from(arena, "case.rp",
                                               "dim B = 2\nconst K = B*3, P = 0.5\n"
                                               "model M(x: [B, K]) { param w: [K] = constant(P); output y = x*w }\n"));
  const Definition definitions[] = {{"B", "4"}, {"P", "1/8.0"}};
  Module *module = check_module(elaborate_file(arena, file, definitions, 2));
  assert_int_equal(module->inputs.items[0].type.dims[0], 4);
  assert_int_equal(module->inputs.items[0].type.dims[1], 12);
  check_initial(module, "w", INITIAL_CONSTANT, 0.125, 0);
}

static void test_import(void **state) {
  (void)state;
  const char *io_error;
  Module *module =
      elaborate_path(arena, memory_format(arena, "%s/imports/main.rp", REPRISE_FRONTEND_CASES), NULL, 0, &io_error);
  check_module(module);
  assert_string_equal(module->name, "Base");
  assert_int_equal(module->inputs.items[0].type.dims[0], 6);              /* B=2*3 */
  assert_int_equal(find_persistent(module, "l.weight")->type.dims[0], 5); /* K = B - 1 follows */
  assert_true(module->training.present);
}

/* ---- outputs, loss, gradients asked for ---- */

static void test_outputs(void **state) {
  (void)state;
  Module *module = elaborate_text(
      "model M(x: [4]) {\n  h.{0..2} = split(x, 2)\n  output h.{0..2}, total = sum(x) per sum(x*x), x\n"
      "  grad x, h.1\n  loss sum(x) per 4\n}\n");
  const Graph *graph = module->train;
  static const char *const names[] = {"h.0", "h.1", "total", "x"};
  assert_int_equal(graph->outputs.count, 4);
  for (int i = 0; i < 4; i++) assert_string_equal(graph->outputs.items[i].name, names[i]);
  assert_int_equal(graph->outputs.items[0].denominator, NO_VALUE);
  assert_int_not_equal(graph->outputs.items[2].denominator, NO_VALUE);
  assert_int_not_equal(graph->loss.denominator, NO_VALUE);
  assert_int_equal(graph->gradient_requests.count, 2);
  assert_string_equal(graph->gradient_requests.items[1].name, "h.1");
}

/* Long loops neither recurse nor slow down with their length squared. */
static void test_long_chain(void **state) {
  (void)state;
  Module *module = elaborate_text("model M(x: [2]) { for i in 0..100000 { x = relu(x) }; output x }");
  assert_int_equal(module->train->nodes.count, 100000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_models, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_paths, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_shared, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_initialisers, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_recompute_and_keep, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_freeze, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_train, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_definitions, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_import, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_outputs, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_long_chain, create_arena, destroy_arena),
  };
  return cmocka_run_group_tests_name("elaborate", tests, NULL, NULL);
}
