/* ir/infer.c - output types of the rows of the op table. Faults are reported at graph->location. */
#include "ir/rows.h"

static const Type *input_type(const Graph *graph, const Node *node, int input) {
  return value_type(graph, node->inputs[input]);
}

static bool fault(const Graph *graph, const Node *node, const char *text) {
  diag_error(graph->location, "'%s': %s", op_info(node->op)->name, text);
  return false;
}

static bool positive_shape(const Attribute *shape) {
  for (int i = 0; i < shape->count; i++)
    if (shape->list[i] < 1) return false;
  return true;
}

/* ---- broadcasting (NumPy): shapes are aligned at the right; sizes are equal or one of them is 1 ---- */

static bool broadcast_into(Type *shape, const Type *other) {
  Type wider = shape->rank >= other->rank ? *shape : *other;
  for (int i = 1; i <= wider.rank; i++) {
    int64_t a = i <= shape->rank ? shape->dims[shape->rank - i] : 1,
            b = i <= other->rank ? other->dims[other->rank - i] : 1;
    if (a != b && a != 1 && b != 1) return false;
    wider.dims[wider.rank - i] = a == 1 ? b : a;
  }
  shape->rank = wider.rank;
  memcpy(shape->dims, wider.dims, sizeof wider.dims);
  return true;
}

static bool operand_allowed(OperandRule rule, int operand, DataType dtype) {
  ScalarClass class = dtype_class(dtype);
  switch (rule) {
    case NUMBERS_TO_SAME:
    case NUMBERS_TO_BOOL:
      return class != CLASS_BOOL;
    case REALS_TO_SAME:
      return class == CLASS_REAL;
    case INTEGERS_TO_SAME:
      return class == CLASS_INTEGER;
    case BOOLS_TO_SAME:
      return class == CLASS_BOOL;
    case BOOL_ANY_TO_SAME:
      return operand > 0 || class == CLASS_BOOL;
    case ANY_TO_SAME:
    case ANY_TO_BOOL:
    case ANY_TO_ATTRIBUTE:
      return true;
  }
  return false;
}

static const char *rule_text(OperandRule rule) {
  switch (rule) {
    case REALS_TO_SAME:
      return "a floating-point tensor";
    case INTEGERS_TO_SAME:
      return "an integer tensor";
    case BOOLS_TO_SAME:
      return "a bool tensor";
    case BOOL_ANY_TO_SAME:
      return "a bool tensor as its condition";
    default:
      return "a tensor of numbers, not bool";
  }
}

static bool check_operands(Graph *graph, const Node *node) {
  const OpInfo *info = op_info(node->op);
  int first = info->operands == BOOL_ANY_TO_SAME ? 1 : 0;
  for (int i = 0; i < node->input_count; i++) {
    const Type *type = input_type(graph, node, i);
    if (!operand_allowed(info->operands, i, type->dtype)) {
      diag_error(graph->location, "'%s' takes %s, found %s", info->name, rule_text(info->operands),
                 type_text(graph->module->arena, type));
      return false;
    }
    if (i > first && type->dtype != input_type(graph, node, first)->dtype) {
      diag_error(graph->location, "'%s' takes tensors of one data type, found %s and %s; convert one, as in %s(x)",
                 info->name, dtype_name(input_type(graph, node, first)->dtype), dtype_name(type->dtype),
                 dtype_name(F32));
      return false;
    }
  }
  return true;
}

static DataType result_dtype(const Graph *graph, const Node *node) {
  const OpInfo *info = op_info(node->op);
  switch (info->operands) {
    case ANY_TO_BOOL:
    case NUMBERS_TO_BOOL:
      return BOOL;
    case ANY_TO_ATTRIBUTE:
      return (DataType)node_attribute(node, "to")->integer;
    default:
      return input_type(graph, node, node->input_count - 1)->dtype;
  }
}

bool infer_pointwise(Graph *graph, const Node *node, Type *outputs) {
  const OpInfo *info = op_info(node->op);
  if (!check_operands(graph, node)) return false;
  if (!node->input_count) {
    const Attribute *shape = node_attribute(node, "shape");
    outputs[0] = type_make(result_dtype(graph, node), shape->count, shape->list);
    return positive_shape(shape) || fault(graph, node, "every dimension must be at least 1");
  }
  outputs[0] = *input_type(graph, node, 0);
  for (int i = 1; i < node->input_count; i++) {
    const Type *type = input_type(graph, node, i);
    if (broadcast_into(&outputs[0], type)) continue;
    MemoryArena *arena = graph->module->arena;
    diag_error(graph->location, "'%s': shapes %s and %s do not broadcast", info->name, type_text(arena, &outputs[0]),
               type_text(arena, type));
    return false;
  }
  outputs[0].dtype = result_dtype(graph, node);
  if ((info->properties & OP_EFFECT) && !shape_equal(&outputs[0], input_type(graph, node, 0)))
    return fault(graph, node, "the value is larger than what it is assigned to");
  return true;
}

