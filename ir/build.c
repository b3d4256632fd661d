/* ir/build.c - short calls for building graphs. */
#include "ir/build.h"

#include "runtime/scalar_math.h"

ValueId build_apply(Graph *graph, Op op, const Attribute *attributes, int input_count, const ValueId *inputs) {
  for (int i = 0; i < input_count; i++)
    if (inputs[i] == NO_VALUE && i < op_info(op)->input_count && !op_info(op)->inputs[i].optional) return NO_VALUE;
  return graph_apply(graph, op, input_count, inputs, attributes, NULL);
}

static ValueId build_filled(Graph *graph, const Type *type, double value, int64_t integer) {
  Attribute attributes[] = {attribute_ints(type->rank, type->dims), attribute_number(value, integer),
                            attribute_dtype(type->dtype)};
  return graph_apply(graph, OP_full, 0, NULL, attributes, NULL);
}

ValueId build_full(Graph *graph, Type type, double value) {
  return build_filled(graph, &type, value, rp_float_to_integer(value, INT64_MIN, INT64_MAX));
}

ValueId build_constant(Graph *graph, DataType dtype, double value) {
  return build_full(graph, type_scalar(dtype), value);
}

ValueId build_integer(Graph *graph, DataType dtype, int64_t value) {
  Type type = type_scalar(dtype);
  return build_filled(graph, &type, (double)value, value);
}

ValueId build_reshape(Graph *graph, ValueId x, int rank, const int64_t *dims) {
  if (x == NO_VALUE) return NO_VALUE;
  Type type = type_make(value_type(graph, x)->dtype, rank, dims);
  if (shape_equal(&type, value_type(graph, x))) return x;
  Attribute shape = attribute_ints(rank, dims);
  return build_apply(graph, OP_reshape, &shape, 1, &x);
}

ValueId build_permute(Graph *graph, ValueId x, const int64_t *axes) {
  if (x == NO_VALUE) return NO_VALUE;
  int rank = value_type(graph, x)->rank;
  bool identity = true;
  for (int i = 0; i < rank; i++) identity = identity && axes[i] == i;
  if (identity) return x;
  Attribute order = attribute_ints(rank, axes);
  return build_apply(graph, OP_permute, &order, 1, &x);
}

ValueId build_swap(Graph *graph, ValueId x, int axis, int other) {
  if (x == NO_VALUE) return NO_VALUE;
  int rank = value_type(graph, x)->rank;
  int64_t axes[MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i;
  axis = axis < 0 ? axis + rank : axis;
  other = other < 0 ? other + rank : other;
  if (axis < 0 || other < 0 || axis >= rank || other >= rank) {
    diag_error(graph->location, "expected a tensor with at least two axes, found %s",
               type_text(graph->module->arena, value_type(graph, x)));
    return NO_VALUE;
  }
  axes[axis] = other;
  axes[other] = axis;
  return build_permute(graph, x, axes);
}

ValueId build_slice(Graph *graph, ValueId x, int axis, int64_t start, int64_t stop, int64_t step) {
  if (x == NO_VALUE) return NO_VALUE;
  const Type *type = value_type(graph, x);
  if (axis >= 0 && axis < type->rank && start == 0 && stop == type->dims[axis] && step == 1) return x;
  Attribute attributes[] = {attribute_int(axis), attribute_int(start), attribute_int(stop), attribute_int(step)};
  return build_apply(graph, OP_slice, attributes, 1, &x);
}

static ValueId drop_axis(Graph *graph, ValueId x, int axis) {
  if (x == NO_VALUE) return NO_VALUE;
  Type type = *value_type(graph, x);
  for (int i = axis; i + 1 < type.rank; i++) type.dims[i] = type.dims[i + 1];
  return build_reshape(graph, x, type.rank - 1, type.dims);
}

ValueId build_index(Graph *graph, ValueId x, int axis, int64_t index) {
  return drop_axis(graph, build_slice(graph, x, axis, index, index + 1, 1), axis);
}

ValueId build_expand(Graph *graph, ValueId x, int rank, const int64_t *dims) {
  if (x == NO_VALUE) return NO_VALUE;
  Type type = type_make(value_type(graph, x)->dtype, rank, dims);
  if (shape_equal(&type, value_type(graph, x))) return x;
  Attribute shape = attribute_ints(rank, dims);
  return build_apply(graph, OP_expand, &shape, 1, &x);
}

ValueId build_cast(Graph *graph, ValueId x, DataType dtype) {
  if (x == NO_VALUE || value_type(graph, x)->dtype == dtype) return x;
  Attribute to = attribute_dtype(dtype);
  return build_apply(graph, OP_cast, &to, 1, &x);
}

ValueId build_copy(Graph *graph, ValueId x) { return BUILD(graph, copy, x); }

ValueId build_reduce(Graph *graph, Op op, ValueId x, int count, const int64_t *axes, bool keepdims) {
  Attribute attributes[] = {count < 0 ? attribute_none(ATTRIBUTE_INTS) : attribute_ints(count, axes),
                            attribute_bool(keepdims)};
  return build_apply(graph, op, attributes, 1, &x);
}

ValueId build_sum_to(Graph *graph, ValueId x, const Type *to) {
  if (x == NO_VALUE || shape_equal(value_type(graph, x), to)) return x;
  const Type *from = value_type(graph, x);
  int64_t axes[MAX_RANK];
  int count = 0, extra = from->rank - to->rank;
  for (int i = 0; i < from->rank; i++)
    if (i < extra || to->dims[i - extra] != from->dims[i]) axes[count++] = i;
  if (count) x = build_reduce(graph, OP_sum, x, count, axes, true);
  return build_reshape(graph, x, to->rank, to->dims);
}

ValueId build_concat(Graph *graph, int count, const ValueId *values, int axis) {
  if (count == 1) return values[0];
  Attribute along = attribute_int(axis);
  return build_apply(graph, OP_concat, &along, count, values);
}

ValueId build_add(Graph *graph, ValueId a, ValueId b) { return BUILD(graph, add, a, b); }

ValueId build_reciprocal(Graph *graph, ValueId x) {
  if (x == NO_VALUE) return NO_VALUE;
  return BUILD(graph, divide, build_constant(graph, value_type(graph, x)->dtype, 1), x);
}

void build_assign(Graph *graph, ValueId persistent, ValueId value) { BUILD(graph, assign, persistent, value); }

bool build_split(Graph *graph, ValueId x, int64_t n, int axis, ValueId *parts) {
  if (x == NO_VALUE) return false;
  Type type = *value_type(graph, x);
  if (axis < 0) axis += type.rank;
  if (axis < 0 || axis >= type.rank || n < 1 || type.dims[axis] % n) {
    diag_error(graph->location, "'split': cannot cut axis %d of %s into %lld equal parts", axis,
               type_text(graph->module->arena, &type), (long long)n);
    return false;
  }
  int64_t size = type.dims[axis] / n;
  for (int64_t i = 0; i < n; i++) parts[i] = build_slice(graph, x, axis, i * size, (i + 1) * size, 1);
  return true;
}

bool build_unstack(Graph *graph, ValueId x, int axis, ValueId *parts) {
  if (x == NO_VALUE) return false;
  Type type = *value_type(graph, x);
  if (axis < 0) axis += type.rank;
  if (axis < 0 || axis >= type.rank) {
    diag_error(graph->location, "'unstack': %s has no axis %d", type_text(graph->module->arena, &type), axis);
    return false;
  }
  for (int64_t i = 0; i < type.dims[axis]; i++) parts[i] = build_index(graph, x, axis, i);
  return true;
}
