/* passes/planner/local_search.c - simulated annealing over sets of recomputations. */
#include "passes/planner/local_search.h"

#include <math.h>

/* A recomputation: stage in the upper half, node in the lower; sorted, they are in the order of execution. */
typedef uint64_t Key;
static Key make_key(int32_t stage, int32_t node) { return (uint64_t)(uint32_t)stage << 32 | (uint32_t)node; }
static int32_t key_stage(Key key) { return (int32_t)(key >> 32); }
static int32_t key_node(Key key) { return (int32_t)(key & 0xFFFFFFFFu); }

typedef struct KeyList {
  Key *items;
  int64_t count;
} KeyList;

typedef struct Annealer {
  MemoryArena *arena;
  const PlanGraph *graph;
  const LocalSearchOptions *options;
  uint64_t random;
  int64_t capacity; /* of every list of keys */
  KeyList now, trial, best, lowest;
  double now_cost, best_cost, extra_scale;
  int64_t now_peak, lowest_peak;
  double penalty; /* cost per byte above the budget */
  /* The sequence of the set that was measured last. */
  int32_t *sequence;
  int64_t length;
  int64_t *live;
  bool *again;
  bool *input_ends, *output_used; /* flattened flags per run */
  int32_t *first_input, *first_output;
  bool *wanted;          /* by storage */
  bool constrained;      /* the source says of some storage that it is to be recomputed */
  bool violated;         /* the set measured last holds such a storage into the backward pass */
  bool *live_here;       /* by storage: a later read of the current instance at the position looked at */
  int32_t *latest_stage; /* by node: last stage before which it may run again */
  double *weights;       /* scratch of the choice of a gap */
  int32_t *candidates;
  int32_t *candidate_stage;
} Annealer;

static uint64_t next_random(Annealer *annealer) {
  uint64_t x = annealer->random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return annealer->random = x;
}

static double random_unit(Annealer *annealer) { return (double)(next_random(annealer) >> 11) * 0x1p-53; }
static int64_t random_below(Annealer *annealer, int64_t limit) {
  return limit > 0 ? (int64_t)(next_random(annealer) % (uint64_t)limit) : 0;
}

/* ---- sets ---- */

