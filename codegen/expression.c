/* codegen/expression.c - substitution of operands, attributes and functions in the expressions of the op table. */
#include "codegen/expression.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/scalar_math.h"

/* ---- types and literals ---- */

const char *c_storage_type(DataType dtype) {
  switch (dtype) {
    case F32:
      return "float";
    case F64:
      return "double";
    case I32:
      return "int32_t";
    case I64:
      return "int64_t";
    case U8:
      return "uint8_t";
    case BOOL:
      return "bool";
    default:
      die("no C type for %s", dtype_name(dtype));
  }
}

const char *c_compute_type(DataType dtype) {
  return dtype_class(dtype) == CLASS_INTEGER ? "int64_t" : c_storage_type(dtype);
}

char *c_integer_literal(MemoryArena *arena, int64_t value) {
  if (value == INT64_MIN) return memory_string(arena, "INT64_MIN");
  if (value > INT32_MAX || value < -INT32_MAX)
    return memory_format(arena, value < 0 ? "(-INT64_C(%" PRId64 "))" : "INT64_C(%" PRId64 ")",
                         value < 0 ? -value : value);
  return memory_format(arena, value < 0 ? "(%" PRId64 ")" : "%" PRId64, value);
}

/* The fewest digits that read back as the same number. */
static void shortest_digits(DataType dtype, double value, char *digits, size_t size) {
  int most = dtype == F64 ? 17 : 9;
  for (int count = 1; count <= most; count++) {
    snprintf(digits, size, "%.*g", count, value);
    if (dtype == F64 ? strtod(digits, NULL) == value : strtof(digits, NULL) == (float)value) return;
  }
}

char *c_real_literal(MemoryArena *arena, DataType dtype, double value) {
  if (isnan(value)) return memory_string(arena, "NAN");
  if (dtype != F64) value = (float)value;
  if (isinf(value)) return memory_string(arena, value < 0 ? "(-INFINITY)" : "INFINITY");
  char digits[40];
  shortest_digits(dtype, value, digits, sizeof digits);
  const char *point = strpbrk(digits, ".e") ? "" : ".0", *suffix = dtype == F64 ? "" : "f";
  return memory_format(arena, signbit(value) ? "(%s%s%s)" : "%s%s%s", digits, point, suffix);
}

static char *literal(MemoryArena *arena, DataType dtype, double real, int64_t integer) {
  return dtype_class(dtype) == CLASS_REAL ? c_real_literal(arena, dtype, real) : c_integer_literal(arena, integer);
}

char *c_lowest(MemoryArena *arena, DataType dtype) { return literal(arena, dtype, -INFINITY, INT64_MIN); }
char *c_highest(MemoryArena *arena, DataType dtype) { return literal(arena, dtype, INFINITY, INT64_MAX); }

/* ---- substitution ---- */

typedef struct Substitution {
  Text text;
  DataType dtype; /* in which the expression is computed */
  int symbol_count;
  const Symbol *symbols;
} Substitution;

static const struct {
  const char *name, *real, *integer; /* of runtime/scalar_math.h, without the suffix of the type */
  bool calls_library;                /* in the float form: a function without a vector form */
} functions[] = {
    {"EXP", "rp_exp", NULL, false},
    {"LOG", "rp_log", NULL, false},
    {"LOG1P", "rp_log1p", NULL, false},
    {"TANH", "rp_tanh", NULL, false},
    {"ERF", "rp_erf", NULL, false},
    {"SQRT", "rp_sqrt", NULL, false},
    {"FLOOR", "rp_floor", NULL, false},
    {"POW", "rp_pow", NULL, true},
    {"SIN", "rp_sin", NULL, true},
    {"COS", "rp_cos", NULL, true},
    {"ABS", "rp_abs", "rp_integer_abs", false},
    {"INTEGER_FLOOR_DIVIDE", NULL, "rp_integer_floor_divide", false},
    {"INTEGER_MODULO", NULL, "rp_integer_modulo", false},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static bool word_is(const char *word, int64_t length, const char *name) {
  return (int64_t)strlen(name) == length && memcmp(word, name, (size_t)length) == 0;
}

static int64_t word_length(const char *at) {
  int64_t length = 0;
  while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
  return length;
}

static const char *find_symbol(const Substitution *s, const char *word, int64_t length) {
  for (int i = 0; i < s->symbol_count; i++)
    if (word_is(word, length, s->symbols[i].name)) return s->symbols[i].text;
  return NULL;
}

static bool write_function(Substitution *s, const char *word, int64_t length) {
  bool real = dtype_class(s->dtype) == CLASS_REAL;
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    if (!word_is(word, length, functions[i].name)) continue;
    const char *name = real ? functions[i].real : functions[i].integer;
    if (!name) return false;
    text_append(&s->text, "%s%s", name, !real ? "" : s->dtype == F64 ? "_f64" : "_f32");
    return true;
  }
  return false;
}

