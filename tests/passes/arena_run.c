#include "arena_run.h"

#include "passes/facts.h"

typedef struct Machine {
  const Graph *graph;
  const StorageTable *table;
  const MemoryMap *map;
  MemoryArena *arena;
  unsigned char *bytes;
  EvalTensor *captured; /* per value that the graph names: as it was when it was made */
  EvalTensor *written;  /* per persistent: what was last written */
} Machine;

static int64_t element_place(const Machine *m, ValueId value, int64_t element) {
  const Layout *layout = &m->table->layouts[value];
  int64_t place = layout->view.offset;
  for (int i = layout->view.rank - 1; i >= 0; i--) {
    place += element % layout->view.dims[i] * layout->view.strides[i];
    element /= layout->view.dims[i];
  }
  return m->map->offsets[layout->storage] + place * dtype_bytes(value_type(m->graph, value)->dtype);
}

static double load_element(DataType dtype, const unsigned char *at) {
  switch (dtype) {
    case F32: {
      float value;
      memcpy(&value, at, sizeof value);
      return value;
    }
    case F64: {
      double value;
      memcpy(&value, at, sizeof value);
      return value;
    }
    case I32: {
      int32_t value;
      memcpy(&value, at, sizeof value);
      return value;
    }
    case BOOL:
      return *at;
    default:
      die("no %s in these tests", dtype_name(dtype));
  }
}

static void store_element(DataType dtype, unsigned char *at, double value) {
  float single = (float)value;
  int32_t integer = dtype == I32 ? (int32_t)value : 0;
  switch (dtype) {
    case F32:
      memcpy(at, &single, sizeof single);
      break;
    case F64:
      memcpy(at, &value, sizeof value);
      break;
    case I32:
      memcpy(at, &integer, sizeof integer);
      break;
    case BOOL:
      *at = value != 0;
      break;
    default:
      die("no %s in these tests", dtype_name(dtype));
  }
}

static void load(const Machine *m, ValueId value, EvalTensor *tensor) {
  for (int64_t e = 0; e < type_elements(&tensor->type); e++)
    eval_tensor_set(tensor, e, load_element(tensor->type.dtype, m->bytes + element_place(m, value, e)));
}

static void store(Machine *m, ValueId value, const EvalTensor *tensor) {
  for (int64_t e = 0; e < type_elements(&tensor->type); e++)
    store_element(tensor->type.dtype, m->bytes + element_place(m, value, e), eval_tensor_get(tensor, e));
}

static void poison(Machine *m, int64_t offset, int64_t bytes) { memset(m->bytes + offset, 0xff, (size_t)bytes); }

/* A module with this node alone: its inputs are the module's inputs, what it writes are the module's persistents. */
static Graph *node_alone(MemoryArena *scratch, const Graph *graph, const Node *node) {
  Module *module = module_create(scratch, "", "");
  Graph *alone = graph_create(module, false);
  Node copy = *node;
  copy.inputs = NEW_ARRAY(scratch, ValueId, node->input_count);
  copy.outputs = NEW_ARRAY(scratch, ValueId, node->output_count);
  copy.writes = NEW_ARRAY(scratch, ValueId, node->write_count);
  for (int i = 0; i < node->input_count; i++) {
    ModelInput input = {.name = "input", .type = type_scalar(F32)};
    if (node->inputs[i] != NO_VALUE) input.type = *value_type(graph, node->inputs[i]);
    int index = module_add_input(module, input);
    copy.inputs[i] = node->inputs[i] == NO_VALUE ? NO_VALUE : graph_input(alone, index);
  }
  for (int i = 0; i < node->write_count; i++) {
    Persistent persistent = {.name = "written", .type = *value_type(graph, node->writes[i])};
    copy.writes[i] = graph_persistent(alone, module_add_persistent(module, persistent));
  }
  for (int i = 0; i < node->output_count; i++)
    copy.outputs[i] = graph_new_value(alone, *value_type(graph, node->outputs[i]), NULL, node->location);
  graph_append(alone, copy);
  return alone;
}

