/* passes/old_values.c - copies of persistents for those who ask for the old value when it may be overwritten already.
 *
 * A persistent value means what it was before the step. Readers normally run before the node that overwrites it; a
 * copy, made right before that node, serves the others:
 *   - the graph names the value (loss, output, gradient), which is looked at when the step has ended,
 *   - a node behind an update reads it: `w - lr u` and `u - lr w`, the gradients of sum(w u),
 *   - updates hand values round in a circle, `update a = b` and `update b = a`, or `update a = transpose(a)`. */
#include "ir/build.h"
#include "passes/facts.h"
#include "passes/passes.h"

typedef struct Holder {
  Graph *graph;
  MemoryArena *scratch;
  ValueId *bases;     /* per value: the value that it is a view of, or itself */
  NodeId *writers[2]; /* per program and value: the node that overwrites it, or NO_NODE */
  const Node *nodes;  /* of the graph as it was */
  NodeId *views;      /* per value: the view that makes it */
  ValueIds *late;     /* per base: its views, and itself, that are named or read late */
  bool *late_reads;   /* per node: reads one of them late */
  ValueId *stand_ins; /* per value: the copy, or the view of it, that serves late readers; NO_VALUE: none yet */
} Holder;

static NodeId writer_of(const Holder *h, int program, ValueId value) { return h->writers[program][h->bases[value]]; }

static bool is_persistent(const Holder *h, ValueId value) {
  return graph_value(h->graph, h->bases[value])->kind == VALUE_PERSISTENT;
}

static void find_writers(Holder *h) {
  const Graph *graph = h->graph;
  for (ValueId v = 0; v < graph->values.count; v++) {
    h->bases[v] = v;
    h->writers[0][v] = h->writers[1][v] = NO_NODE;
    h->stand_ins[v] = NO_VALUE;
  }
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    if (node_is_view(node)) h->bases[node->outputs[0]] = h->bases[node->inputs[0]], h->views[node->outputs[0]] = id;
    for (int i = 0; i < node->write_count; i++) h->writers[node_program(graph, node)][node->writes[i]] = id;
  }
}

/* The persistent that a node which only stores takes its new value from as it is, or NO_VALUE. */
static ValueId stored_persistent(const Holder *h, NodeId writer) {
  const Node *node = graph_node(h->graph, writer);
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != node->writes[0] && is_persistent(h, node->inputs[i])) return h->bases[node->inputs[i]];
  return NO_VALUE;
}

/* Does storing after storing lead from the node back to it? */
static bool stores_in_circle(const Holder *h, NodeId first) {
  int program = node_program(h->graph, graph_node(h->graph, first));
  NodeId writer = first;
  for (int64_t length = 0; length <= h->graph->module->persistents.count; length++) {
    ValueId from = stored_persistent(h, writer);
    writer = from == NO_VALUE ? NO_NODE : h->writers[program][from];
    if (writer == NO_NODE || writer == first) return writer == first;
  }
  return false;
}

static bool reads_late(const Holder *h, NodeId id, ValueId value) {
  const Node *node = graph_node(h->graph, id);
  NodeId writer = writer_of(h, node_program(h->graph, node), value);
  if (writer == id) return value != h->bases[value];
  if (writer == NO_NODE || writer > id) return false;
  return graph_node(h->graph, writer)->phase == PHASE_UPDATE || (node->write_count && stores_in_circle(h, id));
}

static bool is_accumulator(const Holder *h, ValueId value) {
  const Graph *graph = h->graph;
  return graph->module->persistents.items[graph_value(graph, value)->index].role == ROLE_ACCUMULATOR;
}

static void add_late(Holder *h, ValueId value) {
  ValueIds *late = &h->late[h->bases[value]];
  for (int64_t i = 0; i < late->count; i++)
    if (late->items[i] == value) return;
  array_push(h->scratch, late, value);
}

