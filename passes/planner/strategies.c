/* passes/planner/strategies.c - none, blocks, sqrt, selective, greedy: choices of what to keep. */
#include "passes/planner/strategies.h"

#include <stdlib.h>

#include "passes/planner/retain.h"

static const char *const strategy_names[PLAN_STRATEGY_COUNT] = {
    [PLAN_STRATEGY_ILP] = "ilp",   [PLAN_STRATEGY_NONE] = "none",           [PLAN_STRATEGY_BLOCKS] = "blocks",
    [PLAN_STRATEGY_SQRT] = "sqrt", [PLAN_STRATEGY_SELECTIVE] = "selective", [PLAN_STRATEGY_GREEDY] = "greedy"};

const char *plan_strategy_name(PlanStrategy strategy) { return strategy_names[strategy]; }

bool plan_strategy_parse(const char *name, PlanStrategy *strategy) {
  for (int i = 0; i < PLAN_STRATEGY_COUNT; i++) {
    if (!string_equal(name, strategy_names[i])) continue;
    *strategy = (PlanStrategy)i;
    return true;
  }
  return false;
}

/* What every strategy works with: the best candidate so far is the cheapest that fits, else the one of lowest peak. */
typedef struct Search {
  MemoryArena *arena, *scratch;
  const PlanGraph *graph;
  int64_t budget;
  RunList best;
  int64_t best_peak;
  double best_cost;
  int32_t contradiction; /* a storage that must be and cannot be recomputed, or -1 */
} Search;

static bool improves(const Search *search, int64_t peak, double cost) {
  if (!search->best.count) return true;
  bool fits = peak <= search->budget, best_fits = search->best_peak <= search->budget;
  if (fits != best_fits) return fits;
  if (fits) return cost < search->best_cost || (cost == search->best_cost && peak < search->best_peak);
  return peak < search->best_peak || (peak == search->best_peak && cost < search->best_cost);
}

/* Evaluates one choice; returns its peak, or -1 on a contradiction. Consumes scratch memory of the search. */
static int64_t consider(Search *search, const bool *choice) {
  memory_arena_reset(search->scratch);
  bool *kept = NEW_ARRAY(search->scratch, bool, search->graph->storages.count);
  memcpy(kept, choice, (size_t)search->graph->storages.count * sizeof *kept);
  int32_t storage;
  RunList runs = retain_runs(search->scratch, search->graph, kept, &storage);
  if (search->graph->nodes.count && !runs.count) {
    search->contradiction = storage;
    return -1;
  }
  int64_t peak = runs_profile(search->scratch, search->graph, runs.items, runs.count, NULL);
  double cost = runs_cost(search->graph, runs.items, runs.count);
  if (improves(search, peak, cost)) {
    search->best.count = 0;
    for (int64_t i = 0; i < runs.count; i++) array_push(search->arena, &search->best, runs.items[i]);
    search->best_peak = peak;
    search->best_cost = cost;
  }
  return peak;
}

/* ---- blocks ---- */

static bool is_number(const char *text, int64_t length) {
  for (int64_t i = 0; i < length; i++)
    if (text[i] < '0' || text[i] > '9') return false;
  return length > 0;
}

/* Length of the segment's name in a module path: up to the first component that is a number ("h.0" of "h.0.mlp"), or
 * the first component when no path of the graph has a number. */
static int64_t segment_length(const char *module, bool numbered) {
  const char *start = module;
  for (;;) {
    const char *end = strchr(start, '.');
    int64_t length = end ? end - start : (int64_t)strlen(start);
    if (!numbered || is_number(start, length)) return start + length - module;
    if (!end) return 0;
    start = end + 1;
  }
}

static bool any_numbered(const PlanGraph *graph) {
  for (int64_t n = 0; n < graph->nodes.count; n++)
    if (graph->nodes.items[n].module && segment_length(graph->nodes.items[n].module, true)) return true;
  return false;
}

