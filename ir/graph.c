/* ir/graph.c - modules, graphs, and the application of operators by the table. */
#include "ir/build.h"
#include "ir/rows.h"

Module *module_create(MemoryArena *arena, const char *name, const char *path) {
  Module *module = NEW(arena, Module);
  module->arena = arena;
  module->name = memory_string(arena, name);
  module->path = memory_string(arena, path);
  module->training.accumulate = 1;
  module->training.shuffle = true;
  return module;
}

Graph *graph_create(Module *module, bool evaluation) {
  Graph *graph = NEW(module->arena, Graph);
  graph->module = module;
  graph->evaluation = evaluation;
  graph->module_path = "";
  graph->loss.value = graph->loss.denominator = NO_VALUE;
  graph->random_ordinals.arena = module->arena;
  return graph;
}

int module_add_persistent(Module *module, Persistent persistent) {
  array_push(module->arena, &module->persistents, persistent);
  return (int)module->persistents.count - 1;
}

int module_add_input(Module *module, ModelInput input) {
  array_push(module->arena, &module->inputs, input);
  return (int)module->inputs.count - 1;
}

/* ---- values ---- */

static ValueId add_value(Graph *graph, Value value) {
  array_push(graph->module->arena, &graph->values, value);
  return (ValueId)(graph->values.count - 1);
}

/* ids: value id + 1 of each input or persistent that the graph has asked for. */
static ValueId shared_value(Graph *graph, ValueIds *ids, int index, Value value) {
  while (ids->count <= index) array_push(graph->module->arena, ids, 0);
  if (!ids->items[index]) ids->items[index] = add_value(graph, value) + 1;
  return ids->items[index] - 1;
}

ValueId graph_input(Graph *graph, int index) {
  const ModelInput *input = &graph->module->inputs.items[index];
  return shared_value(graph, &graph->input_values, index,
                      (Value){.type = input->type,
                              .kind = VALUE_INPUT,
                              .producer = NO_NODE,
                              .index = index,
                              .name = input->name,
                              .location = input->location});
}

ValueId graph_persistent(Graph *graph, int index) {
  const Persistent *persistent = &graph->module->persistents.items[index];
  return shared_value(graph, &graph->persistent_values, index,
                      (Value){.type = persistent->type,
                              .kind = VALUE_PERSISTENT,
                              .producer = NO_NODE,
                              .index = index,
                              .name = persistent->name,
                              .location = persistent->location});
}

ValueId graph_new_value(Graph *graph, Type type, const char *name, Location location) {
  return add_value(graph, (Value){.type = type,
                                  .kind = VALUE_RESULT,
                                  .producer = NO_NODE,
                                  .name = name,
                                  .location = location,
                                  .recompute_block = graph->recompute_block});
}

NodeId graph_append(Graph *graph, Node node) {
  NodeId id = (NodeId)graph->nodes.count;
  array_push(graph->module->arena, &graph->nodes, node);
  for (int i = 0; i < node.output_count; i++) {
    Value *value = graph_value(graph, node.outputs[i]);
    value->producer = id;
    value->output = i;
  }
  return id;
}

void graph_index(Graph *graph) {
  for (int64_t i = 0; i < graph->values.count; i++) graph->values.items[i].producer = NO_NODE;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    for (int i = 0; i < node->output_count; i++) {
      Value *value = graph_value(graph, node->outputs[i]);
      value->producer = (NodeId)id;
      value->output = i;
    }
  }
}

int *graph_count_uses(MemoryArena *arena, const Graph *graph) {
  int *counts = NEW_ARRAY(arena, int, graph->values.count + 1);
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] != NO_VALUE) counts[node->inputs[i]]++;
  }
  return counts;
}

const Attribute *node_attribute(const Node *node, const char *name) {
  int index = op_attribute_index(node->op, name);
  if (index < 0) die("operator %s has no attribute %s", op_info(node->op)->name, name);
  return &node->attributes[index];
}

Body node_body(MemoryArena *arena, const Graph *graph, const Node *node) {
  if (node->body) return *node->body;
  Body body = {.instruction_count = 1, .result_count = 1};
  body.instructions = NEW(arena, Instruction);
  body.results = NEW(arena, int);
  ValueId result = node->output_count ? node->outputs[0] : node->writes[0];
  Instruction *instruction = body.instructions;
  *instruction = (Instruction){.op = node->op,
                               .dtype = value_type(graph, result)->dtype,
                               .attributes = node->attributes,
                               .random_id = node->random_id,
                               .operand_count = node->input_count};
  for (int i = 0; i < node->input_count; i++) instruction->operands[i] = ~i;
  return body;
}

/* ---- applying operators ---- */

static bool check_arity(Graph *graph, const OpInfo *info, int input_count, const ValueId *inputs) {
  bool variadic = info->input_count && info->inputs[info->input_count - 1].variadic;
  if (variadic ? input_count < info->input_count : input_count > info->input_count) {
    diag_error(graph->location, "'%s' takes %s%d tensor%s, found %d", info->name, variadic ? "at least " : "",
               info->input_count, info->input_count == 1 ? "" : "s", input_count);
    return false;
  }
  for (int i = 0; i < info->input_count; i++) {
    if (info->inputs[i].optional || (i < input_count && inputs[i] != NO_VALUE)) continue;
    if (i >= input_count) diag_error(graph->location, "'%s' lacks its input '%s'", info->name, info->inputs[i].name);
    return false; /* a missing value was reported where it arose */
  }
  return true;
}

