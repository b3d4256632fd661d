/* passes/simplify.c - dead nodes, equal nodes, constants, operands and views that change nothing.
 *
 * One walk in topological order builds the list of nodes anew: each node gets the inputs that replace its old ones and
 * is then dropped in favour of an existing value, rewritten, or appended. No rule changes a bit of any result, but the
 * turned contraction, whose library call may round otherwise. */
#include <math.h>

#include "ir/build.h"
#include "passes/facts.h"
#include "passes/fold.h"
#include "passes/merge.h"
#include "passes/passes.h"

typedef struct Simplifier {
  Graph *graph;
  MemoryArena *scratch;
  ARRAY(ValueId) replacements; /* per value id + 1 of another value, 0: itself */
  bool *asked;                 /* per original value: its own gradient was asked for, so it stays and stays alone */
  int *uses;                   /* per original value: reading inputs, and 1 where the graph names it */
  int64_t original_count;
  bool differentiated;
  bool turning; /* within turned_contraction(): the operands' own contractions stay as they are */
  NodeTable table;
} Simplifier;

static ValueId resolve(const Simplifier *s, ValueId value) {
  if (value == NO_VALUE || value >= s->replacements.count || !s->replacements.items[value]) return value;
  return s->replacements.items[value] - 1;
}

/* The new value takes the old one's name where it has none. */
static void replace(Simplifier *s, ValueId value, ValueId by) {
  while (s->replacements.count <= value) array_push(s->scratch, &s->replacements, 0);
  s->replacements.items[value] = by + 1;
  Value *target = graph_value(s->graph, by);
  if (target->kind == VALUE_RESULT && !target->name) target->name = graph_value(s->graph, value)->name;
}

static bool is_asked(const Simplifier *s, ValueId value) { return value < s->original_count && s->asked[value]; }

/* May other values stand for the node's results? */
static bool replaceable(const Simplifier *s, const Node *node) {
  for (int i = 0; i < node->output_count; i++)
    if (graph_value(s->graph, node->outputs[i])->constraint != CONSTRAINT_NONE || is_asked(s, node->outputs[i]))
      return false;
  return true;
}

/* ---- pointwise nodes that hand an operand on ---- */

static bool is_number(const Graph *graph, ValueId value, double number) {
  if (!value_is_uniform(graph, value)) return false;
  Constant constant = constant_of(graph, value);
  if (dtype_class(value_type(graph, value)->dtype) != CLASS_REAL) return constant.integer == (int64_t)number;
  return constant.number == number && signbit(constant.number) == signbit(number);
}

static ValueId passed_operand(const Simplifier *s, const Node *node) {
  const Graph *graph = s->graph;
  const Type *type = value_type(graph, node->outputs[0]);
  const OpInfo *info = op_info(node->op);
  if (node->input_count == 1) {
    /* `stop` is the identity too, once gradients are taken */
    bool same = string_equal(info->expression, "x0") && type_equal(type, value_type(graph, node->inputs[0]));
    return same && (s->differentiated || !op_has(node->op, OP_ZERO_GRADIENT)) ? node->inputs[0] : NO_VALUE;
  }
  for (int i = 0; i < node->input_count && node->input_count == 2; i++) {
    double neutral;
    ValueId other = node->inputs[1 - i];
    if (op_neutral(node->op, i, &neutral) && is_number(graph, node->inputs[i], neutral) &&
        type_equal(type, value_type(graph, other)))
      return other;
  }
  return NO_VALUE;
}

/* ---- views ---- */

/* The view of a dense value of `type`; false when it needs a copy. */
static bool view_of_dense(const Graph *graph, const Node *node, const Type *type, ViewLayout *layout) {
  ViewLayout dense = layout_dense(type);
  return op_info(node->op)->layout(graph, node, &dense, layout);
}

/* The value that the view shows unchanged. A view of a view becomes one view where the operator has the same effect on
 * the first one's input. */
static ValueId viewed_unchanged(const Simplifier *s, Node *node) {
  const Graph *graph = s->graph;
  ViewLayout once, twice, direct, dense = layout_dense(value_type(graph, node->inputs[0]));
  if (view_of_dense(graph, node, value_type(graph, node->inputs[0]), &once) && layout_equal(&once, &dense))
    return node->inputs[0];
  NodeId first_id = graph_value(graph, node->inputs[0])->producer;
  const Node *first = first_id == NO_NODE ? NULL : graph_node(graph, first_id);
  if (!first || !node_is_view(first)) return NO_VALUE;
  const Type *base = value_type(graph, first->inputs[0]);
  dense = layout_dense(base);
  if (!view_of_dense(graph, first, base, &once) || !op_info(node->op)->layout(graph, node, &once, &twice))
    return NO_VALUE;
  if (layout_equal(&twice, &dense)) return first->inputs[0];
  if (first->op == node->op && view_of_dense(graph, node, base, &direct) && layout_equal(&direct, &twice))
    node->inputs[0] = first->inputs[0];
  return NO_VALUE;
}

static ValueId simplified(Simplifier *s, Node node);

/* Takes the node that was just built back off the list and simplifies it like any other. */
static ValueId rebuilt(Simplifier *s, ValueId value) {
  NodeId last = (NodeId)s->graph->nodes.count - 1;
  if (graph_value(s->graph, value)->producer != last) return value;
  s->graph->nodes.count--;
  return simplified(s, s->graph->nodes.items[last]);
}