static int64_t find_key(const KeyList *list, Key key) {
  int64_t low = 0, high = list->count;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (list->items[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool has_key(const KeyList *list, Key key) {
  int64_t at = find_key(list, key);
  return at < list->count && list->items[at] == key;
}

static bool insert_key(const Annealer *annealer, KeyList *list, Key key) {
  if (list->count >= annealer->capacity || has_key(list, key)) return false;
  int64_t at = find_key(list, key);
  memmove(list->items + at + 1, list->items + at, (size_t)(list->count - at) * sizeof(Key));
  list->items[at] = key;
  list->count++;
  return true;
}

static void remove_at(KeyList *list, int64_t at) {
  memmove(list->items + at, list->items + at + 1, (size_t)(list->count - at - 1) * sizeof(Key));
  list->count--;
}

static void copy_keys(KeyList *to, const KeyList *from) {
  memcpy(to->items, from->items, (size_t)from->count * sizeof(Key));
  to->count = from->count;
}

/* ---- measuring a set ---- */

static void lay_out(Annealer *annealer, const KeyList *set) {
  int64_t next = 0, length = 0;
  for (int32_t n = 0; n < annealer->graph->nodes.count; n++) {
    for (; next < set->count && key_stage(set->items[next]) == n; next++) {
      annealer->sequence[length] = key_node(set->items[next]);
      annealer->again[length++] = true;
    }
    annealer->sequence[length] = n;
    annealer->again[length++] = false;
  }
  annealer->length = length;
}

static bool holds_constrained(const Annealer *annealer) {
  const PlanGraph *graph = annealer->graph;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (storage->decision == PLAN_RECOMPUTE && storage->producer < graph->first_stage && !storage->result &&
        annealer->wanted[s])
      return true;
  }
  return false;
}

/* Backwards: which reads end an instance, which outputs are wanted. Recomputations that nobody wants vanish from the
 * sequence (and later from the set). */
static void find_uses(Annealer *annealer) {
  const PlanGraph *graph = annealer->graph;
  bool *wanted = annealer->wanted;
  int32_t inputs = 0, outputs = 0;
  for (int64_t s = 0; s < graph->storages.count; s++)
    wanted[s] = graph->storages.items[s].result || graph->storages.items[s].persistent;
  annealer->violated = false;
  for (int64_t k = annealer->length - 1; k >= 0; k--) {
    const PlanNode *node = &graph->nodes.items[annealer->sequence[k]];
    if (annealer->constrained && !annealer->again[k] && annealer->sequence[k] == graph->first_stage - 1)
      annealer->violated = holds_constrained(annealer);
    bool useful = !annealer->again[k];
    annealer->first_output[k] = outputs;
    annealer->first_input[k] = inputs;
    for (int32_t o = 0; o < node->output_count; o++) {
      int32_t output = node->outputs[o];
      bool pinned = annealer->again[k] && graph->storages.items[output].decision == PLAN_KEEP;
      annealer->output_used[outputs + o] = !pinned && wanted[output];
      useful = useful || annealer->output_used[outputs + o];
      if (!pinned) wanted[output] = false;
    }
    outputs += node->output_count;
    if (!useful) {
      annealer->sequence[k] = -1;
      continue;
    }
    for (int32_t i = 0; i < node->input_count; i++) {
      annealer->input_ends[inputs + i] = !wanted[node->inputs[i]];
      wanted[node->inputs[i]] = true;
    }
    inputs += node->input_count;
  }
}

static bool ends_at(const Annealer *annealer, int64_t k, int32_t storage) {
  const PlanNode *node = &annealer->graph->nodes.items[annealer->sequence[k]];
  for (int32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] == storage && annealer->input_ends[annealer->first_input[k] + i]) return true;
  return false;
}

/* As run_inplace() (plan.h), in bytes saved. */
static int64_t inplace_bytes(const Annealer *annealer, int64_t k) {
  const PlanNode *node = &annealer->graph->nodes.items[annealer->sequence[k]];
  PlanInplace taken[8];
  int32_t count = 0;
  int64_t saved = 0;
  for (int32_t p = 0; p < node->inplace_count && count < 8; p++) {
    PlanInplace pair = node->inplace[p];
    const PlanStorage *host = &annealer->graph->storages.items[pair.host];
    const PlanStorage *output = &annealer->graph->storages.items[pair.output];
    bool pinned = annealer->again[k] && output->decision == PLAN_KEEP;
    bool good = !host->persistent && host->bytes == output->bytes && !pinned && ends_at(annealer, k, pair.host);
    for (int32_t q = 0; q < count; q++) good = good && taken[q].host != pair.host && taken[q].output != pair.output;
    if (!good) continue;
    taken[count++] = pair;
    saved += host->bytes;
  }
  return saved;
}

/* Peak and cost of a set; drops useless recomputations from it. */
static int64_t measure(Annealer *annealer, KeyList *set, double *cost) {
  const PlanGraph *graph = annealer->graph;
  lay_out(annealer, set);
  find_uses(annealer);
  int64_t held = graph->persistent_bytes, peak = held, kept = 0, next = 0;
  double extra = 0;
  for (int64_t k = 0; k < annealer->length; k++) {
    bool again = annealer->again[k];
    if (annealer->sequence[k] >= 0 && again) set->items[kept++] = set->items[next];
    next += again;
    annealer->live[k] = 0;
    if (annealer->sequence[k] < 0) continue;
    const PlanNode *node = &graph->nodes.items[annealer->sequence[k]];
    if (again) extra += node->cost;
    int64_t during = held + node->workspace;
    for (int32_t o = 0; o < node->output_count; o++) {
      int64_t bytes = graph->storages.items[node->outputs[o]].bytes;
      during += bytes;
      if (annealer->output_used[annealer->first_output[k] + o]) held += bytes;
    }
    if (node->inplace_count) during -= inplace_bytes(annealer, k);
    for (int32_t i = 0; i < node->input_count; i++)
      if (annealer->input_ends[annealer->first_input[k] + i]) held -= graph->storages.items[node->inputs[i]].bytes;
    annealer->live[k] = during;
    if (during > peak) peak = during;
  }
  set->count = kept;
  *cost = extra;
  return peak;
}

/* ---- looking at one position of the sequence ---- */

/* live_here[s]: s is live across position k (made before, read after, not made again in between), where k itself does
 * not count. The sequence must be that of the set looked at. */
static void look_at(Annealer *annealer, int64_t position) {
  const PlanGraph *graph = annealer->graph;
  for (int64_t s = 0; s < graph->storages.count; s++)
    annealer->live_here[s] = graph->storages.items[s].result || graph->storages.items[s].persistent;
  for (int64_t k = annealer->length - 1; k > position; k--) {
    if (annealer->sequence[k] < 0) continue;
    const PlanNode *node = &graph->nodes.items[annealer->sequence[k]];
    for (int32_t o = 0; o < node->output_count; o++) annealer->live_here[node->outputs[o]] = false;
    for (int32_t i = 0; i < node->input_count; i++) annealer->live_here[node->inputs[i]] = true;
  }
}

/* The stage of the run at a position: of a recomputation, the stage it is made for. */
static int32_t stage_at(const Annealer *annealer, int64_t position) {
  int64_t k = position;
  while (annealer->again[k]) k++;
  return annealer->sequence[k];
}

static int64_t position_of_stage(const KeyList *set, int32_t stage) {
  return stage + find_key(set, make_key(stage, 0));
}

/* ---- moves ---- */

/* Adds node to the set at stage and, for inputs that are not live there, decides by chance between running their nodes
 * again too and holding them longer. live_here must be that of the stage's beginning. */
static bool add_closure(Annealer *annealer, KeyList *set, int32_t stage, int32_t node, int depth) {
  if (stage > annealer->latest_stage[node] || stage <= node) return false;
  if (!insert_key(annealer, set, make_key(stage, node))) return false;
  const PlanNode *what = &annealer->graph->nodes.items[node];
  int64_t made = 0;
  for (int32_t o = 0; o < what->output_count; o++) made += annealer->graph->storages.items[what->outputs[o]].bytes;
  for (int32_t i = 0; i < what->input_count; i++) {
    int32_t input = what->inputs[i];
    const PlanStorage *storage = &annealer->graph->storages.items[input];
    if (annealer->live_here[input] || storage->persistent || storage->bytes == 0) continue;
    bool larger = storage->bytes >= made;
    if (depth < 200 && random_unit(annealer) < (larger ? 0.9 : 0.5))
      add_closure(annealer, set, stage, storage->producer, depth + 1);
  }
  return true;
}

/* Chooses a storage that is live across a position without being read there, by bytes per cost, and runs its node again
 * for the next reader. */
static bool cut_gap(Annealer *annealer, KeyList *set, int64_t position) {
  const PlanGraph *graph = annealer->graph;
  look_at(annealer, position);
  int64_t count = 0;
  double total = 0;
  const PlanNode *here = annealer->sequence[position] >= 0 ? &graph->nodes.items[annealer->sequence[position]] : NULL;
  for (int32_t i = 0; here && i < here->output_count; i++) annealer->live_here[here->outputs[i]] = false;
  for (int32_t i = 0; here && i < here->input_count; i++) annealer->live_here[here->inputs[i]] = false;
  for (int64_t k = position + 1; k < annealer->length; k++) {
    if (annealer->sequence[k] < 0) continue;
    const PlanNode *node = &graph->nodes.items[annealer->sequence[k]];
    for (int32_t i = 0; i < node->input_count; i++) {
      int32_t input = node->inputs[i];
      const PlanStorage *storage = &graph->storages.items[input];
      if (!annealer->live_here[input] || storage->persistent || !storage->bytes) continue;
      annealer->live_here[input] = false;
      if (!graph->nodes.items[storage->producer].recompute || storage->decision == PLAN_KEEP) continue;
      if (storage->producer >= annealer->sequence[position] && !annealer->again[position]) continue;
      annealer->candidates[count] = storage->producer;
      annealer->candidate_stage[count] = stage_at(annealer, k);
      annealer->weights[count] =
          (double)storage->bytes / (graph->nodes.items[storage->producer].cost + annealer->extra_scale);
      total += annealer->weights[count++];
    }
  }
  if (!count) return false;
  double pick = random_unit(annealer) * total;
  int64_t chosen = 0;
  while (chosen + 1 < count && (pick -= annealer->weights[chosen]) > 0) chosen++;
  int32_t stage = annealer->candidate_stage[chosen];
  look_at(annealer, position_of_stage(set, stage) - 1);
  return add_closure(annealer, set, stage, annealer->candidates[chosen], 0);
}

static int64_t peak_position(const Annealer *annealer) {
  int64_t at = 0;
  for (int64_t k = 0; k < annealer->length; k++)
    if (annealer->live[k] > annealer->live[at]) at = k;
  return at;
}

static bool remove_one(Annealer *annealer, KeyList *set) {
  if (!set->count) return false;
  remove_at(set, random_below(annealer, set->count));
  return true;
}

/* Moves a recomputation to a stage near by. */
static bool shift_one(Annealer *annealer, KeyList *set) {
  if (!set->count) return false;
  int64_t at = random_below(annealer, set->count);
  Key key = set->items[at];
  int32_t distance = 1 + (int32_t)random_below(annealer, 8);
  int32_t stage = key_stage(key) + (next_random(annealer) & 1 ? distance : -distance), node = key_node(key);
  if (stage <= node || stage > annealer->latest_stage[node]) return false;
  remove_at(set, at);
  return insert_key(annealer, set, make_key(stage, node));
}

static bool make_move(Annealer *annealer, KeyList *set) {
  double choice = random_unit(annealer);
  bool over = annealer->now_peak > annealer->options->budget;
  if (choice < (over ? 0.15 : 0.45)) return remove_one(annealer, set);
  if (choice < (over ? 0.25 : 0.60)) return shift_one(annealer, set);
  /* The remaining moves look at the sequence of the current set. */
  double cost;
  if (choice < (over ? 0.40 : 0.75)) {
    measure(annealer, set, &cost);
    return cut_gap(annealer, set, random_below(annealer, annealer->length));
  }
  if (!over || choice > 0.85) remove_one(annealer, set);
  measure(annealer, set, &cost);
  return cut_gap(annealer, set, peak_position(annealer));
}

static double energy(const Annealer *annealer, double cost, int64_t peak) {
  int64_t over = peak - annealer->options->budget;
  return over > 0 ? cost + annealer->penalty * (double)over : cost;
}

/* ---- the search ---- */

static void find_latest_stages(Annealer *annealer) {
  const PlanGraph *graph = annealer->graph;
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    annealer->latest_stage[n] = node->recompute ? (int32_t)graph->nodes.count - 1 : -1;
    for (int32_t i = 0; i < node->input_count && node->recompute; i++) {
      const PlanStorage *input = &graph->storages.items[node->inputs[i]];
      for (int32_t w = 0; w < input->writer_count; w++)
        if (input->writers[w] > n && input->writers[w] < annealer->latest_stage[n])
          annealer->latest_stage[n] = input->writers[w];
    }
  }
}

