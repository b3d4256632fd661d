/* passes/planner/plan_graph.c - building a planning problem and the tables derived from it. */
#include "passes/planner/plan_graph.h"

static const char *const role_names[PLAN_ROLE_COUNT] = {[PLAN_ROLE_WEIGHTS] = "weights",
                                                        [PLAN_ROLE_GRADIENTS] = "gradients",
                                                        [PLAN_ROLE_OPTIMIZER_STATE] = "optimizer_state",
                                                        [PLAN_ROLE_ACTIVATIONS] = "activations",
                                                        [PLAN_ROLE_TEMPORARIES] = "temporaries",
                                                        [PLAN_ROLE_WORKSPACE] = "workspace",
                                                        [PLAN_ROLE_INPUTS] = "inputs"};

const char *plan_role_name(PlanRole role) { return role_names[role]; }

bool plan_role_parse(const char *name, PlanRole *role) {
  for (int i = 0; i < PLAN_ROLE_COUNT; i++) {
    if (!string_equal(name, role_names[i])) continue;
    *role = (PlanRole)i;
    return true;
  }
  return false;
}

PlanGraph *plan_graph_create(MemoryArena *arena, int64_t alignment) {
  PlanGraph *graph = NEW(arena, PlanGraph);
  graph->arena = arena;
  graph->alignment = alignment;
  graph->storage_index.arena = arena;
  graph->node_index.arena = arena;
  return graph;
}

static int32_t add_storage(PlanGraph *graph, PlanStorage storage) {
  ASSERT(!string_map_find(&graph->storage_index, storage.id));
  ASSERT(storage.bytes >= 0);
  int32_t index = (int32_t)graph->storages.count;
  storage.id = memory_string(graph->arena, storage.id);
  storage.bytes = align_size(storage.bytes, graph->alignment);
  array_push(graph->arena, &graph->storages, storage);
  string_map_set(&graph->storage_index, storage.id, index);
  return index;
}

int32_t plan_graph_add_tensor(PlanGraph *graph, const char *id, int64_t bytes, PlanRole role) {
  return add_storage(graph, (PlanStorage){.id = id, .bytes = bytes, .persistent = true, .role = role, .producer = -1});
}

static int32_t *copy_indices(PlanGraph *graph, const int32_t *items, int32_t count) {
  int32_t *copy = NEW_ARRAY(graph->arena, int32_t, count);
  for (int32_t i = 0; i < count; i++) {
    ASSERT(items[i] >= 0 && items[i] < graph->storages.count);
    copy[i] = items[i];
  }
  return copy;
}

static const char *copy_text(PlanGraph *graph, const char *text) {
  return text ? memory_string(graph->arena, text) : NULL;
}

int32_t plan_graph_add_node(PlanGraph *graph, const PlanNode *node) {
  ASSERT(!string_map_find(&graph->node_index, node->id));
  ASSERT(node->workspace >= 0);
  PlanNode copy = *node;
  copy.id = copy_text(graph, node->id);
  copy.op = copy_text(graph, node->op);
  copy.module = copy_text(graph, node->module);
  copy.source = copy_text(graph, node->source);
  copy.inputs = copy_indices(graph, node->inputs, node->input_count);
  copy.writes = copy_indices(graph, node->writes, node->write_count);
  copy.outputs = NULL;
  copy.inplace = NULL;
  copy.output_count = copy.inplace_count = 0;
  copy.workspace = align_size(node->workspace, graph->alignment);
  copy.recompute = node->recompute && node->write_count == 0;
  int32_t index = (int32_t)graph->nodes.count;
  array_push(graph->arena, &graph->nodes, copy);
  string_map_set(&graph->node_index, copy.id, index);
  return index;
}

int32_t plan_graph_add_output(PlanGraph *graph, int32_t node, const char *id, int64_t bytes, PlanDecision decision) {
  PlanNode *producer = &graph->nodes.items[node];
  bool forward = producer->phase != PLAN_PHASE_BACKWARD && producer->phase != PLAN_PHASE_UPDATE;
  PlanStorage storage = {.id = id, .bytes = bytes, .producer = node, .decision = decision};
  storage.role = forward ? PLAN_ROLE_ACTIVATIONS : PLAN_ROLE_GRADIENTS;
  int32_t index = add_storage(graph, storage);
  int32_t *outputs = NEW_ARRAY(graph->arena, int32_t, producer->output_count + 1);
  for (int32_t i = 0; i < producer->output_count; i++) outputs[i] = producer->outputs[i];
  outputs[producer->output_count++] = index;
  producer->outputs = outputs;
  return index;
}

