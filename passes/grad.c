/* passes/grad.c - reverse-mode differentiation of the loss, accumulation over micro-batches, clipping, updates.
 *
 * Requires: a verified training graph with a loss. Breaks: nothing. The backward pass is a list of nodes behind the
 * forward ones; every contribution to a gradient is added as soon as it is known, in reverse program order of the uses,
 * which is one fixed order. */
#include "ir/build.h"
#include "passes/passes.h"

/* The gradient of one value while it is being summed. */
typedef struct Adjoint {
  ValueId total;             /* sum of what has arrived, or NO_VALUE */
  ARRAY(ValueId) placements; /* gradients of slices: summed when all have arrived, since they may tile the value */
} Adjoint;

typedef struct Differentiation {
  Graph *graph;
  MemoryArena *scratch;
  bool *needed;     /* per value of the forward graph: the loss depends on it and something wants its gradient */
  Adjoint *adjoint; /* per value of the forward graph */
} Differentiation;

/* ---- which values need a gradient ---- */

/* A value needs one when it is a trainable parameter or a requested value, or when it is made from one that does. */
static void mark_needed(Differentiation *d) {
  const Graph *graph = d->graph;
  d->needed = NEW_ARRAY(d->scratch, bool, graph->values.count);
  for (int64_t i = 0; i < graph->values.count; i++) {
    const Value *value = &graph->values.items[i];
    if (value->kind == VALUE_PERSISTENT) d->needed[i] = graph->module->persistents.items[value->index].trainable;
  }
  for (int64_t i = 0; i < graph->gradient_requests.count; i++)
    d->needed[graph->gradient_requests.items[i].value] = true;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    if (op_has(node->op, OP_ZERO_GRADIENT)) continue;
    bool any = false;
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] != NO_VALUE) any = any || d->needed[node->inputs[i]];
    for (int i = 0; i < node->output_count && any; i++)
      if (dtype_class(value_type(graph, node->outputs[i])->dtype) == CLASS_REAL) d->needed[node->outputs[i]] = true;
  }
}

/* ---- the backward pass ---- */

static void contribute(Differentiation *d, ValueId value, ValueId gradient) {
  if (gradient == NO_VALUE) return;
  Adjoint *adjoint = &d->adjoint[value];
  if (build_is_placement(d->graph, gradient))
    array_push(d->scratch, &adjoint->placements, gradient);
  else
    adjoint->total = adjoint->total == NO_VALUE ? gradient : build_add(d->graph, adjoint->total, gradient);
}

/* The whole gradient of a value, once every use was seen. */
static ValueId settle(Differentiation *d, ValueId value) {
  Adjoint *adjoint = &d->adjoint[value];
  if (adjoint->placements.count) {
    ValueId placed = build_accumulated(d->graph, (int)adjoint->placements.count, adjoint->placements.items);
    adjoint->placements.count = 0;
    adjoint->total = adjoint->total == NO_VALUE ? placed : build_add(d->graph, adjoint->total, placed);
  }
  return adjoint->total;
}

/* A gradient is called after what it is of, for the reports: grad.logits, and in module fc1 grad.weight. */
static void name_gradient(Graph *graph, ValueId of, ValueId gradient) {
  const char *name = graph_value(graph, of)->name;
  Value *value = gradient == NO_VALUE ? NULL : graph_value(graph, gradient);
  if (!name || !value || value->name || value->kind != VALUE_RESULT) return;
  const char *module = graph_node(graph, value->producer)->module;
  size_t length = strlen(module);
  if (length && string_starts(name, module) && name[length] == '.') name += length + 1;
  value->name = memory_format(graph->module->arena, "grad.%s", name);
}

static void set_place(Graph *graph, const Node *node) {
  graph->location = node->location;
  graph->module_path = node->module;
}

static void differentiate_node(Differentiation *d, NodeId id) {
  Graph *graph = d->graph;
  Node node = *graph_node(graph, id); /* a copy: building moves the nodes */
  ValueId gradients[MAX_OP_OUTPUTS];
  bool any = false;
  set_place(graph, &node);
  for (int i = 0; i < node.output_count; i++) {
    gradients[i] = settle(d, node.outputs[i]);
    name_gradient(graph, node.outputs[i], gradients[i]);
    any = any || gradients[i] != NO_VALUE;
  }
  if (!any) return;
  for (int i = 0; i < node.input_count; i++)
    if (node.inputs[i] != NO_VALUE && d->needed[node.inputs[i]])
      contribute(d, node.inputs[i], build_gradient(graph, id, i, gradients));
}

/* dL/dL: 1 over the number of micro-batches, or over the denominator of `loss a per b` when there is only one. */
static ValueId seed_gradient(Graph *graph) {
  DataType dtype = value_type(graph, graph->loss.value)->dtype;
  int64_t accumulate = graph->module->training.accumulate;
  if (graph->loss.denominator == NO_VALUE) return build_constant(graph, dtype, 1.0 / (double)accumulate);
  return accumulate > 1 ? build_constant(graph, dtype, 1) : build_reciprocal(graph, graph->loss.denominator);
}

static void record_gradient(Graph *graph, const char *name, ValueId of, ValueId gradient) {
  GraphGradient record = {.name = name, .of = of, .gradient = gradient, .divisor = NO_VALUE};
  array_push(graph->module->arena, &graph->gradients, record);
}