static KeyList create_list(Annealer *annealer) {
  return (KeyList){.items = NEW_ARRAY(annealer->arena, Key, annealer->capacity)};
}

static Annealer *create_annealer(MemoryArena *arena, const PlanGraph *graph, RunList runs,
                                 const LocalSearchOptions *options) {
  Annealer *annealer = NEW(arena, Annealer);
  annealer->arena = arena;
  annealer->graph = graph;
  annealer->options = options;
  annealer->random = options->seed * UINT64_C(0x9E3779B97F4A7C15) + 88172645463325252u;
  annealer->capacity = runs.count + 4 * graph->nodes.count + 64;
  annealer->now = create_list(annealer);
  annealer->trial = create_list(annealer);
  annealer->best = create_list(annealer);
  annealer->lowest = create_list(annealer);
  int64_t longest = annealer->capacity + graph->nodes.count, inputs = 0, outputs = 0, most_inputs = 1, most_outputs = 1;
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    inputs += node->input_count, outputs += node->output_count;
    if (node->input_count > most_inputs) most_inputs = node->input_count;
    if (node->output_count > most_outputs) most_outputs = node->output_count;
  }
  annealer->sequence = NEW_ARRAY(arena, int32_t, longest);
  annealer->live = NEW_ARRAY(arena, int64_t, longest);
  annealer->again = NEW_ARRAY(arena, bool, longest);
  annealer->first_input = NEW_ARRAY(arena, int32_t, longest);
  annealer->first_output = NEW_ARRAY(arena, int32_t, longest);
  annealer->input_ends = NEW_ARRAY(arena, bool, inputs + annealer->capacity * most_inputs);
  annealer->output_used = NEW_ARRAY(arena, bool, outputs + annealer->capacity * most_outputs);
  annealer->wanted = NEW_ARRAY(arena, bool, graph->storages.count);
  annealer->live_here = NEW_ARRAY(arena, bool, graph->storages.count);
  annealer->candidates = NEW_ARRAY(arena, int32_t, graph->storages.count);
  annealer->candidate_stage = NEW_ARRAY(arena, int32_t, graph->storages.count);
  annealer->weights = NEW_ARRAY(arena, double, graph->storages.count);
  annealer->latest_stage = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  find_latest_stages(annealer);
  return annealer;
}