/* at: behind "REAL". The argument is a literal or a symbol that is one. Returns what follows the parenthesis. */
static const char *write_real(Substitution *s, const char *at) {
  const char *close = strchr(at, ')'), *argument = at + 1;
  ASSERT(at[0] == '(' && close);
  const char *symbol = find_symbol(s, argument, close - argument);
  if (symbol) {
    text_append(&s->text, "%s", symbol);
  } else {
    char *end;
    double value = strtod(argument, &end);
    ASSERT(end == close);
    text_append(&s->text, "%s", literal(s->text.arena, s->dtype, value, (int64_t)value));
  }
  return close + 1;
}

static const char *write_word(Substitution *s, const char *expression, const char *at) {
  int64_t length = word_length(at);
  bool member = at - expression >= 2 && at[-1] == '>' && at[-2] == '-';
  const char *symbol = member ? NULL : find_symbol(s, at, length);
  if (isdigit((unsigned char)*at) || member)
    text_append(&s->text, "%.*s", (int)length, at);
  else if (word_is(at, length, "REAL"))
    return write_real(s, at + length);
  else if (symbol)
    text_append(&s->text, "%s", symbol);
  else if (!write_function(s, at, length))
    die("the expression \"%s\" has the unknown name %.*s", expression, (int)length, at);
  return at + length;
}

char *expression_write(MemoryArena *arena, const char *expression, DataType dtype, int symbol_count,
                       const Symbol *symbols) {
  Substitution s = {.text = {.arena = arena}, .dtype = dtype, .symbol_count = symbol_count, .symbols = symbols};
  for (const char *at = expression; *at;) {
    if (word_length(at))
      at = write_word(&s, expression, at);
    else
      text_append(&s.text, "%c", *at++);
  }
  return memory_string(arena, text_bytes(&s.text));
}

/* ---- instructions ---- */

/* Where an attribute decides between two forms, "A0 ? this : that", the one that it chooses. */
static const char *chosen_form(MemoryArena *arena, const Instruction *instruction, const char *expression) {
  if (expression[0] != 'A' || !isdigit((unsigned char)expression[1]) || !string_starts(expression + 2, " ? "))
    return expression;
  const char *first = expression + 5, *colon = first;
  int open = 0, questions = 0;
  for (; *colon && !(*colon == ':' && open == 0 && questions == 0); colon++) {
    open += (*colon == '(') - (*colon == ')');
    questions += open == 0 ? (*colon == '?') - (*colon == ':') : 0;
  }
  ASSERT(*colon);
  if (!instruction->attributes[expression[1] - '0'].integer) return colon + 2;
  return memory_string_range(arena, first, colon - 1 - first);
}

/* Data type in which the expression is computed: that of its operands (the last: a condition may come first). */
static DataType computed_dtype(const InstructionText *text) {
  int count = text->instruction->operand_count;
  return count ? text->operand_types[count - 1] : text->instruction->dtype;
}

/* Real attributes in integer code are truncated; numbers say themselves what they are as integers, and wrap to the
 * type. */
