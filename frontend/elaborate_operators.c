/* frontend/elaborate_operators.c - operators of the op table: arguments to inputs and attributes, constants to tensors.
 */
#include <inttypes.h>
#include <math.h>

#include "frontend/elaborate_state.h"
#include "runtime/scalar_math.h"

/* ---- constants as tensors ---- */

static bool fits_dtype(int64_t value, DataType dtype) {
  if (dtype == U8) return value >= 0 && value <= UINT8_MAX;
  if (dtype == I32) return value >= INT32_MIN && value <= INT32_MAX;
  return true;
}

ValueId constant_tensor(Elaborator *elaborator, const Datum *value, DataType dtype, Location location) {
  ScalarClass class = dtype_class(dtype);
  bool number = is_number(value) && class != CLASS_BOOL, truth = value->kind == DATUM_BOOL && class == CLASS_BOOL;
  if (value->kind == DATUM_ERROR) return NO_VALUE;
  if (value->kind == DATUM_FLOAT && class == CLASS_INTEGER) {
    diag_error(location, "a tensor of %s takes no float constant, found %s; convert the tensor, as in f32(x)",
               dtype_name(dtype), datum_text(elaborator->scratch, value));
    return NO_VALUE;
  }
  if (!number && !truth) {
    diag_error(location, "%s cannot stand beside a tensor of %s", datum_text(elaborator->scratch, value),
               dtype_name(dtype));
    return NO_VALUE;
  }
  if (value->kind == DATUM_INT && class == CLASS_INTEGER && !fits_dtype(value->integer, dtype)) {
    diag_error(location, "%" PRId64 " does not fit in %s", value->integer, dtype_name(dtype));
    return NO_VALUE;
  }
  elaborator->graph->location = location;
  if (value->kind == DATUM_FLOAT) return build_constant(elaborator->graph, dtype, value->number);
  return class == CLASS_REAL ? build_constant(elaborator->graph, dtype, (double)value->integer)
                             : build_integer(elaborator->graph, dtype, value->integer);
}

static Datum convert_constant(Datum value, DataType dtype, Location location) {
  if (value.kind == DATUM_BOOL || is_number(&value)) {
    double number = value.kind == DATUM_BOOL ? (double)value.integer : as_number(&value);
    if (dtype_class(dtype) == CLASS_REAL) return datum_float(number);
    if (dtype_class(dtype) == CLASS_BOOL) return datum_bool(number != 0);
    if (value.kind != DATUM_FLOAT) return datum_int(value.integer);
    if (fabs(number) < 9e18) return datum_int((int64_t)number);
  }
  diag_error(location, "%s(...) takes a tensor, a number or a bool", dtype_name(dtype));
  return datum_error();
}

Datum convert(Elaborator *elaborator, Datum value, DataType dtype, Location location) {
  if (value.kind == DATUM_ERROR) return value;
  if (value.kind != DATUM_TENSOR) return datum_tensor(constant_tensor(elaborator, &value, dtype, location));
  elaborator->graph->location = location;
  ValueId result = build_cast(elaborator->graph, value.tensor, dtype);
  if (result != NO_VALUE) inherit_dim_names(elaborator, result, 1, &value.tensor);
  return datum_tensor(result);
}

Datum convert_value(Elaborator *elaborator, Datum value, DataType dtype, Location location) {
  return value.kind == DATUM_TENSOR ? convert(elaborator, value, dtype, location)
                                    : convert_constant(value, dtype, location);
}

/* ---- infix and prefix operators ---- */