void plan_graph_add_inplace(PlanGraph *graph, int32_t node, int32_t host, int32_t output) {
  PlanNode *owner = &graph->nodes.items[node];
  ASSERT(output >= 0 && output < graph->storages.count && graph->storages.items[output].producer == node);
  PlanInplace *pairs = NEW_ARRAY(graph->arena, PlanInplace, owner->inplace_count + 1);
  for (int32_t i = 0; i < owner->inplace_count; i++) pairs[i] = owner->inplace[i];
  pairs[owner->inplace_count++] = (PlanInplace){.host = host, .output = output};
  owner->inplace = pairs;
}

void plan_graph_add_result(PlanGraph *graph, int32_t storage) { graph->storages.items[storage].result = true; }

/* Appends node to a list whose last entry is at most node; counts first (list == NULL), fills in a second pass. */
static void append_once(int32_t *list, int32_t *count, int32_t *last, int32_t node) {
  if (*last == node) return;
  *last = node;
  if (list) list[*count] = node;
  ++*count;
}

static void collect_uses(PlanGraph *graph, bool fill) {
  int64_t count = graph->storages.count;
  int32_t *last_read = NEW_ARRAY(graph->arena, int32_t, count), *last_write = NEW_ARRAY(graph->arena, int32_t, count);
  for (int64_t s = 0; s < count; s++) {
    graph->storages.items[s].reader_count = graph->storages.items[s].writer_count = 0;
    last_read[s] = last_write[s] = -1;
  }
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    for (int32_t i = 0; i < node->input_count; i++) {
      PlanStorage *storage = &graph->storages.items[node->inputs[i]];
      append_once(fill ? storage->readers : NULL, &storage->reader_count, &last_read[node->inputs[i]], n);
    }
    for (int32_t i = 0; i < node->write_count; i++) {
      PlanStorage *storage = &graph->storages.items[node->writes[i]];
      append_once(fill ? storage->writers : NULL, &storage->writer_count, &last_write[node->writes[i]], n);
    }
  }
}

static void allocate_uses(PlanGraph *graph) {
  for (int64_t s = 0; s < graph->storages.count; s++) {
    PlanStorage *storage = &graph->storages.items[s];
    storage->readers = NEW_ARRAY(graph->arena, int32_t, storage->reader_count);
    storage->writers = NEW_ARRAY(graph->arena, int32_t, storage->writer_count);
  }
}

/* Stages start at the first backward node; without phases, after the last node that may be recomputed. */
static int32_t find_first_stage(const PlanGraph *graph) {
  int32_t after_recomputable = 0;
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    if (graph->nodes.items[n].phase == PLAN_PHASE_BACKWARD) return n;
    if (graph->nodes.items[n].recompute) after_recomputable = n + 1;
  }
  return after_recomputable;
}

void plan_graph_finish(PlanGraph *graph) {
  collect_uses(graph, false);
  allocate_uses(graph);
  collect_uses(graph, true);
  graph->first_stage = find_first_stage(graph);
  int64_t total = 0;
  graph->persistent_bytes = 0;
  graph->base_cost = 0;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    total = add_sizes(total, graph->storages.items[s].bytes);
    if (graph->storages.items[s].persistent) graph->persistent_bytes += graph->storages.items[s].bytes;
  }
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    total = add_sizes(total, graph->nodes.items[n].workspace);
    graph->base_cost += graph->nodes.items[n].cost;
  }
}

int32_t plan_graph_storage(const PlanGraph *graph, const char *id) {
  const int64_t *found = string_map_find(&graph->storage_index, id);
  return found ? (int32_t)*found : -1;
}

int32_t plan_graph_node(const PlanGraph *graph, const char *id) {
  const int64_t *found = string_map_find(&graph->node_index, id);
  return found ? (int32_t)*found : -1;
}

int32_t plan_graph_last_need(const PlanGraph *graph, int32_t storage) {
  const PlanStorage *what = &graph->storages.items[storage];
  if (what->result) return (int32_t)graph->nodes.count;
  return what->reader_count ? what->readers[what->reader_count - 1] : what->producer;
}

bool plan_graph_read_by_stages(const PlanGraph *graph, int32_t storage) {
  const PlanStorage *what = &graph->storages.items[storage];
  return what->reader_count > 0 && what->readers[what->reader_count - 1] >= graph->first_stage;
}

bool plan_graph_may_rerun(const PlanGraph *graph, int32_t node, int32_t position) {
  const PlanNode *what = &graph->nodes.items[node];
  if (!what->recompute) return false;
  for (int32_t i = 0; i < what->input_count; i++) {
    const PlanStorage *storage = &graph->storages.items[what->inputs[i]];
    for (int32_t w = 0; w < storage->writer_count; w++)
      if (storage->writers[w] > node && storage->writers[w] < position) return false;
  }
  return true;
}
