/* passes/planner/exact.c - uniform-cost search over (nodes executed, storages live). */
#include "passes/planner/exact.h"

#include <stdlib.h>

enum { MASK_BITS = 44, MAX_NODES = 1 << 18 };

/* What the priority of a state is: extra cost, or the largest number of bytes live on the way. */
typedef struct Entry {
  uint64_t key; /* nodes done << MASK_BITS | live set */
  double priority;
  int32_t parent;
  int32_t ran; /* node run by the action that led here, -1 for a free */
  bool closed;
} Entry;

typedef struct HeapItem {
  double priority;
  uint64_t key;
  int32_t entry;
} HeapItem;

typedef struct Search {
  MemoryArena *arena;
  const PlanGraph *graph;
  bool smallest; /* minimise the peak instead of the cost */
  int64_t budget;
  int32_t tracked_count;
  int32_t *bit;     /* per storage: its bit in the live set, -1 when its life is fixed */
  int32_t *tracked; /* per bit: storage */
  int64_t *fixed;   /* per number of nodes done: bytes of persistent and untracked live storages */
  ARRAY(Entry) entries;
  ARRAY(HeapItem) heap;
  int32_t *slots; /* open addressing: entry + 1 */
  int64_t slot_count;
} Search;

/* ---- set-up ---- */

static void mark_tracked(Search *search) {
  const PlanGraph *graph = search->graph;
  for (int64_t s = 0; s < graph->storages.count; s++) search->bit[s] = -1;
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    if (!node->recompute) continue;
    for (int32_t i = 0; i < node->input_count; i++)
      if (!graph->storages.items[node->inputs[i]].persistent) search->bit[node->inputs[i]] = 0;
    for (int32_t o = 0; o < node->output_count; o++) search->bit[node->outputs[o]] = 0;
  }
  for (int32_t s = 0; s < graph->storages.count; s++) {
    if (search->bit[s] < 0) continue;
    search->bit[s] = search->tracked_count;
    search->tracked[search->tracked_count++] = s;
  }
}

/* fixed[t]: an untracked storage is live after t nodes when it is made and some later node, or the end, reads it. */
static void sum_fixed(Search *search) {
  const PlanGraph *graph = search->graph;
  for (int64_t t = 0; t <= graph->nodes.count; t++) {
    search->fixed[t] = graph->persistent_bytes;
    for (int64_t s = 0; s < graph->storages.count; s++) {
      const PlanStorage *storage = &graph->storages.items[s];
      if (storage->persistent || search->bit[s] >= 0) continue;
      if (storage->producer < t && plan_graph_last_need(graph, (int32_t)s) >= t) search->fixed[t] += storage->bytes;
    }
  }
}

static Search *create_search(MemoryArena *arena, const PlanGraph *graph) {
  Search *search = NEW(arena, Search);
  search->arena = arena;
  search->graph = graph;
  search->bit = NEW_ARRAY(arena, int32_t, graph->storages.count);
  search->tracked = NEW_ARRAY(arena, int32_t, graph->storages.count);
  mark_tracked(search);
  if (search->tracked_count > MASK_BITS || graph->nodes.count >= MAX_NODES) return NULL;
  search->fixed = NEW_ARRAY(arena, int64_t, graph->nodes.count + 1);
  sum_fixed(search);
  return search;
}

/* ---- states ---- */

static int32_t *find_slot(Search *search, uint64_t key) {
  uint64_t at = (key * UINT64_C(0x9E3779B97F4A7C15)) >> 20;
  for (;; at++) {
    int32_t *slot = &search->slots[at & (uint64_t)(search->slot_count - 1)];
    if (!*slot || search->entries.items[*slot - 1].key == key) return slot;
  }
}

static void grow_slots(Search *search) {
  search->slot_count = search->slot_count ? search->slot_count * 2 : 1024;
  search->slots = NEW_ARRAY(search->arena, int32_t, search->slot_count);
  for (int64_t e = 0; e < search->entries.count; e++) *find_slot(search, search->entries.items[e].key) = (int32_t)e + 1;
}

/* Cheapest first; among equals the one with most nodes done. */
static bool before(const HeapItem *a, const HeapItem *b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  return a->key > b->key;
}

