/* frontend/constants.c - arithmetic on compile-time values. */
#include "frontend/constants.h"

#include <inttypes.h>
#include <math.h>

Datum datum_list(const Datum *items, int64_t count) {
  static const Datum nothing;
  return (Datum){.kind = DATUM_LIST, .items = count ? items : &nothing, .count = count};
}

Datum list_item(const Datum *list, int64_t index) {
  return list->items ? list->items[index] : datum_int(list->integer + index);
}

bool datum_equal(const Datum *a, const Datum *b) {
  if (is_number(a) && is_number(b) && a->kind != b->kind) return as_number(a) == as_number(b);
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case DATUM_NONE:
      return true;
    case DATUM_BOOL:
    case DATUM_INT:
      return a->integer == b->integer;
    case DATUM_FLOAT:
      return a->number == b->number;
    case DATUM_STRING:
      return string_equal(a->string, b->string);
    case DATUM_TENSOR:
      return a->tensor == b->tensor;
    case DATUM_LIST:
      break;
    case DATUM_ERROR:
      return false;
  }
  bool equal = a->count == b->count;
  for (int64_t i = 0; equal && i < a->count; i++) {
    Datum left = list_item(a, i), right = list_item(b, i);
    equal = datum_equal(&left, &right);
  }
  return equal;
}

const char *datum_kind_text(const Datum *datum) {
  static const char *const texts[] = {"an error", "none",     "a bool", "an int",
                                      "a float",  "a string", "a list", "a tensor"};
  return texts[datum->kind];
}

/* A float that is whole is seen to be one: 2.0. */
static char *float_text(MemoryArena *arena, double number) {
  char *text = memory_format(arena, "%.15g", number);
  return strpbrk(text, ".en") ? text : memory_format(arena, "%s.0", text);
}

char *datum_text(MemoryArena *arena, const Datum *datum) {
  enum { MOST_SHOWN = 8 };
  switch (datum->kind) {
    case DATUM_BOOL:
      return memory_string(arena, datum->integer ? "true" : "false");
    case DATUM_INT:
      return memory_format(arena, "%" PRId64, datum->integer);
    case DATUM_FLOAT:
      return float_text(arena, datum->number);
    case DATUM_STRING:
      return memory_format(arena, "\"%s\"", datum->string);
    case DATUM_LIST:
      break;
    default:
      return memory_string(arena, datum_kind_text(datum));
  }
  char *text = memory_string(arena, "[");
  for (int64_t i = 0; i < datum->count && i < MOST_SHOWN; i++) {
    Datum item = list_item(datum, i);
    text = memory_format(arena, "%s%s%s", text, i ? ", " : "", datum_text(arena, &item));
  }
  return memory_format(arena, "%s%s]", text, datum->count > MOST_SHOWN ? ", ..." : "");
}

const char *operator_text(TokenKind symbol) {
  switch (symbol) {
    case TOKEN_RANGE:
      return "..";
    case TOKEN_OR:
      return "or";
    case TOKEN_AND:
      return "and";
    case TOKEN_NOT:
      return "not";
    case TOKEN_EQUAL:
      return "==";
    case TOKEN_NOT_EQUAL:
      return "!=";
    case TOKEN_LESS:
      return "<";
    case TOKEN_LESS_EQUAL:
      return "<=";
    case TOKEN_GREATER:
      return ">";
    case TOKEN_GREATER_EQUAL:
      return ">=";
    case TOKEN_PLUS:
      return "+";
    case TOKEN_MINUS:
      return "-";
    case TOKEN_STAR:
      return "*";
    case TOKEN_SLASH:
      return "/";
    case TOKEN_FLOOR_SLASH:
      return "//";
    case TOKEN_PERCENT:
      return "%";
    case TOKEN_AT:
      return "@";
    default:
      return "^";
  }
}

/* ---- integers ---- */

static int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* base ^ exponent by squaring, exponent >= 0. */
static bool integer_power(int64_t base, int64_t exponent, int64_t *result) {
  int64_t power = 1;
  while (exponent > 0) {
    if (exponent % 2 && !checked_multiply(power, base, &power)) return false;
    exponent /= 2;
    if (exponent && !checked_multiply(base, base, &base)) return false;
  }
  *result = power;
  return true;
}

static Datum overflow(TokenKind symbol, int64_t a, int64_t b, Location location) {
  diag_error(location, "%" PRId64 " %s %" PRId64 " does not fit in 64 bits", a, operator_text(symbol), b);
  return datum_error();
}

