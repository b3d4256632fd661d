/* tests/frontend/expressions_test.c - values of constants and tensor expressions, by the reference interpreter. */
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

/* The output y of the evaluation graph, x[i] = i. */
static const EvalTensor *run_model(const char *text) {
  File *file = parse_source(arena, source_from(arena, "case.rp", text));
  Module *module = diag_error_count() ? NULL : elaborate_file(arena, file, NULL, 0);
  if (!module) {
    diag_print(stderr, false);
    fail_msg("no module for %s", text);
  }
  const char *fault = graph_verify(arena, module->train);
  if (fault) fail_msg("%s: %s", text, fault);
  Evaluation *evaluation = eval_create(arena, module->evaluation, EVAL_F64);
  eval_fill_initial(evaluation, 1);
  for (int64_t i = 0; i < module->inputs.count; i++)
    for (int64_t k = 0; k < type_elements(&module->inputs.items[i].type); k++)
      eval_tensor_set(&evaluation->inputs[i], k, (double)k);
  assert_true(eval_run(evaluation));
  return eval_value(evaluation, module->evaluation->outputs.items[0].value);
}

typedef struct ValueCase {
  const char *expression;
  int rank;
  int64_t dims[4];
  double values[12];
} ValueCase;

static void check_case(const ValueCase *expected, const char *text) {
  const EvalTensor *found = run_model(text);
  Type type = type_make(found->type.dtype, expected->rank, expected->dims);
  if (!type_equal(&type, &found->type))
    fail_msg("%s gives %s, expected %s", expected->expression, type_text(arena, &found->type), type_text(arena, &type));
  for (int64_t i = 0; i < type_elements(&type); i++)
    if (fabs(eval_tensor_get(found, i) - expected->values[i]) > 1e-12)
      fail_msg("%s: element %lld is %.17g, expected %.17g", expected->expression, (long long)i,
               eval_tensor_get(found, i), expected->values[i]);
}

static const ValueCase tensor_cases[] = {
    {"x", 2, {2, 3}, {0, 1, 2, 3, 4, 5}},
    {"x[1]", 1, {3}, {3, 4, 5}},
    {"x[-1, 1]", 0, {0}, {4}},
    {"x[:, -1]", 1, {2}, {2, 5}},
    {"x[..., 0:3:2]", 2, {2, 2}, {0, 2, 3, 5}},
    {"x[0:1]", 2, {1, 3}, {0, 1, 2}},
    {"x[..., -2:]", 2, {2, 2}, {1, 2, 4, 5}},
    {"x[:-1, :]", 2, {1, 3}, {0, 1, 2}},
    {"x[0][1:]", 1, {2}, {1, 2}},
    {"-x[0] + 1", 1, {3}, {1, 0, -1}},
    {"2*x[0] - x[1]/2", 1, {3}, {-1.5, 0, 1.5}},
    {"x[0]^2 + 4^x[0]", 1, {3}, {1, 5, 20}},
    {"x[1]^0.5", 1, {3}, {1.7320508075688772, 2, 2.23606797749979}},
    {"x[1]^-0.5 * x[1]^1.5", 1, {3}, {3, 4, 5}},
    {"i32(x[1]) // 2", 1, {3}, {1, 2, 2}},
    {"i32(x[1]) % 2 == 1", 1, {3}, {1, 0, 1}},
    {"x > 2", 2, {2, 3}, {0, 0, 0, 1, 1, 1}},
    {"x[0] > 0 and not x[0] >= 2 or x[0] == 0", 1, {3}, {1, 1, 0}},
    {"where(x > 2, x, -1)", 2, {2, 3}, {-1, -1, -1, 3, 4, 5}},
    {"where(true, x[0], x[7])", 1, {3}, {0, 1, 2}},
    {"where(none == none and x != none, x[0], 1)", 1, {3}, {0, 1, 2}},
    {"sum(x, axis=1)", 1, {2}, {3, 12}},
    {"sum(x)", 0, {0}, {15}},
    {"max(x, axis=[0], keepdims=true)", 2, {1, 3}, {3, 4, 5}},
    {"x @ transpose(x)", 2, {2, 2}, {5, 14, 14, 50}},
    {"concat(x[0], x[1], axis=-1)", 1, {6}, {0, 1, 2, 3, 4, 5}},
    {"stack(x[0], x[1], axis=1)", 2, {3, 2}, {0, 3, 1, 4, 2, 5}},
    {"reshape(x, [3, 2])", 2, {3, 2}, {0, 1, 2, 3, 4, 5}},
    {"rearrange(x, \"a b -> b a\")", 2, {3, 2}, {0, 3, 1, 4, 2, 5}},
    {"rearrange(x, \"a (b c) -> a 1 b c\", c=3)", 4, {2, 1, 1, 3}, {0, 1, 2, 3, 4, 5}},
    {"expand(x[0], shape(x))", 2, {2, 3}, {0, 1, 2, 0, 1, 2}},
    {"maximum(x[0], 1)", 1, {3}, {1, 1, 2}},
    {"f32(bool(x[0]))", 1, {3}, {0, 1, 1}},
    {"u8(x[0]) + 255", 1, {3}, {255, 0, 1}},
    {"full([2], where(pi > 3 and len(shape(x)) == 2, 3, 4), to=\"i32\")", 1, {2}, {3, 3}},
    {"relu(x[0] - 1)", 1, {3}, {0, 0, 1}},
    {"gelu(x[0]*0, \"tanh\")", 1, {3}, {0, 0, 0}},
    {"dropout(x[0], 0.5)", 1, {3}, {0, 1, 2}},
    {"cross_entropy(x*0, i32(x[:, 0]*0), ignore=none)", 0, {0}, {1.0986122886681098}}};