bool infer_reduction(Graph *graph, const Node *node, Type *outputs) {
  if (!check_operands(graph, node)) return false;
  const Type *type = input_type(graph, node, 0);
  const Attribute *axes = node_attribute(node, "axis");
  bool keepdims = node_attribute(node, "keepdims")->integer;
  outputs[0] = type_scalar(type->dtype);
  for (int axis = 0, next = 0; axis < type->rank; axis++) {
    bool reduced = next < axes->count && axes->list[next] == axis;
    if (reduced) next++;
    if (!reduced || keepdims) outputs[0].dims[outputs[0].rank++] = reduced ? 1 : type->dims[axis];
  }
  return true;
}

/* ---- views and assemblies ---- */

bool infer_same(Graph *graph, const Node *node, Type *outputs) {
  outputs[0] = *input_type(graph, node, 0);
  if (dtype_class(outputs[0].dtype) != CLASS_REAL || outputs[0].rank < 1)
    return fault(graph, node, "expected a floating-point tensor with at least one axis");
  return true;
}

bool infer_reshape(Graph *graph, const Node *node, Type *outputs) {
  const Type *type = input_type(graph, node, 0);
  const Attribute *shape = node_attribute(node, "shape");
  MemoryArena *arena = graph->module->arena;
  outputs[0] = type_make(type->dtype, shape->count, shape->list);
  if (positive_shape(shape) && type_check_size(&outputs[0]) && type_elements(&outputs[0]) == type_elements(type))
    return true;
  diag_error(graph->location, "'reshape': cannot make %s of %s: the number of elements differs",
             type_text(arena, &outputs[0]), type_text(arena, type));
  return false;
}

bool infer_permute(Graph *graph, const Node *node, Type *outputs) {
  const Type *type = input_type(graph, node, 0);
  const Attribute *axes = node_attribute(node, "axes");
  unsigned seen = 0;
  outputs[0] = *type;
  for (int i = 0; i < axes->count && axes->count == type->rank; i++) {
    if (axes->list[i] < 0 || axes->list[i] >= type->rank) break;
    seen |= 1u << axes->list[i];
    outputs[0].dims[i] = type->dims[axes->list[i]];
  }
  if (axes->count == type->rank && seen == (1u << type->rank) - 1) return true;
  return fault(graph, node, "the axes must name each axis of the tensor once");
}

bool infer_slice(Graph *graph, const Node *node, Type *outputs) {
  const Type *type = input_type(graph, node, 0);
  int64_t axis = node_attribute(node, "axis")->integer, start = node_attribute(node, "start")->integer;
  int64_t stop = node_attribute(node, "stop")->integer, step = node_attribute(node, "step")->integer;
  if (axis < 0 || axis >= type->rank) return fault(graph, node, "the tensor has no such axis");
  if (start < 0 || stop > type->dims[axis] || start >= stop || step < 1) {
    diag_error(graph->location, "slice %lld:%lld:%lld does not lie in an axis of %lld elements", (long long)start,
               (long long)stop, (long long)step, (long long)type->dims[axis]);
    return false;
  }
  outputs[0] = *type;
  outputs[0].dims[axis] = (stop - start - 1) / step + 1;
  return true;
}

bool infer_expand(Graph *graph, const Node *node, Type *outputs) {
  const Type *type = input_type(graph, node, 0);
  const Attribute *shape = node_attribute(node, "shape");
  Type whole = type_make(type->dtype, shape->count, shape->list), both = whole;
  if (positive_shape(shape) && broadcast_into(&both, type) && shape_equal(&both, &whole)) {
    outputs[0] = whole;
    return true;
  }
  diag_error(graph->location, "'expand': %s does not broadcast to %s", type_text(graph->module->arena, type),
             type_text(graph->module->arena, &whole));
  return false;
}

bool infer_concat(Graph *graph, const Node *node, Type *outputs) {
  int64_t axis = node_attribute(node, "axis")->integer;
  outputs[0] = *input_type(graph, node, 0);
  if (axis < 0 || axis >= outputs[0].rank) return fault(graph, node, "the tensors have no such axis");
  for (int i = 1; i < node->input_count; i++) {
    Type type = *input_type(graph, node, i);
    int64_t size = axis < type.rank ? type.dims[axis] : 0;
    if (axis < type.rank) type.dims[axis] = outputs[0].dims[axis];
    if (!type_equal(&type, &outputs[0])) {
      MemoryArena *arena = graph->module->arena;
      diag_error(graph->location, "'concat' along axis %lld: %s does not fit %s", (long long)axis,
                 type_text(arena, input_type(graph, node, i)), type_text(arena, input_type(graph, node, 0)));
      return false;
    }
    if (!checked_add(outputs[0].dims[axis], size, &outputs[0].dims[axis])) return fault(graph, node, "size overflow");
  }
  return true;
}