static bool check_attributes(Graph *graph, const OpInfo *info, const Attribute *attributes) {
  for (int i = 0; i < info->attribute_count; i++) {
    if (attributes[i].given || !info->attributes[i].required) continue;
    diag_error(graph->location, "'%s' lacks its argument '%s'", info->name, info->attributes[i].name);
    return false;
  }
  return true;
}

/* Reduction axes: all when none are given, made non-negative, ascending, each once. */
static bool normalize_axes(Graph *graph, const OpInfo *info, int rank, Attribute *axes) {
  bool chosen[MAX_RANK] = {false};
  for (int i = 0; i < axes->count; i++) {
    int64_t axis = axes->list[i] < 0 ? axes->list[i] + rank : axes->list[i];
    if (axis < 0 || axis >= rank || chosen[axis]) {
      diag_error(graph->location, "'%s': axis %lld is %s of a tensor of rank %d", info->name, (long long)axes->list[i],
                 axis >= 0 && axis < rank ? "given twice" : "not an axis", rank);
      return false;
    }
    chosen[axis] = true;
  }
  if (!axes->given) memset(chosen, true, (size_t)rank);
  *axes = attribute_ints(0, NULL);
  for (int axis = 0; axis < rank; axis++)
    if (chosen[axis]) axes->list[axes->count++] = axis;
  return true;
}

/* A negative `axis` counts from the end. */
static void normalize_axis(const OpInfo *info, int rank, Attribute *attributes) {
  for (int i = 0; i < info->attribute_count; i++) {
    Attribute *axis = &attributes[i];
    if (axis->kind == ATTRIBUTE_INT && axis->integer < 0 && string_equal(info->attributes[i].name, "axis"))
      axis->integer += rank;
  }
}

static uint64_t next_random_id(Graph *graph) {
  int64_t *found = string_map_find(&graph->random_ordinals, graph->module_path), ordinal = found ? *found : 0;
  string_map_set(&graph->random_ordinals, graph->module_path, ordinal + 1);
  uint64_t hash = hash_string(HASH_START, graph->module_path);
  for (int byte = 0; byte < 8; byte++) {
    unsigned char part = (unsigned char)(ordinal >> (8 * byte));
    hash = hash_bytes(hash, &part, 1);
  }
  return hash;
}

static Attribute *copy_attributes(Graph *graph, const OpInfo *info, const Attribute *attributes) {
  Attribute *copy = NEW_ARRAY(graph->module->arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) {
    bool given = attributes && (attributes[i].given || info->attributes[i].optional);
    copy[i] = given ? attributes[i] : info->attributes[i].initial;
    copy[i].kind = info->attributes[i].kind;
  }
  return copy;
}

ValueId graph_apply(Graph *graph, Op op, int input_count, const ValueId *inputs, const Attribute *attributes,
                    ValueId *outputs) {
  const OpInfo *info = op_info(op);
  MemoryArena *arena = graph->module->arena;
  for (int i = 0; outputs && i < info->output_count; i++) outputs[i] = NO_VALUE;
  if (!check_arity(graph, info, input_count, inputs)) return NO_VALUE;
  Node node = {.op = op,
               .phase = graph->phase,
               .original = NO_NODE,
               .module = graph->module_path,
               .location = graph->location,
               .output_count = info->output_count};
  node.input_count = input_count > info->input_count ? input_count : info->input_count;
  node.inputs = NEW_ARRAY(arena, ValueId, node.input_count + 1);
  for (int i = 0; i < node.input_count; i++) node.inputs[i] = i < input_count ? inputs[i] : NO_VALUE;
  node.attributes = copy_attributes(graph, info, attributes);
  if (!check_attributes(graph, info, node.attributes)) return NO_VALUE;
  if (info->kind == KIND_COMPOSITE) return info->expand(graph, node.input_count, node.inputs, node.attributes, outputs);
  ASSERT(info->kind != KIND_OPTIMIZER);
  if (info->kind == KIND_REDUCTION &&
      !normalize_axes(graph, info, value_type(graph, inputs[0])->rank, &node.attributes[0]))
    return NO_VALUE;
  if (input_count) normalize_axis(info, value_type(graph, inputs[0])->rank, node.attributes);
  Type types[MAX_OP_OUTPUTS];
  if (!info->infer(graph, &node, types)) return NO_VALUE;
  for (int i = 0; i < info->output_count; i++)
    if (!type_check_size(&types[i])) {
      diag_error(graph->location, "the result of '%s', %s, has more bytes than a 64-bit size can count", info->name,
                 type_text(arena, &types[i]));
      return NO_VALUE;
    }
  if (info->properties & OP_RANDOM) node.random_id = next_random_id(graph);
  node.outputs = NEW_ARRAY(arena, ValueId, info->output_count + 1);
  if (info->properties & OP_EFFECT) {
    node.output_count = 0;
    node.write_count = 1;
    node.writes = NEW(arena, ValueId);
    node.writes[0] = inputs[0];
    graph_append(graph, node);
    return NO_VALUE;
  }
  for (int i = 0; i < info->output_count; i++) {
    node.outputs[i] = graph_new_value(graph, types[i], NULL, graph->location);
    if (outputs) outputs[i] = node.outputs[i];
  }
  graph_append(graph, node);
  return node.outputs[0];
}
