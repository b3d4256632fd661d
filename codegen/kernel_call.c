/* codegen/kernel_call.c - calls of hand-made kernels, runtime/kernels/<name>.h.
 *
 * Every kernel is called in one way: outputs, inputs (NULL: left out), extents, attributes in signature order, and
 * where it checks data the control block and the number of its check. */
#include <inttypes.h>

#include "codegen/emission.h"
#include "codegen/expression.h"

static void append_attribute(Text *call, const AttributeInfo *info, const Attribute *attribute) {
  switch (attribute->kind) {
    case ATTRIBUTE_INT:
      if (info->optional) text_append(call, ", %s", attribute->given ? "true" : "false");
      text_append(call, ", %s", c_integer_literal(call->arena, attribute->given ? attribute->integer : 0));
      return;
    case ATTRIBUTE_CHOICE:
      text_append(call, ", %" PRId64, attribute->integer);
      return;
    case ATTRIBUTE_BOOL:
      text_append(call, ", %s", attribute->integer ? "true" : "false");
      return;
    case ATTRIBUTE_FLOAT:
    case ATTRIBUTE_NUMBER:
      text_append(call, ", %s", c_real_literal(call->arena, F32, attribute->number));
      return;
    default:
      die("kernels take no attribute like %s", info->name);
  }
}

/* The last extent bounds the indices that a kernel checks. */
static Check make_check(const GraphEmission *graph, const Node *node, const KernelArguments *arguments) {
  MemoryArena *arena = graph->emission->arena;
  int ignore = op_attribute_index(node->op, "ignore");
  bool ignores = ignore >= 0 && node->attributes[ignore].given;
  Text message = {.arena = arena};
  text_append(&message, "index out of range in %s%s%s: expected 0..%" PRId64, node->module, *node->module ? " " : "",
              op_info(node->op)->name, arguments->extents[arguments->count - 1] - 1);
  if (ignores) text_append(&message, " or %" PRId64, node->attributes[ignore].integer);
  return (Check){.message = text_bytes(&message), .source = source_text(arena, node->location)};
}

int64_t check_index(GraphEmission *graph, NodeId id, const KernelArguments *arguments) {
  Emission *emission = graph->emission;
  const Node *node = graph_node(graph->compiled->graph, id);
  NodeId original = node->original == NO_NODE ? id : node->original;
  if (!graph->checks[original]) {
    Check check = make_check(graph, node, arguments);
    array_push(emission->arena, &emission->checks, check);
    graph->checks[original] = (int)emission->checks.count;
  }
  return graph->checks[original] - 1;
}

void emit_kernel(GraphEmission *graph, NodeId id, Text *steps) {
  const Graph *ir = graph->compiled->graph;
  const Node *node = graph_node(ir, id);
  const OpInfo *info = op_info(node->op);
  KernelArguments arguments = {0};
  info->arguments(ir, node, &arguments);
  Text call = {.arena = graph->emission->arena};
  for (int i = 0; i < node->output_count; i++)
    text_append(&call, "%s%s", i ? ", " : "", value_pointer(graph, node->outputs[i]));
  for (int i = 0; i < node->input_count; i++)
    text_append(&call, ", %s", node->inputs[i] == NO_VALUE ? "NULL" : value_pointer(graph, node->inputs[i]));
  for (int i = 0; i < arguments.count; i++) text_append(&call, ", %" PRId64, arguments.extents[i]);
  for (int i = 0; i < info->attribute_count; i++) append_attribute(&call, &info->attributes[i], &node->attributes[i]);
  if (op_has(node->op, OP_CHECKS_DATA)) text_append(&call, ", control, %" PRId64, check_index(graph, id, &arguments));
  string_map_set(&graph->emission->headers, info->name, 1);
  text_wrapped(steps, memory_format(call.arena, "rp_%s(%s);", info->name, text_bytes(&call)));
}
