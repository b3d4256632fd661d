/* passes/replay.c - executes a schedule by the counting rules (docs/design.md, section 6) and measures it. */
#include "passes/facts.h"
#include "passes/passes.h"

typedef struct Replay {
  const Graph *graph;
  const StorageTable *table;
  Schedule *schedule;
  MemoryArena *arena;
  bool *live;         /* per storage */
  Anatomy held;       /* bytes of everything live, by class */
  int64_t held_bytes; /* their sum */
  bool *ran;          /* per node */
  NodeId *writers;    /* per storage and program: the node that has overwritten it, or NO_NODE */
  int64_t step;
  const char *fault;
} Replay;

static bool fail(Replay *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Replay *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = memory_format_list(r->arena, format, arguments);
  va_end(arguments);
  r->fault = r->step < r->schedule->steps.count ? memory_format(r->arena, "step %lld: %s", (long long)r->step, text)
                                                : memory_format(r->arena, "at the end: %s", text);
  return false;
}

static const Storage *storage_at(const Replay *r, int storage) { return &r->table->storages.items[storage]; }
static int storage_of(const Replay *r, ValueId value) { return r->table->layouts[value].storage; }

static void hold(Replay *r, int storage, bool live) {
  const Storage *s = storage_at(r, storage);
  r->live[storage] = live;
  r->held.bytes[s->class] += live ? s->bytes : -s->bytes;
  r->held_bytes += live ? s->bytes : -s->bytes;
}

static bool free_storage(Replay *r, int storage) {
  if (storage < 0 || storage >= r->table->storages.count)
    return fail(r, "frees storage %d, which does not exist", storage);
  const Storage *s = storage_at(r, storage);
  if (s->persistent) return fail(r, "frees '%s', which is persistent", s->name);
  if (!r->live[storage]) return fail(r, "frees '%s', which is not live", s->name);
  hold(r, storage, false);
  return true;
}

/* Inputs are live, and persistent ones as they were before the step (within their program). */
static bool check_inputs(Replay *r, NodeId id) {
  const Node *node = graph_node(r->graph, id);
  for (int i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == NO_VALUE) continue;
    int storage = storage_of(r, node->inputs[i]);
    if (storage < 0 || !r->live[storage])
      return fail(r, "node %d reads '%s', which is not live", id, storage < 0 ? "?" : storage_at(r, storage)->name);
    NodeId writer = r->writers[2 * storage + node_program(r->graph, node)];
    if (writer != NO_NODE)
      return fail(r, "node %d must see '%s' as it was before node %d wrote it", id, storage_at(r, storage)->name,
                  writer);
  }
  return true;
}

static bool is_input(const Replay *r, const Node *node, int storage) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != NO_VALUE && storage_of(r, node->inputs[i]) == storage) return true;
  return false;
}

static bool is_output(const Replay *r, const Node *node, int storage) {
  for (int i = 0; i < node->output_count; i++)
    if (storage_of(r, node->outputs[i]) == storage) return true;
  return false;
}

