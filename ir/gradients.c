/* ir/gradients.c - the gradient column of the op table, expanded, and the functions that rows call. */
#include "ir/build.h"
#include "ir/rows.h"

struct GradientContext {
  Graph *graph;
  Node node; /* a copy: building moves the graph's nodes */
  const ValueId *gradients;
};

enum { NO_GRADIENT = -2 };

/* ---- the letters of the column ---- */

static DataType real_type(const GradientContext *c) { return value_type(c->graph, c->node.outputs[0])->dtype; }
static ValueId constant(const GradientContext *c, double value) {
  return build_constant(c->graph, real_type(c), value);
}
static const Type *input_type(const GradientContext *c, int i) { return value_type(c->graph, c->node.inputs[i]); }

/* A pointwise operator with the attributes of the node itself. */
static ValueId with_attributes(const GradientContext *c, Op op, ValueId x) {
  return build_apply(c->graph, op, c->node.attributes, 1, &x);
}

#define G (c->gradients[0])
#define G_(k) (c->gradients[k])
#define X(i) (c->node.inputs[i])
#define Y (c->node.outputs[0])
#define Y_(k) (c->node.outputs[k])
#define C(value) constant(c, value)
#define A(i) (c->node.attributes[i].number)
#define E(op, ...) BUILD(c->graph, op, __VA_ARGS__)
#define E1(op, x) with_attributes(c, OP_##op, x)

/* ---- pointwise ---- */

/* maximum and minimum: the gradient goes to the operand that was taken, half to each when they are equal (as in
 * PyTorch) */
static ValueId gradient_larger(GradientContext *c, int larger, int smaller) {
  ValueId half = E(where, E(equal, X(larger), X(smaller)), E(multiply, G, C(0.5)), C(0));
  return E(where, E(greater, X(larger), X(smaller)), G, half);
}

/* y = xᵉ: dy/de = y log x, and 0 where x is 0 and the exponent at least 0 (as in PyTorch), not 0 · log 0 */
static ValueId gradient_exponent(GradientContext *c) {
  ValueId zero = E(logical_and, E(equal, X(0), C(0)), E(greater_equal, X(1), C(0)));
  ValueId slope = E(multiply, Y, E(log, E(where, zero, C(1), X(0))));
  return E(multiply, G, slope);
}

static ValueId gradient_cast(GradientContext *c) {
  if (dtype_class(input_type(c, 0)->dtype) != CLASS_REAL || dtype_class(real_type(c)) != CLASS_REAL) return NO_VALUE;
  return build_cast(c->graph, G, input_type(c, 0)->dtype);
}

static ValueId gradient_causal_fill(GradientContext *c) {
  Attribute fill[] = {c->node.attributes[0], c->node.attributes[1], attribute_float(0)};
  ValueId g = G;
  return build_apply(c->graph, OP_causal_fill, fill, 1, &g);
}

/* A linear random operator: the same numbers again on the gradient. */
static ValueId gradient_same_random(GradientContext *c) {
  ValueId g = build_apply(c->graph, c->node.op, c->node.attributes, 1, (ValueId[]){G});
  if (g != NO_VALUE) graph_node(c->graph, graph_value(c->graph, g)->producer)->random_id = c->node.random_id;
  return g;
}

/* ---- reductions ---- */

static ValueId with_kept_axes(GradientContext *c, ValueId value) {
  const Attribute *axes = node_attribute(&c->node, "axis");
  Type type = *input_type(c, 0);
  for (int i = 0; i < axes->count; i++) type.dims[axes->list[i]] = 1;
  return build_reshape(c->graph, value, type.rank, type.dims);
}

static ValueId gradient_spread(GradientContext *c, ValueId g) {
  return build_expand(c->graph, with_kept_axes(c, g), input_type(c, 0)->rank, input_type(c, 0)->dims);
}

/* Elements combined into each result. */
static double gradient_count(GradientContext *c) {
  return (double)(type_elements(input_type(c, 0)) / type_elements(value_type(c->graph, Y)));
}

/* max, min: shared equally among equal extremes */
static ValueId gradient_extreme(GradientContext *c) {
  const Attribute *axes = node_attribute(&c->node, "axis");
  ValueId hit = build_cast(c->graph, E(equal, X(0), with_kept_axes(c, Y)), real_type(c));
  ValueId ties = build_reduce(c->graph, OP_sum, hit, axes->count, axes->list, true);
  return E(multiply, hit, E(divide, with_kept_axes(c, G), ties));
}

/* ---- views and assemblies ---- */

