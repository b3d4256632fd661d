/* passes/planner/block_choices.c - local simulation of a block under each choice, and the Pareto set. */
#include "passes/planner/block_choices.h"

#include <math.h>
#include <stdlib.h>

enum { ALL_SUBSETS = 9, PRICES = 24, MOST_PASSES = 3, EFFORT = 2000000 /* choices x nodes */ };

static bool owned(const RetainModel *model, const Block *block, int32_t storage) {
  int32_t producer = model->graph->storages.items[storage].producer;
  return model->storages[storage].member && producer >= block->from && producer < block->to;
}

static bool crosses_into(const RetainModel *model, const Block *block, int32_t storage) {
  const RetainStorage *v = &model->storages[storage];
  return v->member && model->graph->storages.items[storage].producer < block->from && v->forward_last >= block->from;
}

static bool crosses_end(const RetainModel *model, const Block *block, int32_t storage) {
  return model->storages[storage].forward_last >= block->to;
}

StorageList block_candidates(MemoryArena *arena, const RetainModel *model, const Block *block) {
  StorageList list = {0};
  for (int32_t n = block->from; n < block->to; n++) {
    const PlanNode *node = &model->graph->nodes.items[n];
    for (int32_t o = 0; o < node->output_count; o++) {
      int32_t s = node->outputs[o];
      if (!model->storages[s].fixed && !crosses_end(model, block, s)) array_push(arena, &list, s);
    }
  }
  return list;
}

/* ---- bases ---- */

/* Bytes of what crosses into the block and is read at or after node n: counted in base[], but kept by earlier blocks.
 */
static int64_t entering_bytes(const RetainModel *model, const Block *block, int32_t n) {
  int64_t bytes = 0;
  for (int32_t k = block->from; k < block->to; k++) {
    const PlanNode *node = &model->graph->nodes.items[k];
    for (int32_t i = 0; i < node->input_count; i++) {
      int32_t s = node->inputs[i];
      bool last = crosses_into(model, block, s) && model->storages[s].forward_last == k && k >= n;
      for (int32_t j = 0; j < i; j++) last = last && node->inputs[j] != s;
      if (last) bytes += model->graph->storages.items[s].bytes;
    }
  }
  return bytes;
}

int64_t block_forward_base(const RetainModel *model, const Block *block) {
  return model->base_idle[block->from] - entering_bytes(model, block, block->from);
}

int64_t block_backward_base(const RetainModel *model, const Block *block) {
  return block->stage_count ? model->base_idle[block->stages[0]] : 0;
}

/* ---- equal blocks ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint64_t mix_double(uint64_t hash, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return mix(hash, bits);
}

/* A storage as the block sees it: by its distance when it is one of the forward pass near by, else only its kind. */
static uint64_t name_in_block(const RetainModel *model, const Block *block, int32_t storage) {
  const PlanStorage *what = &model->graph->storages.items[storage];
  if (owned(model, block, storage) || crosses_into(model, block, storage))
    return 16 + (uint64_t)(what->producer - block->from + (1 << 20)) * 8;
  return what->persistent ? 1 : model->storages[storage].member ? 2 : 3;
}

uint64_t block_hash(const RetainModel *model, const Block *block) {
  const PlanGraph *graph = model->graph;
  uint64_t hash = (uint64_t)(block->to - block->from);
  for (int32_t n = block->from; n < block->to; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    hash = mix(mix_double(hash, node->cost), (uint64_t)node->workspace * 2 + node->recompute);
    hash = mix(hash, (uint64_t)(model->base[n] - model->base_idle[block->from]));
    for (int32_t i = 0; i < node->input_count; i++) hash = mix(hash, name_in_block(model, block, node->inputs[i]));
    for (int32_t o = 0; o < node->output_count; o++) {
      const RetainStorage *v = &model->storages[node->outputs[o]];
      hash = mix(hash, (uint64_t)graph->storages.items[node->outputs[o]].bytes);
      hash = mix(hash, (uint64_t)(v->fixed + 2 * v->dropped + 4 * v->needed +
                                  8 * crosses_end(model, block, node->outputs[o])));
    }
  }
  for (int32_t t = 0; t < block->stage_count; t++) {
    const PlanNode *node = &graph->nodes.items[block->stages[t]];
    hash = mix(hash, (uint64_t)(model->base[block->stages[t]] - block_backward_base(model, block)));
    hash = mix(hash, (uint64_t)(model->base_idle[block->stages[t]] - block_backward_base(model, block)));
    for (int32_t i = 0; i < node->input_count; i++)
      if (model->storages[node->inputs[i]].member) hash = mix(hash, name_in_block(model, block, node->inputs[i]));
  }
  return hash;
}

