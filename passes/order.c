/* passes/order.c - the default schedule: program order, with updates as early as they may run.
 *
 * A node depends on those that make what it reads and, when it overwrites a persistent, on all that read the old value.
 * Forward and backward nodes keep their place. Updates (nodes of the update phase, and all that overwrite) run as soon
 * as the last node that they depend on has run, but behind all that is forward, so that gradients die early. Update
 * nodes that no gradient reaches (learning rates and the like) run just before the first node that reads them. States
 * that a `recompute` block reads are overwritten at the end of the micro-step, since what is played again must see the
 * old value. With accumulation the update phase is a program of its own behind the micro-step and keeps its place as a
 * whole. */
#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/schedule.h"

typedef ARRAY(NodeId) NodeList;

typedef struct Scheduler {
  const Graph *graph;
  const StorageTable *table;
  MemoryArena *scratch;
  NodeId *producers;    /* per storage, NO_NODE for persistent ones */
  NodeList *successors; /* per node */
  int *missing;         /* per node: nodes that it depends on and that have not run */
  bool *early, *lazy, *done;
  bool *held;     /* per node: overwrites what the backward pass reads again; runs at the end of the micro-step */
  NodeList ready; /* early nodes without missing ones, ascending from `next_ready` on */
  int64_t next_ready;
  NodeList order;
} Scheduler;

static int storage_of(const Scheduler *s, ValueId value) { return s->table->layouts[value].storage; }

/* ---- dependences ---- */

static bool reads_result(const Scheduler *s, const Node *node, int input) {
  return node->inputs[input] != NO_VALUE && s->producers[storage_of(s, node->inputs[input])] != NO_NODE;
}

/* Update nodes that depend on no other phase and whose turn no writer waits for. */
static void find_lazy(Scheduler *s, const bool *overwritten) {
  const Graph *graph = s->graph;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    if (node_is_view(node) || node->phase != PHASE_UPDATE || node->write_count) continue;
    s->lazy[id] = true;
    for (int i = 0; i < node->input_count && s->lazy[id]; i++) {
      if (node->inputs[i] == NO_VALUE) continue;
      int storage = storage_of(s, node->inputs[i]);
      s->lazy[id] = reads_result(s, node, i) ? s->lazy[s->producers[storage]] : !overwritten[storage];
    }
  }
}

static void depend(Scheduler *s, NodeId first, NodeId then) {
  array_push(s->scratch, &s->successors[first], then);
  s->missing[then]++;
}

static void find_dependences(Scheduler *s) {
  const Graph *graph = s->graph;
  int64_t storages = s->table->storages.count;
  NodeId *writers = NEW_ARRAY(s->scratch, NodeId, 2 * storages);
  bool *overwritten = NEW_ARRAY(s->scratch, bool, storages);
  for (int64_t i = 0; i < 2 * storages; i++) writers[i] = NO_NODE;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    for (int i = 0; i < node->write_count; i++) {
      writers[2 * storage_of(s, node->writes[i]) + node_program(graph, node)] = id;
      overwritten[storage_of(s, node->writes[i])] = true;
    }
  }
  find_lazy(s, overwritten);
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    for (int i = 0; i < node->input_count && !node_is_view(node); i++) {
      if (node->inputs[i] == NO_VALUE) continue;
      int storage = storage_of(s, node->inputs[i]);
      NodeId producer = s->producers[storage], writer = writers[2 * storage + node_program(graph, node)];
      if (producer != NO_NODE && !s->lazy[producer]) depend(s, producer, id);
      if (writer != NO_NODE && writer != id) depend(s, id, writer);
    }
  }
}

/* The update program must find everything it reads in persistents. */
static void check_programs(const Scheduler *s) {
  for (NodeId id = 0; id < s->graph->nodes.count; id++) {
    const Node *node = graph_node(s->graph, id);
    for (int i = 0; i < node->input_count && !node_is_view(node); i++)
      if (reads_result(s, node, i) &&
          node_program(s->graph, graph_node(s->graph, s->producers[storage_of(s, node->inputs[i])])) !=
              node_program(s->graph, node))
        die("order: node %d of the update program reads '%s' of the micro-step", id,
            s->table->storages.items[storage_of(s, node->inputs[i])].name);
  }
}

/* ---- running ---- */

static void make_ready(Scheduler *s, NodeId id) {
  array_push(s->scratch, &s->ready, id);
  int64_t at = s->ready.count - 1;
  for (; at > s->next_ready && s->ready.items[at - 1] > id; at--) s->ready.items[at] = s->ready.items[at - 1];
  s->ready.items[at] = id;
}

static void run_alone(Scheduler *s, NodeId id) {
  s->done[id] = true;
  array_push(s->scratch, &s->order, id);
  for (int64_t i = 0; i < s->successors[id].count; i++) {
    NodeId then = s->successors[id].items[i];
    if (--s->missing[then] == 0 && s->early[then]) make_ready(s, then);
  }
}

/* The first lazy node that the node reads and that has not run, or NO_NODE. */
static NodeId lazy_input(const Scheduler *s, NodeId id) {
  const Node *node = graph_node(s->graph, id);
  for (int i = 0; i < node->input_count; i++) {
    if (!reads_result(s, node, i)) continue;
    NodeId producer = s->producers[storage_of(s, node->inputs[i])];
    if (s->lazy[producer] && !s->done[producer]) return producer;
  }
  return NO_NODE;
}