static Op operator_of(TokenKind symbol) {
  switch (symbol) {
    case TOKEN_PLUS:
      return OP_add;
    case TOKEN_MINUS:
      return OP_subtract;
    case TOKEN_STAR:
      return OP_multiply;
    case TOKEN_SLASH:
      return OP_divide;
    case TOKEN_FLOOR_SLASH:
      return OP_floor_divide;
    case TOKEN_PERCENT:
      return OP_modulo;
    case TOKEN_CARET:
      return OP_power;
    case TOKEN_AT:
      return OP_matmul;
    case TOKEN_EQUAL:
      return OP_equal;
    case TOKEN_NOT_EQUAL:
      return OP_not_equal;
    case TOKEN_LESS:
      return OP_less;
    case TOKEN_LESS_EQUAL:
      return OP_less_equal;
    case TOKEN_GREATER:
      return OP_greater;
    case TOKEN_GREATER_EQUAL:
      return OP_greater_equal;
    case TOKEN_AND:
      return OP_logical_and;
    case TOKEN_OR:
      return OP_logical_or;
    default:
      return OP_NONE;
  }
}

static Datum build_named(Elaborator *elaborator, Op op, int count, const ValueId *inputs, Location location) {
  elaborator->graph->location = location;
  ValueId result = graph_apply(elaborator->graph, op, count, inputs, NULL, NULL);
  if (result != NO_VALUE) inherit_dim_names(elaborator, result, count, inputs);
  return datum_tensor(result);
}

/* x^2, x^0.5, x^-0.5 have operators that are cheaper and exact. */
static Op power_shortcut(const Datum *exponent) {
  if (!is_number(exponent)) return OP_NONE;
  double value = as_number(exponent);
  return value == 2 ? OP_square : value == 0.5 ? OP_sqrt : value == -0.5 ? OP_rsqrt : OP_NONE;
}

/* The axes of a product of matrices: all but the last from the left, the last from the right. */
static void name_product(Elaborator *elaborator, ValueId result, ValueId left, ValueId right) {
  const DimName *a = dim_names(elaborator, left), *b = dim_names(elaborator, right);
  const Type *type = value_type(elaborator->graph, result), *a_type = value_type(elaborator->graph, left);
  const Type *b_type = value_type(elaborator->graph, right);
  DimName names[MAX_RANK] = {0};
  if (b_type->rank < 2 || a_type->rank != type->rank) return;
  for (int i = 0; a && i + 1 < type->rank; i++) names[i] = a[i];
  if (b) names[type->rank - 1] = b[b_type->rank - 1];
  set_dim_names(elaborator, result, names);
}

static Datum multiply_matrices(Elaborator *elaborator, ValueId left, ValueId right, Location location) {
  if (!check_contraction(elaborator, left, right, location)) return datum_error();
  elaborator->graph->location = location;
  ValueId result = BUILD(elaborator->graph, matmul, left, right);
  if (result != NO_VALUE) name_product(elaborator, result, left, right);
  return datum_tensor(result);
}

/* What the operator says of its operands, in the words of the source. */
static bool check_operands(Elaborator *elaborator, TokenKind symbol, const ValueId *inputs, Location location) {
  const Type *left = value_type(elaborator->graph, inputs[0]), *right = value_type(elaborator->graph, inputs[1]);
  const char *sign = operator_text(symbol);
  ScalarClass class = dtype_class(left->dtype);
  if (left->dtype != right->dtype) {
    diag_error(location, "'%s' takes tensors of one data type, found %s and %s; convert one, as in f32(x)", sign,
               dtype_name(left->dtype), dtype_name(right->dtype));
    return false;
  }
  if ((symbol == TOKEN_AND || symbol == TOKEN_OR) && class != CLASS_BOOL) {
    diag_error(location, "'%s' takes bool tensors, found %s", sign, dtype_name(left->dtype));
    return false;
  }
  if (symbol == TOKEN_SLASH && class == CLASS_INTEGER) {
    diag_error(location, "'/' does not divide integer tensors; '//' rounds down, f32(x) converts");
    return false;
  }
  return true;
}