/* ---- one choice ---- */

typedef struct Trial {
  MemoryArena *arena;
  const RetainModel *model;
  const Block *block;
  StorageList candidates;
  bool *live;   /* by storage of the block: number less the lowest */
  bool *wanted; /* the same, on the way back */
  int32_t lowest, highest;
  int64_t left;          /* choices that may still be tried where there are too many for all */
  RunList runs;          /* nodes of the block run again and stages, in order */
  ARRAY(int32_t) before; /* per run: the stage that it belongs to */
  ARRAY(int32_t) stack, again;
} Trial;

static Trial *create_trial(MemoryArena *arena, const RetainModel *model, const Block *block) {
  Trial *trial = NEW(arena, Trial);
  trial->arena = arena;
  trial->model = model;
  trial->block = block;
  trial->candidates = block_candidates(arena, model, block);
  trial->left = EFFORT / (block->to - block->from + block->stage_count + 1);
  trial->lowest = INT32_MAX;
  trial->highest = -1;
  for (int32_t n = block->from; n < block->to; n++) {
    const PlanNode *node = &model->graph->nodes.items[n];
    for (int32_t o = 0; o < node->output_count; o++) {
      if (node->outputs[o] < trial->lowest) trial->lowest = node->outputs[o];
      if (node->outputs[o] > trial->highest) trial->highest = node->outputs[o];
    }
  }
  int64_t room = trial->highest >= trial->lowest ? trial->highest - trial->lowest + 1 : 0;
  trial->live = NEW_ARRAY(arena, bool, room);
  trial->wanted = NEW_ARRAY(arena, bool, room);
  return trial;
}

static bool *slot(const Trial *trial, bool *flags, int32_t storage) {
  return owned(trial->model, trial->block, storage) ? &flags[storage - trial->lowest] : NULL;
}

/* Notes the nodes that have to run again before `node` can read its inputs; false when one of them may not. */
static bool demand(Trial *trial, int32_t node, int32_t stage) {
  const PlanNode *what = &trial->model->graph->nodes.items[node];
  for (int32_t i = 0; i < what->input_count; i++) {
    bool *live = slot(trial, trial->live, what->inputs[i]);
    if (!live || *live) continue;
    int32_t producer = trial->model->graph->storages.items[what->inputs[i]].producer;
    if (!plan_graph_may_rerun(trial->model->graph, producer, stage)) return false;
    const PlanNode *maker = &trial->model->graph->nodes.items[producer];
    for (int32_t o = 0; o < maker->output_count; o++) *slot(trial, trial->live, maker->outputs[o]) = true;
    array_push(trial->arena, &trial->again, producer);
    array_push(trial->arena, &trial->stack, producer);
  }
  return true;
}

