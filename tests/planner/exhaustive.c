/* tests/planner/exhaustive.c - Dijkstra over (nodes done, live set), states in a hash table. */
#include "tests/planner/exhaustive.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_NODES = 64, MAX_PAIRS = 8 };

typedef struct Entry {
  uint64_t live;
  int32_t done; /* -1: an empty slot */
  bool closed;
  double cost;
} Entry;

typedef struct Waiting {
  double cost;
  uint64_t live;
  int32_t done;
} Waiting;

/* A node with its storages as sets. */
typedef struct Work {
  double cost;
  uint64_t inputs, outputs;
  uint64_t persistent_inputs, writes; /* sets of persistent storages, by number modulo 64 */
  int64_t extra;                      /* workspace and outputs, bytes */
  int pair_count;
  uint64_t host[MAX_PAIRS], output[MAX_PAIRS]; /* one storage each; only pairs of equal sizes */
  int64_t saved[MAX_PAIRS];
  bool recompute;
} Work;

typedef struct Search {
  int count; /* nodes */
  Work work[MAX_NODES];
  int64_t bytes[64], persistent_bytes, budget;
  uint64_t results;
  uint64_t useful[MAX_NODES + 1];   /* by nodes done: storages that may still be read */
  uint64_t required[MAX_NODES + 1]; /* storages that must still be read and cannot be made again */
  Entry *entries;
  size_t capacity, used;
  Waiting *heap;
  size_t heap_count, heap_capacity;
} Search;

static uint64_t bit(int at) { return UINT64_C(1) << at; }

/* ---- the problem as sets ---- */

static void state_node(Search *search, const PlanGraph *graph, const int *position, int n) {
  const PlanNode *node = &graph->nodes.items[n];
  Work *work = &search->work[n];
  *work = (Work){.cost = node->cost, .extra = node->workspace, .recompute = node->recompute};
  for (int i = 0; i < node->input_count; i++) {
    int at = position[node->inputs[i]];
    if (at >= 0)
      work->inputs |= bit(at);
    else
      work->persistent_inputs |= bit(node->inputs[i] % 64);
  }
  for (int i = 0; i < node->write_count; i++) work->writes |= bit(node->writes[i] % 64);
  for (int o = 0; o < node->output_count; o++) {
    work->outputs |= bit(position[node->outputs[o]]);
    work->extra += graph->storages.items[node->outputs[o]].bytes;
  }
  for (int p = 0; p < node->inplace_count; p++) {
    PlanInplace pair = node->inplace[p];
    int64_t size = graph->storages.items[pair.output].bytes;
    if (position[pair.host] < 0 || graph->storages.items[pair.host].bytes != size) continue;
    ASSERT(work->pair_count < MAX_PAIRS);
    work->host[work->pair_count] = bit(position[pair.host]);
    work->output[work->pair_count] = bit(position[pair.output]);
    work->saved[work->pair_count++] = size;
  }
}

static bool may_rerun(const Search *search, int n, int done) {
  if (!search->work[n].recompute) return false;
  for (int later = n + 1; later < done; later++)
    if (search->work[later].writes & search->work[n].persistent_inputs) return false;
  return true;
}

static void find_uses(Search *search, int done) {
  uint64_t needed = search->results, made = 0, makeable = 0;
  for (int n = done; n < search->count; n++) needed |= search->work[n].inputs;
  uint64_t useful = needed;
  for (int n = done - 1; n >= 0; n--) {
    made |= search->work[n].outputs;
    if (!may_rerun(search, n, done)) continue;
    makeable |= search->work[n].outputs;
    if (useful & search->work[n].outputs) useful |= search->work[n].inputs;
  }
  search->useful[done] = useful;
  search->required[done] = needed & made & ~makeable;
}

static void state_problem(Search *search, const PlanGraph *graph) {
  int bits = 0, *position = malloc((size_t)(graph->storages.count + 1) * sizeof *position);
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    ASSERT(storage->persistent ? s < 64 : bits < 64);
    position[s] = storage->persistent ? -1 : bits++;
    if (storage->persistent)
      search->persistent_bytes += storage->bytes;
    else
      search->bytes[position[s]] = storage->bytes;
    if (storage->result && position[s] >= 0) search->results |= bit(position[s]);
  }
  ASSERT(graph->nodes.count <= MAX_NODES);
  search->count = (int)graph->nodes.count;
  for (int n = 0; n < search->count; n++) state_node(search, graph, position, n);
  for (int done = 0; done <= search->count; done++) find_uses(search, done);
  free(position);
}

/* ---- states ---- */

static Entry *find_entry(const Search *search, uint64_t live, int done) {
  size_t at = (size_t)((live + (uint64_t)done) * UINT64_C(0x9E3779B97F4A7C15) >> 16);
  for (;; at++) {
    Entry *entry = &search->entries[at & (search->capacity - 1)];
    if (entry->done < 0 || (entry->live == live && entry->done == done)) return entry;
  }
}