/* Segment number per node; -1 outside every segment. Returns the number of segments. */
static int64_t find_segments(Search *search, int32_t *segment) {
  const PlanGraph *graph = search->graph;
  bool numbered = any_numbered(graph);
  StringMap names = {.arena = search->arena};
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    const char *module = graph->nodes.items[n].module;
    int64_t length = module ? segment_length(module, numbered) : 0;
    segment[n] = -1;
    if (!length) continue;
    const char *name = memory_string_range(search->arena, module, length);
    const int64_t *known = string_map_find(&names, name);
    segment[n] = (int32_t)(known ? *known : names.count);
    if (!known) string_map_set(&names, name, names.count);
  }
  return names.count;
}

/* Drops every choice that is made in a segment and read in the forward pass only by the same segment. */
static void drop_inside_segments(const PlanGraph *graph, const int32_t *segment, bool *kept) {
  for (int32_t s = 0; s < graph->storages.count; s++) {
    if (!retain_is_choice(graph, s)) continue;
    const PlanStorage *storage = &graph->storages.items[s];
    bool inside = segment[storage->producer] >= 0;
    for (int32_t r = 0; r < storage->reader_count && storage->readers[r] < graph->first_stage; r++)
      inside = inside && segment[storage->readers[r]] == segment[storage->producer];
    if (inside) kept[s] = false;
  }
}

static const char *plan_blocks(Search *search) {
  int32_t *segment = NEW_ARRAY(search->arena, int32_t, search->graph->nodes.count);
  if (!find_segments(search, segment))
    return "blocks needs the key \"module\" on the nodes of the graph, which has none";
  bool *kept = retain_all(search->arena, search->graph);
  drop_inside_segments(search->graph, segment, kept);
  consider(search, kept);
  return NULL;
}

/* ---- sqrt ---- */

static void equal_segments(const PlanGraph *graph, int64_t total, int64_t count, int32_t *segment) {
  double done = 0;
  for (int32_t n = 0; n < graph->first_stage; n++) {
    segment[n] = (int32_t)(done * (double)count / ((double)total + 1.0));
    for (int32_t o = 0; o < graph->nodes.items[n].output_count; o++)
      done += (double)graph->storages.items[graph->nodes.items[n].outputs[o]].bytes;
  }
}

static const char *plan_sqrt(Search *search) {
  const PlanGraph *graph = search->graph;
  int64_t total = 0, limit = 2;
  for (int64_t s = 0; s < graph->storages.count; s++)
    if (retain_is_choice(graph, (int32_t)s)) total += graph->storages.items[s].bytes;
  while (limit * limit < 4 * (int64_t)graph->first_stage) limit++;
  int32_t *segment = NEW_ARRAY(search->arena, int32_t, graph->nodes.count);
  int64_t step = 1 + limit / 64;
  for (int64_t count = 1; count <= limit; count += step) {
    bool *kept = retain_all(search->arena, graph);
    equal_segments(graph, total, count, segment);
    drop_inside_segments(graph, segment, kept);
    if (consider(search, kept) < 0) break;
  }
  return NULL;
}

/* ---- selective ---- */

/* Cost per byte moved of each op over all nodes before the first stage, by the op's number in `ops`. */
static double *cost_per_byte(Search *search, StringMap *ops) {
  const PlanGraph *graph = search->graph;
  double *cost = NEW_ARRAY(search->arena, double, graph->nodes.count);
  double *bytes = NEW_ARRAY(search->arena, double, graph->nodes.count);
  for (int32_t n = 0; n < graph->first_stage; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    if (!node->op || !node->recompute) continue;
    if (!string_map_find(ops, node->op)) string_map_set(ops, node->op, ops->count);
    int64_t op = *string_map_find(ops, node->op);
    cost[op] += node->cost;
    for (int32_t i = 0; i < node->input_count; i++) bytes[op] += (double)graph->storages.items[node->inputs[i]].bytes;
    for (int32_t o = 0; o < node->output_count; o++) bytes[op] += (double)graph->storages.items[node->outputs[o]].bytes;
  }
  for (int64_t op = 0; op < ops->count; op++) cost[op] = bytes[op] > 0 ? cost[op] / bytes[op] : 0;
  return cost;
}

/* Ops that are bound by memory traffic have about the same cost per byte; contractions have several times more. */
static const double cheap_factor = 3.0;

