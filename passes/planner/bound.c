/* passes/planner/bound.c - the memory floor and the phase bound. */
#include "passes/planner/bound.h"

#include <math.h>

#include "passes/planner/bound_groups.h"
#include "passes/planner/mip.h"

/* ---- what is certain while the first execution of a node runs ---- */

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
    if (storage->persistent || may_be_dropped(graph, s)) continue;
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
      if (!repeated && may_be_dropped(graph, node->inputs[i])) bytes[n] += graph->storages.items[node->inputs[i]].bytes;
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

enum { MOST_DIVISORS = 6 };

typedef struct Phases {
  const PlanGraph *graph;
  const BoundOptions *options;
  const BoundGroup *groups;
  Mip *mip;
  int32_t count;
  int32_t *at;     /* p_k: node numbers, ascending */
  int32_t **live;  /* [k][storage]: column of S, -1 where it is not a choice */
  int32_t **run;   /* [k][node]: column of R, -1 */
  int32_t **since; /* [k][node]: column of Q, -1; in the last phase that of R */
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

static int32_t maker(const Phases *phases, int32_t storage) {
  return phases->groups[phases->graph->storages.items[storage].producer].root;
}

/* ---- columns ---- */

/* Made before p_k, a choice, and not inside a group. */
static bool may_be_choice(const Phases *phases, int32_t k, int32_t storage) {
  const PlanStorage *what = &phases->graph->storages.items[storage];
  return !what->persistent && what->producer < phases->at[k] && may_be_dropped(phases->graph, storage) &&
         maker(phases, storage) == what->producer;
}

/* Per storage: can it be of use at or after p_k, to a first execution or to something made again? */
static bool *find_useful(const Phases *phases, int32_t k) {
  const PlanGraph *graph = phases->graph;
  bool *useful = NEW_ARRAY(phases->mip->arena, bool, graph->storages.count);
  for (int32_t s = 0; s < graph->storages.count; s++) useful[s] = plan_graph_last_need(graph, s) >= phases->at[k];
  for (int32_t n = phases->at[k] - 1; n >= 0; n--) {
    const PlanNode *node = &graph->nodes.items[n];
    bool wanted = false;
    for (int32_t o = 0; o < node->output_count; o++) wanted = wanted || useful[node->outputs[o]];
    const BoundGroup *group = &phases->groups[n];
    for (int32_t i = 0; i < group->input_count && wanted && node->recompute && group->root == n; i++)
      useful[group->inputs[i]] = true;
  }
  return useful;
}

static bool group_may_rerun(const Phases *phases, int32_t root, int32_t position) {
  for (int32_t n = 0; n <= root; n++)
    if (phases->groups[n].root == root && !plan_graph_may_rerun(phases->graph, n, position)) return false;
  return true;
}

static void add_columns(Phases *phases) {
  const PlanGraph *graph = phases->graph;
  for (int32_t k = 0; k < phases->count; k++) {
    phases->live[k] = NEW_ARRAY(phases->mip->arena, int32_t, graph->storages.count);
    phases->run[k] = NEW_ARRAY(phases->mip->arena, int32_t, graph->nodes.count);
    phases->since[k] = NEW_ARRAY(phases->mip->arena, int32_t, graph->nodes.count);
    const PlanNode *here = &graph->nodes.items[phases->at[k]];
    const bool *useful = find_useful(phases, k);
    for (int32_t n = 0; n < graph->nodes.count; n++) phases->run[k][n] = phases->since[k][n] = -1;
    for (int32_t s = 0; s < graph->storages.count; s++) {
      phases->live[k][s] = -1;
      if (!may_be_choice(phases, k, s) || !useful[s]) continue;
      bool dropped = graph->storages.items[s].decision == PLAN_RECOMPUTE && phases->at[k] == graph->first_stage;
      bool certain = reads(here, s);
      phases->live[k][s] = mip_column(phases->mip, certain, certain || !dropped ? 1 : 0, 0, true);
      int32_t node = graph->storages.items[s].producer;
      if (phases->run[k][node] >= 0 || !group_may_rerun(phases, node, phases->at[k] + 1)) continue;
      phases->run[k][node] = mip_column(phases->mip, 0, 1, phases->groups[node].cost, false);
    }
  }
  for (int32_t k = phases->count - 1; k >= 0; k--)
    for (int32_t n = 0; n < graph->nodes.count; n++) {
      bool last = k + 1 == phases->count || phases->since[k + 1][n] < 0;
      if (phases->run[k][n] >= 0)
        phases->since[k][n] = last ? phases->run[k][n] : mip_column(phases->mip, 0, 1, 0, false);
    }
}

/* ---- rows ---- */

/* v is live at p_k or made by the runs counted in made[]. */
static void add_read_row(Phases *phases, int32_t k, int32_t storage, int32_t *const *made) {
  mip_term(phases->mip, phases->live[k][storage], 1);
  mip_term(phases->mip, made[k][maker(phases, storage)], 1);
  mip_row_end(phases->mip, 1, HUGE_VAL);
}

/* What a group reads is live at p_k or made by runs of the same kind. */
static void add_rerun_rows(Phases *phases, int32_t k, int32_t n, int32_t *const *made) {
  const BoundGroup *group = &phases->groups[n];
  for (int32_t i = 0; i < group->input_count; i++) {
    if (phases->live[k][group->inputs[i]] < 0) continue;
    mip_term(phases->mip, made[k][n], 1);
    mip_term(phases->mip, phases->live[k][group->inputs[i]], -1);
    mip_term(phases->mip, made[k][maker(phases, group->inputs[i])], -1);
    mip_row_end(phases->mip, -HUGE_VAL, 0);
  }
}

/* Q_{k,n} ≤ R_{k,n} + Q_{k+1,n}, and what holds for Q alone. */
static void add_since_rows(Phases *phases, int32_t k, int32_t n) {
  if (phases->since[k][n] == phases->run[k][n]) return;
  mip_term(phases->mip, phases->since[k][n], 1);
  mip_term(phases->mip, phases->run[k][n], -1);
  mip_term(phases->mip, phases->since[k + 1][n], -1);
  mip_row_end(phases->mip, -HUGE_VAL, 0);
  add_rerun_rows(phases, k, n, phases->since);
}

static void add_need_rows(Phases *phases, int32_t k, int32_t storage) {
  const PlanStorage *what = &phases->graph->storages.items[storage];
  bool soon = what->result && k + 1 == phases->count, late = what->result;
  for (int32_t r = 0; r < what->reader_count; r++) {
    if (what->readers[r] <= phases->at[k]) continue;
    late = true;
    soon = soon || what->readers[r] < phase_end(phases, k);
  }
  int32_t node = maker(phases, storage);
  if (soon) add_read_row(phases, k, storage, phases->run);
  if (late && !soon && phases->since[k][node] != phases->run[k][node]) add_read_row(phases, k, storage, phases->since);
}

/* What of a storage is a choice at p_k: its bytes; 0 where it is live for certain or no choice. */
static int64_t choice_bytes(const Phases *phases, int32_t k, int32_t storage) {
  int32_t column = phases->live[k][storage];
  if (column < 0 || phases->mip->columns.items[column].lower == 1) return 0;
  return phases->graph->storages.items[storage].bytes;
}

/* Bytes that the choices at p_k may share. */
static int64_t free_bytes(const Phases *phases, int32_t k) {
  const PlanGraph *graph = phases->graph;
  int64_t base = graph->persistent_bytes + own_bytes(graph, phases->at[k]);
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    bool certain = phases->live[k][s] >= 0 ? !choice_bytes(phases, k, s)
                                           : !storage->persistent && storage->producer < phases->at[k] &&
                                                 plan_graph_last_need(graph, s) >= phases->at[k];
    if (certain) base += storage->bytes;
  }
  return phases->options->budget - base;
}