static void heap_push(Search *search, HeapItem item) {
  array_push(search->arena, &search->heap, item);
  HeapItem *heap = search->heap.items;
  int64_t at = search->heap.count - 1;
  for (; at > 0 && before(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
}

static HeapItem heap_pop(Search *search) {
  HeapItem *heap = search->heap.items, top = heap[0], last = heap[--search->heap.count];
  int64_t at = 0;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= search->heap.count) break;
    if (child + 1 < search->heap.count && before(&heap[child + 1], &heap[child])) child++;
    if (!before(&heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

static void reach(Search *search, uint64_t key, double priority, int32_t parent, int32_t ran) {
  if (search->entries.count * 2 >= search->slot_count) grow_slots(search);
  int32_t *slot = find_slot(search, key);
  if (!*slot) {
    array_push(search->arena, &search->entries, ((Entry){.key = key, .priority = priority + 1}));
    *slot = (int32_t)search->entries.count;
  }
  Entry *entry = &search->entries.items[*slot - 1];
  if (entry->priority <= priority) return;
  *entry = (Entry){.key = key, .priority = priority, .parent = parent, .ran = ran};
  heap_push(search, (HeapItem){.priority = priority, .key = key, .entry = *slot - 1});
}

/* ---- actions ---- */

typedef struct State {
  int32_t done, entry;
  uint64_t live;
  double priority;
  int64_t held;
} State;

static bool is_live(const Search *search, const State *state, int32_t storage) {
  int32_t bit = search->bit[storage];
  return bit < 0 || (state->live >> bit & 1);
}

/* A storage that cannot be made again must stay while a first execution, or the end, still needs it. */
static bool may_end(const Search *search, int32_t storage, int32_t done) {
  const PlanStorage *what = &search->graph->storages.items[storage];
  if (plan_graph_last_need(search->graph, storage) < done) return true;
  if (what->decision == PLAN_KEEP) return false;
  return plan_graph_may_rerun(search->graph, what->producer, done);
}

/* RECOMPUTE storages end with the last node before the first stage. */
static uint64_t force_recompute(const Search *search, int32_t done, uint64_t live) {
  if (done != search->graph->first_stage) return live;
  for (int32_t b = 0; b < search->tracked_count; b++) {
    const PlanStorage *storage = &search->graph->storages.items[search->tracked[b]];
    if (storage->decision == PLAN_RECOMPUTE && !storage->result) live &= ~(UINT64_C(1) << b);
  }
  return live;
}

static void finish_run(Search *search, const State *state, int32_t node, bool again, uint64_t live, int64_t during) {
  double priority = state->priority;
  if (search->smallest)
    priority = during > priority ? (double)during : priority;
  else if (during > search->budget)
    return;
  else if (again)
    priority += search->graph->nodes.items[node].cost;
  int32_t done = again ? state->done : state->done + 1;
  if (!again) live = force_recompute(search, done, live);
  reach(search, (uint64_t)done << MASK_BITS | live, priority, state->entry, node);
}

/* The in-place pairs taken so far by the run that is being tried. */
typedef struct Taken {
  const struct Taken *outer;
  PlanInplace pair;
} Taken;

static bool conflicts(const Taken *taken, PlanInplace pair) {
  for (; taken; taken = taken->outer)
    if (taken->pair.host == pair.host || taken->pair.output == pair.output) return true;
  return false;
}

typedef struct Attempt {
  const State *state;
  int32_t node;
  bool again;
  uint64_t made; /* outputs that are not dropped */
} Attempt;

/* Tries every set of in-place pairs from pair number `from` on; each lowers the bytes and ends its host. */
static void run_with_pairs(Search *search, const Attempt *attempt, uint64_t live, int64_t during, int32_t from,
                           const Taken *taken) {
  const PlanNode *node = &search->graph->nodes.items[attempt->node];
  finish_run(search, attempt->state, attempt->node, attempt->again, live, during);
  int32_t done = attempt->state->done + !attempt->again;
  for (int32_t p = from; p < node->inplace_count; p++) {
    PlanInplace pair = node->inplace[p];
    const PlanStorage *host = &search->graph->storages.items[pair.host];
    int32_t host_bit = search->bit[pair.host], output_bit = search->bit[pair.output];
    bool dropped = output_bit >= 0 && !(attempt->made >> output_bit & 1);
    if (host->persistent || !host->bytes || host->bytes != search->graph->storages.items[pair.output].bytes) continue;
    if (dropped || conflicts(taken, pair) || !may_end(search, pair.host, done)) continue;
    uint64_t left = host_bit >= 0 ? live & ~(UINT64_C(1) << host_bit) : live;
    Taken inner = {.outer = taken, .pair = pair};
    run_with_pairs(search, attempt, left, during - host->bytes, p + 1, &inner);
  }
}

/* Returns false when the node would not fit (and was therefore not run). */
static bool try_run(Search *search, const State *state, int32_t node, bool again) {
  const PlanGraph *graph = search->graph;
  const PlanNode *what = &graph->nodes.items[node];
  uint64_t made = 0;
  bool useful = !again;
  int64_t during = state->held + what->workspace;
  for (int32_t i = 0; i < what->input_count; i++)
    if (!graph->storages.items[what->inputs[i]].persistent && !is_live(search, state, what->inputs[i])) return true;
  for (int32_t o = 0; o < what->output_count; o++) {
    int32_t bit = search->bit[what->outputs[o]];
    during += graph->storages.items[what->outputs[o]].bytes;
    bool pinned = again && graph->storages.items[what->outputs[o]].decision == PLAN_KEEP;
    if (bit < 0 || pinned || state->live >> bit & 1) continue;
    made |= UINT64_C(1) << bit;
    useful = true;
  }
  if (!useful) return true;
  Attempt attempt = {.state = state, .node = node, .again = again, .made = made};
  run_with_pairs(search, &attempt, state->live | made, during, 0, NULL);
  return during <= search->budget;
}

static void free_each(Search *search, const State *state) {
  for (int32_t b = 0; b < search->tracked_count; b++) {
    if (!(state->live >> b & 1) || !may_end(search, search->tracked[b], state->done)) continue;
    uint64_t key = (uint64_t)state->done << MASK_BITS | (state->live & ~(UINT64_C(1) << b));
    reach(search, key, state->priority, state->entry, -1);
  }
}

static void expand(Search *search, int32_t entry) {
  const PlanGraph *graph = search->graph;
  State state = {.entry = entry, .priority = search->entries.items[entry].priority};
  state.done = (int32_t)(search->entries.items[entry].key >> MASK_BITS);
  state.live = search->entries.items[entry].key & ((UINT64_C(1) << MASK_BITS) - 1);
  state.held = search->fixed[state.done];
  for (int32_t b = 0; b < search->tracked_count; b++)
    if (state.live >> b & 1) state.held += graph->storages.items[search->tracked[b]].bytes;
  bool fits = state.done == graph->nodes.count || try_run(search, &state, state.done, false);
  for (int32_t n = 0; n < state.done; n++)
    if (plan_graph_may_rerun(graph, n, state.done)) fits = try_run(search, &state, n, true) && fits;
  if (!fits || search->smallest) free_each(search, &state);
}

static RunList trace(Search *search, int32_t entry) {
  RunList back = {0}, runs = {0};
  for (; entry > 0; entry = search->entries.items[entry].parent)
    if (search->entries.items[entry].ran >= 0) array_push(search->arena, &back, search->entries.items[entry].ran);
  for (int64_t i = back.count - 1; i >= 0; i--) array_push(search->arena, &runs, back.items[i]);
  return runs;
}

static bool is_goal(const Search *search, uint64_t key) {
  if ((int64_t)(key >> MASK_BITS) != search->graph->nodes.count) return false;
  for (int32_t b = 0; b < search->tracked_count; b++)
    if (search->graph->storages.items[search->tracked[b]].result && !(key >> b & 1)) return false;
  return true;
}

static ExactResult run_search(Search *search, int64_t state_limit, double *priority) {
  ExactResult result = {.status = EXACT_INFEASIBLE};
  reach(search, 0, *priority, -1, -1);
  while (search->heap.count > 0) {
    HeapItem item = heap_pop(search);
    Entry *entry = &search->entries.items[item.entry];
    if (entry->closed || item.priority > entry->priority) continue;
    entry->closed = true;
    *priority = item.priority;
    if (is_goal(search, entry->key)) {
      result.status = EXACT_OPTIMAL;
      result.runs = trace(search, item.entry);
      break;
    }
    if (search->entries.count > state_limit) {
      result.status = EXACT_LIMIT;
      break;
    }
    expand(search, item.entry);
  }
  result.states = search->entries.count;
  return result;
}

ExactResult exact_plan(MemoryArena *arena, const PlanGraph *graph, int64_t budget, int64_t state_limit) {
  Search *search = create_search(arena, graph);
  if (!search) return (ExactResult){.status = EXACT_TOO_LARGE, .bound = graph->base_cost};
  search->budget = budget;
  double extra = 0;
  ExactResult result = run_search(search, state_limit, &extra);
  result.bound = graph->base_cost + extra;
  return result;
}

ExactResult exact_smallest(MemoryArena *arena, const PlanGraph *graph, int64_t state_limit, int64_t *budget) {
  Search *search = create_search(arena, graph);
  if (!search) return (ExactResult){.status = EXACT_TOO_LARGE};
  search->smallest = true;
  search->budget = INT64_MAX;
  double peak = (double)graph->persistent_bytes;
  ExactResult result = run_search(search, state_limit, &peak);
  *budget = (int64_t)peak;
  return result;
}
