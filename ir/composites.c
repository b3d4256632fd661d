/* ir/composites.c - operators that are built of others. */
#include <math.h>

#include "ir/build.h"
#include "ir/rows.h"

static int last_axis(const Graph *graph, ValueId x) { return value_type(graph, x)->rank - 1; }

static ValueId single(ValueId value, ValueId *outputs) {
  if (outputs) outputs[0] = value;
  return value;
}

/* ---- products ---- */

/* [.., k] @ [k, n]: the leading axes of a become rows of one product, so that the gradient of b is one product too. */
static ValueId product_of_rows(Graph *graph, ValueId a, ValueId b) {
  Type type = *value_type(graph, a), weights = *value_type(graph, b);
  int64_t columns = type.dims[type.rank - 1];
  ValueId rows = build_reshape(graph, a, 2, (int64_t[]){type_elements(&type) / columns, columns});
  ValueId product = BUILD(graph, contract, rows, b);
  type.dims[type.rank - 1] = weights.dims[1];
  return build_reshape(graph, product, type.rank, type.dims);
}

/* Vectors are rows on the left and columns on the right, as in NumPy. */
ValueId expand_matmul(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                      ValueId *outputs) {
  (void)input_count, (void)attributes;
  Type a = *value_type(graph, inputs[0]), b = *value_type(graph, inputs[1]);
  if (!a.rank || !b.rank) {
    diag_error(graph->location, "'@' takes tensors with at least one axis, found a scalar; use '*'");
    return NO_VALUE;
  }
  if (a.rank > 2 && b.rank == 2 && a.dtype == b.dtype && a.dims[a.rank - 1] == b.dims[0])
    return single(product_of_rows(graph, inputs[0], inputs[1]), outputs);
  ValueId left = a.rank == 1 ? build_reshape(graph, inputs[0], 2, (int64_t[]){1, a.dims[0]}) : inputs[0];
  ValueId right = b.rank == 1 ? build_reshape(graph, inputs[1], 2, (int64_t[]){b.dims[0], 1}) : inputs[1];
  ValueId product = BUILD(graph, contract, left, right);
  if (product == NO_VALUE || (a.rank > 1 && b.rank > 1)) return single(product, outputs);
  Type type = *value_type(graph, product);
  int64_t columns = type.dims[type.rank - 1];
  type.rank -= (a.rank == 1) + (b.rank == 1);
  if (a.rank == 1 && b.rank > 1) type.dims[type.rank - 1] = columns;
  return single(build_reshape(graph, product, type.rank, type.dims), outputs);
}

/* x Wᵀ + b with W [out, in] */
ValueId expand_linear(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                      ValueId *outputs) {
  (void)input_count, (void)attributes;
  ValueId product = BUILD(graph, matmul, inputs[0], build_swap(graph, inputs[1], -1, -2));
  return single(inputs[2] == NO_VALUE ? product : BUILD(graph, add, product, inputs[2]), outputs);
}

ValueId expand_transpose(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                         ValueId *outputs) {
  (void)input_count;
  if (!attributes[0].given) return single(build_swap(graph, inputs[0], -1, -2), outputs);
  Attribute axes = attributes[0];
  for (int i = 0; i < axes.count; i++)
    if (axes.list[i] < 0) axes.list[i] += value_type(graph, inputs[0])->rank;
  return single(build_apply(graph, OP_permute, &axes, 1, inputs), outputs);
}

/* ---- along one axis ---- */

static bool resolve_axis(Graph *graph, const char *what, int rank, int64_t *axis) {
  int64_t resolved = *axis < 0 ? *axis + rank : *axis;
  if (resolved < 0 || resolved >= rank) {
    diag_error(graph->location, "'%s': axis %lld is not an axis of a tensor of rank %d", what, (long long)*axis, rank);
    return false;
  }
  *axis = resolved;
  return true;
}

ValueId expand_softmax(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                       ValueId *outputs) {
  (void)input_count;
  int64_t axis = attributes[0].integer;
  if (!resolve_axis(graph, "softmax", value_type(graph, inputs[0])->rank, &axis)) return NO_VALUE;
  int last = last_axis(graph, inputs[0]);
  ValueId rows = BUILD(graph, softmax_rows, build_swap(graph, inputs[0], (int)axis, last));
  return single(build_swap(graph, rows, (int)axis, last), outputs);
}

