/* passes/fuse.c - groups pointwise nodes into single loops.
 *
 * One walk in topological order. A pointwise node joins groups of its inputs in one of two ways: the group sinks to
 * the node's place, which is possible while nobody else has read it, or the node rises to the group's place, which
 * is possible when its other inputs are made before that. Every group stands at the place of one member (its anchor)
 * and reads only what has an earlier anchor, so that the groups, by anchor, are in topological order again.
 *
 * Moving a node past others must not lengthen lives: a group sinks only where the bytes of inputs that it keeps alive
 * longer are no more than the bytes of its values that need not live yet, and a node rises only where the inputs that
 * may go earlier are no smaller than its result. (Otherwise a sum of many gradients would wait for the last of them.)
 */
#include "passes/fuse.h"

#include "passes/facts.h"
#include "passes/passes.h"

typedef ARRAY(NodeId) NodeList;

typedef struct Fusion {
  Graph *graph;
  MemoryArena *scratch;
  NodeId *parents;   /* per node: union-find, the root indexes groups */
  Group **groups;    /* per root */
  int *remaining;    /* per value: reads outside its group so far known; named and kept values have one more */
  ValueId *bases;    /* per value: the value that it is a view of, or itself */
  NodeId *last_uses; /* per base value: the last node that reads it */
  /* per program and persistent value: the node that overwrites it, or NO_NODE; nodes that read it or a view of it */
  NodeId *writers[2];
  NodeList *readers[2];
} Fusion;

static NodeId find_root(const Fusion *f, NodeId node) {
  while (f->parents[node] != node) node = f->parents[node] = f->parents[f->parents[node]];
  return node;
}

static Group *group_of_node(const Fusion *f, NodeId node) { return f->groups[find_root(f, node)]; }

/* The group that makes a value; NULL for inputs and persistents. */
static Group *group_of_value(const Fusion *f, ValueId value) {
  NodeId producer = graph_value(f->graph, value)->producer;
  return producer == NO_NODE ? NULL : group_of_node(f, producer);
}

static int64_t base_bytes(const Fusion *f, ValueId value) { return type_bytes(value_type(f->graph, f->bases[value])); }

/* ---- facts about the graph, gathered once ---- */

static void find_bases(Fusion *f) {
  const Graph *graph = f->graph;
  f->bases = NEW_ARRAY(f->scratch, ValueId, graph->values.count);
  f->last_uses = NEW_ARRAY(f->scratch, NodeId, graph->values.count);
  for (int64_t v = 0; v < graph->values.count; v++) f->bases[v] = (ValueId)v, f->last_uses[v] = NO_NODE;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    if (node_is_view(node)) {
      f->bases[node->outputs[0]] = f->bases[node->inputs[0]];
      continue;
    }
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] != NO_VALUE) f->last_uses[f->bases[node->inputs[i]]] = (NodeId)id;
  }
}

static void find_writers(Fusion *f) {
  const Graph *graph = f->graph;
  for (int program = 0; program < 2; program++) {
    f->writers[program] = NEW_ARRAY(f->scratch, NodeId, graph->values.count);
    f->readers[program] = NEW_ARRAY(f->scratch, NodeList, graph->values.count);
    for (int64_t v = 0; v < graph->values.count; v++) f->writers[program][v] = NO_NODE;
  }
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    for (int i = 0; i < node->write_count; i++) f->writers[node_program(graph, node)][node->writes[i]] = (NodeId)id;
  }
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    int program = node_program(graph, node);
    for (int i = 0; i < node->input_count && !node_is_view(node); i++) {
      if (node->inputs[i] == NO_VALUE) continue;
      ValueId base = f->bases[node->inputs[i]];
      if (f->writers[program][base] != NO_NODE) array_push(f->scratch, &f->readers[program][base], (NodeId)id);
    }
  }
}

static void count_reads(Fusion *f) {
  f->remaining = graph_count_uses(f->scratch, f->graph);
  bool *named = graph_named_values(f->scratch, f->graph);
  for (int64_t v = 0; v < f->graph->values.count; v++)
    if (named[v] || graph_value(f->graph, (ValueId)v)->constraint == CONSTRAINT_KEEP) f->remaining[v]++;
}

/* ---- groups ---- */

static bool may_fuse(const Node *node) {
  return op_kind(node->op) == KIND_POINTWISE && !node->body && node->original == NO_NODE &&
         !op_has(node->op, OP_UNIFORM);
}

static bool reads_before(const Node *node, int input) {
  for (int i = 0; i < input; i++)
    if (node->inputs[i] == node->inputs[input]) return true;
  return false;
}