/* Mixed-integer rounding of Σ m_v S_v ≤ b divided by d, with f = b/d − ⌊b/d⌋:
 * Σ (⌊m_v/d⌋ + max(0, m_v/d − ⌊m_v/d⌋ − f) / (1 − f)) S_v ≤ ⌊b/d⌋. */
static void add_rounded_row(Phases *phases, int32_t k, int64_t room, int64_t divisor) {
  double fraction = (double)(room % divisor) / (double)divisor;
  for (int32_t s = 0; s < phases->graph->storages.count; s++) {
    int64_t bytes = choice_bytes(phases, k, s);
    double over = (double)(bytes % divisor) / (double)divisor - fraction;
    double value = (double)(bytes / divisor) + (over > 0 ? over / (1 - fraction) : 0);
    if (value > 0) mip_term(phases->mip, phases->live[k][s], value);
  }
  mip_row_end(phases->mip, -HUGE_VAL, (double)(room / divisor));
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* The sizes that make up most of the bytes, as divisors of rounded rows, and what divides all of those. */
static int32_t find_divisors(const Phases *phases, int32_t k, int64_t *divisors) {
  int64_t weights[MOST_DIVISORS] = {0}, common = 0;
  int32_t count = 0;
  for (int32_t s = 0; s < phases->graph->storages.count; s++) {
    int64_t bytes = choice_bytes(phases, k, s), weight = 0;
    bool known = !bytes;
    for (int32_t i = 0; i < count; i++) known = known || divisors[i] == bytes;
    if (known) continue;
    for (int32_t u = s; u < phases->graph->storages.count; u++)
      if (choice_bytes(phases, k, u) == bytes) weight += bytes;
    int32_t at = count < MOST_DIVISORS ? count++ : MOST_DIVISORS;
    while (at > 0 && weights[at - 1] < weight) at--;
    for (int32_t i = count - 1; i > at; i--) weights[i] = weights[i - 1], divisors[i] = divisors[i - 1];
    if (at < MOST_DIVISORS) weights[at] = weight, divisors[at] = bytes;
  }
  for (int32_t i = 0; i < count; i++) common = common_divisor(common, divisors[i]);
  bool known = !count;
  for (int32_t i = 0; i < count; i++) known = known || divisors[i] == common;
  if (!known) divisors[count++] = common;
  return count;
}

static void add_memory_rows(Phases *phases, int32_t k) {
  int64_t room = free_bytes(phases, k), all = 0, divisors[MOST_DIVISORS + 1];
  for (int32_t s = 0; s < phases->graph->storages.count; s++) {
    int64_t bytes = choice_bytes(phases, k, s);
    if (bytes) mip_term(phases->mip, phases->live[k][s], (double)bytes / phases->unit);
    all += bytes;
  }
  /* A row without terms that cannot hold: bound_memory() has seen it. */
  mip_row_end(phases->mip, -HUGE_VAL, (double)room / phases->unit);
  if (room < 0 || all <= room) return;
  int32_t count = find_divisors(phases, k, divisors);
  for (int32_t i = 0; i < count; i++) add_rounded_row(phases, k, room, divisors[i]);
}

static void add_rows(Phases *phases) {
  const PlanGraph *graph = phases->graph;
  for (int32_t k = 0; k < phases->count; k++) {
    for (int32_t n = 0; n < phases->at[k]; n++) {
      if (phases->run[k][n] < 0) continue;
      add_rerun_rows(phases, k, n, phases->run);
      add_since_rows(phases, k, n);
    }
    for (int32_t s = 0; s < graph->storages.count; s++) {
      if (phases->live[k][s] < 0) continue;
      add_need_rows(phases, k, s);
      if (k + 1 == phases->count || phases->live[k + 1][s] < 0) continue;
      mip_term(phases->mip, phases->live[k + 1][s], 1);
      mip_term(phases->mip, phases->live[k][s], -1);
      mip_term(phases->mip, phases->run[k][maker(phases, s)], -1);
      mip_row_end(phases->mip, -HUGE_VAL, 0);
    }
    add_memory_rows(phases, k);
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

double bound_cost(MemoryArena *arena, const PlanGraph *graph, const BoundOptions *options, BoundWork *work) {
  *work = (BoundWork){0};
  if (bound_memory(arena, graph) > options->budget) return HUGE_VAL;
  Phases phases = {.graph = graph, .options = options, .mip = mip_create(arena)};
  phases.unit = fmax(1.0, (double)options->budget / 1e4);
  phases.at = NEW_ARRAY(arena, int32_t, options->phases + 1);
  phases.live = NEW_ARRAY(arena, int32_t *, options->phases + 1);
  phases.run = NEW_ARRAY(arena, int32_t *, options->phases + 1);
  phases.since = NEW_ARRAY(arena, int32_t *, options->phases + 1);
  phases.groups = find_bound_groups(arena, graph);
  phases.mip->constant = graph->base_cost;
  choose_moments(&phases);
  add_columns(&phases);
  add_rows(&phases);
  if (!phases.mip->columns.count || !phases.mip->rows.count) return graph->base_cost;
  MipEvents events = {.context = options->context, .stop = options->stop};
  MipLimits limits = {.nodes = options->nodes, .work = options->work, .gap = 1e-6};
  limits.cutoff = options->target;
  MipResult result = mip_solve(phases.mip, &limits, &events);
  *work = (BoundWork){.all = result.work, .root = result.root_work};
  if (result.status == MIP_INFEASIBLE) return HUGE_VAL;
  return fmax(graph->base_cost, round_bound(graph, result.bound));
}
