/* frontend/driver/model_inputs.c - made-up data that a model accepts. */
#include "frontend/driver/model_inputs.h"

#include "runtime/random.h"

enum { DEFAULT_LIMIT = 2 };

/* Walks from a value back through nodes with one tensor input to the model input it is made of, or NULL. */
static const Value *find_origin(const Graph *graph, ValueId id) {
  const Value *value = graph_value(graph, id);
  while (value->kind == VALUE_RESULT) {
    const Node *node = graph_node(graph, value->producer);
    if (node->input_count != 1) return NULL;
    value = graph_value(graph, node->inputs[0]);
  }
  return value->kind == VALUE_INPUT ? value : NULL;
}

int64_t *find_input_limits(MemoryArena *arena, const Graph *graph) {
  int64_t inputs = graph->module->inputs.count, *limits = NEW_ARRAY(arena, int64_t, inputs + 1);
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    if (!op_has(node->op, OP_CHECKS_DATA)) continue;
    KernelArguments arguments = {0};
    op_info(node->op)->arguments(graph, node, &arguments);
    int64_t limit = arguments.extents[arguments.count - 1]; /* entries of the table, or number of classes */
    for (int i = 0; i < node->input_count; i++) {
      const Value *origin = node->inputs[i] == NO_VALUE ? NULL : find_origin(graph, node->inputs[i]);
      if (!origin || dtype_class(origin->type.dtype) != CLASS_INTEGER) continue;
      if (!limits[origin->index] || limit < limits[origin->index]) limits[origin->index] = limit;
    }
  }
  for (int64_t i = 0; i < inputs; i++) {
    DataType dtype = graph->module->inputs.items[i].type.dtype;
    if (!limits[i]) limits[i] = DEFAULT_LIMIT;
    if (dtype == U8 && limits[i] > 256) limits[i] = 256;
  }
  return limits;
}

void fill_input(EvalTensor *tensor, int input, int64_t limit, uint64_t seed, int64_t step) {
  int64_t elements = type_elements(&tensor->type);
  uint64_t id = hash_bytes(HASH_START, &input, (int64_t)sizeof input);
  for (int64_t i = 0; i < elements; i++) {
    double draw = rp_uniform(seed, id, step, i);
    if (tensor->real)
      tensor->real[i] = (double)(float)(2 * draw - 1);
    else
      tensor->integer[i] = (int64_t)(draw * (double)limit);
  }
}