/* x - max - log sum exp(x - max); the shift by the maximum cancels, so no gradient goes through it */
ValueId expand_log_softmax(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                           ValueId *outputs) {
  (void)input_count;
  int64_t axis = attributes[0].integer;
  if (!resolve_axis(graph, "log_softmax", value_type(graph, inputs[0])->rank, &axis)) return NO_VALUE;
  ValueId largest = BUILD(graph, stop, build_reduce(graph, OP_max, inputs[0], 1, &axis, true));
  ValueId shifted = BUILD(graph, subtract, inputs[0], largest);
  ValueId total = build_reduce(graph, OP_sum, BUILD(graph, exp, shifted), 1, &axis, true);
  return single(BUILD(graph, subtract, shifted, BUILD(graph, log, total)), outputs);
}

ValueId expand_argmax(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                      ValueId *outputs) {
  (void)input_count;
  const Type *type = value_type(graph, inputs[0]);
  int64_t axis = attributes[0].integer, axes[MAX_RANK];
  int count = 0, rank = type->rank;
  if (!resolve_axis(graph, "argmax", rank, &axis)) return NO_VALUE;
  for (int i = 0; i < rank; i++)
    if (i != axis) axes[count++] = i;
  axes[count] = axis;
  return single(BUILD(graph, argmax_rows, build_permute(graph, inputs[0], axes)), outputs);
}

ValueId expand_stack(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                     ValueId *outputs) {
  int64_t axis = attributes[0].integer;
  Type type = *value_type(graph, inputs[0]);
  if (!resolve_axis(graph, "stack", type.rank + 1, &axis)) return NO_VALUE;
  if (type.rank == MAX_RANK) {
    diag_error(graph->location, "'stack': the result would have more than %d axes", MAX_RANK);
    return NO_VALUE;
  }
  ValueId *slices = NEW_ARRAY(graph->module->arena, ValueId, input_count);
  for (int i = 0; i < input_count; i++) {
    Type slice = *value_type(graph, inputs[i]);
    if (!type_equal(&slice, &type)) {
      diag_error(graph->location, "'stack' takes tensors of one type, found %s and %s",
                 type_text(graph->module->arena, &type), type_text(graph->module->arena, &slice));
      return NO_VALUE;
    }
    memmove(&slice.dims[axis + 1], &slice.dims[axis], (size_t)(slice.rank - axis) * sizeof *slice.dims);
    slice.dims[axis] = 1;
    slices[i] = build_reshape(graph, inputs[i], slice.rank + 1, slice.dims);
  }
  return single(build_concat(graph, input_count, slices, (int)axis), outputs);
}

/* x / sqrt(mean(x²) + eps) · weight over the last axis (Zhang & Sennrich 2019) */
ValueId expand_rms_norm(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                        ValueId *outputs) {
  (void)input_count;
  if (value_type(graph, inputs[0])->rank < 1) {
    diag_error(graph->location, "'rms_norm': expected a tensor with at least one axis");
    return NO_VALUE;
  }
  int64_t axis = last_axis(graph, inputs[0]);
  DataType dtype = value_type(graph, inputs[0])->dtype;
  ValueId mean = build_reduce(graph, OP_mean, BUILD(graph, square, inputs[0]), 1, &axis, true);
  ValueId scale = BUILD(graph, rsqrt, BUILD(graph, add, mean, build_constant(graph, dtype, attributes[0].number)));
  ValueId y = BUILD(graph, multiply, inputs[0], scale);
  return single(inputs[1] == NO_VALUE ? y : BUILD(graph, multiply, y, inputs[1]), outputs);
}

/* ---- losses ---- */

enum { REDUCE_MEAN, REDUCE_SUM, REDUCE_NONE };

static ValueId reduce_loss(Graph *graph, ValueId losses, int64_t how) {
  if (how == REDUCE_NONE) return losses;
  return build_reduce(graph, how == REDUCE_MEAN ? OP_mean : OP_sum, losses, -1, NULL, false);
}

/* The mean is over the rows that are not ignored, as in PyTorch. */
ValueId expand_cross_entropy(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                             ValueId *outputs) {
  (void)input_count;
  if (dtype_class(value_type(graph, inputs[1])->dtype) != CLASS_INTEGER) {
    diag_error(graph->location, "'cross_entropy': the targets must be integers (class numbers), found %s",
               type_text(graph->module->arena, value_type(graph, inputs[1])));
    return NO_VALUE;
  }
  if (!(attributes[1].number >= 0 && attributes[1].number < 1)) {
    diag_error(graph->location, "'cross_entropy': smoothing must be in [0, 1), found %g", attributes[1].number);
    return NO_VALUE;
  }
  ValueId target = build_cast(graph, inputs[1], I32);
  ValueId losses = build_apply(graph, OP_cross_entropy_rows, attributes, 2, (ValueId[]){inputs[0], target});
  if (losses == NO_VALUE || !attributes[0].given || attributes[2].integer != REDUCE_MEAN)
    return single(reduce_loss(graph, losses, attributes[2].integer), outputs);
  DataType dtype = value_type(graph, losses)->dtype;
  ValueId counted = BUILD(graph, not_equal, target, build_integer(graph, I32, attributes[0].integer));
  ValueId count = build_reduce(graph, OP_sum, build_cast(graph, counted, dtype), -1, NULL, false);
  ValueId at_least_one = BUILD(graph, maximum, count, build_constant(graph, dtype, 1));
  return single(BUILD(graph, divide, reduce_loss(graph, losses, REDUCE_SUM), at_least_one), outputs);
}

