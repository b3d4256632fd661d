/* codegen/pointwise.c - pointwise nodes and assemblies: one function of a loop nest each. */
#include "codegen/body.h"
#include "passes/facts.h"

/* The value that result k of the body is stored to: outputs, then writes. */
static ValueId target_value(const Node *node, int k) {
  return k < node->output_count ? node->outputs[k] : node->writes[k - node->output_count];
}

static const char *target_name(MemoryArena *arena, int count, int k) {
  return count == 1 ? "out" : memory_format(arena, "out%d", k);
}

static void target_parameters(GraphEmission *graph, const Node *node, int count, Text *parameters, Text *arguments) {
  for (int k = 0; k < count; k++) {
    ValueId value = target_value(node, k);
    const char *type = c_storage_type(value_type(graph->compiled->graph, value)->dtype);
    text_append(parameters, "%s%s *%s", k ? ", " : "", type, target_name(parameters->arena, count, k));
    text_append(arguments, "%s%s", k ? ", " : "", value_pointer(graph, value));
  }
}

void emit_pointwise(GraphEmission *graph, const Node *node, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  int targets = node->output_count + node->write_count;
  Type iteration = node_iteration(graph->compiled->graph, node);
  LoopNest nest = nest_create(arena, &iteration, targets + node->input_count + 1);
  for (int k = 0; k < targets; k++) nest_set_view(&nest, k, &value_layout(graph, target_value(node, k))->view);
  BodyText body = body_create(graph, node, &nest, targets);
  Text parameters = {.arena = arena}, arguments = {.arena = arena}, text = {.arena = arena, .indent = 1};
  target_parameters(graph, node, targets, &parameters, &arguments);
  body_parameters(&body, &parameters, &arguments);
  body_write_invariants(&body, &text);
  const char *names[MAX_RANK + 1];
  for (int axis = 0; axis < nest.rank; axis++) names[axis] = nest_variable(axis);
  int loops = open_nest(&text, &nest, body.vectorises);
  body_write_element(&body, &text, names);
  for (int k = 0; k < targets; k++) {
    text_line(&text, "%s[%s] = %s;", target_name(arena, targets, k), nest_offset(arena, &nest, k, names),
              body_result(&body, k));
  }
  close_loops(&text, loops);
  const char *name = emission_function(graph->emission, graph->emission->target->function, node_title(arena, node, '_'),
                                       text_bytes(&parameters), text_bytes(&text));
  text_wrapped(steps, memory_format(arena, "%s(%s);", name, text_bytes(&arguments)));
}

/* ---- assemblies ---- */

/* out[…] = value for every element of a view. */
static void emit_fill(GraphEmission *graph, const Layout *target, DataType dtype, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  Type shape = type_make(dtype, target->view.rank, target->view.dims);
  LoopNest nest = nest_create(arena, &shape, 1);
  nest_set_view(&nest, 0, &target->view);
  nest_collapse(&nest);
  const char *names[MAX_RANK + 1];
  for (int axis = 0; axis < nest.rank; axis++) names[axis] = nest_variable(axis);
  Text text = {.arena = arena, .indent = 1};
  int loops = open_nest(&text, &nest, true);
  text_line(&text, "out[%s] = 0;", nest_offset(arena, &nest, 0, names));
  close_loops(&text, loops);
  const char *name = emission_function(graph->emission, graph->emission->target->function, "zero",
                                       memory_format(arena, "%s *out", c_storage_type(dtype)), text_bytes(&text));
  text_line(steps, "%s(%s);", name, layout_pointer(graph, target, dtype));
}

static void emit_copy(GraphEmission *graph, const Layout *target, const Layout *source, DataType dtype, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  Type shape = type_make(dtype, target->view.rank, target->view.dims);
  LoopNest nest = nest_create(arena, &shape, 2);
  nest_set_view(&nest, 0, &target->view);
  nest_set_view(&nest, 1, &source->view);
  nest_collapse(&nest);
  const char *names[MAX_RANK + 1], *type = c_storage_type(dtype);
  for (int axis = 0; axis < nest.rank; axis++) names[axis] = nest_variable(axis);
  Text text = {.arena = arena, .indent = 1};
  int loops = open_nest(&text, &nest, true);
  text_line(&text, "out[%s] = in[%s];", nest_offset(arena, &nest, 0, names), nest_offset(arena, &nest, 1, names));
  close_loops(&text, loops);
  const char *name = emission_function(graph->emission, graph->emission->target->function, "copy",
                                       memory_format(arena, "%s *out, const %s *in", type, type), text_bytes(&text));
  text_line(steps, "%s(%s, %s);", name, layout_pointer(graph, target, dtype), layout_pointer(graph, source, dtype));
}

Layout assembly_slice(const GraphEmission *graph, const Node *node, int i) {
  Layout slice = *value_layout(graph, node->outputs[0]);
  slice.view = assembly_slice_view(graph->compiled->graph, node, i, &slice.view);
  return slice;
}

bool lies_in_place(const GraphEmission *graph, const Layout *slice, const Layout *input) {
  const int64_t *offsets = graph->compiled->map->offsets;
  return offsets[slice->storage] == offsets[input->storage] && layout_equal(&slice->view, &input->view);
}

void emit_assembly(GraphEmission *graph, const Node *node, Text *steps) {
  const Graph *ir = graph->compiled->graph;
  DataType dtype = value_type(ir, node->outputs[0])->dtype;
  int64_t covered = 0;
  for (int i = 0; i < node->input_count; i++) covered += type_elements(value_type(ir, node->inputs[i]));
  if (covered < type_elements(value_type(ir, node->outputs[0])))
    emit_fill(graph, value_layout(graph, node->outputs[0]), dtype, steps);
  for (int i = 0; i < node->input_count; i++) {
    Layout slice = assembly_slice(graph, node, i);
    const Layout *input = value_layout(graph, node->inputs[i]);
    if (!lies_in_place(graph, &slice, input)) emit_copy(graph, &slice, input, dtype, steps);
  }
}