static Datum integer_division(TokenKind symbol, int64_t a, int64_t b, Location location) {
  if (b == 0) {
    diag_error(location, "division by zero: %" PRId64 " %s 0", a, operator_text(symbol));
    return datum_error();
  }
  if (a == INT64_MIN && b == -1) return symbol == TOKEN_PERCENT ? datum_int(0) : overflow(symbol, a, b, location);
  if (symbol == TOKEN_FLOOR_SLASH) return datum_int(floor_divide(a, b));
  if (symbol == TOKEN_PERCENT) return datum_int(a - floor_divide(a, b) * b);
  if (a % b == 0) return datum_int(a / b);
  diag_error(location,
             "%" PRId64 "/%" PRId64 " is not an integer; write '//' to round down, or make one of them a float", a, b);
  return datum_error();
}

static Datum integer_binary(TokenKind symbol, int64_t a, int64_t b, Location location) {
  int64_t result = 0;
  bool fits = true;
  switch (symbol) {
    case TOKEN_PLUS:
      fits = checked_add(a, b, &result);
      break;
    case TOKEN_MINUS:
      fits = checked_subtract(a, b, &result);
      break;
    case TOKEN_STAR:
      fits = checked_multiply(a, b, &result);
      break;
    case TOKEN_CARET:
      if (b < 0) return datum_float(pow((double)a, (double)b));
      fits = integer_power(a, b, &result);
      break;
    default:
      return integer_division(symbol, a, b, location);
  }
  return fits ? datum_int(result) : overflow(symbol, a, b, location);
}

/* ---- floats ---- */

static Datum float_binary(TokenKind symbol, double a, double b, Location location) {
  double result = 0;
  switch (symbol) {
    case TOKEN_PLUS:
      result = a + b;
      break;
    case TOKEN_MINUS:
      result = a - b;
      break;
    case TOKEN_STAR:
      result = a * b;
      break;
    case TOKEN_SLASH:
      result = a / b;
      break;
    case TOKEN_FLOOR_SLASH:
      result = floor(a / b);
      break;
    case TOKEN_PERCENT:
      result = a - floor(a / b) * b;
      break;
    default:
      result = pow(a, b);
      break;
  }
  if (isfinite(result)) return datum_float(result);
  diag_error(location, "%.15g %s %.15g is not a finite number", a, operator_text(symbol), b);
  return datum_error();
}

/* ---- comparisons, ranges ---- */

static Datum compare(TokenKind symbol, double a, double b) {
  switch (symbol) {
    case TOKEN_LESS:
      return datum_bool(a < b);
    case TOKEN_LESS_EQUAL:
      return datum_bool(a <= b);
    case TOKEN_GREATER:
      return datum_bool(a > b);
    default:
      return datum_bool(a >= b);
  }
}

static Datum compare_integers(TokenKind symbol, int64_t a, int64_t b) {
  return compare(symbol, a > b ? 1 : a < b ? -1 : 0, 0);
}

static Datum make_range(int64_t first, int64_t end, Location location) {
  int64_t count;
  if (checked_subtract(end, first, &count))
    return (Datum){.kind = DATUM_LIST, .integer = first, .count = count > 0 ? count : 0};
  diag_error(location, "the range has more elements than 64 bits can count");
  return datum_error();
}

static Datum refuse(MemoryArena *arena, TokenKind symbol, Datum left, Datum right, const char *what,
                    Location location) {
  diag_error(location, "'%s' takes %s, found %s and %s", operator_text(symbol), what, datum_text(arena, &left),
             datum_text(arena, &right));
  return datum_error();
}

Datum constant_binary(MemoryArena *arena, TokenKind symbol, Datum left, Datum right, Location location) {
  bool integers = left.kind == DATUM_INT && right.kind == DATUM_INT, numbers = is_number(&left) && is_number(&right);
  switch (symbol) {
    case TOKEN_EQUAL:
      return datum_bool(datum_equal(&left, &right));
    case TOKEN_NOT_EQUAL:
      return datum_bool(!datum_equal(&left, &right));
    case TOKEN_AND:
    case TOKEN_OR:
      if (left.kind != DATUM_BOOL || right.kind != DATUM_BOOL)
        return refuse(arena, symbol, left, right, "bools", location);
      return datum_bool(symbol == TOKEN_AND ? left.integer && right.integer : left.integer || right.integer);
    case TOKEN_RANGE:
      if (!integers) return refuse(arena, symbol, left, right, "ints", location);
      return make_range(left.integer, right.integer, location);
    case TOKEN_LESS:
    case TOKEN_LESS_EQUAL:
    case TOKEN_GREATER:
    case TOKEN_GREATER_EQUAL:
      if (!numbers) return refuse(arena, symbol, left, right, "numbers", location);
      return integers ? compare_integers(symbol, left.integer, right.integer)
                      : compare(symbol, as_number(&left), as_number(&right));
    case TOKEN_AT:
      return refuse(arena, symbol, left, right, "tensors", location);
    default:
      break;
  }
  if (!numbers) return refuse(arena, symbol, left, right, "numbers", location);
  return integers ? integer_binary(symbol, left.integer, right.integer, location)
                  : float_binary(symbol, as_number(&left), as_number(&right), location);
}