/* The recomputations of a sequence: every run of a node that has run before, at the next first execution. */
static void load_runs(Annealer *annealer, RunList runs) {
  int32_t done = 0;
  for (int64_t k = 0; k < runs.count; k++) {
    if (runs.items[k] >= done)
      done = runs.items[k] + 1;
    else
      insert_key(annealer, &annealer->now, make_key(done, runs.items[k]));
  }
}

static RunList runs_of(Annealer *annealer, KeyList *set) {
  double cost;
  measure(annealer, set, &cost);
  RunList runs = {0};
  for (int64_t k = 0; k < annealer->length; k++)
    if (annealer->sequence[k] >= 0) array_push(annealer->arena, &runs, annealer->sequence[k]);
  return runs;
}

static double mean_cost(const PlanGraph *graph) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    if (!graph->nodes.items[n].recompute) continue;
    sum += graph->nodes.items[n].cost;
    count++;
  }
  return count ? sum / (double)count : 0;
}

static void start_from(Annealer *annealer, RunList runs) {
  const LocalSearchOptions *options = annealer->options;
  load_runs(annealer, runs);
  for (int64_t s = 0; s < annealer->graph->storages.count; s++)
    annealer->constrained = annealer->constrained || annealer->graph->storages.items[s].decision == PLAN_RECOMPUTE;
  annealer->now_peak = annealer->lowest_peak = measure(annealer, &annealer->now, &annealer->now_cost);
  annealer->best_cost = annealer->now_peak <= options->budget ? annealer->now_cost : HUGE_VAL;
  copy_keys(&annealer->best, &annealer->now);
  copy_keys(&annealer->lowest, &annealer->now);
  annealer->extra_scale = mean_cost(annealer->graph) * 0.05 + 1e-9;
  annealer->penalty = 2 * (annealer->graph->base_cost + 1e-9) / (double)(options->budget + 1);
}

