/* passes/planner/retain_model.c - demands, windows, groups and base bytes of the retain-or-recompute-once program. */
#include "passes/planner/retain_model.h"

static bool is_forward(const RetainModel *model, int32_t node) { return node < model->graph->first_stage; }

/* ---- members and what stages read of them ---- */

static void find_members(RetainModel *model) {
  const PlanGraph *graph = model->graph;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    RetainStorage *v = &model->storages[s];
    v->first = v->last = v->home = v->start = -1;
    v->member = !storage->persistent && is_forward(model, storage->producer);
    if (!v->member) continue;
    v->fixed = storage->result || storage->decision == PLAN_KEEP || !graph->nodes.items[storage->producer].recompute;
    v->dropped = storage->decision == PLAN_RECOMPUTE && !storage->result;
    v->forward_last = storage->producer;
    for (int32_t r = 0; r < storage->reader_count; r++) {
      int32_t reader = storage->readers[r];
      if (is_forward(model, reader)) {
        v->forward_last = reader;
      } else {
        if (v->first < 0) v->first = reader;
        v->last = reader;
      }
    }
    v->needed = v->first >= 0;
    if (storage->result) v->last = (int32_t)graph->nodes.count;
  }
}

/* ---- fusing: v goes with its only consumer w when no stage reads v and m_v >= m_w ---- */

static int32_t only_consumer(const RetainModel *model, int32_t node) {
  const PlanNode *what = &model->graph->nodes.items[node];
  if (what->output_count != 1) return -1;
  const PlanStorage *output = &model->graph->storages.items[what->outputs[0]];
  const RetainStorage *v = &model->storages[what->outputs[0]];
  if (v->needed || v->fixed || output->reader_count != 1 || !is_forward(model, output->readers[0])) return -1;
  return output->readers[0];
}

static void fuse_nodes(RetainModel *model) {
  const PlanGraph *graph = model->graph;
  for (int32_t n = graph->first_stage - 1; n >= 0; n--) {
    const PlanNode *node = &graph->nodes.items[n];
    model->nodes[n].group = node->recompute ? n : -1;
    int32_t consumer = node->recompute ? only_consumer(model, n) : -1;
    if (consumer < 0 || !graph->nodes.items[consumer].recompute || graph->nodes.items[consumer].output_count != 1)
      continue;
    int64_t bytes = graph->storages.items[node->outputs[0]].bytes;
    int32_t made = graph->nodes.items[model->nodes[consumer].group].outputs[0];
    bool same = model->storages[node->outputs[0]].dropped == model->storages[made].dropped;
    if (same && bytes >= graph->storages.items[made].bytes) model->nodes[n].group = model->nodes[consumer].group;
  }
}

typedef ARRAY(int32_t) IndexList;

static void gather_inputs(RetainModel *model, int32_t node, IndexList *list) {
  const PlanNode *what = &model->graph->nodes.items[node];
  for (int32_t i = 0; i < what->input_count; i++) {
    int32_t input = what->inputs[i], producer = model->graph->storages.items[input].producer;
    if (!model->storages[input].member || model->nodes[producer].group == model->nodes[node].group) continue;
    bool known = false;
    for (int64_t k = 0; k < list->count; k++) known = known || list->items[k] == input;
    if (!known) array_push(model->arena, list, input);
  }
}

/* Groups are chains in the order of the graph: while member n runs, its own input made by the member before is live
 * too. */
static void describe_groups(RetainModel *model) {
  const PlanGraph *graph = model->graph;
  IndexList *inputs = NEW_ARRAY(model->arena, IndexList, graph->first_stage);
  for (int32_t n = 0; n < graph->first_stage; n++) {
    RetainNode *node = &model->nodes[n];
    if (node->group < 0) continue;
    const PlanNode *what = &graph->nodes.items[n];
    int64_t bytes = what->workspace;
    for (int32_t o = 0; o < what->output_count; o++) bytes += graph->storages.items[what->outputs[o]].bytes;
    for (int32_t i = 0; i < what->input_count; i++) {
      int32_t producer = graph->storages.items[what->inputs[i]].producer;
      if (producer >= 0 && model->nodes[producer].group == node->group)
        bytes += graph->storages.items[what->inputs[i]].bytes;
    }
    RetainNode *group = &model->nodes[node->group];
    group->cost += what->cost;
    if (bytes > group->transient) group->transient = bytes;
    gather_inputs(model, n, &inputs[node->group]);
  }
  for (int32_t n = 0; n < graph->first_stage; n++) {
    model->nodes[n].inputs = inputs[n].items;
    model->nodes[n].input_count = (int32_t)inputs[n].count;
  }
}

static bool is_fused(const RetainModel *model, int32_t storage) {
  int32_t producer = model->graph->storages.items[storage].producer;
  return model->nodes[producer].group >= 0 && model->nodes[producer].group != producer;
}

/* ---- lifetimes and grid ---- */

