/* frontend/elaborate_builtins.c - callables that need more than the op table says: conversions, len, shape, where, and
 * those that give several values or read a pattern. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

typedef struct BuiltinCall {
  Elaborator *elaborator;
  const char *name;
  const CallArguments *arguments;
  Location location;
} BuiltinCall;

static Datum fail(void) { return datum_error(); }

bool normalize_axis(int64_t *axis, int rank, Location location) {
  int64_t from_start = *axis < 0 ? *axis + rank : *axis;
  if (from_start >= 0 && from_start < rank) {
    *axis = from_start;
    return true;
  }
  diag_error(location, "axis %" PRId64 " is not an axis of a tensor of rank %d", *axis, rank);
  return false;
}

/* ---- on constants and shapes ---- */

static Datum call_len(BuiltinCall *call) {
  static const ParameterSpec specs[] = {{"x", PARAMETER_ANY, true}};
  Datum value;
  if (!bind_parameters(call->elaborator, call->name, call->arguments, specs, 1, &value, call->location)) return fail();
  if (value.kind == DATUM_LIST) return datum_int(value.count);
  if (value.kind == DATUM_STRING) return datum_int((int64_t)strlen(value.string));
  diag_error(call->location, "'len' takes a list or a string, found %s; shape(x)[0] is the first dim of a tensor",
             datum_text(call->elaborator->scratch, &value));
  return fail();
}

static Datum call_shape(BuiltinCall *call) {
  static const ParameterSpec specs[] = {{"x", PARAMETER_TENSOR, true}};
  Datum value;
  DatumList dims = {0};
  if (!bind_parameters(call->elaborator, call->name, call->arguments, specs, 1, &value, call->location)) return fail();
  const Type *type = value_type(call->elaborator->graph, value.tensor);
  for (int i = 0; i < type->rank; i++) array_push(call->elaborator->scratch, &dims, datum_int(type->dims[i]));
  return datum_list(dims.items, dims.count);
}

/* f32(x), i32(x), … */
static Datum call_conversion(BuiltinCall *call, DataType dtype) {
  static const ParameterSpec specs[] = {{"x", PARAMETER_ANY, true}};
  Datum value;
  if (!bind_parameters(call->elaborator, call->name, call->arguments, specs, 1, &value, call->location)) return fail();
  return convert_value(call->elaborator, value, dtype, call->location);
}

/* match(glob): whether the path of the rule's parameter matches. */
static Datum call_match(BuiltinCall *call) {
  static const ParameterSpec specs[] = {{"glob", PARAMETER_STRING, true}};
  Datum value;
  if (!call->elaborator->rule) {
    diag_error(call->location, "'match' is for the rules of an optimizer");
    return fail();
  }
  if (!bind_parameters(call->elaborator, call->name, call->arguments, specs, 1, &value, call->location)) return fail();
  return datum_bool(match_rule_glob(call->elaborator, value.string, call->location));
}

/* ---- on tensors ---- */

/* A result, its axes named as far as those of x tell. */
static Datum named_tensor(Elaborator *elaborator, ValueId result, ValueId x) {
  if (result != NO_VALUE) guess_dim_names(elaborator, result, 1, &x);
  return datum_tensor(result);
}

/* rearrange(x, pattern, name=size, ...) */
static Datum call_rearrange(BuiltinCall *call) {
  Elaborator *elaborator = call->elaborator;
  const CallArgument *items = call->arguments->items;
  int64_t count = call->arguments->count, sizes = 0;
  if (count < 2 || items[0].name || items[1].name || items[0].value.kind != DATUM_TENSOR ||
      items[1].value.kind != DATUM_STRING) {
    diag_error(call->location,
               "'rearrange' takes a tensor, a pattern such as \"b t (h d) -> b h t d\", and sizes such as h=8");
    return fail();
  }
  const char **names = NEW_ARRAY(elaborator->scratch, const char *, count);
  int64_t *values = NEW_ARRAY(elaborator->scratch, int64_t, count);
  for (int64_t i = 2; i < count; i++) {
    if (!items[i].name || items[i].value.kind != DATUM_INT) {
      diag_error(items[i].location, "the size of an axis is written name=size, size an int");
      return fail();
    }
    names[sizes] = items[i].name;
    values[sizes++] = items[i].value.integer;
  }
  elaborator->graph->location = call->location;
  ValueId x = items[0].value.tensor;
  ValueId result = build_rearrange(elaborator->graph, x, items[1].value.string, (int)sizes, names, values);
  return named_tensor(elaborator, result, x);
}

static void push_tensors(Elaborator *elaborator, ValueId x, const ValueId *values, int64_t count, DatumList *results) {
  for (int64_t i = 0; i < count; i++) array_push(elaborator->scratch, results, named_tensor(elaborator, values[i], x));
}

/* Sizes of the parts of a split: n equal ones, or a list. */
static bool split_sizes(BuiltinCall *call, const Datum *parts, int64_t size, int64_t **sizes, int64_t *count) {
  bool equal = parts->kind == DATUM_INT;
  int64_t total = 0;
  *count = equal ? parts->integer : parts->count;
  if ((!equal && parts->kind != DATUM_LIST) || *count < 1 || *count > size || (equal && size % *count)) {
    diag_error(call->location, "'split' cuts an axis of %" PRId64 " into equal parts or a list of sizes, found %s",
               size, datum_text(call->elaborator->scratch, parts));
    return false;
  }
  *sizes = NEW_ARRAY(call->elaborator->scratch, int64_t, *count);
  for (int64_t i = 0; i < *count; i++) {
    Datum item = equal ? datum_int(size / *count) : list_item(parts, i);
    (*sizes)[i] = item.kind == DATUM_INT && item.integer > 0 && item.integer <= size ? item.integer : size + 1;
    total = total > size ? total : total + (*sizes)[i];
  }
  if (total == size) return true;
  diag_error(call->location, "the sizes %s do not add up to the %" PRId64 " of the axis",
             datum_text(call->elaborator->scratch, parts), size);
  return false;
}

