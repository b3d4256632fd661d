/* passes/planner/block_plan.c - cutting the forward pass into blocks, and the shortest path over their choices. */
#include "passes/planner/block_plan.h"

#include <stdlib.h>

#include "passes/planner/block_choices.h"
#include "passes/planner/retain.h"

enum { WIDEST = 6, FEWEST_CUTS = 8, FEWEST_BLOCKS = 4, MOST_LABELS = 1500, ATTEMPTS = 6 };

/* A prefix of the blocks with its choices: bytes that it keeps and what it costs. */
typedef struct Label {
  int64_t kept;
  double cost;
  int32_t before; /* label of the block before */
  int16_t choice;
} Label;
typedef ARRAY(Label) Labels;

typedef struct Sequence {
  MemoryArena *arena;
  const PlanGraph *graph;
  const RetainModel *model;
  ARRAY(Block) blocks;
  int32_t kinds;
  BlockChoices **choices; /* by block; equal blocks share them */
} Sequence;

/* ---- blocks ---- */

/* Per position: how many droppable storages cross it. */
static int32_t *crossing_widths(MemoryArena *arena, const RetainModel *model) {
  const PlanGraph *graph = model->graph;
  int32_t *width = NEW_ARRAY(arena, int32_t, graph->first_stage + 2);
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const RetainStorage *v = &model->storages[s];
    if (!v->member || v->fixed || !graph->storages.items[s].bytes) continue;
    width[graph->storages.items[s].producer + 1]++;
    width[v->forward_last + 1]--;
  }
  for (int32_t p = 1; p <= graph->first_stage; p++) width[p] += width[p - 1];
  return width;
}

static int32_t smallest_width(const PlanGraph *graph, const int32_t *width) {
  for (int32_t most = 1; most < WIDEST; most++) {
    int32_t count = 0;
    for (int32_t p = 1; p < graph->first_stage; p++) count += width[p] <= most;
    if (count >= FEWEST_CUTS) return most;
  }
  return WIDEST;
}

static void cut_blocks(Sequence *sequence, int32_t fewest_nodes) {
  const PlanGraph *graph = sequence->graph;
  const int32_t *width = crossing_widths(sequence->arena, sequence->model);
  int32_t most = smallest_width(graph, width), from = 0;
  for (int32_t p = 1; p <= graph->first_stage; p++) {
    if (p < graph->first_stage && (width[p] > most || p - from < fewest_nodes)) continue;
    array_push(sequence->arena, &sequence->blocks, ((Block){.from = from, .to = p}));
    from = p;
  }
}

/* A stage belongs to the latest block that it reads from, one that reads none to the block of the stage before. */
static void assign_stages(Sequence *sequence) {
  const PlanGraph *graph = sequence->graph;
  int32_t *block_of = NEW_ARRAY(sequence->arena, int32_t, graph->first_stage + 1);
  for (int32_t b = 0; b < sequence->blocks.count; b++)
    for (int32_t n = sequence->blocks.items[b].from; n < sequence->blocks.items[b].to; n++) block_of[n] = b;
  int32_t current = (int32_t)sequence->blocks.count - 1;
  typedef ARRAY(int32_t) StageList;
  StageList *lists = NEW_ARRAY(sequence->arena, StageList, sequence->blocks.count + 1);
  for (int32_t t = graph->first_stage; t < graph->nodes.count && current >= 0; t++) {
    const PlanNode *node = &graph->nodes.items[t];
    int32_t latest = -1;
    for (int32_t i = 0; i < node->input_count; i++) {
      if (!sequence->model->storages[node->inputs[i]].member) continue;
      int32_t block = block_of[graph->storages.items[node->inputs[i]].producer];
      if (block > latest) latest = block;
    }
    if (latest >= 0) current = latest;
    array_push(sequence->arena, &lists[current], t);
  }
  for (int32_t b = 0; b < sequence->blocks.count; b++) {
    sequence->blocks.items[b].stages = lists[b].items;
    sequence->blocks.items[b].stage_count = (int32_t)lists[b].count;
  }
}

static void solve_kinds(Sequence *sequence) {
  StringMap kinds = {.arena = sequence->arena};
  ARRAY(BlockChoices *) solved = {0};
  sequence->choices = NEW_ARRAY(sequence->arena, BlockChoices *, sequence->blocks.count);
  for (int32_t b = 0; b < sequence->blocks.count; b++) {
    const Block *block = &sequence->blocks.items[b];
    const char *name =
        memory_format(sequence->arena, "%016llx", (unsigned long long)block_hash(sequence->model, block));
    int64_t *known = string_map_find(&kinds, name);
    if (!known) {
      BlockChoices *choices = NEW(sequence->arena, BlockChoices);
      *choices = block_choices(sequence->arena, sequence->model, block);
      array_push(sequence->arena, &solved, choices);
      string_map_set(&kinds, name, solved.count);
    }
    sequence->choices[b] = solved.items[known ? *known - 1 : solved.count - 1];
  }
  sequence->kinds = (int32_t)solved.count;
}

/* ---- the shortest path ---- */

