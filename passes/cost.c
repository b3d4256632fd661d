/* passes/cost.c - the roofline cost of a node. */
#include "passes/cost.h"

/* A call of a mathematical function counts as this many operations. */
static const double function_flops = 10;

/* Operations of one scalar expression: operators and function calls in its text. */
static double expression_flops(const char *text) {
  double flops = 0;
  for (const char *c = text; *c; c++) {
    bool call =
        c[0] == '(' && c > text && c[-1] >= 'A' && c[-1] <= 'Z' && !(c >= text + 4 && strncmp(c - 4, "REAL", 4) == 0);
    if (call) flops += function_flops;
    if (strchr("+*/<>?", *c) || (*c == '-' && c[1] == ' ')) flops++;
  }
  return flops > 0 ? flops : 1;
}

static double body_flops(const Body *body) {
  double flops = 0;
  for (int i = 0; i < body->instruction_count; i++)
    flops += expression_flops(op_info(body->instructions[i].op)->expression);
  return flops;
}

static const Type *iteration_type(const Graph *graph, const Node *node) {
  if (node->body) return &node->iteration;
  if (op_kind(node->op) == KIND_REDUCTION) return value_type(graph, node->inputs[0]);
  return value_type(graph, node->output_count ? node->outputs[0] : node->writes[0]);
}

double node_flops(const Graph *graph, const Node *node) {
  const OpInfo *info = op_info(node->op);
  double elements = (double)type_elements(iteration_type(graph, node));
  switch (info->kind) {
    case KIND_POINTWISE:
      return elements * (node->body ? body_flops(node->body) : expression_flops(info->expression));
    case KIND_REDUCTION:
      return elements * (1 + (node->body ? body_flops(node->body) : 0));
    case KIND_CONTRACTION: {
      const Type *a = value_type(graph, node->inputs[0]);
      return 2 * (double)type_elements(value_type(graph, node->outputs[0])) * (double)a->dims[a->rank - 1];
    }
    case KIND_KERNEL:
      return info->flops_per_element * (double)type_elements(value_type(graph, node->inputs[0]));
    default:
      return 0;
  }
}

/* Bytes of a value that are really there: axes with stride 0 repeat the same ones. */
static double touched_bytes(const Graph *graph, const StorageTable *table, ValueId value) {
  const ViewLayout *view = &table->layouts[value].view;
  double bytes = (double)dtype_bytes(value_type(graph, value)->dtype);
  for (int i = 0; i < view->rank; i++)
    if (view->strides[i]) bytes *= (double)view->dims[i];
  return bytes;
}

double node_bytes(const Graph *graph, const StorageTable *table, const Node *node) {
  double bytes = 0, made = 0;
  const OpInfo *info = op_info(node->op);
  for (int i = 0; i < node->output_count; i++) made += touched_bytes(graph, table, node->outputs[i]);
  for (int i = 0; i < node->write_count; i++) made += touched_bytes(graph, table, node->writes[i]);
  /* a kernel without operations gathers: of its first input it reads what it makes */
  bool gathers = info->kind == KIND_KERNEL && info->flops_per_element == 0;
  for (int i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == NO_VALUE) continue;
    if (info->kind == KIND_ASSEMBLY && input_is_assembled(graph, table, node, i)) {
      made -= touched_bytes(graph, table, node->inputs[i]);
      continue;
    }
    bytes += gathers && i == 0 ? made : touched_bytes(graph, table, node->inputs[i]);
  }
  return bytes + made;
}

double *model_costs(const Graph *graph, const StorageTable *table, const Device *device, MemoryArena *arena) {
  double *costs = NEW_ARRAY(arena, double, graph->nodes.count + 1);
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    if (op_kind(node->op) == KIND_VIEW) continue;
    double compute = node_flops(graph, node) / device->flops,
           transfer = node_bytes(graph, table, node) / device->bandwidth;
    costs[id] = 1e6 * (compute > transfer ? compute : transfer) + device->launch;
  }
  return costs;
}
