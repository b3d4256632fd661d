/* passes/facts.c - what several passes ask of a graph and do to it. */
#include "passes/facts.h"

bool node_has(const Node *node, OpProperty property) {
  if (!node->body) return op_has(node->op, property);
  for (int i = 0; i < node->body->instruction_count; i++)
    if (op_has(node->body->instructions[i].op, property)) return true;
  return op_kind(node->op) == KIND_REDUCTION && op_has(node->op, property);
}

bool node_has_effect(const Node *node) { return node->write_count > 0 || node_has(node, OP_EFFECT); }

int node_program(const Graph *graph, const Node *node) {
  return graph->module->training.accumulate > 1 && node->phase == PHASE_UPDATE;
}

bool value_is_uniform(const Graph *graph, ValueId value) {
  NodeId producer = graph_value(graph, value)->producer;
  if (producer == NO_NODE) return false;
  const Node *node = graph_node(graph, producer);
  return !node->body && op_has(node->op, OP_UNIFORM);
}

static void visit_root(void (*visit)(void *data, ValueId *value), void *data, ValueId *value) {
  if (*value != NO_VALUE) visit(data, value);
}

void graph_visit_roots(Graph *graph, void (*visit)(void *data, ValueId *value), void *data) {
  visit_root(visit, data, &graph->loss.value);
  visit_root(visit, data, &graph->loss.denominator);
  for (int64_t i = 0; i < graph->outputs.count; i++) {
    visit_root(visit, data, &graph->outputs.items[i].value);
    visit_root(visit, data, &graph->outputs.items[i].denominator);
  }
  for (int64_t i = 0; i < graph->gradient_requests.count; i++)
    visit_root(visit, data, &graph->gradient_requests.items[i].value);
  for (int64_t i = 0; i < graph->gradients.count; i++) {
    visit_root(visit, data, &graph->gradients.items[i].of);
    visit_root(visit, data, &graph->gradients.items[i].gradient);
    visit_root(visit, data, &graph->gradients.items[i].divisor);
  }
}

bool *graph_named_values(MemoryArena *arena, const Graph *graph) {
  bool *named = NEW_ARRAY(arena, bool, graph->values.count + 1);
  named++; /* NO_VALUE is index -1 */
  named[graph->loss.value] = named[graph->loss.denominator] = true;
  for (int64_t i = 0; i < graph->outputs.count; i++)
    named[graph->outputs.items[i].value] = named[graph->outputs.items[i].denominator] = true;
  for (int64_t i = 0; i < graph->gradients.count; i++)
    named[graph->gradients.items[i].gradient] = named[graph->gradients.items[i].divisor] = true;
  return named;
}

static void mark_needed(void *data, ValueId *value) { ((bool *)data)[*value] = true; }

void graph_remove_dead(Graph *graph, MemoryArena *scratch) {
  graph_index(graph);
  bool *needed = NEW_ARRAY(scratch, bool, graph->values.count), *keep = NEW_ARRAY(scratch, bool, graph->nodes.count);
  graph_visit_roots(graph, mark_needed, needed);
  for (int64_t id = graph->nodes.count - 1; id >= 0; id--) {
    const Node *node = &graph->nodes.items[id];
    keep[id] = node_has_effect(node);
    for (int i = 0; i < node->output_count; i++) keep[id] = keep[id] || needed[node->outputs[i]];
    for (int i = 0; keep[id] && i < node->input_count; i++)
      if (node->inputs[i] != NO_VALUE) needed[node->inputs[i]] = true;
  }
  int64_t count = 0;
  for (int64_t id = 0; id < graph->nodes.count; id++)
    if (keep[id]) graph->nodes.items[count++] = graph->nodes.items[id];
  graph->nodes.count = count;
  graph_index(graph);
}

void graph_build_beside(Graph *graph, const Node *node) {
  graph->phase = node->phase;
  graph->module_path = node->module;
  graph->location = node->location;
  graph->recompute_block = node->output_count ? graph_value(graph, node->outputs[0])->recompute_block : 0;
}

/* ---- layouts ---- */

ViewLayout layout_dense(const Type *type) {
  ViewLayout layout = {.rank = type->rank};
  int64_t stride = 1;
  for (int i = type->rank - 1; i >= 0; i--) {
    layout.dims[i] = type->dims[i];
    layout.strides[i] = stride;
    stride *= type->dims[i];
  }
  return layout;
}

bool layout_is_dense(const ViewLayout *layout) {
  int64_t stride = 1;
  for (int i = layout->rank - 1; i >= 0; i--) {
    if (layout->dims[i] != 1 && layout->strides[i] != stride) return false;
    stride *= layout->dims[i];
  }
  return true;
}

bool layout_equal(const ViewLayout *a, const ViewLayout *b) {
  if (a->rank != b->rank || a->offset != b->offset) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i] || (a->dims[i] != 1 && a->strides[i] != b->strides[i])) return false;
  return true;
}

ViewLayout assembly_slice_view(const Graph *graph, const Node *node, int input, const ViewLayout *output) {
  Placement placement = {0};
  op_info(node->op)->place(graph, node, input, &placement);
  ViewLayout slice = *output;
  slice.offset += placement.start * slice.strides[placement.axis];
  slice.strides[placement.axis] *= placement.step;
  slice.dims[placement.axis] = value_type(graph, node->inputs[input])->dims[placement.axis];
  return slice;
}
