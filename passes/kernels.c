/* passes/kernels.c - makes every node executable as it stands.
 *
 * Follows layouts forward through views and copies a value into row-major order where
 *   - a view cannot be expressed as strides over its input (reshape of a permuted value),
 *   - a contraction would get a matrix none of whose two axes has unit stride,
 *   - a hand-made kernel would get elements that do not lie densely in row-major order,
 *   - the graph names a value (output, gradient) whose elements are not.
 * A copy serves all later readers of the same phase. */
#include "ir/build.h"
#include "passes/facts.h"
#include "passes/passes.h"

typedef struct Legalizer {
  Graph *graph;
  MemoryArena *scratch;
  ARRAY(ViewLayout) layouts;         /* per value */
  ValueId *copies[PHASE_UPDATE + 1]; /* per original value and phase: its copy, or NO_VALUE */
  ValueId *renamed;                  /* per original value: what stands for it from where it is made, or itself */
} Legalizer;

static ViewLayout *layout_at(Legalizer *l, ValueId value) {
  while (l->layouts.count <= value) {
    ViewLayout dense = layout_dense(value_type(l->graph, (ValueId)l->layouts.count));
    array_push(l->scratch, &l->layouts, dense);
  }
  return &l->layouts.items[value];
}

/* Does stride 1 along `inner` make the matrix one that a library can be given? An axis of size 1 never moves. */
static bool has_unit_axis(const ViewLayout *layout, int inner, int outer) {
  bool unit = layout->strides[inner] == 1 || layout->dims[inner] == 1;
  bool apart = layout->strides[outer] >= layout->dims[inner] || layout->dims[outer] == 1;
  return unit && apart;
}

static bool is_matrix(const ViewLayout *layout) {
  int row = layout->rank - 2, column = layout->rank - 1;
  return has_unit_axis(layout, column, row) || has_unit_axis(layout, row, column);
}

/* The value in row-major order, for readers of the phase of `reader`, before which the copy is made. */
static ValueId copied(Legalizer *l, ValueId value, const Node *reader) {
  ValueId *copy = &l->copies[reader->phase][value];
  if (*copy != NO_VALUE) return *copy;
  graph_build_beside(l->graph, reader);
  return *copy = build_copy(l->graph, value);
}

static bool suits(Legalizer *l, OpKind kind, ValueId value) {
  switch (kind) {
    case KIND_CONTRACTION:
      return is_matrix(layout_at(l, value));
    case KIND_KERNEL:
      return layout_is_dense(layout_at(l, value));
    default:
      return true;
  }
}

static void append_view(Legalizer *l, Node node) {
  const OpInfo *info = op_info(node.op);
  ViewLayout layout;
  if (!info->layout(l->graph, &node, layout_at(l, node.inputs[0]), &layout)) {
    node.inputs[0] = copied(l, node.inputs[0], &node);
    ASSERT(info->layout(l->graph, &node, layout_at(l, node.inputs[0]), &layout));
  }
  graph_append(l->graph, node);
  *layout_at(l, node.outputs[0]) = layout;
}

static void append_legal(Legalizer *l, Node node) {
  if (node_is_view(&node)) {
    append_view(l, node);
    return;
  }
  for (int i = 0; i < node.input_count; i++)
    if (node.inputs[i] != NO_VALUE && !suits(l, op_kind(node.op), node.inputs[i]))
      node.inputs[i] = copied(l, node.inputs[i], &node);
  graph_append(l->graph, node);
}

static void legalize_node(Legalizer *l, Node node, const bool *named) {
  for (int i = 0; i < node.input_count; i++)
    if (node.inputs[i] != NO_VALUE) node.inputs[i] = l->renamed[node.inputs[i]];
  append_legal(l, node);
  for (int i = 0; i < node.output_count; i++)
    if (named[node.outputs[i]] && !layout_is_dense(layout_at(l, node.outputs[i])))
      l->renamed[node.outputs[i]] = copied(l, node.outputs[i], &node);
}

static Legalizer start_legalizer(Graph *graph, MemoryArena *scratch) {
  Legalizer l = {.graph = graph, .scratch = scratch};
  l.renamed = NEW_ARRAY(scratch, ValueId, graph->values.count);
  for (int phase = 0; phase <= PHASE_UPDATE; phase++)
    l.copies[phase] = NEW_ARRAY(scratch, ValueId, graph->values.count);
  for (ValueId v = 0; v < graph->values.count; v++) {
    l.renamed[v] = v;
    for (int phase = 0; phase <= PHASE_UPDATE; phase++) l.copies[phase][v] = NO_VALUE;
  }
  return l;
}

static void rename_root(void *data, ValueId *value) { *value = ((Legalizer *)data)->renamed[*value]; }

void choose_kernels(Graph *graph, MemoryArena *scratch) {
  Graph context = *graph;
  Legalizer l = start_legalizer(graph, scratch);
  bool *named = graph_named_values(scratch, graph);
  graph->nodes.items = NULL;
  graph->nodes.count = graph->nodes.capacity = 0;
  for (int64_t id = 0; id < context.nodes.count; id++) legalize_node(&l, context.nodes.items[id], named);
  graph_visit_roots(graph, rename_root, &l);
  graph->phase = context.phase;
  graph->module_path = context.module_path;
  graph->location = context.location;
  graph->recompute_block = context.recompute_block;
  graph_index(graph);
}