/* Gradients of trainable parameters in module order, then of what `grad` asks for. */
static void record_gradients(Differentiation *d) {
  Graph *graph = d->graph;
  int64_t parameters = graph->module->persistents.count;
  for (int64_t i = 0; i < parameters; i++) {
    if (!graph->module->persistents.items[i].trainable) continue;
    ValueId parameter = graph_persistent(graph, (int)i);
    const Persistent *persistent = &graph->module->persistents.items[i];
    if (d->adjoint[parameter].total != NO_VALUE)
      record_gradient(graph, persistent->name, parameter, d->adjoint[parameter].total);
    else
      diag_warning(persistent->location, "the loss does not depend on parameter '%s': it is not trained",
                   persistent->name);
  }
  for (int64_t i = 0; i < graph->gradient_requests.count; i++) {
    const GraphOutput *request = &graph->gradient_requests.items[i];
    ValueId total = d->adjoint[request->value].total;
    if (total == NO_VALUE)
      diag_error(request->location, "the loss does not depend on '%s': it has no gradient", request->name);
    else
      record_gradient(graph, request->name, request->value, total);
  }
}

static void build_backward(Differentiation *d) {
  Graph *graph = d->graph;
  for (int64_t i = 0; i < graph->module->persistents.count; i++)
    if (graph->module->persistents.items[i].trainable) graph_persistent(graph, (int)i);
  int64_t forward_values = graph->values.count, forward_nodes = graph->nodes.count;
  mark_needed(d);
  d->adjoint = NEW_ARRAY(d->scratch, Adjoint, forward_values);
  for (int64_t i = 0; i < forward_values; i++) d->adjoint[i].total = NO_VALUE;
  graph->phase = PHASE_BACKWARD;
  graph->recompute_block = 0;
  graph->location = graph->loss.location;
  d->adjoint[graph->loss.value].total = seed_gradient(graph);
  for (int64_t id = forward_nodes - 1; id >= 0; id--) differentiate_node(d, (NodeId)id);
  for (int64_t i = 0; i < forward_values; i++) name_gradient(graph, (ValueId)i, settle(d, (ValueId)i));
  record_gradients(d);
}

/* ---- accumulation and updates ---- */

/* accumulator ← accumulator + x at the end of each micro-step; returns the accumulator. */
static ValueId accumulate_value(Graph *graph, const char *name, ValueId x) {
  Module *module = graph->module;
  Persistent persistent = {.name = memory_format(module->arena, "accumulator.%s", name),
                           .type = *value_type(graph, x),
                           .role = ROLE_ACCUMULATOR,
                           .location = graph->location};
  ValueId accumulator = graph_persistent(graph, module_add_persistent(module, persistent));
  build_assign(graph, accumulator, build_add(graph, accumulator, x));
  return accumulator;
}

/* Replaces each gradient by its accumulator. Returns the factor that is still due: one over the summed denominator, or
 * NO_VALUE. */
static ValueId accumulate_gradients(Graph *graph) {
  ValueId denominator = graph->loss.denominator, scale = NO_VALUE;
  if (denominator != NO_VALUE) denominator = accumulate_value(graph, "denominator", denominator);
  for (int64_t i = 0; i < graph->gradients.count; i++) {
    GraphGradient gradient = graph->gradients.items[i];
    if (graph_value(graph, gradient.of)->kind != VALUE_PERSISTENT) continue;
    gradient.gradient = accumulate_value(graph, gradient.name, gradient.gradient);
    gradient.divisor = denominator;
    graph->gradients.items[i] = gradient;
  }
  graph->phase = PHASE_UPDATE;
  if (denominator != NO_VALUE) {
    scale = build_reciprocal(graph, denominator);
    build_assign(graph, denominator, build_constant(graph, value_type(graph, denominator)->dtype, 0));
  }
  return scale;
}

/* The factor that clipping the gradients together to `limit` multiplies them with. */
static ValueId clip_scale(Graph *graph, MemoryArena *scratch, ValueId scale, double limit) {
  ARRAY(ValueId) gradients = {0};
  for (int64_t i = 0; i < graph->gradients.count; i++)
    if (graph_value(graph, graph->gradients.items[i].of)->kind == VALUE_PERSISTENT)
      array_push(scratch, &gradients, graph->gradients.items[i].gradient);
  return build_clip_scale(graph, (int)gradients.count, gradients.items, scale, limit);
}

static void build_updates(Graph *graph, MemoryArena *scratch) {
  const Training *training = &graph->module->training;
  graph->phase = PHASE_UPDATE;
  graph->location = (Location){0};
  graph->module_path = "";
  ValueId scale = NO_VALUE;
  if (training->accumulate > 1) {
    graph->phase = PHASE_BACKWARD;
    scale = accumulate_gradients(graph);
  }
  if (training->clip > 0) scale = clip_scale(graph, scratch, scale, training->clip);
  for (int64_t i = 0; i < graph->gradients.count; i++) {
    GraphGradient gradient = graph->gradients.items[i];
    const Value *of = graph_value(graph, gradient.of);
    if (of->kind != VALUE_PERSISTENT) continue;
    int parameter = of->index;
    const Persistent *persistent = &graph->module->persistents.items[parameter];
    graph->location = persistent->location;
    op_info(training->optimizer)->update(graph, parameter, gradient.gradient, scale, persistent->optimizer_settings);
    if (training->accumulate > 1)
      build_assign(graph, gradient.gradient, build_full(graph, *value_type(graph, gradient.gradient), 0));
  }
}

void differentiate_graph(Graph *graph, MemoryArena *scratch) {
  Differentiation differentiation = {.graph = graph, .scratch = scratch};
  int errors = diag_error_count();
  if (graph->loss.value == NO_VALUE) return;
  build_backward(&differentiation);
  if (diag_error_count() == errors && graph->module->training.has_optimizer) build_updates(graph, scratch);
  graph->phase = PHASE_FORWARD;
  graph->module_path = "";
  graph->location = (Location){0};
}