Datum apply_binary(Elaborator *elaborator, TokenKind symbol, Datum left, Datum right, Location location) {
  Op op = operator_of(symbol), shortcut = symbol == TOKEN_CARET ? power_shortcut(&right) : OP_NONE;
  const Datum *tensor = left.kind == DATUM_TENSOR ? &left : &right;
  DataType dtype = value_type(elaborator->graph, tensor->tensor)->dtype;
  if (op == OP_NONE) {
    diag_error(location, "'%s' takes ints, found a tensor", operator_text(symbol));
    return datum_error();
  }
  if ((symbol == TOKEN_FLOOR_SLASH || symbol == TOKEN_PERCENT) && right.kind == DATUM_INT && right.integer == 0) {
    diag_error(location, "division by zero");
    return datum_error();
  }
  if (left.kind == DATUM_TENSOR && shortcut != OP_NONE)
    return build_named(elaborator, shortcut, 1, &left.tensor, location);
  if (symbol == TOKEN_AT && left.kind == right.kind)
    return multiply_matrices(elaborator, left.tensor, right.tensor, location);
  ValueId inputs[2] = {left.tensor, right.tensor};
  if (left.kind != DATUM_TENSOR) inputs[0] = constant_tensor(elaborator, &left, dtype, location);
  if (right.kind != DATUM_TENSOR) inputs[1] = constant_tensor(elaborator, &right, dtype, location);
  if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE) return datum_error();
  const char *what = memory_format(elaborator->scratch, "'%s'", operator_text(symbol));
  if (!check_operands(elaborator, symbol, inputs, location) || !check_broadcast(elaborator, what, 2, inputs, location))
    return datum_error();
  return build_named(elaborator, op, 2, inputs, location);
}

Datum apply_prefix(Elaborator *elaborator, TokenKind symbol, Datum operand, Location location) {
  return build_named(elaborator, symbol == TOKEN_NOT ? OP_logical_not : OP_negate, 1, &operand.tensor, location);
}

/* ---- attributes ---- */

static bool attribute_error(Elaborator *elaborator, const AttributeInfo *info, const char *what, const Datum *value,
                            Location location) {
  diag_error(location, "'%s' is %s, found %s", info->name, what, datum_text(elaborator->scratch, value));
  return false;
}

static bool set_choice(Elaborator *elaborator, const AttributeInfo *info, const Datum *value, Location location,
                       Attribute *attribute) {
  const char *word = value->kind == DATUM_STRING ? value->string : value->kind == DATUM_NONE ? "none" : "";
  const char *list = "";
  for (int64_t i = 0; info->choices[i]; i++) {
    if (string_equal(word, info->choices[i])) {
      *attribute = attribute_choice(i);
      return true;
    }
    list = memory_format(elaborator->scratch, "%s%s\"%s\"", list, i ? ", " : "", info->choices[i]);
  }
  return attribute_error(elaborator, info, memory_format(elaborator->scratch, "one of %s", list), value, location);
}

static bool set_dtype(Elaborator *elaborator, const AttributeInfo *info, const Datum *value, Location location,
                      Attribute *attribute) {
  DataType dtype;
  if (value->kind != DATUM_STRING || !dtype_from_name(value->string, &dtype))
    return attribute_error(elaborator, info, "the name of a data type such as \"f32\"", value, location);
  *attribute = attribute_dtype(dtype);
  return true;
}

/* A list of numbers; an int alone is a list of one where ints are wanted. */
static bool set_list(Elaborator *elaborator, const AttributeInfo *info, const Datum *value, Location location,
                     Attribute *attribute) {
  bool ints = info->kind == ATTRIBUTE_INTS;
  const char *what = ints ? "a list of ints" : "a list of numbers";
  Datum list = ints && value->kind == DATUM_INT ? datum_list(value, 1) : *value;
  if (list.kind != DATUM_LIST || list.count > MAX_RANK) return attribute_error(elaborator, info, what, value, location);
  *attribute = ints ? attribute_ints(0, NULL) : attribute_floats(0, NULL);
  for (int64_t i = 0; i < list.count; i++) {
    Datum item = list_item(&list, i);
    if (ints ? item.kind != DATUM_INT : !is_number(&item))
      return attribute_error(elaborator, info, what, value, location);
    attribute->list[i] = ints ? item.integer : 0;
    attribute->numbers[i] = ints ? 0 : as_number(&item);
  }
  attribute->count = (int)list.count;
  return true;
}