/* Runs a node after the lazy ones that it needs. */
static void run_node(Scheduler *s, NodeId id) {
  NodeList stack = {0};
  array_push(s->scratch, &stack, id);
  while (stack.count) {
    NodeId top = stack.items[stack.count - 1], needed = lazy_input(s, top);
    if (needed != NO_NODE) {
      array_push(s->scratch, &stack, needed);
    } else {
      stack.count--;
      run_alone(s, top);
    }
  }
}

static void run_ready(Scheduler *s) {
  while (s->next_ready < s->ready.count) {
    NodeId id = s->ready.items[s->next_ready++];
    if (!s->done[id]) run_node(s, id);
  }
}

/* Nodes that may run early, but not before all that is forward: the planner's stages begin with the first of them. */
static bool waits_for_forward(const Scheduler *s, NodeId id) {
  return s->early[id] && graph_node(s->graph, id)->phase != PHASE_FORWARD;
}

static void mark_early(Scheduler *s) {
  bool update_program = s->graph->module->training.accumulate > 1;
  for (NodeId id = 0; id < s->graph->nodes.count; id++) {
    const Node *node = graph_node(s->graph, id);
    if (node_is_view(node)) continue;
    s->early[id] = node->phase == PHASE_UPDATE ? !update_program && !s->lazy[id] : node->write_count > 0;
    s->missing[id] += waits_for_forward(s, id);
  }
}

/* Does a node that is to be played again read the storage? Its clone must see the value from before the step. */
static bool is_read_again(const Scheduler *s, int storage) {
  for (NodeId id = 0; id < s->graph->nodes.count; id++) {
    const Node *node = graph_node(s->graph, id);
    bool again = false, reads = false;
    for (int i = 0; i < node->output_count && !node_is_view(node); i++)
      again = again || graph_value(s->graph, node->outputs[i])->recompute_block > 0;
    for (int i = 0; i < node->input_count && again; i++)
      reads = reads || (node->inputs[i] != NO_VALUE && storage_of(s, node->inputs[i]) == storage);
    if (reads) return true;
  }
  return false;
}

static void hold_writers(Scheduler *s) {
  for (NodeId id = 0; id < s->graph->nodes.count; id++) {
    const Node *node = graph_node(s->graph, id);
    for (int i = 0; i < node->write_count && node->phase == PHASE_FORWARD; i++)
      s->held[id] = s->held[id] || is_read_again(s, storage_of(s, node->writes[i]));
    s->missing[id] += s->held[id];
  }
}

static void release_writers(Scheduler *s) {
  for (NodeId id = 0; id < s->graph->nodes.count; id++) {
    if (s->held[id] && --s->missing[id] == 0) make_ready(s, id);
    s->held[id] = false;
  }
  run_ready(s);
}

static void end_forward(Scheduler *s) {
  for (NodeId id = 0; id < s->graph->nodes.count; id++)
    if (waits_for_forward(s, id) && --s->missing[id] == 0) make_ready(s, id);
  run_ready(s);
}

static void run_in_order(Scheduler *s) {
  const Graph *graph = s->graph;
  mark_early(s);
  hold_writers(s);
  bool forward = true, update_program = graph->module->training.accumulate > 1;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    if (node_is_view(node)) continue;
    if (forward && node->phase != PHASE_FORWARD) end_forward(s);
    forward = forward && node->phase == PHASE_FORWARD;
    if (update_program && node->phase == PHASE_UPDATE) release_writers(s);
    if (s->done[id] || s->lazy[id]) continue;
    if (s->missing[id])
      s->early[id] = true; /* waits for an update that waits in turn; follows it at once */
    else
      run_node(s, id);
    run_ready(s);
  }
  release_writers(s);
  for (NodeId id = 0; id < graph->nodes.count; id++) /* lazy ones that are only logged */
    if (s->lazy[id] && !s->done[id]) run_node(s, id);
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (!s->done[id] && !node_is_view(graph_node(graph, id)))
      die("order: node %d (%s) and what it overwrites wait for each other", id,
          op_info(graph_node(graph, id)->op)->name);
}

Schedule *order_graph(Graph *graph, const StorageTable *table, MemoryArena *arena) {
  Scheduler s = {.graph = graph, .table = table, .scratch = memory_arena_create()};
  s.producers = NEW_ARRAY(s.scratch, NodeId, table->storages.count);
  s.successors = NEW_ARRAY(s.scratch, NodeList, graph->nodes.count);
  s.missing = NEW_ARRAY(s.scratch, int, graph->nodes.count);
  s.early = NEW_ARRAY(s.scratch, bool, graph->nodes.count);
  s.lazy = NEW_ARRAY(s.scratch, bool, graph->nodes.count);
  s.done = NEW_ARRAY(s.scratch, bool, graph->nodes.count);
  s.held = NEW_ARRAY(s.scratch, bool, graph->nodes.count);
  for (int64_t i = 0; i < table->storages.count; i++) s.producers[i] = table->storages.items[i].producer;
  find_dependences(&s);
  check_programs(&s);
  run_in_order(&s);
  Schedule *schedule = schedule_runs(graph, table, s.order.items, s.order.count, arena);
  memory_arena_destroy(s.scratch);
  return schedule;
}