/* The group of a node alone. */
static Group *single_group(const Fusion *f, NodeId id) {
  const Node *node = graph_node(f->graph, id);
  Group *group = NEW(f->scratch, Group);
  *group = (Group){.anchor = id, .open = may_fuse(node), .phase = node->phase};
  if (!group->open) return group;
  const Value *result = graph_value(f->graph, node->output_count ? node->outputs[0] : node->writes[0]);
  group->shape = result->type;
  group->instruction_count = 1;
  if (node->output_count) {
    group->recompute_block = result->recompute_block;
    if (result->constraint == CONSTRAINT_RECOMPUTE) group->constraint = CONSTRAINT_RECOMPUTE;
    if (f->remaining[node->outputs[0]] > 0) group->unread[group->unread_count++] = node->outputs[0];
  }
  for (int i = 0; i < node->write_count; i++) group->writes[group->write_count++] = node->writes[i];
  for (int i = 0; i < node->input_count; i++) {
    if (reads_before(node, i)) continue;
    if (value_is_uniform(f->graph, node->inputs[i]))
      group->instruction_count++;
    else
      group->inputs[group->input_count++] = node->inputs[i];
  }
  return group;
}

static bool same_loop(const Group *a, const Group *b) {
  return a->open && b->open && a->phase == b->phase && a->recompute_block == b->recompute_block &&
         a->constraint == b->constraint && shape_equal(&a->shape, &b->shape);
}

/* How many of the node's inputs are this value? */
static int reads_of(const Node *node, ValueId value) {
  int count = 0;
  for (int i = 0; i < node->input_count; i++) count += node->inputs[i] == value;
  return count;
}

static bool add_input(Group *group, ValueId value) {
  for (int i = 0; i < group->input_count; i++)
    if (group->inputs[i] == value) return true;
  if (group->input_count == MAX_GROUP_INPUTS) return false;
  group->inputs[group->input_count++] = value;
  return true;
}

/* The union of two groups, one of which `node` has just joined or is about to: `node` is the only one that reads values
 * of the other. False when it is too large for one kernel. */
static bool unite(const Fusion *f, const Group *a, const Group *b, const Node *node, Group *result) {
  *result = *a;
  result->read_outside = a->read_outside || b->read_outside;
  result->instruction_count += b->instruction_count;
  result->input_count = result->unread_count = 0;
  if (result->instruction_count > MAX_GROUP_INSTRUCTIONS || a->write_count + b->write_count > MAX_GROUP_WRITES)
    return false;
  for (int i = 0; i < b->write_count; i++) result->writes[result->write_count++] = b->writes[i];
  const Group *parts[] = {a, b};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < parts[k]->input_count; i++) {
      const Group *source = group_of_value(f, parts[k]->inputs[i]);
      if (source != a && source != b && !add_input(result, parts[k]->inputs[i])) return false;
    }
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < parts[k]->unread_count; i++) {
      ValueId value = parts[k]->unread[i];
      bool ends = group_of_value(f, value) == b && f->remaining[value] == reads_of(node, value);
      if (ends) continue;
      if (result->unread_count == MAX_OP_OUTPUTS) return false;
      result->unread[result->unread_count++] = value;
    }
  return true;
}

/* ---- what moving a group may not break ---- */

static bool is_member(const Fusion *f, NodeId id, const Group *a, const Group *b) {
  const Group *group = group_of_node(f, id);
  return group == a || group == b;
}

/* Within one loop a persistent that is overwritten may be read at the element that is written only. */
static bool reads_in_place(const Fusion *f, const Node *node, ValueId persistent, const Type *shape) {
  for (int i = 0; i < node->input_count; i++)
    if (f->bases[node->inputs[i]] == persistent && node->inputs[i] != persistent) return false;
  return shape_equal(value_type(f->graph, persistent), shape);
}

static int program_of_group(const Fusion *f, const Group *group) {
  return node_program(f->graph, graph_node(f->graph, group->anchor));
}

/* Would everything that reads what a or b overwrite be a member, or stand before `anchor`? */
static bool writes_allowed(const Fusion *f, const Group *a, const Group *b, NodeId anchor, NodeId walked) {
  const Group *parts[] = {a, b};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < parts[k]->write_count; i++) {
      ValueId written = parts[k]->writes[i];
      const NodeList *readers = &f->readers[program_of_group(f, a)][written];
      for (int64_t r = 0; r < readers->count; r++) {
        NodeId reader = readers->items[r];
        if (reader <= walked && is_member(f, reader, a, b)) {
          if (!reads_in_place(f, graph_node(f->graph, reader), written, &a->shape)) return false;
        } else if (reader > walked || group_of_node(f, reader)->anchor >= anchor) {
          return false;
        }
      }
    }
  return true;
}