ValueId expand_mse(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                   ValueId *outputs) {
  (void)input_count;
  const Type *x = value_type(graph, inputs[0]), *y = value_type(graph, inputs[1]);
  if (!shape_equal(x, y) && !graph->evaluation)
    diag_warning(graph->location, "'mse' of %s and %s compares every pair that broadcasting makes; give both one shape",
                 type_text(graph->module->arena, x), type_text(graph->module->arena, y));
  ValueId difference = BUILD(graph, subtract, inputs[0], inputs[1]);
  if (difference == NO_VALUE) return NO_VALUE;
  return single(reduce_loss(graph, BUILD(graph, square, difference), attributes[0].integer), outputs);
}

/* ---- dropout, masks, attention ---- */

ValueId expand_dropout(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                       ValueId *outputs) {
  (void)input_count;
  double p = attributes[0].number;
  if (!(p >= 0 && p < 1)) {
    diag_error(graph->location, "'dropout': the probability must be in [0, 1), found %g", p);
    return NO_VALUE;
  }
  if (graph->evaluation || p == 0) return single(inputs[0], outputs);
  return single(build_apply(graph, OP_drop, attributes, 1, inputs), outputs);
}

ValueId expand_causal_mask(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                           ValueId *outputs) {
  (void)input_count;
  const Type *type = value_type(graph, inputs[0]);
  if (type->rank < 2) {
    diag_error(graph->location, "'causal_mask': expected scores [.., queries, keys], found %s",
               type_text(graph->module->arena, type));
    return NO_VALUE;
  }
  Attribute fill[] = {attribute_int(type->dims[type->rank - 2]), attribute_int(type->dims[type->rank - 1]),
                      attributes[0]};
  return single(build_apply(graph, OP_causal_fill, fill, 1, inputs), outputs);
}

/* A mask [batch, keys] for scores [batch, …, queries, keys] gets axes of size 1 between. */
static ValueId spread_mask(Graph *graph, ValueId mask, int rank) {
  Type type = *value_type(graph, mask);
  if (type.rank != 2 || rank <= 2) return mask;
  int64_t dims[MAX_RANK];
  for (int i = 0; i < rank; i++) dims[i] = 1;
  dims[0] = type.dims[0];
  dims[rank - 1] = type.dims[1];
  return build_reshape(graph, mask, rank, dims);
}

/* softmax(q kᵀ scale + bias, masked) v, over the last two axes; mask: true where a key may be seen. (Vaswani et al.
 * 2017) */
ValueId expand_attention(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes,
                         ValueId *outputs) {
  (void)input_count;
  enum { Q, K, V, BIAS, MASK };
  const Attribute *causal = &attributes[0], *dropout = &attributes[1], *scale = &attributes[2];
  const double masked = -1e30;
  Type q = *value_type(graph, inputs[Q]);
  if (q.rank < 2) {
    diag_error(graph->location, "'attention': expected queries [.., time, width], found %s",
               type_text(graph->module->arena, &q));
    return NO_VALUE;
  }
  double factor = scale->given ? scale->number : 1 / sqrt((double)q.dims[q.rank - 1]);
  ValueId scores = BUILD(graph, contract, inputs[Q], build_swap(graph, inputs[K], -1, -2));
  scores = BUILD(graph, multiply, scores, build_constant(graph, q.dtype, factor));
  if (inputs[BIAS] != NO_VALUE) scores = BUILD(graph, add, scores, inputs[BIAS]);
  if (inputs[MASK] != NO_VALUE && scores != NO_VALUE)
    scores = BUILD(graph, where, spread_mask(graph, inputs[MASK], value_type(graph, scores)->rank), scores,
                   build_constant(graph, q.dtype, masked));
  if (causal->integer) scores = BUILD(graph, causal_mask, scores);
  ValueId weights = BUILD(graph, softmax_rows, scores);
  weights = build_apply(graph, OP_dropout, dropout, 1, &weights);
  return single(BUILD(graph, contract, weights, inputs[V]), outputs);
}