/* Index of the first pair of the node or of one after it: pairs stand in node order. */
static int64_t first_pair(const StorageTable *table, NodeId node) {
  int64_t low = 0, high = table->inplace.count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (table->inplace.items[middle].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool permitted(const StorageTable *table, NodeId node, int host, int output) {
  const InplacePair *pairs = table->inplace.items;
  for (int64_t i = first_pair(table, node); i < table->inplace.count && pairs[i].node == node; i++)
    if (pairs[i].host == host && pairs[i].output == output) return true;
  return false;
}

static bool check_hosts(Replay *r, const Step *step) {
  const Node *node = graph_node(r->graph, step->node);
  for (int i = 0; i < step->into_count; i++) {
    int host = step->into_hosts[i], output = step->into_outputs[i];
    if (!permitted(r->table, step->node, host, output) || !is_input(r, node, host) || !is_output(r, node, output))
      return fail(r, "node %d may not put storage %d into storage %d", step->node, output, host);
    const Storage *from = storage_at(r, host), *to = storage_at(r, output);
    if (from->persistent || from->result || from->bytes != to->bytes)
      return fail(r, "'%s' cannot take the bytes of '%s'", to->name, from->name);
    for (int k = 0; k < i; k++)
      if (step->into_hosts[k] == host || step->into_outputs[k] == output)
        return fail(r, "'%s' is placed twice, or into bytes that are taken", to->name);
  }
  return true;
}

/* Outputs that are parts of one storage count once. */
static bool shares_storage(const Replay *r, const Node *node, int output) {
  for (int i = 0; i < output; i++)
    if (storage_of(r, node->outputs[i]) == storage_of(r, node->outputs[output])) return true;
  return false;
}

static bool placed_into_host(const Step *step, int output) {
  for (int i = 0; i < step->into_count; i++)
    if (step->into_outputs[i] == output) return true;
  return false;
}

/* What is live while the node runs: everything held, outputs that get bytes of their own, workspace. */
static int64_t measure(Replay *r, const Step *step) {
  const Node *node = graph_node(r->graph, step->node);
  Anatomy during = r->held;
  for (int i = 0; i < node->output_count; i++) {
    const Storage *output = storage_at(r, storage_of(r, node->outputs[i]));
    if (!shares_storage(r, node, i) && !placed_into_host(step, storage_of(r, node->outputs[i])))
      during.bytes[output->class] += output->bytes;
  }
  during.bytes[STORAGE_WORKSPACE] += align_size(node->workspace, r->table->alignment);
  int64_t bytes = 0;
  for (int class = 0; class < STORAGE_CLASS_COUNT; class ++) bytes = add_sizes(bytes, during.bytes[class]);
  if (bytes > r->schedule->live_peak) {
    r->schedule->live_peak = bytes;
    r->schedule->peak_step = r->step;
    r->schedule->anatomy = during;
  }
  return bytes;
}

static bool run_node(Replay *r, const Step *step, int64_t *bytes) {
  if (step->node < 0 || step->node >= r->graph->nodes.count)
    return fail(r, "runs node %d, which does not exist", step->node);
  const Node *node = graph_node(r->graph, step->node);
  if (node_is_view(node)) return fail(r, "runs node %d, which is a view", step->node);
  if (r->ran[step->node]) return fail(r, "runs node %d a second time", step->node);
  if (!check_inputs(r, step->node) || !check_hosts(r, step)) return false;
  *bytes = measure(r, step);
  for (int i = 0; i < step->into_count; i++)
    if (!free_storage(r, step->into_hosts[i])) return false;
  for (int i = 0; i < node->output_count; i++)
    if (!shares_storage(r, node, i)) hold(r, storage_of(r, node->outputs[i]), true);
  for (int i = 0; i < node->write_count; i++)
    r->writers[2 * storage_of(r, node->writes[i]) + node_program(r->graph, node)] = step->node;
  return r->ran[step->node] = true;
}

static bool check_end(Replay *r) {
  for (int i = 0; i < r->table->storages.count; i++) {
    const Storage *s = storage_at(r, i);
    if (s->result && !r->live[i]) return fail(r, "result '%s' is not live", s->name);
    if (!s->result && !s->persistent && r->live[i]) return fail(r, "'%s' was never freed", s->name);
  }
  for (NodeId id = 0; id < r->graph->nodes.count; id++)
    if (!r->ran[id] && !node_is_view(graph_node(r->graph, id))) return fail(r, "node %d never ran", id);
  return true;
}

static Replay start_replay(const Graph *graph, const StorageTable *table, Schedule *schedule, MemoryArena *arena) {
  Replay r = {.graph = graph, .table = table, .schedule = schedule, .arena = arena};
  r.live = NEW_ARRAY(arena, bool, table->storages.count);
  r.ran = NEW_ARRAY(arena, bool, graph->nodes.count);
  r.writers = NEW_ARRAY(arena, NodeId, 2 * table->storages.count);
  for (int64_t i = 0; i < 2 * table->storages.count; i++) r.writers[i] = NO_NODE;
  for (int i = 0; i < table->storages.count; i++)
    if (table->storages.items[i].persistent) hold(&r, i, true);
  schedule->live_peak = r.held_bytes;
  schedule->peak_step = -1;
  schedule->anatomy = r.held;
  return r;
}

const char *replay_schedule(const Graph *graph, const StorageTable *table, Schedule *schedule, int64_t *live_bytes,
                            MemoryArena *arena) {
  Replay r = start_replay(graph, table, schedule, arena);
  bool sound = true;
  for (; sound && r.step < schedule->steps.count; r.step += sound) {
    const Step *step = &schedule->steps.items[r.step];
    int64_t bytes = 0;
    sound = step->run ? run_node(&r, step, &bytes) : free_storage(&r, step->storage);
    if (live_bytes) live_bytes[r.step] = step->run ? bytes : r.held_bytes;
  }
  if (sound) check_end(&r);
  return r.fault;
}
