/* passes/fold.c - compile-time evaluation: a graph of one element per value, run by the reference interpreter, which
 * computes the same bits as the emitted program. */
#include "passes/fold.h"

#include <math.h>

#include "ir/build.h"
#include "ir/eval.h"
#include "passes/facts.h"

/* Integers beyond this are not exact as doubles, in which constants are handed on. */
static const int64_t largest_exact = INT64_C(1) << 53;

Constant constant_of(const Graph *graph, ValueId value) {
  const Node *node = graph_node(graph, graph_value(graph, value)->producer);
  const Attribute *attribute = node_attribute(node, "value");
  return (Constant){attribute->number, attribute->integer};
}

static bool foldable(const Graph *graph, const Node *node) {
  unsigned reads_more = OP_RANDOM | OP_READS_CONTROL | OP_EFFECT | OP_INDEXED;
  OpKind kind = op_kind(node->op);
  if (node->body || (kind != KIND_POINTWISE && kind != KIND_VIEW) || (op_info(node->op)->properties & reads_more))
    return false;
  for (int i = 0; i < node->input_count; i++)
    if (!value_is_uniform(graph, node->inputs[i])) return false;
  return node->input_count > 0;
}

/* The element of a constant as a value of a graph of scalars. */
static ValueId scalar_operand(Graph *scalars, const Graph *graph, ValueId value) {
  Constant constant = constant_of(graph, value);
  DataType dtype = value_type(graph, value)->dtype;
  return dtype_class(dtype) == CLASS_REAL ? build_constant(scalars, dtype, constant.number)
                                          : build_integer(scalars, dtype, constant.integer);
}

static Constant evaluate(const Graph *graph, const Node *node, MemoryArena *scratch) {
  Graph *scalars = graph_create(module_create(scratch, "", ""), true);
  Node scalar = *node;
  scalar.inputs = NEW_ARRAY(scratch, ValueId, node->input_count);
  scalar.outputs = NEW(scratch, ValueId);
  for (int i = 0; i < node->input_count; i++) scalar.inputs[i] = scalar_operand(scalars, graph, node->inputs[i]);
  DataType dtype = value_type(graph, node->outputs[0])->dtype;
  scalar.outputs[0] = graph_new_value(scalars, type_scalar(dtype), NULL, node->location);
  graph_append(scalars, scalar);
  Evaluation *evaluation = eval_create(scratch, scalars, EVAL_F32);
  ASSERT(eval_run(evaluation));
  const EvalTensor *tensor = eval_value(evaluation, scalar.outputs[0]);
  if (tensor->real) return (Constant){.number = tensor->real[0]};
  return (Constant){(double)tensor->integer[0], tensor->integer[0]};
}

bool fold_constant(const Graph *graph, const Node *node, MemoryArena *scratch, Constant *result) {
  if (!foldable(graph, node)) return false;
  *result = node_is_view(node) ? constant_of(graph, node->inputs[0]) : evaluate(graph, node, scratch);
  if (dtype_class(value_type(graph, node->outputs[0])->dtype) == CLASS_REAL) return isfinite(result->number);
  return result->integer > -largest_exact && result->integer < largest_exact;
}

ValueId build_folded(Graph *graph, ValueId like, Constant constant) {
  Value old = *graph_value(graph, like);
  bool real = dtype_class(old.type.dtype) == CLASS_REAL;
  ValueId value = build_full(graph, old.type, real ? constant.number : (double)constant.integer);
  graph_value(graph, value)->name = old.name;
  return value;
}