bool infer_place(Graph *graph, const Node *node, Type *outputs) {
  int64_t axis = node_attribute(node, "axis")->integer, start = node_attribute(node, "start")->integer;
  int64_t step = node_attribute(node, "step")->integer, size = node_attribute(node, "size")->integer;
  outputs[0] = *input_type(graph, node, 0);
  if (axis < 0 || axis >= outputs[0].rank || start < 0 || step < 1 ||
      start + (outputs[0].dims[axis] - 1) * step >= size)
    return fault(graph, node, "the slice does not lie in the whole");
  outputs[0].dims[axis] = size;
  return true;
}

/* ---- contractions ---- */

bool infer_contract(Graph *graph, const Node *node, Type *outputs) {
  Type a = *input_type(graph, node, 0), b = *input_type(graph, node, 1);
  MemoryArena *arena = graph->module->arena;
  char *a_text = type_text(arena, &a), *b_text = type_text(arena, &b);
  if (a.dtype != b.dtype || dtype_class(a.dtype) == CLASS_BOOL) {
    diag_error(graph->location, "'@' takes two tensors of one data type, found %s and %s", a_text, b_text);
    return false;
  }
  if (a.rank < 2 || b.rank < 2) return fault(graph, node, "expected two tensors with at least two axes");
  int64_t rows = a.dims[a.rank - 2], columns = b.dims[b.rank - 1];
  if (a.dims[a.rank - 1] != b.dims[b.rank - 2]) {
    diag_error(graph->location,
               "dimension mismatch in '@': the last axis of %s (%lld) against the second last of %s (%lld)", a_text,
               (long long)a.dims[a.rank - 1], b_text, (long long)b.dims[b.rank - 2]);
    return false;
  }
  a.rank -= 2;
  b.rank -= 2;
  if (!broadcast_into(&a, &b)) {
    diag_error(graph->location, "dimension mismatch in '@': the leading axes of %s and %s do not broadcast", a_text,
               b_text);
    return false;
  }
  a.dims[a.rank++] = rows;
  a.dims[a.rank++] = columns;
  outputs[0] = a;
  return true;
}

/* ---- kernels ---- */

static Type without_last_axis(Type type) {
  type.rank--;
  return type;
}

bool infer_layer_norm(Graph *graph, const Node *node, Type *outputs) {
  if (!infer_same(graph, node, outputs)) return false;
  int64_t columns = outputs[0].dims[outputs[0].rank - 1];
  for (int i = 1; i <= 2; i++) {
    if (node->inputs[i] == NO_VALUE) continue;
    const Type *type = input_type(graph, node, i);
    Type expected = type_make(outputs[0].dtype, 1, &columns);
    if (type_equal(type, &expected)) continue;
    MemoryArena *arena = graph->module->arena;
    diag_error(graph->location, "'layer_norm': expected a %s of %s, found %s", op_info(node->op)->inputs[i].name,
               type_text(arena, &expected), type_text(arena, type));
    return false;
  }
  outputs[1] = outputs[0];
  outputs[1].dims[outputs[1].rank - 1] = 1;
  outputs[2] = outputs[1];
  return true;
}

bool infer_cross_entropy(Graph *graph, const Node *node, Type *outputs) {
  if (!infer_same(graph, node, outputs)) return false;
  const Type *target = input_type(graph, node, 1);
  outputs[0] = outputs[1] = without_last_axis(outputs[0]);
  if (target->dtype == I32 && shape_equal(target, &outputs[0])) return true;
  MemoryArena *arena = graph->module->arena;
  diag_error(graph->location, "'cross_entropy': logits %s need integer targets of shape %s, found %s",
             type_text(arena, input_type(graph, node, 0)), strchr(type_text(arena, &outputs[0]), '['),
             type_text(arena, target));
  return false;
}

bool infer_argmax(Graph *graph, const Node *node, Type *outputs) {
  const Type *type = input_type(graph, node, 0);
  if (type->rank < 1 || dtype_class(type->dtype) != CLASS_REAL)
    return fault(graph, node, "expected a floating-point tensor with at least one axis");
  outputs[0] = without_last_axis(*type);
  outputs[0].dtype = I32;
  return true;
}

bool infer_embed(Graph *graph, const Node *node, Type *outputs) {
  const Type *table = input_type(graph, node, 0), *indices = input_type(graph, node, 1);
  if (table->rank != 2 || dtype_class(table->dtype) != CLASS_REAL)
    return fault(graph, node, "expected a table of two axes, [entries, width]");
  if (indices->dtype != I32) return fault(graph, node, "expected integer indices");
  if (indices->rank + 1 > MAX_RANK) return fault(graph, node, "the result would have too many axes");
  outputs[0] = *indices;
  outputs[0].dtype = table->dtype;
  outputs[0].dims[outputs[0].rank++] = table->dims[1];
  return true;
}

bool infer_embed_backward(Graph *graph, const Node *node, Type *outputs) {
  const Type *g = input_type(graph, node, 0);
  outputs[0] = type_make(g->dtype, 2, (int64_t[]){node_attribute(node, "size")->integer, g->dims[g->rank - 1]});
  return true;
}
