/* passes/planner/bound.c - the memory floor and the phase bound. */
#include "passes/planner/bound.h"

#include <math.h>

#include "passes/planner/mip.h"

/* ---- what is certain while the first execution of a node runs ---- */

static bool droppable(const PlanGraph *graph, int32_t storage) {
  const PlanStorage *what = &graph->storages.items[storage];
  return !what->persistent && what->decision != PLAN_KEEP && graph->nodes.items[what->producer].recompute;
}

static bool reads(const PlanNode *node, int32_t storage) {
  for (int32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] == storage) return true;
  return false;
}

/* Outputs and workspace of a node, less all that in-place pairs could save. */
static int64_t own_bytes(const PlanGraph *graph, int32_t n) {
  const PlanNode *node = &graph->nodes.items[n];
  int64_t bytes = node->workspace;
  for (int32_t o = 0; o < node->output_count; o++) {
    const PlanStorage *output = &graph->storages.items[node->outputs[o]];
    bool saved = false;
    for (int32_t p = 0; p < node->inplace_count; p++) {
      const PlanStorage *host = &graph->storages.items[node->inplace[p].host];
      saved =
          saved || (node->inplace[p].output == node->outputs[o] && !host->persistent && host->bytes == output->bytes);
    }
    if (!saved) bytes += output->bytes;
  }
  return bytes;
}

/* Per node: bytes live while it runs for the first time that no decision can avoid, its own inputs included. */
static int64_t *certain_bytes(MemoryArena *arena, const PlanGraph *graph) {
  int64_t count = graph->nodes.count;
  int64_t *change = NEW_ARRAY(arena, int64_t, count + 2), *bytes = NEW_ARRAY(arena, int64_t, count + 1);
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (storage->persistent || droppable(graph, s)) continue;
    change[storage->producer + 1] += storage->bytes;
    change[plan_graph_last_need(graph, s) + 1 < count + 1 ? plan_graph_last_need(graph, s) + 1 : count + 1] -=
        storage->bytes;
  }
  int64_t held = graph->persistent_bytes;
  for (int32_t n = 0; n < count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    held += change[n];
    bytes[n] = held + own_bytes(graph, n);
    for (int32_t i = 0; i < node->input_count; i++) {
      bool repeated = false;
      for (int32_t k = 0; k < i; k++) repeated = repeated || node->inputs[k] == node->inputs[i];
      if (!repeated && droppable(graph, node->inputs[i])) bytes[n] += graph->storages.items[node->inputs[i]].bytes;
    }
  }
  return bytes;
}

int64_t bound_memory(MemoryArena *arena, const PlanGraph *graph) {
  const int64_t *bytes = certain_bytes(arena, graph);
  int64_t most = graph->persistent_bytes;
  for (int32_t n = 0; n < graph->nodes.count; n++)
    if (bytes[n] > most) most = bytes[n];
  return most;
}

/* ---- the phase program ---- */

typedef struct Phases {
  const PlanGraph *graph;
  const BoundOptions *options;
  Mip *mip;
  int32_t count;
  int32_t *at;    /* p_k: node numbers, ascending */
  int32_t **live; /* [k][storage]: column of S, -1 where it is not a choice */
  int32_t **run;  /* [k][node]: column of R, -1 */
  double unit;
} Phases;

/* p_1 is the first stage; the others are the fullest moments of equal stretches of the stages. */
static void choose_moments(Phases *phases) {
  const PlanGraph *graph = phases->graph;
  int32_t first = graph->first_stage, count = (int32_t)graph->nodes.count;
  const int64_t *certain = certain_bytes(phases->mip->arena, graph);
  phases->count = 0;
  if (first >= count) return;
  phases->at[phases->count++] = first;
  for (int32_t k = 0; k < phases->options->phases && phases->options->phases > 1; k++) {
    int32_t from = first + (int32_t)((int64_t)(count - first) * k / phases->options->phases);
    int32_t to = first + (int32_t)((int64_t)(count - first) * (k + 1) / phases->options->phases), best = from;
    int64_t most = -1;
    for (int32_t n = from; n < to; n++) {
      if (certain[n] > most) most = certain[n], best = n;
    }
    if (most >= 0 && phases->at[phases->count - 1] < best) phases->at[phases->count++] = best;
  }
}

static int32_t phase_end(const Phases *phases, int32_t k) {
  return k + 1 < phases->count ? phases->at[k + 1] : (int32_t)phases->graph->nodes.count;
}

/* Is v made before p_k, still of use at or after it, and a choice? */
static bool is_choice(const Phases *phases, int32_t k, int32_t storage) {
  const PlanStorage *what = &phases->graph->storages.items[storage];
  return !what->persistent && what->producer < phases->at[k] && droppable(phases->graph, storage);
}

static void add_columns(Phases *phases) {
  const PlanGraph *graph = phases->graph;
  for (int32_t k = 0; k < phases->count; k++) {
    phases->live[k] = NEW_ARRAY(phases->mip->arena, int32_t, graph->storages.count);
    phases->run[k] = NEW_ARRAY(phases->mip->arena, int32_t, graph->nodes.count);
    const PlanNode *here = &graph->nodes.items[phases->at[k]];
    for (int32_t n = 0; n < graph->nodes.count; n++) phases->run[k][n] = -1;
    for (int32_t s = 0; s < graph->storages.count; s++) {
      phases->live[k][s] = -1;
      if (!is_choice(phases, k, s)) continue;
      bool dropped = graph->storages.items[s].decision == PLAN_RECOMPUTE && phases->at[k] == graph->first_stage;
      bool certain = reads(here, s);
      phases->live[k][s] = mip_column(phases->mip, certain, certain || !dropped ? 1 : 0, 0, true);
      int32_t node = graph->storages.items[s].producer;
      bool may_run = plan_graph_may_rerun(graph, node, phases->at[k] + 1);
      if (may_run && phases->run[k][node] < 0)
        phases->run[k][node] = mip_column(phases->mip, 0, 1, graph->nodes.items[node].cost, true);
    }
  }
}