static ValueId gradient_reshape(GradientContext *c) {
  return build_reshape(c->graph, G, input_type(c, 0)->rank, input_type(c, 0)->dims);
}

/* Does a permutation only swap the last two axes? */
static bool swaps_last_axes(const Attribute *axes) {
  int rank = axes->count;
  for (int i = 0; i + 2 < rank; i++)
    if (axes->list[i] != i) return false;
  return rank >= 2 && axes->list[rank - 2] == rank - 1 && axes->list[rank - 1] == rank - 2;
}

/* (A B)ᵀ is Bᵀ Aᵀ: the gradient of a transposed weight is made in the weight's own order, so that no copy turns it. */
static ValueId gradient_permute(GradientContext *c) {
  const Attribute *axes = node_attribute(&c->node, "axes");
  NodeId producer = graph_value(c->graph, G)->producer;
  if (swaps_last_axes(axes) && producer != NO_NODE && graph_node(c->graph, producer)->op == OP_contract) {
    Node product = *graph_node(c->graph, producer);
    return E(contract, build_swap(c->graph, product.inputs[1], -1, -2),
             build_swap(c->graph, product.inputs[0], -1, -2));
  }
  int64_t inverse[MAX_RANK];
  for (int i = 0; i < axes->count; i++) inverse[axes->list[i]] = i;
  return build_permute(c->graph, G, inverse);
}

static ValueId gradient_slice(GradientContext *c) {
  const Attribute *axis = node_attribute(&c->node, "axis");
  Attribute attributes[] = {*axis, *node_attribute(&c->node, "start"), *node_attribute(&c->node, "step"),
                            attribute_int(input_type(c, 0)->dims[axis->integer])};
  return build_apply(c->graph, OP_place, attributes, 1, (ValueId[]){G});
}

static ValueId gradient_place(GradientContext *c) {
  int64_t axis = node_attribute(&c->node, "axis")->integer, start = node_attribute(&c->node, "start")->integer;
  int64_t step = node_attribute(&c->node, "step")->integer, count = input_type(c, 0)->dims[axis];
  return build_slice(c->graph, G, (int)axis, start, start + (count - 1) * step + 1, step);
}

static ValueId gradient_concat(GradientContext *c, int input) {
  Placement placement;
  op_info(c->node.op)->place(c->graph, &c->node, input, &placement);
  int64_t size = input_type(c, input)->dims[placement.axis];
  return build_slice(c->graph, G, placement.axis, placement.start, placement.start + size, 1);
}

/* ---- contractions: dA = G Bᵀ, dB = Aᵀ G; broadcast batch axes are summed by the caller ---- */

static ValueId gradient_contract(GradientContext *c, int input) {
  if (input == 0) return E(contract, G, build_swap(c->graph, X(1), -1, -2));
  return E(contract, build_swap(c->graph, X(0), -1, -2), G);
}

/* ---- kernels ---- */

static ValueId gradient_layer_norm(GradientContext *c) { return E(layer_norm_backward, G, X(0), X(1), Y_(1), Y_(2)); }

static ValueId gradient_layer_norm_weight(GradientContext *c) {
  ValueId normalized = E(multiply, E(subtract, X(0), Y_(1)), Y_(2));
  return build_sum_to(c->graph, E(multiply, G, normalized), input_type(c, 1));
}

static ValueId gradient_layer_norm_bias(GradientContext *c) { return build_sum_to(c->graph, G, input_type(c, 2)); }

static ValueId gradient_cross_entropy(GradientContext *c) {
  return build_apply(c->graph, OP_cross_entropy_rows_backward, c->node.attributes, 4,
                     (ValueId[]){X(0), X(1), Y_(1), G});
}

static ValueId gradient_embed(GradientContext *c) {
  Attribute size = attribute_int(input_type(c, 0)->dims[0]);
  return build_apply(c->graph, OP_embed_backward, &size, 2, (ValueId[]){G, X(1)});
}

/* ---- the column: one function per row ---- */

#define D(input, value) \
  case input: \
    return value;
#define D_ALL(value) \
  default: \
    return value;
#define ROW(name, ...) \
  static int gradient_row_##name(GradientContext *c, int i) { \
    (void)c; \
    switch (i) { \
      case -1: \
        break; \
        __VA_ARGS__ \
    } \
    return NO_GRADIENT; \
  }