bool set_attribute(Elaborator *elaborator, Op op, int index, const Datum *value, Location location,
                   Attribute *attribute) {
  const AttributeInfo *info = &op_info(op)->attributes[index];
  if (value->kind == DATUM_ERROR) return false;
  if (value->kind == DATUM_NONE && info->optional) {
    *attribute = attribute_none(info->kind);
    return true;
  }
  switch (info->kind) {
    case ATTRIBUTE_INT:
      if (value->kind != DATUM_INT) return attribute_error(elaborator, info, "an int", value, location);
      *attribute = attribute_int(value->integer);
      return true;
    case ATTRIBUTE_FLOAT:
      if (!is_number(value)) return attribute_error(elaborator, info, "a number", value, location);
      *attribute = attribute_float(as_number(value));
      return true;
    case ATTRIBUTE_NUMBER:
      if (!is_number(value)) return attribute_error(elaborator, info, "a number", value, location);
      *attribute = attribute_number(as_number(value), value->kind == DATUM_INT
                                                          ? value->integer
                                                          : rp_float_to_integer(value->number, INT64_MIN, INT64_MAX));
      return true;
    case ATTRIBUTE_BOOL:
      if (value->kind != DATUM_BOOL) return attribute_error(elaborator, info, "a bool", value, location);
      *attribute = attribute_bool(value->integer);
      return true;
    case ATTRIBUTE_CHOICE:
      return set_choice(elaborator, info, value, location, attribute);
    case ATTRIBUTE_DTYPE:
      return set_dtype(elaborator, info, value, location, attribute);
    case ATTRIBUTE_INTS:
    case ATTRIBUTE_FLOATS:
      return set_list(elaborator, info, value, location, attribute);
  }
  return false;
}

/* ---- calls ---- */

/* Which argument is which input or attribute of the operator. */
typedef struct OperatorCall {
  Op op;
  const OpInfo *info;
  Location location;
  ARRAY(const CallArgument *) inputs; /* NULL: left out */
  const CallArgument *attributes[MAX_OP_ATTRIBUTES];
} OperatorCall;

static bool report_unknown_argument(Elaborator *elaborator, const OperatorCall *call, const CallArgument *argument) {
  Suggestion suggestion = suggestion_start(argument->name);
  for (int i = 0; i < call->info->input_count; i++) suggestion_consider(&suggestion, call->info->inputs[i].name);
  for (int i = 0; i < call->info->attribute_count; i++)
    suggestion_consider(&suggestion, call->info->attributes[i].name);
  diag_error(argument->name_location, "'%s' has no argument '%s'%s", call->info->name, argument->name,
             suggestion_text(elaborator, &suggestion));
  diag_note(argument->name_location, "its arguments are (%s)", call->info->signature);
  return false;
}

static bool place_named(Elaborator *elaborator, OperatorCall *call, const CallArgument *argument) {
  int attribute = op_attribute_index(call->op, argument->name), input = -1;
  for (int i = 0; i < call->info->input_count; i++)
    if (string_equal(call->info->inputs[i].name, argument->name)) input = i;
  if (attribute < 0 && input < 0) return report_unknown_argument(elaborator, call, argument);
  const CallArgument **slot = attribute >= 0 ? &call->attributes[attribute] : &call->inputs.items[input];
  if (*slot) {
    diag_error(argument->name_location, "the argument '%s' is given twice", argument->name);
    return false;
  }
  *slot = argument;
  return true;
}