static void add_read_rows(Phases *phases, int32_t k, int32_t reader) {
  const PlanNode *node = &phases->graph->nodes.items[reader];
  for (int32_t i = 0; i < node->input_count; i++) {
    int32_t input = node->inputs[i];
    if (phases->live[k][input] < 0) continue;
    mip_term(phases->mip, phases->live[k][input], 1);
    mip_term(phases->mip, phases->run[k][phases->graph->storages.items[input].producer], 1);
    mip_row_end(phases->mip, 1, HUGE_VAL);
  }
}

static void add_rerun_rows(Phases *phases, int32_t k, int32_t n) {
  const PlanNode *node = &phases->graph->nodes.items[n];
  for (int32_t i = 0; i < node->input_count && phases->run[k][n] >= 0; i++) {
    int32_t input = node->inputs[i];
    if (phases->live[k][input] < 0) continue;
    mip_term(phases->mip, phases->run[k][n], 1);
    mip_term(phases->mip, phases->live[k][input], -1);
    mip_term(phases->mip, phases->run[k][phases->graph->storages.items[input].producer], -1);
    mip_row_end(phases->mip, -HUGE_VAL, 0);
  }
}

static void add_memory_row(Phases *phases, int32_t k) {
  const PlanGraph *graph = phases->graph;
  int64_t base = graph->persistent_bytes + own_bytes(graph, phases->at[k]);
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (phases->live[k][s] >= 0)
      mip_term(phases->mip, phases->live[k][s], (double)storage->bytes / phases->unit);
    else if (!storage->persistent && storage->producer < phases->at[k] &&
             plan_graph_last_need(graph, s) >= phases->at[k])
      base += storage->bytes;
  }
  mip_row_end(phases->mip, -HUGE_VAL, (double)(phases->options->budget - base) / phases->unit);
}

static void add_rows(Phases *phases) {
  const PlanGraph *graph = phases->graph;
  for (int32_t k = 0; k < phases->count; k++) {
    for (int32_t n = phases->at[k] + 1; n < graph->nodes.count && n < phase_end(phases, k); n++)
      add_read_rows(phases, k, n);
    for (int32_t n = 0; n < phases->at[k]; n++) add_rerun_rows(phases, k, n);
    for (int32_t s = 0; s < graph->storages.count && k + 1 < phases->count; s++) {
      if (phases->live[k][s] < 0 || phases->live[k + 1][s] < 0) continue;
      mip_term(phases->mip, phases->live[k + 1][s], 1);
      mip_term(phases->mip, phases->live[k][s], -1);
      mip_term(phases->mip, phases->run[k][graph->storages.items[s].producer], -1);
      mip_row_end(phases->mip, -HUGE_VAL, 0);
    }
    for (int32_t s = 0; s < graph->storages.count && k + 1 == phases->count; s++) {
      if (!graph->storages.items[s].result || phases->live[k][s] < 0) continue;
      mip_term(phases->mip, phases->live[k][s], 1);
      mip_term(phases->mip, phases->run[k][graph->storages.items[s].producer], 1);
      mip_row_end(phases->mip, 1, HUGE_VAL);
    }
    add_memory_row(phases, k);
  }
}

/* What the solver's tolerance leaves of a bound; where all costs are whole numbers, so is the cost of every schedule.
 */
static double round_bound(const PlanGraph *graph, double bound) {
  double safe = bound - 1e-6 - 1e-8 * fabs(bound);
  for (int64_t n = 0; n < graph->nodes.count; n++)
    if (graph->nodes.items[n].cost != floor(graph->nodes.items[n].cost)) return bound - 1e-7 * fabs(bound);
  return ceil(safe);
}

double bound_cost(MemoryArena *arena, const PlanGraph *graph, const BoundOptions *options) {
  if (bound_memory(arena, graph) > options->budget) return HUGE_VAL;
  Phases phases = {.graph = graph, .options = options, .mip = mip_create(arena)};
  phases.unit = fmax(1.0, (double)options->budget / 1e4);
  phases.at = NEW_ARRAY(arena, int32_t, options->phases + 1);
  phases.live = NEW_ARRAY(arena, int32_t *, options->phases + 1);
  phases.run = NEW_ARRAY(arena, int32_t *, options->phases + 1);
  phases.mip->constant = graph->base_cost;
  choose_moments(&phases);
  add_columns(&phases);
  add_rows(&phases);
  if (!phases.mip->columns.count || !phases.mip->rows.count) return graph->base_cost;
  MipEvents events = {.context = options->context, .stop = options->stop};
  MipLimits limits = {.nodes = options->nodes, .work = options->work, .gap = 1e-6};
  limits.cutoff = options->target;
  MipResult result = mip_solve(phases.mip, &limits, &events);
  if (result.status == MIP_INFEASIBLE) return HUGE_VAL;
  return fmax(graph->base_cost, round_bound(graph, result.bound));
}