static const char *plan_selective(Search *search) {
  const PlanGraph *graph = search->graph;
  StringMap ops = {.arena = search->arena};
  double *density = cost_per_byte(search, &ops), least = 0;
  if (!ops.count) return "selective needs the key \"op\" on the nodes of the graph, which has none";
  for (int64_t op = 0; op < ops.count; op++)
    if (density[op] > 0 && (least == 0 || density[op] < least)) least = density[op];
  bool *kept = retain_all(search->arena, graph);
  for (int32_t s = 0; s < graph->storages.count; s++) {
    if (!retain_is_choice(graph, s)) continue;
    const char *op = graph->nodes.items[graph->storages.items[s].producer].op;
    if (op && density[*string_map_find(&ops, op)] <= cheap_factor * least) kept[s] = false;
  }
  consider(search, kept);
  return NULL;
}

/* ---- greedy ---- */

typedef struct Drop {
  double value; /* bytes per cost */
  int32_t storage;
} Drop;

static int by_value(const void *a, const void *b) {
  const Drop *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? 1 : -1;
  return x->storage - y->storage;
}

/* Choices that stages read, by bytes per cost, largest first. The others are never kept for the stages: they are
 * recomputed where a recomputation needs them. */
static int64_t rank_drops(const PlanGraph *graph, bool *kept, Drop *drops) {
  int64_t count = 0;
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (!retain_is_choice(graph, s)) continue;
    if (!plan_graph_read_by_stages(graph, s))
      kept[s] = false;
    else if (storage->bytes > 0)
      drops[count++] = (Drop){(double)storage->bytes / (graph->nodes.items[storage->producer].cost + 1e-9), s};
  }
  qsort(drops, (size_t)count, sizeof *drops, by_value);
  return count;
}

/* Large graphs are measured once for several drops. */
static const char *plan_greedy(Search *search) {
  const PlanGraph *graph = search->graph;
  bool *kept = retain_all(search->arena, graph);
  Drop *drops = NEW_ARRAY(search->arena, Drop, graph->storages.count);
  int64_t count = rank_drops(graph, kept, drops), together = 1 + count / 1000, next = 0;
  for (;;) {
    int64_t peak = consider(search, kept);
    if (peak < 0 || (search->budget > 0 && peak <= search->budget) || next == count) return NULL;
    for (int64_t i = 0; i < together && next < count; i++) kept[drops[next++].storage] = false;
  }
}

/* ---- all ---- */

static const char *run_strategy(Search *search, PlanStrategy strategy) {
  consider(search, retain_all(search->arena, search->graph));
  if (strategy == PLAN_STRATEGY_NONE || search->contradiction >= 0) return NULL;
  if (search->budget == 0 || (search->best.count && search->best_peak <= search->budget)) return NULL;
  search->best.count = 0;
  switch (strategy) {
    case PLAN_STRATEGY_BLOCKS:
      return plan_blocks(search);
    case PLAN_STRATEGY_SQRT:
      return plan_sqrt(search);
    case PLAN_STRATEGY_SELECTIVE:
      return plan_selective(search);
    case PLAN_STRATEGY_GREEDY:
      return plan_greedy(search);
    default:
      die("strategy %d is not one of the simple ones", (int)strategy);
  }
}

Plan *plan_by_strategy(MemoryArena *arena, const PlanGraph *graph, PlanStrategy strategy, int64_t budget,
                       const char **error, bool *usage) {
  Search search = {.arena = arena, .graph = graph, .budget = budget, .contradiction = -1};
  search.scratch = memory_arena_create();
  *error = run_strategy(&search, strategy);
  *usage = *error != NULL;
  memory_arena_destroy(search.scratch);
  if (!*error && search.contradiction >= 0)
    *error = memory_format(arena, "\"%s\" must be recomputed, but \"%s\" may not run again where it is needed",
                           graph->storages.items[search.contradiction].id,
                           graph->nodes.items[graph->storages.items[search.contradiction].producer].id);
  if (*error) return NULL;
  Plan *plan = plan_from_runs(arena, graph, search.best.items, search.best.count);
  plan->budget = budget;
  plan->strategy = plan_strategy_name(strategy);
  plan->stopped_by = plan->status == PLAN_STATUS_OPTIMAL ? NULL : "the strategy does not search";
  return plan;
}