static int by_number(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static bool run_stage(Trial *trial, int32_t stage) {
  trial->again.count = trial->stack.count = 0;
  if (!demand(trial, stage, stage)) return false;
  while (trial->stack.count > 0)
    if (!demand(trial, trial->stack.items[--trial->stack.count], stage)) return false;
  if (trial->again.count > 1)
    qsort(trial->again.items, (size_t)trial->again.count, sizeof *trial->again.items, by_number);
  array_push(trial->arena, &trial->again, stage);
  for (int64_t i = 0; i < trial->again.count; i++) {
    array_push(trial->arena, &trial->runs, trial->again.items[i]);
    array_push(trial->arena, &trial->before, stage);
  }
  return true;
}

static int64_t output_bytes(const Trial *trial, int32_t node) {
  const PlanNode *what = &trial->model->graph->nodes.items[node];
  int64_t bytes = 0;
  for (int32_t o = 0; o < what->output_count; o++) bytes += trial->model->graph->storages.items[what->outputs[o]].bytes;
  return bytes;
}

/* Walks the runs backwards: a storage of the block is live from its last making before a read to that read. */
static void measure_backward(Trial *trial, BlockChoice *choice) {
  const RetainModel *model = trial->model;
  int64_t base = block_backward_base(model, trial->block), live = 0, room = trial->highest - trial->lowest + 1;
  for (int64_t s = 0; s < room; s++) trial->wanted[s] = false;
  choice->backward = 0;
  for (int64_t k = trial->runs.count - 1; k >= 0; k--) {
    int32_t n = trial->runs.items[k], stage = trial->before.items[k];
    const PlanNode *node = &model->graph->nodes.items[n];
    int64_t outputs = 0;
    for (int32_t o = 0; n != stage && o < node->output_count; o++) {
      bool *wanted = slot(trial, trial->wanted, node->outputs[o]);
      if (*wanted) outputs += model->graph->storages.items[node->outputs[o]].bytes;
      *wanted = false;
    }
    for (int32_t i = 0; i < node->input_count; i++) {
      bool *wanted = slot(trial, trial->wanted, node->inputs[i]);
      if (!wanted || *wanted) continue;
      *wanted = true;
      live += model->graph->storages.items[node->inputs[i]].bytes;
    }
    int64_t here = n == stage ? model->base[stage] + live
                              : model->base_idle[stage] + live - outputs + output_bytes(trial, n) + node->workspace;
    if (here - base > choice->backward) choice->backward = here - base;
    live -= outputs;
  }
}

static void measure_forward(const Trial *trial, BlockChoice *choice) {
  const RetainModel *model = trial->model;
  int64_t base = block_forward_base(model, trial->block), past = 0;
  choice->forward = 0;
  for (int32_t n = trial->block->from; n < trial->block->to; n++) {
    int64_t here = model->base[n] - entering_bytes(model, trial->block, n) + past;
    if (here - base > choice->forward) choice->forward = here - base;
    for (int64_t c = 0; c < trial->candidates.count; c++)
      if (choice->keep[c] && model->storages[trial->candidates.items[c]].forward_last == n)
        past += model->graph->storages.items[trial->candidates.items[c]].bytes;
  }
}

static bool evaluate(Trial *trial, BlockChoice *choice) {
  const PlanGraph *graph = trial->model->graph;
  int64_t room = trial->highest - trial->lowest + 1;
  for (int64_t s = 0; s < room; s++) trial->live[s] = true;
  for (int64_t c = 0; c < trial->candidates.count; c++)
    trial->live[trial->candidates.items[c] - trial->lowest] = choice->keep[c];
  trial->runs.count = trial->before.count = 0;
  trial->left--;
  choice->cost = 0;
  choice->kept = 0;
  for (int32_t t = 0; t < trial->block->stage_count; t++)
    if (!run_stage(trial, trial->block->stages[t])) return false;
  for (int64_t k = 0; k < trial->runs.count; k++)
    if (trial->runs.items[k] != trial->before.items[k]) choice->cost += graph->nodes.items[trial->runs.items[k]].cost;
  for (int32_t n = trial->block->from; n < trial->block->to; n++)
    for (int32_t o = 0; o < graph->nodes.items[n].output_count; o++) {
      int32_t s = graph->nodes.items[n].outputs[o];
      bool candidate = !trial->model->storages[s].fixed && !crosses_end(trial->model, trial->block, s);
      bool needed = trial->model->storages[s].last >= 0 || trial->model->storages[s].fixed;
      if (!candidate && needed) choice->kept += graph->storages.items[s].bytes;
    }
  for (int64_t c = 0; c < trial->candidates.count; c++)
    if (choice->keep[c]) choice->kept += graph->storages.items[trial->candidates.items[c]].bytes;
  measure_backward(trial, choice);
  measure_forward(trial, choice);
  return true;
}

/* ---- the Pareto set ---- */

static bool dominates(const BlockChoice *a, const BlockChoice *b) {
  return a->cost <= b->cost && a->kept <= b->kept && a->forward <= b->forward && a->backward <= b->backward;
}

static void add_choice(MemoryArena *arena, BlockChoices *set, const BlockChoice *choice, int64_t candidates) {
  int64_t left = 0;
  for (int64_t i = 0; i < set->count; i++)
    if (dominates(&set->items[i], choice)) return;
  for (int64_t i = 0; i < set->count; i++)
    if (!dominates(choice, &set->items[i])) set->items[left++] = set->items[i];
  set->count = left;
  BlockChoice copy = *choice;
  copy.keep = NEW_ARRAY(arena, bool, candidates);
  if (candidates) memcpy(copy.keep, choice->keep, (size_t)candidates * sizeof *copy.keep);
  array_push(arena, set, copy);
}

static bool may_keep(const Trial *trial, int64_t candidate) {
  return !trial->model->storages[trial->candidates.items[candidate]].dropped;
}

static void try_all_subsets(Trial *trial, BlockChoices *set, BlockChoice *choice) {
  for (uint32_t subset = 0; subset < 1u << trial->candidates.count; subset++) {
    bool allowed = true;
    for (int64_t c = 0; c < trial->candidates.count; c++) {
      choice->keep[c] = subset >> c & 1;
      allowed = allowed && (!choice->keep[c] || may_keep(trial, c));
    }
    if (allowed && evaluate(trial, choice)) add_choice(trial->arena, set, choice, trial->candidates.count);
  }
}

static double value_of(const BlockChoice *choice, double price) {
  return choice->cost + price * ((double)choice->kept + 0.5 * (double)choice->backward);
}

/* Flips one storage at a time while that lowers cost + price x (bytes kept + half the peak). */
static void descend(Trial *trial, BlockChoices *set, BlockChoice *choice, double price) {
  double best = evaluate(trial, choice) ? value_of(choice, price) : HUGE_VAL;
  if (best < HUGE_VAL) add_choice(trial->arena, set, choice, trial->candidates.count);
  for (int pass = 0; pass < MOST_PASSES; pass++) {
    bool better = false;
    for (int64_t c = 0; c < trial->candidates.count && trial->left > 0; c++) {
      if (!choice->keep[c] && !may_keep(trial, c)) continue;
      choice->keep[c] = !choice->keep[c];
      bool valid = evaluate(trial, choice);
      if (valid) add_choice(trial->arena, set, choice, trial->candidates.count);
      if (valid && value_of(choice, price) < best) {
        best = value_of(choice, price);
        better = true;
      } else {
        choice->keep[c] = !choice->keep[c];
      }
    }
    if (!better) return;
  }
}

static void try_prices(Trial *trial, BlockChoices *set, BlockChoice *choice) {
  double cost = 1e-9, bytes = 1;
  for (int32_t n = trial->block->from; n < trial->block->to; n++) {
    cost += trial->model->graph->nodes.items[n].cost;
    bytes += (double)output_bytes(trial, n);
  }
  for (int64_t c = 0; c < trial->candidates.count; c++) choice->keep[c] = false;
  if (!evaluate(trial, choice))
    for (int64_t c = 0; c < trial->candidates.count; c++) choice->keep[c] = may_keep(trial, c);
  for (int step = 0; step < PRICES; step++) descend(trial, set, choice, 30 * cost / bytes * pow(0.75, step));
}

static int by_bytes(const void *a, const void *b) {
  const BlockChoice *x = a, *y = b;
  if (x->kept != y->kept) return x->kept < y->kept ? -1 : 1;
  return (x->cost > y->cost) - (x->cost < y->cost);
}

BlockChoices block_choices(MemoryArena *arena, const RetainModel *model, const Block *block) {
  Trial *trial = create_trial(arena, model, block);
  BlockChoices set = {0};
  BlockChoice choice = {.keep = NEW_ARRAY(arena, bool, trial->candidates.count)};
  if (trial->candidates.count <= ALL_SUBSETS)
    try_all_subsets(trial, &set, &choice);
  else
    try_prices(trial, &set, &choice);
  if (set.count > 1) qsort(set.items, (size_t)set.count, sizeof *set.items, by_bytes);
  if (set.count <= MOST_CHOICES) return set;
  BlockChoices few = {0};
  for (int64_t i = 0; i < MOST_CHOICES; i++)
    array_push(arena, &few, set.items[i * (set.count - 1) / (MOST_CHOICES - 1)]);
  return few;
}
