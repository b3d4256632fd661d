/* passes/storage.c - which bytes every value lies in: storages, layouts, classes, constraints, in-place permissions. */
#include "passes/storage.h"

#include "passes/facts.h"
#include "runtime/program.h"

const char *storage_class_name(StorageClass class) {
  static const char *const names[STORAGE_CLASS_COUNT] = {"weights",     "gradients", "optimizer state", "activations",
                                                         "temporaries", "workspace", "inputs"};
  return names[class];
}

/* type NULL: the control block. */
static int add_storage(StorageBuilder *b, Storage storage, const Type *type) {
  storage.bytes = align_size(type ? type_bytes(type) : (int64_t)sizeof(RpControl), b->table->alignment);
  storage.elements = type ? type_elements(type) : 0;
  array_push(b->arena, &b->table->storages, storage);
  return (int)b->table->storages.count - 1;
}

/* ---- persistent storages: the same in every graph of the module ---- */

static StorageClass class_of_role(PersistentRole role) {
  switch (role) {
    case ROLE_OPTIMIZER:
      return STORAGE_OPTIMIZER;
    case ROLE_ACCUMULATOR:
      return STORAGE_GRADIENT;
    default:
      return STORAGE_WEIGHT;
  }
}

/* Values of the graph that name a persistent or an input, before any value of a node. */
static void place_shared_value(StorageBuilder *b, ValueId value, const char *name, StorageClass class) {
  const Type *type = value_type(b->graph, value);
  Storage storage = {.name = name, .root = value, .class = class, .persistent = true, .producer = NO_NODE};
  b->table->layouts[value] = (Layout){add_storage(b, storage, type), layout_dense(type)};
}

static void place_persistents(StorageBuilder *b) {
  const Module *module = b->graph->module;
  for (int i = 0; i < module->persistents.count; i++)
    place_shared_value(b, graph_persistent(b->graph, i), module->persistents.items[i].name,
                       class_of_role(module->persistents.items[i].role));
  for (int i = 0; i < module->inputs.count; i++)
    place_shared_value(b, graph_input(b->graph, i), module->inputs.items[i].name, STORAGE_INPUT);
  Storage control = {
      .name = "control", .root = NO_VALUE, .class = STORAGE_INPUT, .persistent = true, .producer = NO_NODE};
  b->table->control = add_storage(b, control, NULL);
}

/* ---- what nodes make ---- */

const Part *part_of(const StorageBuilder *b, const Node *node, int output) {
  if (node->original != NO_NODE) node = graph_node(b->graph, node->original);
  ValueId value = node->outputs[output];
  return value < b->table->part_count && b->table->parts[value].group ? &b->table->parts[value] : NULL;
}

/* The storage of an earlier output that this one shares, or -1. */
static int shared_storage(const StorageBuilder *b, const Node *node, int output) {
  for (int i = 0; i < output; i++) {
    const Part *other = part_of(b, node, i);
    if (other && other->group == part_of(b, node, output)->group) return b->table->layouts[node->outputs[i]].storage;
  }
  return -1;
}

static void place_results(StorageBuilder *b, NodeId id) {
  const Node *node = graph_node(b->graph, id);
  if (node_is_view(node)) return;
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = graph_value(b->graph, node->outputs[i]);
    const Part *part = part_of(b, node, i);
    Storage storage = {
        .root = node->outputs[i], .class = STORAGE_TEMPORARY, .producer = id, .constraint = value->constraint};
    int shared = part ? shared_storage(b, node, i) : -1;
    if (shared < 0) shared = add_storage(b, storage, part ? &part->whole : &value->type);
    b->table->layouts[node->outputs[i]] = (Layout){shared, part ? part->view : layout_dense(&value->type)};
  }
}

static void place_view(StorageBuilder *b, const Node *node) {
  const Layout *input = &b->table->layouts[node->inputs[0]];
  Layout *output = &b->table->layouts[node->outputs[0]];
  output->storage = input->storage;
  if (!op_info(node->op)->layout(b->graph, node, &input->view, &output->view)) die("storage: a view that needs a copy");
  if (graph_value(b->graph, node->outputs[0])->constraint == CONSTRAINT_KEEP)
    b->table->storages.items[output->storage].constraint = CONSTRAINT_KEEP;
}

/* Storages of clones come last, so that inserting clones leaves all others as they were. */
static void place_values(StorageBuilder *b) {
  const Graph *graph = b->graph;
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (graph_node(graph, id)->original == NO_NODE) place_results(b, id);
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (graph_node(graph, id)->original != NO_NODE) place_results(b, id);
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (node_is_view(graph_node(graph, id))) place_view(b, graph_node(graph, id));
}

static Storage *storage_of(const StorageBuilder *b, ValueId value) {
  return &b->table->storages.items[b->table->layouts[value].storage];
}

/* ---- classes ---- */

static bool reads_later(const StorageBuilder *b, const Node *reader, const Storage *storage) {
  if (storage->producer == NO_NODE) return false;
  const Node *producer = graph_node(b->graph, storage->producer);
  bool again = reader->original != NO_NODE && producer->original == NO_NODE;
  return producer->phase == PHASE_FORWARD && (reader->phase > PHASE_FORWARD || again);
}

static void mark_activations(StorageBuilder *b) {
  for (NodeId id = 0; id < b->graph->nodes.count; id++) {
    const Node *node = graph_node(b->graph, id);
    for (int i = 0; i < node->input_count && !node_is_view(node); i++)
      if (node->inputs[i] != NO_VALUE && reads_later(b, node, storage_of(b, node->inputs[i])))
        storage_of(b, node->inputs[i])->class = STORAGE_ACTIVATION;
  }
}