static void grow(Search *search) {
  Entry *old = search->entries;
  size_t old_capacity = search->capacity;
  search->capacity = old_capacity ? 2 * old_capacity : 4096;
  search->entries = malloc(search->capacity * sizeof *search->entries);
  for (size_t i = 0; i < search->capacity; i++) search->entries[i].done = -1;
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].done >= 0) *find_entry(search, old[i].live, old[i].done) = old[i];
  free(old);
}

static void push(Search *search, Waiting item) {
  if (search->heap_count == search->heap_capacity) {
    search->heap_capacity = search->heap_capacity ? 2 * search->heap_capacity : 1024;
    search->heap = realloc(search->heap, search->heap_capacity * sizeof *search->heap);
  }
  size_t at = search->heap_count++;
  for (; at > 0 && item.cost < search->heap[(at - 1) / 2].cost; at = (at - 1) / 2)
    search->heap[at] = search->heap[(at - 1) / 2];
  search->heap[at] = item;
}

static Waiting pop(Search *search) {
  Waiting top = search->heap[0], last = search->heap[--search->heap_count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < search->heap_count; at = child) {
    if (child + 1 < search->heap_count && search->heap[child + 1].cost < search->heap[child].cost) child++;
    if (last.cost <= search->heap[child].cost) break;
    search->heap[at] = search->heap[child];
  }
  search->heap[at] = last;
  return top;
}

static void reach(Search *search, uint64_t live, int done, double cost) {
  live &= search->useful[done];
  if (2 * search->used >= search->capacity) grow(search);
  Entry *entry = find_entry(search, live, done);
  if (entry->done < 0)
    search->used++;
  else if (entry->cost <= cost)
    return;
  *entry = (Entry){.live = live, .done = done, .cost = cost};
  push(search, (Waiting){cost, live, done});
}

/* ---- moves ---- */

static int64_t bytes_of(const Search *search, uint64_t set) {
  int64_t bytes = 0;
  for (; set; set &= set - 1) bytes += search->bytes[__builtin_ctzll(set)];
  return bytes;
}

/* Runs a node with each choice of in-place pairs. Returns whether the run that takes no bytes fits. */
static bool run_node(Search *search, const Waiting *state, int n) {
  const Work *work = &search->work[n];
  if (work->inputs & ~state->live) return true;
  int done = n == state->done ? n + 1 : state->done;
  uint64_t made = work->outputs & ~state->live;
  int64_t held = search->persistent_bytes + bytes_of(search, state->live) + work->extra;
  for (unsigned taken = 0; taken < 1u << work->pair_count; taken++) {
    uint64_t hosts = 0, placed = 0;
    int64_t bytes = held;
    bool permitted = true;
    for (int p = 0; p < work->pair_count; p++) {
      if (!(taken >> p & 1)) continue;
      permitted = permitted && !(hosts & work->host[p]) && !(placed & work->output[p]) && (made & work->output[p]);
      hosts |= work->host[p];
      placed |= work->output[p];
      bytes -= work->saved[p];
    }
    uint64_t after = (state->live & ~hosts) | made;
    if (permitted && bytes <= search->budget && !(search->required[done] & ~after))
      reach(search, after, done, state->cost + work->cost);
  }
  return held <= search->budget;
}

static void expand(Search *search, const Waiting *state) {
  bool all_fit = state->done == search->count || run_node(search, state, state->done);
  for (int n = 0; n < state->done; n++)
    if (may_rerun(search, n, state->done)) all_fit = run_node(search, state, n) && all_fit;
  if (all_fit) return;
  for (uint64_t set = state->live & ~search->required[state->done]; set; set &= set - 1)
    reach(search, state->live & ~(set & -set), state->done, state->cost);
}

/* Cost of the cheapest path, -1 when there is none. */
static double run_search(Search *search) {
  reach(search, 0, 0, 0);
  while (search->heap_count) {
    Waiting state = pop(search);
    Entry *entry = find_entry(search, state.live, state.done);
    if (entry->closed || state.cost > entry->cost) continue;
    entry->closed = true;
    if (state.done == search->count && !(search->results & ~state.live)) return state.cost;
    expand(search, &state);
  }
  return -1;
}

double exhaustive_cost(const PlanGraph *graph, int64_t budget) {
  Search search = {.budget = budget};
  state_problem(&search, graph);
  double cost = run_search(&search);
  free(search.entries);
  free(search.heap);
  return cost;
}

int64_t exhaustive_smallest(const PlanGraph *graph) {
  int64_t low = -1, high = 0; /* low has no schedule, high has one */
  for (int64_t s = 0; s < graph->storages.count; s++) high += graph->storages.items[s].bytes;
  for (int64_t n = 0; n < graph->nodes.count; n++) high += graph->nodes.items[n].workspace;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (exhaustive_cost(graph, middle) < 0)
      low = middle;
    else
      high = middle;
  }
  return high;
}
