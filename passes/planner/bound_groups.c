/* passes/planner/bound_groups.c - builds groups from their last nodes backwards. */
#include "passes/planner/bound_groups.h"

bool may_be_dropped(const PlanGraph *graph, int32_t storage) {
  const PlanStorage *what = &graph->storages.items[storage];
  return !what->persistent && what->decision != PLAN_KEEP && graph->nodes.items[what->producer].recompute;
}

static bool contains(const int32_t *list, int32_t count, int32_t storage) {
  for (int32_t i = 0; i < count; i++)
    if (list[i] == storage) return true;
  return false;
}

/* Is everything in `list` that may be gone, but for `without`, in `other` too? */
static bool covered(const PlanGraph *graph, const int32_t *list, int32_t count, int32_t without, const int32_t *other,
                    int32_t other_count) {
  for (int32_t i = 0; i < count; i++)
    if (list[i] != without && may_be_dropped(graph, list[i]) && !contains(other, other_count, list[i])) return false;
  return true;
}

/* The root of the group that node n may join, or -1. */
static int32_t group_to_join(const PlanGraph *graph, const BoundGroup *groups, int32_t n) {
  const PlanNode *node = &graph->nodes.items[n];
  if (!node->recompute || node->output_count != 1) return -1;
  const PlanStorage *u = &graph->storages.items[node->outputs[0]];
  if (u->result || u->decision == PLAN_KEEP || u->reader_count != 1 || u->readers[0] >= graph->first_stage) return -1;
  const BoundGroup *group = &groups[groups[u->readers[0]].root];
  const PlanNode *root = &graph->nodes.items[group->root];
  if (!graph->nodes.items[u->readers[0]].recompute || root->output_count != 1) return -1;
  const PlanStorage *w = &graph->storages.items[root->outputs[0]];
  if (u->bytes < w->bytes || u->decision != w->decision) return -1;
  bool at_once = covered(graph, group->inputs, group->input_count, node->outputs[0], node->inputs, node->input_count);
  bool later = covered(graph, node->inputs, node->input_count, -1, group->inputs, group->input_count) &&
               plan_graph_may_rerun(graph, n, (int32_t)graph->nodes.count);
  return at_once || later ? group->root : -1;
}

/* The group takes the node in: what it reads from outside is what both read, less what the node makes. */
static void join_group(MemoryArena *arena, const PlanGraph *graph, BoundGroup *group, int32_t n) {
  const PlanNode *node = &graph->nodes.items[n];
  int32_t *inputs = NEW_ARRAY(arena, int32_t, group->input_count + node->input_count), count = 0;
  for (int32_t i = 0; i < group->input_count; i++)
    if (group->inputs[i] != node->outputs[0]) inputs[count++] = group->inputs[i];
  for (int32_t i = 0; i < node->input_count; i++)
    if (!contains(inputs, count, node->inputs[i])) inputs[count++] = node->inputs[i];
  group->inputs = inputs;
  group->input_count = count;
  group->cost += node->cost;
}

BoundGroup *find_bound_groups(MemoryArena *arena, const PlanGraph *graph) {
  BoundGroup *groups = NEW_ARRAY(arena, BoundGroup, graph->nodes.count + 1);
  for (int32_t n = (int32_t)graph->nodes.count - 1; n >= 0; n--) {
    const PlanNode *node = &graph->nodes.items[n];
    groups[n] = (BoundGroup){n, node->cost, node->inputs, node->input_count};
    int32_t root = n < graph->first_stage ? group_to_join(graph, groups, n) : -1;
    if (root < 0) continue;
    groups[n].root = root;
    join_group(arena, graph, &groups[root], n);
  }
  return groups;
}