static void mark_gradients(StorageBuilder *b) {
  for (int64_t i = 0; i < b->graph->gradients.count; i++) {
    const GraphGradient *gradient = &b->graph->gradients.items[i];
    Storage *storage = storage_of(b, gradient->gradient);
    if (graph_value(b->graph, gradient->of)->kind == VALUE_PERSISTENT && !storage->persistent)
      storage->class = STORAGE_GRADIENT;
  }
}

/* A clone's storage and its original's are of one class: an activation that is made again is still one. */
static void mark_clones(StorageBuilder *b) {
  for (NodeId id = 0; id < b->graph->nodes.count; id++) {
    const Node *node = graph_node(b->graph, id);
    if (node->original == NO_NODE || node_is_view(node)) continue;
    const Node *original = graph_node(b->graph, node->original);
    for (int i = 0; i < node->output_count; i++) {
      Storage *clone = storage_of(b, node->outputs[i]), *first = storage_of(b, original->outputs[i]);
      if (clone->class == STORAGE_ACTIVATION || first->class == STORAGE_ACTIVATION)
        clone->class = first->class = STORAGE_ACTIVATION;
    }
  }
}

static void mark_result(StorageBuilder *b, const GraphOutput *output, bool always) {
  if (output->value == NO_VALUE || (!always && value_type(b->graph, output->value)->rank > 0)) return;
  storage_of(b, output->value)->result = !storage_of(b, output->value)->persistent;
  if (output->denominator != NO_VALUE)
    storage_of(b, output->denominator)->result = !storage_of(b, output->denominator)->persistent;
}

/* ---- recompute blocks ---- */

static int32_t outermost_block(const Graph *graph, int32_t block) {
  while (block && graph->recompute_parents.items[block - 1]) block = (int32_t)graph->recompute_parents.items[block - 1];
  return block;
}

static int32_t block_of_node(const Graph *graph, const Node *node) {
  return node->output_count ? outermost_block(graph, graph_value(graph, node->outputs[0])->recompute_block) : 0;
}

/* A storage that is made in a recompute block, and in the forward phase read there only, must be made again. */
static void mark_recomputed(StorageBuilder *b) {
  const Graph *graph = b->graph;
  bool *escapes = NEW_ARRAY(b->scratch, bool, b->table->storages.count);
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    for (int i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == NO_VALUE || node_is_view(node) || node->phase != PHASE_FORWARD) continue;
      int storage = b->table->layouts[node->inputs[i]].storage;
      NodeId producer = b->table->storages.items[storage].producer;
      if (producer != NO_NODE && block_of_node(graph, node) != block_of_node(graph, graph_node(graph, producer)))
        escapes[storage] = true;
    }
  }
  bool *named = graph_named_values(b->scratch, graph);
  for (int64_t v = 0; v < graph->values.count; v++)
    if (named[v] && b->table->layouts[v].storage >= 0) escapes[b->table->layouts[v].storage] = true;
  for (int64_t s = 0; s < b->table->storages.count; s++) {
    Storage *storage = &b->table->storages.items[s];
    if (storage->producer == NO_NODE || storage->constraint != CONSTRAINT_NONE || escapes[s]) continue;
    const Node *producer = graph_node(graph, storage->producer);
    if (producer->phase == PHASE_FORWARD && block_of_node(graph, producer)) storage->constraint = CONSTRAINT_RECOMPUTE;
  }
}

/* ---- the whole ---- */

static StorageTable *assign_with_parts(Graph *graph, int64_t alignment, const Part *parts, int64_t part_count,
                                       MemoryArena *arena) {
  for (int i = 0; i < graph->module->persistents.count; i++) graph_persistent(graph, i);
  for (int i = 0; i < graph->module->inputs.count; i++) graph_input(graph, i);
  StorageBuilder b = {.graph = graph, .table = NEW(arena, StorageTable), .arena = arena};
  b.scratch = memory_arena_create();
  *b.table = (StorageTable){.alignment = alignment, .parts = parts, .part_count = part_count};
  b.table->layouts = NEW_ARRAY(arena, Layout, graph->values.count);
  for (int64_t v = 0; v < graph->values.count; v++) b.table->layouts[v].storage = -1;
  place_persistents(&b);
  place_values(&b);
  mark_activations(&b);
  mark_gradients(&b);
  mark_clones(&b);
  mark_recomputed(&b);
  mark_result(&b, &graph->loss, true);
  for (int64_t i = 0; i < graph->outputs.count; i++) mark_result(&b, &graph->outputs.items[i], false);
  name_storages(&b);
  list_inplace_pairs(&b);
  memory_arena_destroy(b.scratch);
  return b.table;
}

StorageTable *assign_storages(Graph *graph, int64_t alignment, MemoryArena *arena) {
  return assign_with_parts(graph, alignment, NULL, 0, arena);
}

StorageTable *assign_storages_like(Graph *graph, const StorageTable *table, MemoryArena *arena) {
  return assign_with_parts(graph, table->alignment, table->parts, table->part_count, arena);
}

StorageTable *place_parts(Graph *graph, StorageTable *table, Schedule **schedule, MemoryArena *arena) {
  const Part *parts = find_parts(graph, table, *schedule, arena);
  if (!parts) return table;
  table = assign_with_parts(graph, table->alignment, parts, graph->values.count, arena);
  *schedule = order_graph(graph, table, arena);
  return table;
}
