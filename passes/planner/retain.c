/* passes/planner/retain.c - the lazy retain-or-recompute-once sequence. */
#include "passes/planner/retain.h"

#include <stdlib.h>

bool retain_is_choice(const PlanGraph *graph, int32_t storage) {
  const PlanStorage *what = &graph->storages.items[storage];
  return !what->persistent && !what->result && what->producer < graph->first_stage &&
         graph->nodes.items[what->producer].recompute && what->decision == PLAN_FREE_CHOICE;
}

bool *retain_all(MemoryArena *arena, const PlanGraph *graph) {
  bool *kept = NEW_ARRAY(arena, bool, graph->storages.count);
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    kept[s] = storage->decision != PLAN_RECOMPUTE || storage->result || storage->producer >= graph->first_stage;
  }
  return kept;
}

typedef struct Builder {
  MemoryArena *arena;
  const PlanGraph *graph;
  bool *available;      /* per storage */
  int32_t *marked;      /* per node: the last stage that asked for it, -1 at first */
  ARRAY(int32_t) stack; /* nodes whose inputs are to be looked at */
  RunList again;        /* nodes to run again at the current stage */
  RunList runs;
} Builder;

/* Notes that storage is needed at stage; false when its node may not run again there. */
static bool demand(Builder *builder, int32_t storage, int32_t stage) {
  if (builder->available[storage]) return true;
  int32_t node = builder->graph->storages.items[storage].producer;
  if (builder->marked[node] == stage) return true;
  if (!plan_graph_may_rerun(builder->graph, node, stage)) return false;
  builder->marked[node] = stage;
  array_push(builder->arena, &builder->again, node);
  array_push(builder->arena, &builder->stack, node);
  return true;
}

static bool demand_inputs(Builder *builder, int32_t node, int32_t stage, int32_t *storage) {
  const PlanNode *what = &builder->graph->nodes.items[node];
  for (int32_t i = 0; i < what->input_count; i++) {
    if (demand(builder, what->inputs[i], stage)) continue;
    *storage = what->inputs[i];
    return false;
  }
  return true;
}

static int by_number(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static bool run_stage(Builder *builder, int32_t stage, int32_t *storage) {
  builder->again.count = builder->stack.count = 0;
  if (!demand_inputs(builder, stage, stage, storage)) return false;
  while (builder->stack.count > 0)
    if (!demand_inputs(builder, builder->stack.items[--builder->stack.count], stage, storage)) return false;
  if (builder->again.count)
    qsort(builder->again.items, (size_t)builder->again.count, sizeof *builder->again.items, by_number);
  for (int64_t i = 0; i < builder->again.count; i++) {
    const PlanNode *node = &builder->graph->nodes.items[builder->again.items[i]];
    for (int32_t o = 0; o < node->output_count; o++) builder->available[node->outputs[o]] = true;
    array_push(builder->arena, &builder->runs, builder->again.items[i]);
  }
  array_push(builder->arena, &builder->runs, stage);
  return true;
}

static bool build(Builder *builder, const bool *kept, int32_t *storage) {
  const PlanGraph *graph = builder->graph;
  builder->runs.count = 0;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    int32_t producer = graph->storages.items[s].producer;
    bool choice = producer >= 0 && producer < graph->first_stage;
    builder->available[s] = !choice || kept[s] || !graph->nodes.items[producer].recompute;
  }
  for (int64_t n = 0; n < graph->nodes.count; n++) builder->marked[n] = -1;
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    if (n < graph->first_stage)
      array_push(builder->arena, &builder->runs, n);
    else if (!run_stage(builder, n, storage))
      return false;
  }
  return true;
}

RunList retain_runs(MemoryArena *arena, const PlanGraph *graph, bool *kept, int32_t *storage) {
  Builder builder = {.arena = arena, .graph = graph};
  builder.available = NEW_ARRAY(arena, bool, graph->storages.count);
  builder.marked = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *what = &graph->storages.items[s];
    bool fixed = what->producer >= 0 && !graph->nodes.items[what->producer].recompute;
    if (kept[s] || !fixed || what->decision != PLAN_RECOMPUTE || what->producer >= graph->first_stage) continue;
    *storage = (int32_t)s;
    return (RunList){0};
  }
  while (!build(&builder, kept, storage)) {
    if (graph->storages.items[*storage].decision == PLAN_RECOMPUTE) return (RunList){0};
    kept[*storage] = true;
  }
  return builder.runs;
}