/* One step at a temperature; true when it led to a new best. */
static bool anneal(Annealer *annealer, double heat) {
  int64_t budget = annealer->options->budget, peak;
  double cost;
  copy_keys(&annealer->trial, &annealer->now);
  if (!make_move(annealer, &annealer->trial)) return false;
  peak = measure(annealer, &annealer->trial, &cost);
  if (annealer->violated) return false;
  if (peak < annealer->lowest_peak) {
    annealer->lowest_peak = peak;
    copy_keys(&annealer->lowest, &annealer->trial);
  }
  double difference = energy(annealer, cost, peak) - energy(annealer, annealer->now_cost, annealer->now_peak);
  if (difference > 0 && random_unit(annealer) >= exp(-difference / heat)) return false;
  KeyList swap = annealer->now;
  annealer->now = annealer->trial;
  annealer->trial = swap;
  annealer->now_cost = cost;
  annealer->now_peak = peak;
  annealer->penalty *= peak > budget ? 1.002 : 0.999;
  if (peak > budget || cost >= annealer->best_cost - 1e-12) return false;
  annealer->best_cost = cost;
  copy_keys(&annealer->best, &annealer->now);
  return true;
}

RunList local_search(MemoryArena *arena, const PlanGraph *graph, RunList runs, const LocalSearchOptions *options,
                     const LocalSearchEvents *events) {
  Annealer *annealer = create_annealer(arena, graph, runs, options);
  start_from(annealer, runs);
  double start = options->heat * mean_cost(graph) + 1e-12, end = start * 1e-2;
  bool improved = false;
  for (int64_t i = 0; i < options->iterations; i++) {
    if ((i & 255) == 0 && events->stop(events->context)) break;
    bool better = anneal(annealer, start * pow(end / start, (double)i / (double)options->iterations));
    improved = improved || better;
  }
  if (improved) events->found(events->context, runs_of(annealer, &annealer->best));
  return runs_of(annealer, &annealer->lowest);
}
