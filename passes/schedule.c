/* passes/schedule.c - frees and in-place choices for an order of nodes. */
#include "passes/schedule.h"

typedef struct ScheduleBuilder {
  const Graph *graph;
  const StorageTable *table;
  MemoryArena *arena;
  Schedule *schedule;
  int64_t *last_uses;   /* per storage: the last position in the order that reads or makes it */
  int64_t *first_pairs; /* per node: its first pair in table->inplace */
  bool *gone;           /* per storage: freed, or its bytes taken over */
} ScheduleBuilder;

static int storage_of(const ScheduleBuilder *b, ValueId value) { return b->table->layouts[value].storage; }

static void find_last_uses(ScheduleBuilder *b, MemoryArena *scratch, const NodeId *order, int64_t count) {
  b->last_uses = NEW_ARRAY(scratch, int64_t, b->table->storages.count);
  for (int64_t position = 0; position < count; position++) {
    const Node *node = graph_node(b->graph, order[position]);
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] != NO_VALUE) b->last_uses[storage_of(b, node->inputs[i])] = position;
    for (int i = 0; i < node->output_count; i++) b->last_uses[storage_of(b, node->outputs[i])] = position;
  }
}

static void find_first_pairs(ScheduleBuilder *b, MemoryArena *scratch) {
  b->first_pairs = NEW_ARRAY(scratch, int64_t, b->graph->nodes.count);
  for (int64_t i = b->table->inplace.count; i-- > 0;) b->first_pairs[b->table->inplace.items[i].node] = i;
}

static bool ends_here(const ScheduleBuilder *b, int storage, int64_t position) {
  const Storage *s = &b->table->storages.items[storage];
  return !s->persistent && !s->result && !b->gone[storage] && b->last_uses[storage] == position;
}

static void choose_hosts(ScheduleBuilder *b, Step *step, int64_t position) {
  const InplacePair *pairs = b->table->inplace.items;
  const Node *node = graph_node(b->graph, step->node);
  for (int o = 0; o < node->output_count; o++) {
    int output = storage_of(b, node->outputs[o]);
    for (int64_t i = b->first_pairs[step->node]; i < b->table->inplace.count && pairs[i].node == step->node; i++) {
      if (pairs[i].output != output || !ends_here(b, pairs[i].host, position)) continue;
      b->gone[pairs[i].host] = true;
      step->into_outputs[step->into_count] = output;
      step->into_hosts[step->into_count++] = pairs[i].host;
      break;
    }
  }
}

static void free_ended(ScheduleBuilder *b, ValueId value, int64_t position) {
  if (value == NO_VALUE || !ends_here(b, storage_of(b, value), position)) return;
  b->gone[storage_of(b, value)] = true;
  array_push(b->arena, &b->schedule->steps, ((Step){.node = NO_NODE, .storage = storage_of(b, value)}));
}

static void schedule_node(ScheduleBuilder *b, NodeId id, int64_t position) {
  const Node *node = graph_node(b->graph, id);
  Step step = {.run = true, .node = id, .storage = -1};
  choose_hosts(b, &step, position);
  array_push(b->arena, &b->schedule->steps, step);
  for (int i = 0; i < node->input_count; i++) free_ended(b, node->inputs[i], position);
  for (int i = 0; i < node->output_count; i++) free_ended(b, node->outputs[i], position);
}

Schedule *schedule_runs(const Graph *graph, const StorageTable *table, const NodeId *order, int64_t count,
                        MemoryArena *arena) {
  MemoryArena *scratch = memory_arena_create();
  ScheduleBuilder b = {.graph = graph, .table = table, .arena = arena, .schedule = NEW(arena, Schedule)};
  b.gone = NEW_ARRAY(scratch, bool, table->storages.count);
  find_last_uses(&b, scratch, order, count);
  find_first_pairs(&b, scratch);
  for (int64_t position = 0; position < count; position++) schedule_node(&b, order[position], position);
  const char *fault = replay_schedule(graph, table, b.schedule, NULL, scratch);
  if (fault) die("schedule: %s", fault);
  memory_arena_destroy(scratch);
  return b.schedule;
}