/* Would the group, at a later place, still stand before everything that overwrites what it reads? */
static bool reads_allowed(const Fusion *f, const Group *group, const Group *joined, NodeId walked) {
  for (int i = 0; i < group->input_count; i++) {
    NodeId writer = f->writers[program_of_group(f, group)][f->bases[group->inputs[i]]];
    if (writer != NO_NODE && writer <= walked && !is_member(f, writer, group, joined)) return false;
  }
  return true;
}

/* Is there nothing that runs between two places but members? Gives up after a while. */
static bool adjacent(const Fusion *f, NodeId first, NodeId last, const Group *a, const Group *b) {
  enum { FARTHEST = 64 };
  if (last - first > FARTHEST) return false;
  for (NodeId id = first + 1; id < last; id++) {
    const Node *node = graph_node(f->graph, id);
    if (!node_is_view(node) && !op_has(node->op, OP_UNIFORM) && !is_member(f, id, a, b)) return false;
  }
  return true;
}

static bool is_transient(const Fusion *f, ValueId value) {
  return graph_value(f->graph, f->bases[value])->kind == VALUE_RESULT;
}

/* Moving the group down to `place` keeps inputs alive that would have ended, and spares values that wait. */
static bool sinking_is_free(const Fusion *f, const Group *group, const Group *joined, NodeId place) {
  if (adjacent(f, group->anchor, place, group, joined)) return true;
  int64_t longer = 0, spared = 0;
  for (int i = 0; i < group->input_count; i++)
    if (is_transient(f, group->inputs[i]) && f->last_uses[f->bases[group->inputs[i]]] < place)
      longer += base_bytes(f, group->inputs[i]);
  for (int i = 0; i < group->unread_count; i++) spared += base_bytes(f, group->unread[i]);
  return longer <= spared;
}

/* Moving a node up to its group keeps its result alive longer, and ends what only it waits for. */
static bool rising_is_free(const Fusion *f, const Group *group, const Group *single, NodeId id) {
  if (adjacent(f, group->anchor, id, group, single)) return true;
  const Node *node = graph_node(f->graph, id);
  int64_t longer = 0, spared = 0;
  for (int i = 0; i < node->output_count; i++) longer += base_bytes(f, node->outputs[i]);
  for (int i = 0; i < single->input_count; i++) {
    ValueId value = single->inputs[i];
    bool ends = group_of_value(f, value) == group ? f->remaining[value] == reads_of(node, value)
                                                  : f->last_uses[f->bases[value]] <= id;
    if (is_transient(f, value) && ends) spared += base_bytes(f, value);
  }
  return longer <= spared;
}

/* ---- the walk ---- */

/* b's members become a's. */
static void adopt(Fusion *f, Group *a, Group *b, const Group *united) {
  NodeId root = find_root(f, a->anchor), other = find_root(f, b->anchor);
  f->parents[other] = root;
  *a = *united;
}

/* Distinct groups of the node's inputs, the latest first. */
static int candidate_groups(const Fusion *f, const Group *own, const Node *node, Group **candidates) {
  int count = 0;
  for (int i = 0; i < node->input_count; i++) {
    Group *group = node->inputs[i] == NO_VALUE ? NULL : group_of_value(f, node->inputs[i]);
    if (!group || reads_before(node, i) || !same_loop(own, group)) continue;
    int at = 0;
    while (at < count && candidates[at]->anchor > group->anchor) at++;
    if (at < count && candidates[at] == group) continue;
    for (int k = count++; k > at; k--) candidates[k] = candidates[k - 1];
    candidates[at] = group;
  }
  return count;
}

static bool sink(Fusion *f, Group *own, Group *group, NodeId id) {
  Group united;
  if (group->read_outside || !reads_allowed(f, group, own, id) || !sinking_is_free(f, group, own, id) ||
      !writes_allowed(f, own, group, own->anchor, id) || !unite(f, own, group, graph_node(f->graph, id), &united))
    return false;
  adopt(f, own, group, &united);
  return true;
}

static bool rise(Fusion *f, Group *own, Group *group, NodeId id) {
  for (int i = 0; i < own->input_count; i++) {
    const Group *source = group_of_value(f, own->inputs[i]);
    if (source && source != group && source->anchor >= group->anchor) return false;
  }
  Group united;
  if (!rising_is_free(f, group, own, id) || !writes_allowed(f, own, group, group->anchor, id) ||
      !unite(f, own, group, graph_node(f->graph, id), &united))
    return false;
  united.anchor = group->anchor;
  adopt(f, own, group, &united);
  return true;
}