static int by_kept(const void *a, const void *b) {
  const Label *x = a, *y = b;
  if (x->kept != y->kept) return x->kept < y->kept ? -1 : 1;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return x->choice - y->choice;
}

/* Drops labels that another one beats in both, and thins the rest evenly over the bytes. */
static void prune(Labels *labels) {
  if (labels->count > 1) qsort(labels->items, (size_t)labels->count, sizeof *labels->items, by_kept);
  int64_t left = 0;
  for (int64_t i = 0; i < labels->count; i++)
    if (!left || labels->items[i].cost < labels->items[left - 1].cost) labels->items[left++] = labels->items[i];
  labels->count = left;
  if (left <= MOST_LABELS) return;
  int64_t low = labels->items[0].kept, span = labels->items[left - 1].kept - low + 1, kept = 0;
  for (int64_t i = 0; i < left; i++) { /* of each interval the last label, its cheapest */
    int64_t interval = (int64_t)((double)(labels->items[i].kept - low) / (double)span * MOST_LABELS);
    bool last =
        i + 1 == left || (int64_t)((double)(labels->items[i + 1].kept - low) / (double)span * MOST_LABELS) != interval;
    if (last || i == 0) labels->items[kept++] = labels->items[i];
  }
  labels->count = kept;
}

/* The labels after each block; empty from the first block on that nothing fits. */
static Labels *find_labels(const Sequence *sequence, MemoryArena *scratch, int64_t budget) {
  int32_t count = (int32_t)sequence->blocks.count;
  Labels *after = NEW_ARRAY(scratch, Labels, count + 1), next = {0};
  array_push(scratch, &after[0], ((Label){.before = -1}));
  for (int32_t b = 0; b < count; b++) {
    const Block *block = &sequence->blocks.items[b];
    int64_t forward = block_forward_base(sequence->model, block);
    int64_t backward = block_backward_base(sequence->model, block);
    for (int64_t l = 0; l < after[b].count; l++)
      for (int64_t c = 0; c < sequence->choices[b]->count; c++) {
        const BlockChoice *choice = &sequence->choices[b]->items[c];
        const Label *label = &after[b].items[l];
        bool fits = label->kept + forward + choice->forward <= budget &&
                    (!block->stage_count || label->kept + backward + choice->backward <= budget);
        if (fits)
          array_push(scratch, &next,
                     ((Label){.kept = label->kept + choice->kept,
                              .cost = label->cost + choice->cost,
                              .before = (int32_t)l,
                              .choice = (int16_t)c}));
      }
    prune(&next);
    for (int64_t l = 0; l < next.count; l++) array_push(scratch, &after[b + 1], next.items[l]);
    next.count = 0;
  }
  return after;
}

/* The storages kept by the cheapest path; false when there is none. */
static bool choose(const Sequence *sequence, MemoryArena *scratch, int64_t budget, bool *kept) {
  int32_t count = (int32_t)sequence->blocks.count;
  Labels *after = find_labels(sequence, scratch, budget);
  if (!after[count].count) return false;
  int64_t label = after[count].count - 1; /* costs fall with the bytes */
  for (int32_t b = count; b > 0; b--) {
    const Label *at = &after[b].items[label];
    StorageList candidates = block_candidates(scratch, sequence->model, &sequence->blocks.items[b - 1]);
    const BlockChoice *choice = &sequence->choices[b - 1]->items[at->choice];
    for (int64_t c = 0; c < candidates.count; c++) kept[candidates.items[c]] = choice->keep[c];
    label = at->before;
  }
  return true;
}

/* The path for a budget, and again for what its true peak was above it. */
static RunList find_runs(Sequence *sequence, int64_t budget) {
  const PlanGraph *graph = sequence->graph;
  int64_t asked = budget;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    MemoryArena *scratch = memory_arena_create();
    bool *kept = retain_all(scratch, graph);
    RunList runs = {0};
    int32_t storage;
    int64_t peak = 0;
    bool found = choose(sequence, scratch, asked, kept);
    if (found) runs = retain_runs(sequence->arena, graph, kept, &storage);
    if (runs.count) peak = runs_profile(scratch, graph, runs.items, runs.count, NULL);
    memory_arena_destroy(scratch);
    if (!runs.count || peak <= budget) return runs;
    asked -= peak - budget;
  }
  return (RunList){0};
}

BlockPlan block_plan(MemoryArena *arena, const PlanGraph *graph, int64_t budget, int32_t fewest_nodes) {
  Sequence *sequence = NEW(arena, Sequence);
  sequence->arena = arena;
  sequence->graph = graph;
  sequence->model = retain_model_create(arena, graph, 1);
  cut_blocks(sequence, fewest_nodes);
  RunList runs = {0};
  if (sequence->blocks.count >= FEWEST_BLOCKS) {
    assign_stages(sequence);
    solve_kinds(sequence);
    runs = find_runs(sequence, budget);
  }
  return (BlockPlan){.runs = runs, .blocks = (int32_t)sequence->blocks.count, .kinds = sequence->kinds};
}
