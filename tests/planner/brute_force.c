/* tests/planner/brute_force.c - relaxes every (nodes executed, live set) until nothing changes. */
#include "tests/planner/brute_force.h"

#include <math.h>
#include <stdlib.h>

typedef struct Table {
  const PlanGraph *graph;
  int64_t budget;
  int bits;     /* storages that are not persistent */
  int bit[64];  /* by storage, -1 for persistent */
  double *cost; /* [done << bits | live] */
  bool changed;
} Table;

static int64_t live_bytes(const Table *table, unsigned live) {
  int64_t bytes = 0;
  for (int64_t s = 0; s < table->graph->storages.count; s++)
    if (table->bit[s] < 0 || (live >> table->bit[s] & 1)) bytes += table->graph->storages.items[s].bytes;
  return bytes;
}

static void lower(Table *table, int done, unsigned live, double cost) {
  double *entry = &table->cost[(size_t)done << table->bits | live];
  if (cost >= *entry) return;
  *entry = cost;
  table->changed = true;
}

/* Runs a node from a state: drop is the set of outputs (by position) that are dropped, taken the set of in-place pairs.
 */
static void run_one(Table *table, int done, unsigned live, double cost, int n, unsigned drop, unsigned taken) {
  const PlanNode *node = &table->graph->nodes.items[n];
  bool again = n < done;
  unsigned hosts = 0, placed = 0, made = 0;
  int64_t extra = node->workspace;
  for (int o = 0; o < node->output_count; o++) {
    unsigned output = 1u << table->bit[node->outputs[o]];
    if (!(drop >> o & 1)) {
      if (live & output) return;
      made |= output;
    }
    extra += table->graph->storages.items[node->outputs[o]].bytes;
  }
  for (int p = 0; p < node->inplace_count; p++) {
    if (!(taken >> p & 1)) continue;
    int32_t host = node->inplace[p].host, output = node->inplace[p].output;
    if (table->bit[host] < 0 || table->graph->storages.items[host].bytes != table->graph->storages.items[output].bytes)
      return;
    unsigned host_bit = 1u << table->bit[host], output_bit = 1u << table->bit[output];
    if ((hosts & host_bit) || (placed & output_bit) || !(made & output_bit)) return;
    hosts |= host_bit;
    placed |= output_bit;
    extra -= table->graph->storages.items[output].bytes;
  }
  if (live_bytes(table, live) + extra > table->budget) return;
  lower(table, again ? done : done + 1, (live & ~hosts) | made, cost + node->cost);
}

static bool may_run(const Table *table, int done, unsigned live, int n) {
  const PlanNode *node = &table->graph->nodes.items[n];
  if (n < done && !node->recompute) return false;
  for (int i = 0; i < node->input_count; i++) {
    int bit = table->bit[node->inputs[i]];
    if (bit >= 0 && !(live >> bit & 1)) return false;
    for (int m = n + 1; m < done; m++)
      for (int w = 0; w < table->graph->nodes.items[m].write_count; w++)
        if (table->graph->nodes.items[m].writes[w] == node->inputs[i]) return false;
  }
  return true;
}

static void relax(Table *table, int done, unsigned live, double cost) {
  for (int b = 0; b < table->bits; b++)
    if (live >> b & 1) lower(table, done, live & ~(1u << b), cost);
  for (int n = 0; n <= done && n < table->graph->nodes.count; n++) {
    const PlanNode *node = &table->graph->nodes.items[n];
    if (!may_run(table, done, live, n)) continue;
    unsigned drops = n < done ? 1u << node->output_count : 1;
    for (unsigned drop = 0; drop < drops; drop++)
      for (unsigned taken = 0; taken < 1u << node->inplace_count; taken++)
        run_one(table, done, live, cost, n, drop, taken);
  }
}

double brute_force_cost(const PlanGraph *graph, int64_t budget) {
  Table table = {.graph = graph, .budget = budget};
  unsigned results = 0;
  for (int64_t s = 0; s < graph->storages.count; s++)
    table.bit[s] = graph->storages.items[s].persistent ? -1 : table.bits++;
  for (int64_t s = 0; s < graph->storages.count; s++)
    if (graph->storages.items[s].result && table.bit[s] >= 0) results |= 1u << table.bit[s];
  ASSERT(table.bits <= 20);
  size_t count = (size_t)(graph->nodes.count + 1) << table.bits;
  table.cost = malloc(count * sizeof *table.cost);
  for (size_t i = 0; i < count; i++) table.cost[i] = HUGE_VAL;
  table.cost[0] = 0;
  for (int done = 0; done <= graph->nodes.count; done++) {
    do { /* recomputations and frees stay at the same number of nodes done */
      table.changed = false;
      for (unsigned live = 0; live < 1u << table.bits; live++) {
        double cost = table.cost[(size_t)done << table.bits | live];
        if (cost < HUGE_VAL) relax(&table, done, live, cost);
      }
    } while (table.changed);
  }
  double best = HUGE_VAL;
  for (unsigned live = 0; live < 1u << table.bits; live++)
    if ((live & results) == results) best = fmin(best, table.cost[((size_t)graph->nodes.count << table.bits) | live]);
  free(table.cost);
  return best < HUGE_VAL ? best : -1;
}