static char *attribute_literal(MemoryArena *arena, DataType dtype, const Attribute *attribute) {
  bool real = attribute->kind == ATTRIBUTE_NUMBER || attribute->kind == ATTRIBUTE_FLOAT;
  int64_t integer = attribute->kind == ATTRIBUTE_FLOAT ? rp_float_to_integer(attribute->number, INT64_MIN, INT64_MAX)
                                                       : attribute->integer;
  if (real && dtype == BOOL) integer = integer != 0;
  if (real && dtype == I32) integer = (int32_t)integer;
  if (real && dtype == U8) integer = (uint8_t)integer;
  return real ? literal(arena, dtype, attribute->number, integer) : c_integer_literal(arena, integer);
}

enum { SYMBOL_LIMIT = MAX_POINTWISE_INPUTS + MAX_OP_ATTRIBUTES + 3 };

static int instruction_symbols(MemoryArena *arena, const InstructionText *text, Symbol *symbols) {
  const Instruction *instruction = text->instruction;
  DataType dtype = computed_dtype(text);
  int count = 0;
  for (int i = 0; i < instruction->operand_count; i++)
    symbols[count++] = (Symbol){memory_format(arena, "x%d", i), text->operands[i]};
  for (int i = 0; i < op_info(instruction->op)->attribute_count; i++)
    symbols[count++] =
        (Symbol){memory_format(arena, "A%d", i), attribute_literal(arena, dtype, &instruction->attributes[i])};
  symbols[count++] = (Symbol){"CONTROL", "control"};
  symbols[count++] = (Symbol){"INDEX", text->index};
  symbols[count++] = (Symbol){
      "UNIFORM", memory_format(arena, "rp_uniform(seed, %s, micro_step, (uint64_t)%s)", text->random_id, text->index)};
  return count;
}

/* A value of class `from` made one of data type `to`. */
static char *convert(MemoryArena *arena, char *expression, const Instruction *instruction, DataType from, DataType to) {
  if (op_has(instruction->op, OP_UNIFORM)) return expression;
  bool real = dtype_class(from) == CLASS_REAL, simple = word_length(expression) == (int64_t)strlen(expression);
  const char *wrapped = simple ? expression : memory_format(arena, "(%s)", expression);
  switch (dtype_class(to)) {
    case CLASS_REAL:
      return from == to ? expression : memory_format(arena, "(%s)%s", c_storage_type(to), wrapped);
    case CLASS_BOOL:
      if (from == BOOL || op_info(instruction->op)->operands != ANY_TO_ATTRIBUTE) return expression;
      return memory_format(arena, "%s != 0", wrapped);
    case CLASS_INTEGER:
      break;
  }
  if (real)
    return memory_format(arena, "rp_float_to_integer(%s, %s, %s)", expression,
                         to == U8    ? "0"
                         : to == I32 ? "INT32_MIN"
                                     : "INT64_MIN",
                         to == U8    ? "UINT8_MAX"
                         : to == I32 ? "INT32_MAX"
                                     : "INT64_MAX");
  bool in_range = simple && to == from && instruction->operand_count; /* an index may exceed a narrow type */
  if (to == I64 || in_range) return expression;
  return memory_format(arena, "(%s)%s", c_storage_type(to), wrapped);
}

char *instruction_write(MemoryArena *arena, const InstructionText *text) {
  const Instruction *instruction = text->instruction;
  Symbol symbols[SYMBOL_LIMIT];
  int count = instruction_symbols(arena, text, symbols);
  const char *expression = chosen_form(arena, instruction, op_info(instruction->op)->expression);
  DataType dtype = computed_dtype(text);
  char *written = expression_write(arena, expression, dtype, count, symbols);
  return convert(arena, written, instruction, dtype, instruction->dtype);
}

bool instruction_vectorises(const InstructionText *text) {
  DataType dtype = computed_dtype(text);
  if (dtype_class(dtype) == CLASS_REAL && dtype_class(text->instruction->dtype) == CLASS_INTEGER) return false;
  for (const char *at = op_info(text->instruction->op)->expression; *at; at++)
    for (int i = 0; i < FUNCTION_COUNT; i++) {
      int64_t length = word_length(at);
      if (!word_is(at, length, functions[i].name)) continue;
      if (dtype_class(dtype) == CLASS_INTEGER || dtype == F64 || functions[i].calls_library) return false;
    }
  return true;
}