/* b_v: the last stage that reads v, or at which something that is made from v may be made again. */
static void find_last_needs(RetainModel *model) {
  const PlanGraph *graph = model->graph;
  for (int32_t n = graph->first_stage - 1; n >= 0; n--) {
    if (model->nodes[n].group != n) continue;
    int32_t latest = -1;
    for (int32_t o = 0; o < graph->nodes.items[n].output_count; o++) {
      const RetainStorage *w = &model->storages[graph->nodes.items[n].outputs[o]];
      if (w->fixed) continue;
      int32_t when = w->needed ? w->first : w->last;
      if (when > latest) latest = when;
    }
    for (int32_t i = 0; i < model->nodes[n].input_count; i++) {
      RetainStorage *u = &model->storages[model->nodes[n].inputs[i]];
      if (latest > u->last) u->last = latest;
    }
  }
}

static void make_grid(RetainModel *model, int32_t window) {
  const PlanGraph *graph = model->graph;
  int64_t stages = graph->nodes.count - graph->first_stage;
  bool *start = NEW_ARRAY(model->arena, bool, stages + 1);
  for (int64_t s = 0; s < graph->storages.count; s++)
    if (model->storages[s].member && model->storages[s].needed && !model->storages[s].fixed)
      start[model->storages[s].first - graph->first_stage] = true;
  model->grid = NEW_ARRAY(model->arena, int32_t, stages + 1);
  model->grid_of = NEW_ARRAY(model->arena, int32_t, stages + 1);
  for (int32_t t = 0; t < stages; t++) {
    if (start[t]) model->grid[model->grid_count++] = graph->first_stage + t;
    model->grid_of[t] = model->grid_count - 1;
  }
  for (int64_t s = 0; s < graph->storages.count; s++) {
    RetainStorage *v = &model->storages[s];
    if (!v->member || v->last < 0) continue;
    int32_t stage = v->needed ? v->first : v->last;
    if (stage >= graph->nodes.count) continue;
    v->home = model->grid_of[stage - graph->first_stage];
    v->start = v->home > window ? v->home - window : 0;
  }
  /* Without a demand of its own a storage is recomputed for those made from it, at any of their grid points. */
  for (int32_t n = graph->first_stage - 1; n >= 0; n--) {
    if (model->nodes[n].group != n) continue;
    int32_t from = INT32_MAX;
    for (int32_t o = 0; o < graph->nodes.items[n].output_count; o++) {
      const RetainStorage *w = &model->storages[graph->nodes.items[n].outputs[o]];
      if (w->home >= 0 && w->start < from) from = w->start;
    }
    for (int32_t i = 0; i < model->nodes[n].input_count; i++) {
      RetainStorage *u = &model->storages[model->nodes[n].inputs[i]];
      if (!u->needed && from < u->start) u->start = from;
    }
  }
}

/* ---- bytes that no choice changes ---- */

static int32_t last_use(const RetainModel *model, int32_t storage) {
  if (model->storages[storage].member) return model->storages[storage].forward_last;
  return plan_graph_last_need(model->graph, storage);
}

/* Bytes that in-place outputs of a node save when storages live only as long as last_use() says. */
static int64_t inplace_saving(const RetainModel *model, int32_t n) {
  const PlanNode *node = &model->graph->nodes.items[n];
  int64_t saved = 0;
  for (int32_t p = 0; p < node->inplace_count; p++) {
    const PlanStorage *host = &model->graph->storages.items[node->inplace[p].host];
    const PlanStorage *output = &model->graph->storages.items[node->inplace[p].output];
    bool taken = host->persistent || host->bytes != output->bytes || last_use(model, node->inplace[p].host) != n;
    for (int32_t q = 0; q < p; q++)
      taken =
          taken || node->inplace[q].host == node->inplace[p].host || node->inplace[q].output == node->inplace[p].output;
    if (!taken) saved += output->bytes;
  }
  return saved;
}

static void sum_base(RetainModel *model) {
  const PlanGraph *graph = model->graph;
  int64_t count = graph->nodes.count;
  int64_t *ends = NEW_ARRAY(model->arena, int64_t, count + 2); /* bytes whose last use is node n */
  for (int64_t s = 0; s < graph->storages.count; s++) {
    if (!graph->storages.items[s].persistent) ends[last_use(model, (int32_t)s)] += graph->storages.items[s].bytes;
  }
  model->base = NEW_ARRAY(model->arena, int64_t, count);
  model->base_idle = NEW_ARRAY(model->arena, int64_t, count);
  int64_t held = graph->persistent_bytes;
  for (int32_t n = 0; n < count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    model->base_idle[n] = held;
    for (int32_t o = 0; o < node->output_count; o++) held += graph->storages.items[node->outputs[o]].bytes;
    model->base[n] = held + node->workspace - inplace_saving(model, n);
    held -= ends[n];
  }
}

RetainModel *retain_model_create(MemoryArena *arena, const PlanGraph *graph, int32_t window) {
  RetainModel *model = NEW(arena, RetainModel);
  model->arena = arena;
  model->graph = graph;
  model->storages = NEW_ARRAY(arena, RetainStorage, graph->storages.count);
  model->nodes = NEW_ARRAY(arena, RetainNode, graph->first_stage);
  find_members(model);
  fuse_nodes(model);
  describe_groups(model);
  find_last_needs(model);
  make_grid(model, window);
  sum_base(model);
  for (int64_t s = 0; s < graph->storages.count; s++)
    if (model->storages[s].member && is_fused(model, (int32_t)s)) model->storages[s].home = -1;
  return model;
}
