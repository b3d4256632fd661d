/* Expressions of the op table as C text, loop nests, text. */
#include "codegen/expression.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codegen/loops.h"

static MemoryArena *arena;

static void literals_read_back_exactly(void **state) {
  (void)state;
  assert_string_equal(c_real_literal(arena, F32, 1), "1.0f");
  assert_string_equal(c_real_literal(arena, F32, -0.5), "(-0.5f)");
  assert_string_equal(c_real_literal(arena, F32, -1e30), "(-1e+30f)");
  assert_string_equal(c_real_literal(arena, F64, 0.1), "0.1");
  assert_string_equal(c_real_literal(arena, F32, (double)-INFINITY), "(-INFINITY)");
  assert_string_equal(c_real_literal(arena, F32, (double)NAN), "NAN");
  assert_string_equal(c_integer_literal(arena, -3), "(-3)");
  assert_string_equal(c_integer_literal(arena, INT64_MIN), "INT64_MIN");
  uint32_t bits = 1;
  for (int i = 0; i < 20000; i++) {
    bits = bits * 1664525u + 1013904223u;
    float value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    char *text = c_real_literal(arena, F32, (double)value);
    assert_true(strtof(text + (text[0] == '('), NULL) == value);
  }
}

static char *written(Op op, DataType operand, DataType result, const Attribute *attributes) {
  Instruction instruction = {
      .op = op, .dtype = result, .attributes = attributes, .operand_count = op_info(op)->input_count};
  InstructionText text = {.instruction = &instruction, .index = "index", .random_id = "id0"};
  for (int i = 0; i < instruction.operand_count; i++) {
    text.operands[i] = memory_format(arena, "%c", 'a' + i);
    text.operand_types[i] = operand;
  }
  return instruction_write(arena, &text);
}

static void instructions_are_substituted(void **state) {
  (void)state;
  Attribute slope = attribute_float(0.25), to = attribute_dtype(I32), tanh = attribute_choice(1),
            none = attribute_choice(0);
  Attribute mask[] = {attribute_int(5), attribute_int(7), attribute_float(-1e30)}, p = attribute_float(0.5);
  assert_string_equal(written(OP_add, F32, F32, NULL), "a + b");
  assert_string_equal(written(OP_add, I32, I32, NULL), "(int32_t)(a + b)");
  assert_string_equal(written(OP_arange, U8, U8, mask), "(uint8_t)index");
  assert_string_equal(written(OP_exp, F32, F32, NULL), "rp_exp_f32(a)");
  assert_string_equal(written(OP_exp, F64, F64, NULL), "rp_exp_f64(a)");
  assert_string_equal(written(OP_modulo, I64, I64, NULL), "rp_integer_modulo(a, b)");
  assert_string_equal(written(OP_leaky_relu, F32, F32, &slope), "a > 0 ? a : a * 0.25f");
  assert_string_equal(written(OP_cast, F32, I32, &to), "rp_float_to_integer(a, INT32_MIN, INT32_MAX)");
  assert_string_equal(written(OP_cast, I64, F32, &to), "(float)a");
  assert_string_equal(written(OP_cast, F32, BOOL, &to), "a != 0");
  assert_string_equal(written(OP_less, F32, BOOL, NULL), "a < b");
  assert_string_equal(written(OP_gelu, F32, F32, &none), "0.5f * a * (1.0f + rp_erf_f32(a * 0.70710677f))");
  assert_non_null(strstr(written(OP_gelu, F32, F32, &tanh), "rp_tanh_f32"));
  assert_null(strchr(written(OP_gelu, F32, F32, &tanh), '?'));
  assert_string_equal(written(OP_causal_fill, F32, F32, mask), "index % 7 > index / 7 % 5 + (7 - 5) ? (-1e+30f) : a");
  assert_string_equal(written(OP_drop, F32, F32, &p),
                      "rp_uniform(seed, id0, micro_step, (uint64_t)index) < 0.5f ? 0.0f : a * (1.0f / (1.0f - 0.5f))");
  assert_string_equal(written(OP_learning_rate_scale, F32, F32, mask), "control->learning_rate_scale");
}

static LoopNest dense_nest(int rank, const int64_t *dims) {
  Type shape = type_make(F32, rank, dims);
  LoopNest nest = nest_create(arena, &shape, 1);
  nest_set_index(&nest, 0);
  return nest;
}

static void nests_collapse(void **state) {
  (void)state;
  LoopNest nest = dense_nest(4, (int64_t[]){4, 1, 5, 6});
  nest_collapse(&nest);
  assert_int_equal(nest.rank, 1);
  assert_int_equal(nest.dims[0], 120);
  nest = dense_nest(3, (int64_t[]){4, 5, 6});
  nest.reduced[2] = true;
  nest_collapse(&nest);
  assert_int_equal(nest.rank, 2);
  assert_int_equal(nest.dims[0], 20);
  assert_int_equal(nest.strides[0][0], 6);
  const char *names[] = {"i", "j"};
  assert_string_equal(nest_offset(arena, &nest, 0, names), "i * 6 + j");
}

static void strings_are_escaped(void **state) {
  (void)state;
  Text text = {.arena = arena};
  text_string_literal(&text,
                      "a\"b\\c\n\x01?"
                      "?d");
  assert_string_equal(text.bytes, "\"a\\\"b\\\\c\\n\\001\\077?d\"");
}

static int setup(void **state) {
  (void)state;
  arena = memory_arena_create();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  memory_arena_destroy(arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(literals_read_back_exactly),
      cmocka_unit_test(instructions_are_substituted),
      cmocka_unit_test(nests_collapse),
      cmocka_unit_test(strings_are_escaped),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