/* Are there any? Accumulators are looked at for what the step has put there. */
static bool find_late(Holder *h) {
  const Graph *graph = h->graph;
  const bool *named = graph_named_values(h->scratch, graph);
  bool any = false;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    for (int i = 0; i < node->input_count && !node_is_view(node); i++) {
      if (node->inputs[i] == NO_VALUE || !is_persistent(h, node->inputs[i]) || !reads_late(h, id, node->inputs[i]))
        continue;
      add_late(h, node->inputs[i]);
      h->late_reads[id] = any = true;
    }
  }
  for (ValueId v = 0; v < graph->values.count; v++) {
    if (!named[v] || !is_persistent(h, v) || writer_of(h, 0, v) == NO_NODE || is_accumulator(h, h->bases[v])) continue;
    add_late(h, v);
    any = true;
  }
  return any;
}

/* The value made of a copy of its base; the copy and the views are appended where they are missing. */
static ValueId hold(Holder *h, ValueId value) {
  if (h->stand_ins[value] != NO_VALUE) return h->stand_ins[value];
  if (h->bases[value] == value) return h->stand_ins[value] = build_copy(h->graph, value);
  const Value old = *graph_value(h->graph, value);
  Node view = h->nodes[h->views[value]];
  ValueId *operands = NEW_ARRAY(h->graph->module->arena, ValueId, 2);
  operands[0] = hold(h, view.inputs[0]);
  operands[1] = graph_new_value(h->graph, old.type, old.name, old.location);
  view.inputs = &operands[0];
  view.outputs = &operands[1];
  view.phase = h->graph->phase;
  graph_append(h->graph, view);
  return h->stand_ins[value] = operands[1];
}

static void hold_late(Holder *h, const Node *writer) {
  for (int i = 0; i < writer->write_count; i++) {
    const ValueIds *late = &h->late[writer->writes[i]];
    graph_build_beside(h->graph, writer);
    for (int64_t k = 0; k < late->count; k++) hold(h, late->items[k]);
  }
}

static Node with_stand_ins(Holder *h, NodeId id) {
  Node node = h->nodes[id];
  ValueId *inputs = NEW_ARRAY(h->graph->module->arena, ValueId, node.input_count + 1);
  for (int i = 0; i < node.input_count; i++) {
    bool late = node.inputs[i] != NO_VALUE && !node_is_view(&node) && h->late_reads[id] &&
                h->stand_ins[node.inputs[i]] != NO_VALUE && (!node.write_count || node.inputs[i] != node.writes[0]);
    inputs[i] = late ? h->stand_ins[node.inputs[i]] : node.inputs[i];
  }
  node.inputs = inputs;
  return node;
}

static void rename_root(const Holder *h, ValueId *value) {
  if (*value != NO_VALUE && h->stand_ins[*value] != NO_VALUE) *value = h->stand_ins[*value];
}

static void rename_roots(const Holder *h) {
  Graph *graph = h->graph;
  rename_root(h, &graph->loss.value);
  rename_root(h, &graph->loss.denominator);
  for (int64_t i = 0; i < graph->outputs.count; i++) {
    rename_root(h, &graph->outputs.items[i].value);
    rename_root(h, &graph->outputs.items[i].denominator);
  }
  for (int64_t i = 0; i < graph->gradients.count; i++) rename_root(h, &graph->gradients.items[i].gradient);
}

void hold_old_values(Graph *graph, MemoryArena *scratch) {
  Graph context = *graph;
  int64_t values = graph->values.count, nodes = graph->nodes.count;
  Holder h = {.graph = graph, .scratch = scratch, .nodes = graph->nodes.items};
  h.bases = NEW_ARRAY(scratch, ValueId, values);
  h.writers[0] = NEW_ARRAY(scratch, NodeId, values);
  h.writers[1] = NEW_ARRAY(scratch, NodeId, values);
  h.views = NEW_ARRAY(scratch, NodeId, values);
  h.stand_ins = NEW_ARRAY(scratch, ValueId, values);
  h.late = NEW_ARRAY(scratch, ValueIds, values);
  h.late_reads = NEW_ARRAY(scratch, bool, nodes);
  find_writers(&h);
  if (!find_late(&h)) return;
  graph->nodes.items = NULL;
  graph->nodes.count = graph->nodes.capacity = 0;
  for (NodeId id = 0; id < nodes; id++) {
    hold_late(&h, &h.nodes[id]);
    graph_append(graph, with_stand_ins(&h, id));
  }
  rename_roots(&h);
  graph->phase = context.phase;
  graph->module_path = context.module_path;
  graph->location = context.location;
  graph->recompute_block = context.recompute_block;
  graph_index(graph);
}