static bool swaps_last_axes(const Graph *graph, const Node *view) {
  const Type *type = value_type(graph, view->inputs[0]);
  if (type->rank < 2) return false;
  ViewLayout layout, wanted = layout_dense(type);
  int row = type->rank - 2, column = type->rank - 1;
  wanted.dims[row] = type->dims[column], wanted.dims[column] = type->dims[row];
  int64_t stride = wanted.strides[row];
  wanted.strides[row] = wanted.strides[column], wanted.strides[column] = stride;
  return view_of_dense(graph, view, type, &layout) && layout_equal(&layout, &wanted);
}

/* (a b)ᵀ = bᵀ aᵀ: gradients of transposed weights come out in the weights' own layout. */
static ValueId turned_contraction(Simplifier *s, const Node *view) {
  Graph *graph = s->graph;
  ValueId product = view->inputs[0];
  NodeId producer = graph_value(graph, product)->producer;
  if (producer == NO_NODE || op_kind(graph_node(graph, producer)->op) != KIND_CONTRACTION) return NO_VALUE;
  if (s->turning || product >= s->original_count || s->uses[product] != 1 ||
      !replaceable(s, graph_node(graph, producer)) || !swaps_last_axes(graph, view))
    return NO_VALUE;
  Node contraction = *graph_node(graph, producer);
  s->turning = true;
  ValueId left = rebuilt(s, build_swap(graph, contraction.inputs[1], -1, -2));
  ValueId right = rebuilt(s, build_swap(graph, contraction.inputs[0], -1, -2));
  s->turning = false;
  return rebuilt(s, graph_apply(graph, contraction.op, 2, (ValueId[]){left, right}, contraction.attributes, NULL));
}

/* ---- the walk ---- */

static ValueId existing_value(Simplifier *s, Node *node) {
  switch (op_kind(node->op)) {
    case KIND_POINTWISE:
      return passed_operand(s, node);
    case KIND_VIEW:
      return viewed_unchanged(s, node);
    default:
      return NO_VALUE;
  }
}

/* Appends a node and makes it findable. */
static void append(Simplifier *s, Node node, bool shared) {
  NodeId id = graph_append(s->graph, node);
  if (shared) node_table_insert(&s->table, id);
}

/* Replaces the node's results by those of an equal one. */
static bool merged(Simplifier *s, const Node *node) {
  NodeId found = node_table_find(&s->table, node);
  if (found == NO_NODE) return false;
  for (int i = 0; i < node->output_count; i++) replace(s, node->outputs[i], graph_node(s->graph, found)->outputs[i]);
  return true;
}

/* Handles a node with current inputs; returns what stands for its first output. */
static ValueId simplified(Simplifier *s, Node node) {
  if (node.body || node_has_effect(&node) || !replaceable(s, &node)) {
    append(s, node, false);
    return node.output_count ? node.outputs[0] : NO_VALUE;
  }
  graph_build_beside(s->graph, &node);
  Constant constant;
  ValueId result = existing_value(s, &node);
  if (result == NO_VALUE && fold_constant(s->graph, &node, s->scratch, &constant))
    result = rebuilt(s, build_folded(s->graph, node.outputs[0], constant));
  if (result == NO_VALUE && node_is_view(&node)) result = turned_contraction(s, &node);
  if (result != NO_VALUE) {
    replace(s, node.outputs[0], result);
  } else if (!merged(s, &node)) {
    append(s, node, true);
  }
  return resolve(s, node.outputs[0]);
}

static void mark_asked(Simplifier *s) {
  const Graph *graph = s->graph;
  s->original_count = graph->values.count;
  s->asked = NEW_ARRAY(s->scratch, bool, graph->values.count);
  for (int64_t i = 0; i < graph->gradient_requests.count; i++) s->asked[graph->gradient_requests.items[i].value] = true;
  s->uses = graph_count_uses(s->scratch, graph);
  bool *named = graph_named_values(s->scratch, graph);
  for (int64_t v = 0; v < graph->values.count; v++) s->uses[v] += named[v];
}

static void resolve_root(void *data, ValueId *value) { *value = resolve(data, *value); }

void simplify_graph(Graph *graph, MemoryArena *scratch) {
  Graph context = *graph;
  Simplifier s = {.graph = graph, .scratch = scratch, .table = {.arena = scratch, .graph = graph}};
  s.differentiated = graph->evaluation || graph->gradients.count > 0;
  mark_asked(&s);
  graph->nodes.items = NULL;
  graph->nodes.count = graph->nodes.capacity = 0;
  for (int64_t id = 0; id < context.nodes.count; id++) {
    Node node = context.nodes.items[id];
    ASSERT(node.original == NO_NODE); /* clones must never be merged */
    for (int i = 0; i < node.input_count; i++) node.inputs[i] = resolve(&s, node.inputs[i]);
    simplified(&s, node);
  }
  graph_visit_roots(graph, resolve_root, &s);
  graph->phase = context.phase;
  graph->module_path = context.module_path;
  graph->location = context.location;
  graph->recompute_block = context.recompute_block;
  graph_remove_dead(graph, scratch);
}