static bool place_arguments(Elaborator *elaborator, OperatorCall *call, const CallArguments *arguments) {
  const OpInfo *info = call->info;
  bool variadic = info->input_count && info->inputs[info->input_count - 1].variadic;
  int64_t position = 0;
  for (int i = 0; i < info->input_count; i++) array_push(elaborator->scratch, &call->inputs, NULL);
  for (int64_t i = 0; i < arguments->count; i++) {
    const CallArgument *argument = &arguments->items[i];
    if (argument->name) {
      if (!place_named(elaborator, call, argument)) return false;
      continue;
    }
    int64_t attribute = position - info->input_count;
    if (position < call->inputs.count) {
      call->inputs.items[position] = argument;
    } else if (variadic) {
      array_push(elaborator->scratch, &call->inputs, argument);
    } else if (attribute < info->attribute_count) {
      call->attributes[attribute] = argument;
    } else {
      int most = info->input_count + info->attribute_count;
      diag_error(argument->location, "'%s' takes at most %d argument%s: (%s)", info->name, most, most == 1 ? "" : "s",
                 info->signature);
      return false;
    }
    position++;
  }
  return true;
}

/* The data type that constants among the inputs take: that of the first tensor which is no condition. */
static DataType input_dtype(Elaborator *elaborator, const OperatorCall *call) {
  for (int64_t i = 0; i < call->inputs.count; i++) {
    const CallArgument *argument = call->inputs.items[i];
    bool condition = call->info->operands == BOOL_ANY_TO_SAME && call->info->kind == KIND_POINTWISE && i == 0;
    if (argument && argument->value.kind == DATUM_TENSOR && !condition)
      return value_type(elaborator->graph, argument->value.tensor)->dtype;
  }
  return F32;
}

static bool make_input(Elaborator *elaborator, const OperatorCall *call, int64_t i, DataType dtype, ValueId *input) {
  const InputInfo *info = &call->info->inputs[i < call->info->input_count ? i : call->info->input_count - 1];
  const CallArgument *argument = call->inputs.items[i];
  const Datum *value = argument ? &argument->value : NULL;
  *input = NO_VALUE;
  if (!value || value->kind == DATUM_NONE) {
    if (info->optional) return true;
    diag_error(argument ? argument->location : call->location, "'%s' needs a tensor for '%s'", call->info->name,
               info->name);
    return false;
  }
  if (value->kind == DATUM_TENSOR)
    *input = value->tensor;
  else if (value->kind == DATUM_STRING || value->kind == DATUM_LIST)
    diag_error(argument->location, "'%s' takes a tensor for '%s', found %s", call->info->name, info->name,
               datum_text(elaborator->scratch, value));
  else
    *input = constant_tensor(elaborator, value, value->kind == DATUM_BOOL ? BOOL : dtype, argument->location);
  return *input != NO_VALUE;
}

/* All inputs are constants, and there is a function for them. */
static bool is_constant_call(const OperatorCall *call) {
  for (int64_t i = 0; i < call->inputs.count; i++)
    if (!call->inputs.items[i] || call->inputs.items[i]->value.kind == DATUM_TENSOR) return false;
  return call->inputs.count > 0 && constant_function_exists(call->info->name);
}

static Datum call_constant_function(Elaborator *elaborator, const OperatorCall *call) {
  DatumList values = {0};
  for (int64_t i = 0; i < call->inputs.count; i++)
    array_push(elaborator->scratch, &values, call->inputs.items[i]->value);
  return constant_function(elaborator->scratch, call->info->name, values.items, values.count, call->location);
}

bool is_compiler_operator(Op op) { return op_has(op, OP_INTERNAL); }

static bool is_callable_operator(const OperatorCall *call) {
  if (call->info->kind == KIND_OPTIMIZER)
    diag_error(call->location, "'%s' is an optimizer; it belongs into a train block", call->info->name);
  else if (is_compiler_operator(call->op))
    diag_error(call->location, "'%s' is made by the compiler only", call->info->name);
  else
    return true;
  return false;
}