/* A reduction takes the group that only it reads as its body. */
static void absorb(Fusion *f, Group *own, NodeId id) {
  const Node *node = graph_node(f->graph, id);
  if (op_kind(node->op) != KIND_REDUCTION || node->body || node->original != NO_NODE) return;
  Group *group = group_of_value(f, node->inputs[0]);
  const Value *result = graph_value(f->graph, node->outputs[0]);
  bool sole = group && group->open && group->unread_count == 1 && group->unread[0] == node->inputs[0] &&
              f->remaining[node->inputs[0]] == 1 && !group->write_count && !group->read_outside;
  if (!sole || group->phase != node->phase || group->recompute_block != result->recompute_block ||
      (group->constraint == CONSTRAINT_RECOMPUTE) != (result->constraint == CONSTRAINT_RECOMPUTE) ||
      !reads_allowed(f, group, own, id) || !sinking_is_free(f, group, own, id))
    return;
  Group united = *group;
  united.anchor = id;
  united.open = false;
  adopt(f, own, group, &united);
}

static void walk_node(Fusion *f, NodeId id) {
  const Node *node = graph_node(f->graph, id);
  Group *own = f->groups[id] = single_group(f, id);
  if (own->open) {
    Group *candidates[MAX_POINTWISE_INPUTS];
    int count = candidate_groups(f, own, node, candidates), sunk = 0;
    for (int i = 0; i < count; i++) sunk += sink(f, own, candidates[i], id);
    for (int i = 0; i < count && !sunk; i++)
      if (rise(f, own, candidates[i], id)) break;
  } else {
    absorb(f, own, id);
  }
  for (int i = 0; i < node->input_count; i++) {
    Group *source = node->inputs[i] == NO_VALUE ? NULL : group_of_value(f, node->inputs[i]);
    if (!source) continue;
    if (source == own && own->open)
      f->remaining[node->inputs[i]]--;
    else if (source != own)
      source->read_outside = true;
  }
}

/* ---- building the fused graph ---- */

/* Members of every group in order: those of root r are members[starts[r]] … members[starts[r + 1] - 1]. */
static const Node **sort_members(const Fusion *f, int64_t count, const Node *nodes, int64_t *starts) {
  const Node **members = NEW_ARRAY(f->scratch, const Node *, count + 1);
  int64_t *next = NEW_ARRAY(f->scratch, int64_t, count + 1);
  for (NodeId id = 0; id < count; id++) starts[find_root(f, id) + 1]++;
  for (NodeId id = 0; id < count; id++) starts[id + 1] += starts[id];
  memcpy(next, starts, (size_t)(count + 1) * sizeof *next);
  for (NodeId id = 0; id < count; id++) members[next[find_root(f, id)]++] = &nodes[id];
  return members;
}

static bool reads_constant(const Graph *graph, const Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != NO_VALUE && value_is_uniform(graph, node->inputs[i])) return true;
  return false;
}

static void build_groups(Fusion *f) {
  Graph *graph = f->graph;
  int64_t count = graph->nodes.count;
  Node *fused = NEW_ARRAY(f->scratch, Node, count);
  int64_t *starts = NEW_ARRAY(f->scratch, int64_t, count + 1), fused_count = 0;
  const Node **members = sort_members(f, count, graph->nodes.items, starts);
  for (NodeId id = 0; id < count; id++) {
    NodeId root = find_root(f, id);
    const Group *group = f->groups[root];
    if (group->anchor != id) continue;
    int member_count = (int)(starts[root + 1] - starts[root]);
    const Node *anchor = graph_node(graph, id), **first = &members[starts[root]];
    if (member_count == 1 && !(group->open && reads_constant(graph, anchor)))
      fused[fused_count++] = *anchor;
    else if (op_kind(anchor->op) == KIND_REDUCTION)
      fused[fused_count++] = build_fused(graph, group, member_count - 1, first, anchor, f->remaining);
    else
      fused[fused_count++] = build_fused(graph, group, member_count, first, NULL, f->remaining);
  }
  if (fused_count) memcpy(graph->nodes.items, fused, (size_t)fused_count * sizeof *fused);
  graph->nodes.count = fused_count;
}

void fuse_graph(Graph *graph, MemoryArena *scratch) {
  graph_index(graph);
  Fusion f = {.graph = graph, .scratch = scratch};
  f.parents = NEW_ARRAY(scratch, NodeId, graph->nodes.count);
  f.groups = NEW_ARRAY(scratch, Group *, graph->nodes.count);
  find_bases(&f);
  find_writers(&f);
  count_reads(&f);
  for (NodeId id = 0; id < graph->nodes.count; id++) f.parents[id] = id;
  for (NodeId id = 0; id < graph->nodes.count; id++) walk_node(&f, id);
  build_groups(&f);
  graph_remove_dead(graph, scratch);
}
