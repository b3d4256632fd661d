/* ir/ops.c - the op table: rows expanded, signatures parsed. */
#include <stdlib.h>

#include "ir/rows.h"
#include "runtime/scalar_math.h"

#define PAIR(input, output) (1u << (4 * (input) + (output)))
#define TEXT(...) #__VA_ARGS__
#define REDUCTION_SIGNATURE "x, axis:ints?, keepdims:bool=false"

static OpInfo table[OP_COUNT] = {
    [OP_NONE] = {.name = "none", .signature = ""},
#define POINTWISE(id, sig, rule, flags, expr, ...) \
  [OP_##id] = {.name = #id, \
               .kind = KIND_POINTWISE, \
               .signature = sig, \
               .operands = rule, \
               .properties = flags, \
               .output_count = 1, \
               .expression = #expr, \
               .infer = infer_pointwise},
#define REDUCTION(id, rule, start, step, end, ...) \
  [OP_##id] = {.name = #id, \
               .kind = KIND_REDUCTION, \
               .signature = REDUCTION_SIGNATURE, \
               .operands = rule, \
               .output_count = 1, \
               .initial = #start, \
               .combine = #step, \
               .finish = #end, \
               .infer = infer_reduction},
#define VIEW(id, sig, types, lay, ...) \
  [OP_##id] = {.name = #id, .kind = KIND_VIEW, .signature = sig, .output_count = 1, .infer = types, .layout = lay},
#define ASSEMBLY(id, sig, flags, types, placing, ...) \
  [OP_##id] = {.name = #id, \
               .kind = KIND_ASSEMBLY, \
               .signature = sig, \
               .properties = flags, \
               .output_count = 1, \
               .infer = types, \
               .place = placing},
#define CONTRACTION(id, sig, flags, types, ...) \
  [OP_##id] = {.name = #id, \
               .kind = KIND_CONTRACTION, \
               .signature = sig, \
               .properties = flags, \
               .output_count = 1, \
               .infer = types},
#define KERNEL(id, sig, outs, flags, types, args, work, pairs, ...) \
  [OP_##id] = {.name = #id, \
               .kind = KIND_KERNEL, \
               .signature = sig, \
               .output_count = outs, \
               .properties = flags, \
               .infer = types, \
               .arguments = args, \
               .flops_per_element = work, \
               .inplace = pairs},
#define COMPOSITE(id, sig, function) \
  [OP_##id] = {.name = #id, .kind = KIND_COMPOSITE, .signature = sig, .output_count = 1, .expand = function},
#define OPTIMIZER(id, sig, function) \
  [OP_##id] = {.name = #id, .kind = KIND_OPTIMIZER, .signature = sig, .update = function},
#include "ir/ops.def"
};

/* ---- signatures: "x, weight?, values..., axis:int=-1, betas:floats=[0.9 0.999], mode:none|tanh=none" ---- */

static MemoryArena *table_arena;

static void set_default(AttributeInfo *info, const char *text) {
  Attribute *initial = &info->initial;
  initial->given = true;
  switch (info->kind) {
    case ATTRIBUTE_INT:
      initial->integer = strtoll(text, NULL, 10);
      break;
    case ATTRIBUTE_NUMBER:
    case ATTRIBUTE_FLOAT:
      initial->number = strtod(text, NULL);
      initial->integer = rp_float_to_integer(initial->number, INT64_MIN, INT64_MAX);
      break;
    case ATTRIBUTE_BOOL:
      initial->integer = string_equal(text, "true");
      break;
    case ATTRIBUTE_CHOICE:
      while (!string_equal(info->choices[initial->integer], text)) initial->integer++;
      break;
    case ATTRIBUTE_DTYPE: {
      DataType dtype;
      ASSERT(dtype_from_name(text, &dtype));
      initial->integer = dtype;
      break;
    }
    case ATTRIBUTE_FLOATS:
      for (char *at = (char *)(text + 1); *at && *at != ']'; at += strspn(at, " "))
        initial->numbers[initial->count++] = strtod(at, &at);
      break;
    case ATTRIBUTE_INTS:
      die("no defaults for ints: %s", text);
  }
}

static void set_kind(AttributeInfo *info, char *text) {
  static const struct {
    const char *name;
    AttributeKind kind;
  } kinds[] = {{"int", ATTRIBUTE_INT},      {"float", ATTRIBUTE_FLOAT}, {"number", ATTRIBUTE_NUMBER},
               {"bool", ATTRIBUTE_BOOL},    {"dtype", ATTRIBUTE_DTYPE}, {"ints", ATTRIBUTE_INTS},
               {"floats", ATTRIBUTE_FLOATS}};
  info->kind = ATTRIBUTE_CHOICE;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (string_equal(text, kinds[i].name)) info->kind = kinds[i].kind;
  if (info->kind == ATTRIBUTE_CHOICE) {
    int count = 0;
    info->choices = NEW_ARRAY(table_arena, const char *, 8);
    for (char *rest, *word = strtok_r(text, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
      info->choices[count++] = word;
  }
  info->initial.kind = info->kind;
}

static void parse_parameter(OpInfo *op, char *text) {
  char *colon = strchr(text, ':');
  size_t length = strlen(text);
  if (!colon) {
    InputInfo *input = &op->inputs[op->input_count++];
    input->name = text;
    if (string_ends(text, "?")) input->optional = true, text[length - 1] = '\0';
    if (string_ends(text, "...")) input->variadic = true, text[length - 3] = '\0';
    return;
  }
  AttributeInfo *info = &op->attributes[op->attribute_count++];
  char *equals = strchr(colon, '=');
  *colon = '\0';
  info->name = text;
  info->optional = text[length - 1] == '?';
  if (info->optional) text[length - 1] = '\0';
  if (equals) *equals = '\0';
  info->required = !info->optional && !equals;
  set_kind(info, colon + 1);
  if (equals) set_default(info, equals + 1);
}

static void parse_table(void) {
  table_arena = memory_arena_create();
  for (int op = 1; op < OP_COUNT; op++) {
    char *text = memory_string(table_arena, table[op].signature);
    for (char *rest, *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest))
      parse_parameter(&table[op], part + strspn(part, " "));
    table[op].gradient = gradient_of((Op)op);
  }
}

const OpInfo *op_info(Op op) {
  if (!table_arena) parse_table();
  return &table[op];
}

Op op_find(const char *name) {
  for (int op = 1; op < OP_COUNT; op++)
    if (string_equal(op_info((Op)op)->name, name)) return (Op)op;
  return OP_NONE;
}

int op_attribute_index(Op op, const char *name) {
  const OpInfo *info = op_info(op);
  for (int i = 0; i < info->attribute_count; i++)
    if (string_equal(info->attributes[i].name, name)) return i;
  return -1;
}

bool op_neutral(Op op, int operand, double *value) {
  static const struct {
    Op op;
    int operand;
    double value;
  } rows[] = {
#define NEUTRAL(name, operand, value) {OP_##name, operand, value},
#include "ir/ops.def"
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == op && rows[i].operand == operand) {
      *value = rows[i].value;
      return true;
    }
  return false;
}