#define POINTWISE(name, signature, operands, properties, expression, ...) ROW(name, __VA_ARGS__)
#define REDUCTION(name, operands, initial, combine, finish, ...) ROW(name, __VA_ARGS__)
#define VIEW(name, signature, infer, layout, ...) ROW(name, __VA_ARGS__)
#define ASSEMBLY(name, signature, properties, infer, place, ...) ROW(name, __VA_ARGS__)
#define CONTRACTION(name, signature, properties, infer, ...) ROW(name, __VA_ARGS__)
#define KERNEL(name, signature, outputs, properties, infer, arguments, flops, inplace, ...) ROW(name, __VA_ARGS__)
#include "ir/ops.def"

GradientFunction gradient_of(Op op) {
  static const GradientFunction functions[OP_COUNT] = {
#define ENTRY(name) [OP_##name] = gradient_row_##name,
#define POINTWISE(name, ...) ENTRY(name)
#define REDUCTION(name, ...) ENTRY(name)
#define VIEW(name, ...) ENTRY(name)
#define ASSEMBLY(name, ...) ENTRY(name)
#define CONTRACTION(name, ...) ENTRY(name)
#define KERNEL(name, ...) ENTRY(name)
#include "ir/ops.def"
  };
  return functions[op];
}

/* ---- the calls of the grad pass ---- */

static void report_missing(const Graph *graph, const Node *node, int index, const char *what) {
  diag_error(node->location, "'%s' has no gradient for its %s %d; use stop(x) where none is wanted",
             op_info(node->op)->name, what, index);
  (void)graph;
}

ValueId build_gradient(Graph *graph, NodeId id, int input, const ValueId *gradients) {
  GradientContext context = {.graph = graph, .node = *graph_node(graph, id), .gradients = gradients};
  const Node *node = &context.node;
  ValueId x = node->inputs[input];
  Type type = *value_type(graph, x);
  if (op_has(node->op, OP_ZERO_GRADIENT) || dtype_class(type.dtype) != CLASS_REAL) return NO_VALUE;
  for (int k = 1; k < node->output_count; k++)
    if (gradients[k] != NO_VALUE) {
      report_missing(graph, node, k, "output");
      return NO_VALUE;
    }
  if (gradients[0] == NO_VALUE) return NO_VALUE;
  ValueId gradient = op_info(node->op)->gradient(&context, input);
  if (gradient == NO_GRADIENT) {
    report_missing(graph, node, input, "input");
    return NO_VALUE;
  }
  gradient = build_sum_to(graph, gradient, &type);
  return gradient == NO_VALUE ? NO_VALUE : build_expand(graph, gradient, type.rank, type.dims);
}

bool build_is_placement(const Graph *graph, ValueId value) {
  NodeId producer = graph_value(graph, value)->producer;
  return producer != NO_NODE && graph_node(graph, producer)->op == OP_place;
}

typedef struct Piece {
  int64_t start, size;
  ValueId value;
} Piece;

/* Puts slices that tile one axis exactly together; NO_VALUE when they do not. */
static ValueId tile_placements(Graph *graph, int count, const ValueId *values) {
  Type whole = *value_type(graph, values[0]);
  const Node *first = graph_node(graph, graph_value(graph, values[0])->producer);
  int64_t axis = node_attribute(first, "axis")->integer, next = 0;
  Piece *pieces = NEW_ARRAY(graph->module->arena, Piece, count);
  for (int i = 0; i < count; i++) {
    const Node *node = graph_node(graph, graph_value(graph, values[i])->producer);
    int64_t size = value_type(graph, node->inputs[0])->dims[axis];
    if (node_attribute(node, "axis")->integer != axis || (node_attribute(node, "step")->integer != 1 && size > 1))
      return NO_VALUE;
    Piece piece = {node_attribute(node, "start")->integer, size, node->inputs[0]};
    int at = i;
    for (; at > 0 && pieces[at - 1].start > piece.start; at--) pieces[at] = pieces[at - 1];
    pieces[at] = piece;
  }
  ValueId *parts = NEW_ARRAY(graph->module->arena, ValueId, count);
  for (int i = 0; i < count; i++) {
    if (pieces[i].start != next) return NO_VALUE;
    next += pieces[i].size;
    parts[i] = pieces[i].value;
  }
  return next == whole.dims[axis] ? build_concat(graph, count, parts, (int)axis) : NO_VALUE;
}

ValueId build_accumulated(Graph *graph, int count, const ValueId *contributions) {
  bool placements = count > 1;
  for (int i = 0; i < count; i++) placements = placements && build_is_placement(graph, contributions[i]);
  ValueId total = placements ? tile_placements(graph, count, contributions) : NO_VALUE;
  if (total != NO_VALUE) return total;
  total = contributions[0];
  for (int i = 1; i < count; i++) total = BUILD(graph, add, total, contributions[i]);
  return total;
}
