/* passes/memplan.c - an offset in the arena for every storage.
 *
 * Persistent storages lie one after the other in table order, which is the same in every graph of a module; behind them
 * the packing engine places the transient ones by their lifetimes. An output that takes an input's bytes continues the
 * same buffer. Workspace is a buffer that lives for one step. */
#include "passes/packing/packing.h"
#include "passes/passes.h"

typedef struct Planner {
  const Graph *graph;
  const StorageTable *table;
  const Schedule *schedule;
  MemoryArena *scratch;
  ARRAY(PackingBuffer) buffers;
  int64_t *buffer_of; /* per storage: its buffer, -1 where it has none (yet) */
} Planner;

static int64_t start_buffer(Planner *p, int64_t step, int64_t bytes) {
  PackingBuffer buffer = {.lower = step, .upper = p->schedule->steps.count, .size = bytes};
  array_push(p->scratch, &p->buffers, buffer);
  return p->buffers.count - 1;
}

static void place_run(Planner *p, int64_t index, int64_t *workspaces) {
  const Step *step = &p->schedule->steps.items[index];
  const Node *node = graph_node(p->graph, step->node);
  for (int i = 0; i < step->into_count; i++) p->buffer_of[step->into_outputs[i]] = p->buffer_of[step->into_hosts[i]];
  for (int i = 0; i < node->output_count; i++) {
    int storage = p->table->layouts[node->outputs[i]].storage;
    if (p->buffer_of[storage] < 0)
      p->buffer_of[storage] = start_buffer(p, index, p->table->storages.items[storage].bytes);
  }
  workspaces[step->node] = -1;
  if (!node->workspace) return;
  workspaces[step->node] = start_buffer(p, index, align_size(node->workspace, p->table->alignment));
  p->buffers.items[workspaces[step->node]].upper = index + 1;
}

/* One buffer per chain of storages that take over each other's bytes, and per workspace. */
static void collect_buffers(Planner *p, int64_t *workspaces) {
  for (int64_t i = 0; i < p->schedule->steps.count; i++) {
    const Step *step = &p->schedule->steps.items[i];
    if (step->run)
      place_run(p, i, workspaces);
    else
      p->buffers.items[p->buffer_of[step->storage]].upper = i;
  }
}

static int64_t place_persistents(const StorageTable *table, MemoryMap *map) {
  int64_t end = 0;
  for (int64_t s = 0; s < table->storages.count; s++) {
    map->offsets[s] = -1;
    if (!table->storages.items[s].persistent) continue;
    map->offsets[s] = end;
    end = add_sizes(end, table->storages.items[s].bytes);
  }
  return end;
}

MemoryMap *plan_memory(const Graph *graph, const StorageTable *table, const Schedule *schedule, int64_t capacity,
                       int64_t effort, MemoryArena *arena) {
  Planner p = {.graph = graph, .table = table, .schedule = schedule, .scratch = memory_arena_create()};
  MemoryMap *map = NEW(arena, MemoryMap);
  map->offsets = NEW_ARRAY(arena, int64_t, table->storages.count);
  map->workspace_offsets = NEW_ARRAY(arena, int64_t, graph->nodes.count);
  int64_t *workspaces = NEW_ARRAY(p.scratch, int64_t, graph->nodes.count);
  for (int64_t n = 0; n < graph->nodes.count; n++) workspaces[n] = -1;
  p.buffer_of = NEW_ARRAY(p.scratch, int64_t, table->storages.count);
  for (int64_t s = 0; s < table->storages.count; s++) p.buffer_of[s] = -1;
  map->persistent_bytes = place_persistents(table, map);
  map->control_offset = map->offsets[table->control];
  collect_buffers(&p, workspaces);
  int64_t room = capacity < 0 ? 0 : capacity > map->persistent_bytes ? capacity - map->persistent_bytes : 1;
  PackingOptions options = {.alignment = table->alignment, .capacity = room, .effort = effort};
  PackingResult packed = pack_buffers(p.buffers.items, p.buffers.count, &options);
  map->arena_bytes = add_sizes(map->persistent_bytes, packed.makespan);
  for (int64_t s = 0; s < table->storages.count; s++)
    if (p.buffer_of[s] >= 0) map->offsets[s] = map->persistent_bytes + p.buffers.items[p.buffer_of[s]].offset;
  for (int64_t n = 0; n < graph->nodes.count; n++)
    map->workspace_offsets[n] = workspaces[n] < 0 ? -1 : map->persistent_bytes + p.buffers.items[workspaces[n]].offset;
  memory_arena_destroy(p.scratch);
  return map;
}