static void test_tensors(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof tensor_cases / sizeof *tensor_cases; i++)
    check_case(&tensor_cases[i],
               memory_format(arena, "model M(x: [2, 3]) { output y = %s }", tensor_cases[i].expression));
}

/* ---- constants: the value of full([], expression), as a float ---- */

typedef struct ConstantCase {
  const char *expression;
  double value;
} ConstantCase;

static const ConstantCase constant_cases[] = {
    {"7//2", 3},
    {"-7//2", -4},
    {"-7 % 3", 2},
    {"7 % -3", -2},
    {"6/3", 2},
    {"7/2.0", 3.5},
    {"2^10", 1024},
    {"2^-1", 0.5},
    {"-2^2", -4},
    {"2^3^2", 512},
    {"(1 + 2)*3 - 4", 5},
    {"7.5//2", 3},
    {"where(1 < 2, 10, 1/0)", 10},
    {"where(false or true and 2 == 2.0, 1, 2)", 1},
    {"where(not 3 > 4 and none == none, 1, 2)", 1},
    {"where(\"a\" == \"a\" and \"a\" != \"b\", 1, 2)", 1},
    {"where(false and 1/0 == 1, 1, 2)", 2},
    {"len([1, 2, 3])", 3},
    {"len(0..5)", 5},
    {"len(5..0)", 0},
    {"len(\"abc\")", 3},
    {"[4, 5, 6][-1]", 6},
    {"(3..9)[2]", 5},
    {"[4, 5, 6][1:][1]", 6},
    {"sqrt(16)", 4},
    {"maximum(3, 4)", 4},
    {"abs(-3)//2", 1},
    {"floor(2.7)", 2},
    {"i32(2.7)", 2},
    {"i32(pi)", 3},
    {"f32(true)", 1},
    {"K*D", 12},
    {"where([1, 2] == [1, 2.0], 1, 2)", 1},
    {"9223372036854775807 - 9223372036854775806", 1},
};

static void test_constants(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof constant_cases / sizeof *constant_cases; i++) {
    ValueCase expected = {constant_cases[i].expression, 0, {0}, {constant_cases[i].value}};
    check_case(&expected,
               memory_format(arena, "dim D = 3\nconst K = D + 1\nmodel M(x: [1]) { output y = full([], %s) }",
                             constant_cases[i].expression));
  }
}

/* ---- statements ---- */

static void check_body(const char *body, int rank, const int64_t *dims, const double *values) {
  ValueCase expected = {.expression = body, .rank = rank};
  memcpy(expected.dims, dims, (size_t)rank * sizeof *dims);
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  memcpy(expected.values, values, (size_t)count * sizeof *values);
  check_case(&expected, memory_format(arena,
                                      "module Twice(x: [...], times = 2) { return times*x }\n"
                                      "module Pair(x: [N, ...]) { if N == 2 { return x[0], x[1] }; return x, x }\n"
                                      "module Sum(h.{0..2}: [N], scale, y: [...] = none) {\n"
                                      "  s = (h.0 + h.1)*scale\n"
                                      "  if y == none { return s } else { return s + y }\n"
                                      "}\n"
                                      "model M(x: [2, 3]) {\n%s\n}\n",
                                      body));
}

#define SHAPE(...) \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define VALUES(...) \
  (double[]) { __VA_ARGS__ }

static void test_statements(void **state) {
  (void)state;
  check_body("a, b = Pair(x)\noutput y = a - b", SHAPE(3), VALUES(-3, -3, -3));
  check_body("_, b = unstack(x)\noutput y = b", SHAPE(3), VALUES(3, 4, 5));
  check_body("a, b, c = split(x, 3, axis=1)\noutput y = c", SHAPE(2, 1), VALUES(2, 5));
  check_body("a, b = split(x, [1, 2], axis=-1)\noutput y = b", SHAPE(2, 2), VALUES(1, 2, 4, 5));
  check_body("p.{0..2} = Pair(x)\noutput y = Sum(p.{0..2}, 10)", SHAPE(3), VALUES(30, 50, 70));
  check_body("p.{0..2} = unstack(x)\noutput y = Sum(p.{[1, 0]}, scale=1, y=p.1)", SHAPE(3), VALUES(6, 9, 12));
  check_body("for n in [\"a\", \"b\"] { v.{n} = Twice(x[0]) }\noutput y = v.a + v.b", SHAPE(3), VALUES(0, 4, 8));
  check_body("z = x[0]\nfor i in 0..3 { z = Twice(z, 3) }\noutput y = z", SHAPE(3), VALUES(0, 27, 54));
  check_body("z = x[0]\nfor a, b in [[1, 2], [3, 4]] { z = z + a*b }\noutput y = z", SHAPE(3), VALUES(14, 15, 16));
  check_body("if eval { z = x[0] } else { z = x[1] }\noutput y = z", SHAPE(3), VALUES(0, 1, 2));
  check_body("k = 3\nif k == 1 { z = x[0] } else if k == 3 { z = x[1] } else { z = x }\noutput y = z", SHAPE(3),
             VALUES(3, 4, 5));
  check_body("x = x[0]; x.a = 2*x; a = [len(\"ab\"), 1]\noutput y = x.a*a[0]", SHAPE(3), VALUES(0, 4, 8));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_tensors, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_constants, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(test_statements, create_arena, destroy_arena),
  };
  return cmocka_run_group_tests_name("expressions", tests, NULL, NULL);
}