/* An operator of tensors needs one among its inputs. */
static bool has_tensor(Elaborator *elaborator, const OperatorCall *call) {
  for (int64_t i = 0; i < call->inputs.count; i++)
    if (call->inputs.items[i] && call->inputs.items[i]->value.kind == DATUM_TENSOR) return true;
  const CallArgument *first = call->inputs.count ? call->inputs.items[0] : NULL;
  if (!first) return true; /* no inputs at all, or a missing one: said elsewhere */
  diag_error(first->location, "'%s' takes a tensor for '%s', found %s", call->info->name, call->info->inputs[0].name,
             datum_text(elaborator->scratch, &first->value));
  return false;
}

static bool check_shape(const CallArgument *argument, const Attribute *shape) {
  for (int i = 0; i < shape->count; i++) {
    if (shape->list[i] >= 1) continue;
    diag_error(argument->location, "a dim is at least 1, found %" PRId64, shape->list[i]);
    return false;
  }
  return true;
}

static bool set_attributes(Elaborator *elaborator, const OperatorCall *call, const ValueId *inputs,
                           Attribute *attributes) {
  bool sound = true;
  for (int i = 0; i < call->info->attribute_count; i++) {
    const CallArgument *argument = call->attributes[i];
    attributes[i] = call->info->attributes[i].initial;
    attributes[i].kind = call->info->attributes[i].kind;
    if (!argument) continue;
    sound = set_attribute(elaborator, call->op, i, &argument->value, argument->location, &attributes[i]) && sound;
    if (string_equal(call->info->attributes[i].name, "shape")) sound = check_shape(argument, &attributes[i]) && sound;
    bool axis = call->info->kind == KIND_ASSEMBLY && string_equal(call->info->attributes[i].name, "axis");
    if (sound && axis && attributes[i].integer < 0)
      attributes[i].integer += value_type(elaborator->graph, inputs[0])->rank;
  }
  return sound;
}

static void name_result(Elaborator *elaborator, const OperatorCall *call, ValueId result, const ValueId *inputs) {
  if (call->info->kind == KIND_POINTWISE)
    inherit_dim_names(elaborator, result, (int)call->inputs.count, inputs);
  else
    guess_dim_names(elaborator, result, (int)call->inputs.count, inputs);
}

Datum apply_operator(Elaborator *elaborator, Op op, const CallArguments *arguments, Location location) {
  OperatorCall call = {.op = op, .info = op_info(op), .location = location};
  Attribute attributes[MAX_OP_ATTRIBUTES];
  if (!is_callable_operator(&call) || !place_arguments(elaborator, &call, arguments)) return datum_error();
  for (int64_t i = 0; i < arguments->count; i++)
    if (arguments->items[i].value.kind == DATUM_ERROR) return datum_error();
  if (is_constant_call(&call)) return call_constant_function(elaborator, &call);
  if (!elaborator->graph || !elaborator->expansion) {
    diag_error(location, "'%s' makes a tensor; that is possible in modules and models only", call.info->name);
    return datum_error();
  }
  if (!has_tensor(elaborator, &call)) return datum_error();
  DataType dtype = input_dtype(elaborator, &call);
  ValueId *inputs = NEW_ARRAY(elaborator->scratch, ValueId, call.inputs.count + 1);
  for (int64_t i = 0; i < call.inputs.count; i++)
    if (!make_input(elaborator, &call, i, dtype, &inputs[i])) return datum_error();
  if (!set_attributes(elaborator, &call, inputs, attributes)) return datum_error();
  const char *what = memory_format(elaborator->scratch, "'%s'", call.info->name);
  if (call.info->kind == KIND_POINTWISE && !check_broadcast(elaborator, what, (int)call.inputs.count, inputs, location))
    return datum_error();
  elaborator->graph->location = location;
  ValueId result = graph_apply(elaborator->graph, op, (int)call.inputs.count, inputs, attributes, NULL);
  if (result != NO_VALUE) name_result(elaborator, &call, result, inputs);
  return datum_tensor(result);
}
