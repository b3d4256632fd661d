/* codegen/cuda_kernel_call.c - launches of hand-made kernels, runtime/kernels/<name>.cuh, with the arguments of their
 * host forms (kernel_call.c). */
#include <inttypes.h>

#include "codegen/cuda.h"
#include "codegen/expression.h"
#include "runtime/kernels/launch.h"

static void append_attribute(Text *call, const AttributeInfo *info, const Attribute *attribute) {
  switch (attribute->kind) {
    case ATTRIBUTE_INT:
      if (info->optional) text_append(call, ", RP_BOOL(%s)", attribute->given ? "true" : "false");
      text_append(call, ", RP_I64(%s)", c_integer_literal(call->arena, attribute->given ? attribute->integer : 0));
      return;
    case ATTRIBUTE_CHOICE:
      text_append(call, ", RP_I64(%" PRId64 ")", attribute->integer);
      return;
    case ATTRIBUTE_BOOL:
      text_append(call, ", RP_BOOL(%s)", attribute->integer ? "true" : "false");
      return;
    case ATTRIBUTE_FLOAT:
    case ATTRIBUTE_NUMBER:
      text_append(call, ", RP_F32(%s)", c_real_literal(call->arena, F32, attribute->number));
      return;
    default:
      die("kernels take no attribute like %s", info->name);
  }
}

static void append_operands(const GraphEmission *graph, const Node *node, Text *call) {
  const Graph *ir = graph->compiled->graph;
  for (int i = 0; i < node->output_count; i++)
    text_append(call, "%s%s", i ? ", " : "",
                cuda_operand(graph, OPERAND_WRITTEN, value_layout(graph, node->outputs[i]),
                             value_type(ir, node->outputs[i])->dtype));
  for (int i = 0; i < node->input_count; i++) {
    ValueId value = node->inputs[i];
    text_append(call, ", %s",
                value == NO_VALUE
                    ? "RP_NONE"
                    : cuda_operand(graph, OPERAND_READ, value_layout(graph, value), value_type(ir, value)->dtype));
  }
}

CudaLaunch cuda_kernel_launch(const Graph *graph, const Node *node) {
  const OpInfo *info = op_info(node->op);
  KernelArguments arguments = {0};
  RpLaunch launch;
  info->arguments(graph, node, &arguments);
  if (!rp_kernel_launch(info->name, arguments.extents, &launch)) die("no launch for kernel %s", info->name);
  return (CudaLaunch){launch.grid, launch.block, 1};
}

void emit_cuda_kernel(GraphEmission *graph, NodeId id, Text *steps) {
  const Graph *ir = graph->compiled->graph;
  const Node *node = graph_node(ir, id);
  const OpInfo *info = op_info(node->op);
  KernelArguments arguments = {0};
  info->arguments(ir, node, &arguments);
  Text call = {.arena = graph->emission->arena};
  append_operands(graph, node, &call);
  for (int i = 0; i < arguments.count; i++) text_append(&call, ", RP_I64(%" PRId64 ")", arguments.extents[i]);
  for (int i = 0; i < info->attribute_count; i++) append_attribute(&call, &info->attributes[i], &node->attributes[i]);
  if (op_has(node->op, OP_CHECKS_DATA))
    text_append(&call, ", RP_CONTROL, RP_I32(%" PRId64 ")", check_index(graph, id, &arguments));
  const char *name = memory_format(call.arena, "rp_%s", info->name);
  string_map_set(&graph->emission->headers, info->name, 1);
  cuda_kernel_known(graph, node, name);
  cuda_launch(steps, name, cuda_kernel_launch(ir, node), text_bytes(&call));
}