static void run_node(Machine *m, const Step *step) {
  MemoryArena *scratch = memory_arena_create();
  const Node *node = graph_node(m->graph, step->node);
  const Graph *alone = node_alone(scratch, m->graph, node);
  Evaluation *evaluation = eval_create(scratch, alone, EVAL_F32);
  evaluation->control.seed = m->graph->module->training.seed;
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != NO_VALUE) load(m, node->inputs[i], &evaluation->inputs[i]);
  if (!eval_run(evaluation)) die("%s", evaluation->fault);
  if (node->workspace) poison(m, m->map->workspace_offsets[step->node], node->workspace);
  const Node *made = graph_node(alone, 0);
  for (int i = 0; i < node->output_count; i++) store(m, node->outputs[i], eval_value(evaluation, made->outputs[i]));
  for (int i = 0; i < node->write_count; i++) {
    store(m, node->writes[i], &evaluation->written[i]);
    load(m, node->writes[i], &m->written[graph_value(m->graph, node->writes[i])->index]);
  }
  memory_arena_destroy(scratch);
}

/* Values that lie in what the node has just made, or (NO_NODE) in persistent storages; views included. */
static void capture(Machine *m, NodeId producer, const bool *named) {
  for (ValueId v = 0; v < m->graph->values.count; v++) {
    if (!named[v] || m->table->layouts[v].storage < 0) continue;
    if (m->table->storages.items[m->table->layouts[v].storage].producer != producer) continue;
    m->captured[v] = eval_tensor_create(m->arena, value_type(m->graph, v));
    load(m, v, &m->captured[v]);
  }
}

static void start(Machine *m) {
  const Module *module = m->graph->module;
  Evaluation *evaluation = eval_create(m->arena, m->graph, EVAL_F32);
  fill_pattern(evaluation);
  m->bytes = memory_alloc(m->arena, m->map->arena_bytes);
  poison(m, 0, m->map->arena_bytes);
  m->captured = NEW_ARRAY(m->arena, EvalTensor, m->graph->values.count);
  m->written = NEW_ARRAY(m->arena, EvalTensor, module->persistents.count);
  for (ValueId v = 0; v < m->graph->values.count; v++) {
    const Value *value = graph_value(m->graph, v);
    if (value->kind == VALUE_PERSISTENT) store(m, v, &evaluation->persistents[value->index]);
    if (value->kind == VALUE_INPUT) store(m, v, &evaluation->inputs[value->index]);
  }
  for (int64_t p = 0; p < module->persistents.count; p++)
    m->written[p] = eval_tensor_create(m->arena, &module->persistents.items[p].type);
}

/* The reference interpreter runs micro-step and update from the same persistents; so does this. */
static void forget_writes(Machine *m) {
  Evaluation *evaluation = eval_create(m->arena, m->graph, EVAL_F32);
  fill_pattern(evaluation);
  for (ValueId v = 0; v < m->graph->values.count; v++)
    if (graph_value(m->graph, v)->kind == VALUE_PERSISTENT)
      store(m, v, &evaluation->persistents[graph_value(m->graph, v)->index]);
}

Results run_from_arena(MemoryArena *arena, const Graph *graph, const StorageTable *table, const Schedule *schedule,
                       const MemoryMap *map) {
  Machine m = {.graph = graph, .table = table, .map = map, .arena = arena};
  bool *named = graph_named_values(arena, graph), *writes = NEW_ARRAY(arena, bool, graph->module->persistents.count);
  int program = 0;
  start(&m);
  capture(&m, NO_NODE, named);
  for (int64_t i = 0; i < schedule->steps.count; i++) {
    const Step *step = &schedule->steps.items[i];
    if (!step->run) {
      poison(&m, map->offsets[step->storage], table->storages.items[step->storage].bytes);
      continue;
    }
    const Node *node = graph_node(graph, step->node);
    if (node_program(graph, node) != program) forget_writes(&m);
    program = node_program(graph, node);
    run_node(&m, step);
    capture(&m, step->node, named);
    for (int k = 0; k < node->write_count; k++) writes[graph_value(graph, node->writes[k])->index] = true;
  }
  Results results = {0};
  array_push(arena, &results.tensors, m.captured[graph->loss.value]);
  for (int64_t i = 0; i < graph->outputs.count; i++)
    array_push(arena, &results.tensors, m.captured[graph->outputs.items[i].value]);
  for (int64_t i = 0; i < graph->gradients.count; i++)
    array_push(arena, &results.tensors, m.captured[graph->gradients.items[i].gradient]);
  for (int64_t p = 0; p < graph->module->persistents.count; p++)
    if (writes[p]) array_push(arena, &results.tensors, m.written[p]);
  return results;
}