/* split(x, parts, axis=0) */
static void call_split(BuiltinCall *call, DatumList *results) {
  static const ParameterSpec specs[] = {
      {"x", PARAMETER_TENSOR, true}, {"parts", PARAMETER_ANY, true}, {"axis", PARAMETER_INT, false}};
  Datum values[3];
  Elaborator *elaborator = call->elaborator;
  int64_t *sizes, count, start = 0;
  if (!bind_parameters(elaborator, call->name, call->arguments, specs, 3, values, call->location)) return;
  Type type = *value_type(elaborator->graph, values[0].tensor);
  int64_t axis = values[2].kind == DATUM_NONE ? 0 : values[2].integer;
  if (!normalize_axis(&axis, type.rank, call->location)) return;
  if (!split_sizes(call, &values[1], type.dims[axis], &sizes, &count)) return;
  elaborator->graph->location = call->location;
  for (int64_t i = 0; i < count; start += sizes[i++]) {
    ValueId part = build_slice(elaborator->graph, values[0].tensor, (int)axis, start, start + sizes[i], 1);
    push_tensors(elaborator, values[0].tensor, &part, 1, results);
  }
}

/* unstack(x, axis=0) */
static void call_unstack(BuiltinCall *call, DatumList *results) {
  static const ParameterSpec specs[] = {{"x", PARAMETER_TENSOR, true}, {"axis", PARAMETER_INT, false}};
  Datum values[2];
  Elaborator *elaborator = call->elaborator;
  if (!bind_parameters(elaborator, call->name, call->arguments, specs, 2, values, call->location)) return;
  Type type = *value_type(elaborator->graph, values[0].tensor);
  int64_t axis = values[1].kind == DATUM_NONE ? 0 : values[1].integer;
  if (!normalize_axis(&axis, type.rank, call->location)) return;
  ValueId *parts = NEW_ARRAY(elaborator->scratch, ValueId, type.dims[axis]);
  elaborator->graph->location = call->location;
  if (build_unstack(elaborator->graph, values[0].tensor, (int)axis, parts))
    push_tensors(elaborator, values[0].tensor, parts, type.dims[axis], results);
}

/* ---- where ---- */

void call_where(Elaborator *elaborator, const Expr *call, DatumList *results) {
  const ArgumentList *list = &call->call.arguments;
  Datum result = datum_error();
  bool plain = list->count == 3;
  for (int64_t i = 0; i < list->count; i++) plain = plain && !list->items[i].name;
  if (!plain) {
    diag_error(call->location, "'where' takes three values: where(condition, a, b)");
  } else {
    Datum condition = evaluate(elaborator, list->items[0].value);
    if (condition.kind == DATUM_BOOL) {
      result = evaluate(elaborator, list->items[condition.integer ? 1 : 2].value);
    } else if (condition.kind != DATUM_ERROR) {
      CallArguments arguments = {0};
      CallArgument first = {.value = condition, .location = list->items[0].location};
      array_push(elaborator->scratch, &arguments, first);
      ArgumentList rest = {list->items + 1, 2, 2};
      evaluate_arguments(elaborator, &rest, &arguments);
      result = apply_operator(elaborator, OP_where, &arguments, call->location);
    }
  }
  array_push(elaborator->scratch, results, result);
}

/* ---- the table ---- */

static const struct Builtin {
  const char *name;
  Datum (*call)(BuiltinCall *call);
  void (*call_several)(BuiltinCall *call, DatumList *results);
} builtins[] = {{"len", call_len, NULL},     {"shape", call_shape, NULL},         {"match", call_match, NULL},
                {"split", NULL, call_split}, {"rearrange", call_rearrange, NULL}, {"unstack", NULL, call_unstack}};

static const struct Builtin *find_builtin(const char *name) {
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
    if (string_equal(builtins[i].name, name)) return &builtins[i];
  return NULL;
}

bool builtin_exists(const char *name) {
  DataType dtype;
  return find_builtin(name) || dtype_from_name(name, &dtype);
}

void suggest_builtins(Suggestion *suggestion) {
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) suggestion_consider(suggestion, builtins[i].name);
  for (int op = 1; op < OP_COUNT; op++)
    if (op_kind((Op)op) != KIND_OPTIMIZER && !is_compiler_operator((Op)op))
      suggestion_consider(suggestion, op_info((Op)op)->name);
}

void call_builtin(Elaborator *elaborator, const char *name, const CallArguments *arguments, Location location,
                  DatumList *results) {
  BuiltinCall call = {elaborator, name, arguments, location};
  const struct Builtin *builtin = find_builtin(name);
  DataType dtype;
  int64_t before = results->count;
  for (int64_t i = 0; i < arguments->count; i++) {
    if (arguments->items[i].value.kind != DATUM_ERROR) continue;
    array_push(elaborator->scratch, results, datum_error());
    return;
  }
  if (builtin && builtin->call_several)
    builtin->call_several(&call, results);
  else
    array_push(elaborator->scratch, results,
               builtin ? builtin->call(&call) : call_conversion(&call, dtype_from_name(name, &dtype) ? dtype : F32));
  if (results->count == before) array_push(elaborator->scratch, results, datum_error());
}