Datum constant_prefix(MemoryArena *arena, TokenKind symbol, Datum operand, Location location) {
  if (symbol == TOKEN_NOT) {
    if (operand.kind == DATUM_BOOL) return datum_bool(!operand.integer);
    diag_error(location, "'not' takes a bool, found %s", datum_text(arena, &operand));
    return datum_error();
  }
  if (operand.kind == DATUM_FLOAT) return datum_float(-operand.number);
  if (operand.kind == DATUM_INT) return integer_binary(TOKEN_MINUS, 0, operand.integer, location);
  diag_error(location, "'-' takes a number, found %s", datum_text(arena, &operand));
  return datum_error();
}

/* ---- scalar functions ---- */

static double sign(double x) { return (x > 0) - (x < 0); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double relu(double x) { return x > 0 ? x : 0; }

typedef enum FunctionResult { ALWAYS_FLOAT, KEEPS_INT } FunctionResult;

static const struct ConstantFunction {
  const char *name;
  double (*unary)(double);
  double (*binary)(double, double);
  FunctionResult result; /* KEEPS_INT: of ints it is an int */
} functions[] = {
    {"sqrt", sqrt, NULL, ALWAYS_FLOAT},       {"rsqrt", rsqrt, NULL, ALWAYS_FLOAT}, {"exp", exp, NULL, ALWAYS_FLOAT},
    {"log", log, NULL, ALWAYS_FLOAT},         {"log1p", log1p, NULL, ALWAYS_FLOAT}, {"sin", sin, NULL, ALWAYS_FLOAT},
    {"cos", cos, NULL, ALWAYS_FLOAT},         {"tanh", tanh, NULL, ALWAYS_FLOAT},   {"erf", erf, NULL, ALWAYS_FLOAT},
    {"sigmoid", sigmoid, NULL, ALWAYS_FLOAT}, {"floor", floor, NULL, ALWAYS_FLOAT}, {"abs", fabs, NULL, KEEPS_INT},
    {"sign", sign, NULL, KEEPS_INT},          {"relu", relu, NULL, KEEPS_INT},      {"maximum", NULL, fmax, KEEPS_INT},
    {"minimum", NULL, fmin, KEEPS_INT}};

static const struct ConstantFunction *find_function(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (string_equal(functions[i].name, name)) return &functions[i];
  return NULL;
}

bool constant_function_exists(const char *name) { return find_function(name) != NULL; }

/* abs, sign, relu, maximum, minimum of ints, exactly. */
static Datum integer_function(const struct ConstantFunction *function, int64_t a, int64_t b, Location location) {
  if (function->binary == fmax) return datum_int(a > b ? a : b);
  if (function->binary == fmin) return datum_int(a < b ? a : b);
  if (function->unary == sign) return datum_int((a > 0) - (a < 0));
  if (function->unary == relu) return datum_int(a > 0 ? a : 0);
  return a < 0 ? integer_binary(TOKEN_MINUS, 0, a, location) : datum_int(a);
}

Datum constant_function(MemoryArena *arena, const char *name, const Datum *arguments, int64_t count,
                        Location location) {
  const struct ConstantFunction *function = find_function(name);
  int arity = function->binary ? 2 : 1;
  bool integers = true;
  if (count != arity) {
    diag_error(location, "'%s' takes %d number%s, found %" PRId64, name, arity, arity == 1 ? "" : "s", count);
    return datum_error();
  }
  for (int64_t i = 0; i < count; i++) {
    integers = integers && arguments[i].kind == DATUM_INT;
    if (is_number(&arguments[i])) continue;
    diag_error(location, "'%s' takes numbers or a tensor, found %s", name, datum_text(arena, &arguments[i]));
    return datum_error();
  }
  if (integers && function->result == KEEPS_INT)
    return integer_function(function, arguments[0].integer, arity == 2 ? arguments[1].integer : 0, location);
  double a = as_number(&arguments[0]), b = arity == 2 ? as_number(&arguments[1]) : 0;
  double result = arity == 2 ? function->binary(a, b) : function->unary(a);
  if (isfinite(result)) return datum_float(result);
  diag_error(location, "%s(%.15g) is not a finite number", name, a);
  return datum_error();
}
