/* passes/planner/retain_ilp.c - columns, rows and lazily added rows of the RI-ILP; rows are numbered as in the docs. */
#include "passes/planner/retain_ilp.h"

#include <math.h>

#include "passes/planner/retain_model.h"

typedef struct Ilp {
  MemoryArena *arena, *scratch;
  const PlanGraph *graph;
  const RetainModel *model;
  const RetainIlpOptions *options;
  const RetainIlpEvents *events;
  Mip *mip;
  double unit;   /* bytes per unit of the memory rows */
  int32_t *x;    /* by storage: column, -1 */
  int32_t *y;    /* by storage: column of y at grid point `start` (needed) or of r (not needed), -1 */
  int32_t *runs; /* by node with several outputs: column of E at grid point run_start, -1 */
  int32_t *run_start, *run_end;
  bool *stage_row, *forward_row; /* by node: row (4) or (5) is in */
  StringMap rerun_rows;          /* rows (6) that are in, by "stage/node" */
} Ilp;

/* ---- terms ---- */

/* y_{v,i}: zero before its window, constant after its home. */
static void add_y(Ilp *ilp, int32_t storage, int32_t i, double value) {
  const RetainStorage *v = &ilp->model->storages[storage];
  if (ilp->y[storage] < 0 || !v->needed || i < v->start) return;
  mip_term(ilp->mip, ilp->y[storage] + (i < v->home ? i : v->home) - v->start, value);
}

static void add_r(Ilp *ilp, int32_t storage, int32_t i, double value) {
  const RetainStorage *v = &ilp->model->storages[storage];
  if (ilp->y[storage] < 0 || v->needed || i < v->start || i > v->home) return;
  mip_term(ilp->mip, ilp->y[storage] + i - v->start, value);
}

/* What of storage is made at grid point i: y_{v,i} - y_{v,i-1}, or r_{v,i}. */
static void add_making(Ilp *ilp, int32_t storage, int32_t i, double value) {
  add_y(ilp, storage, i, value);
  add_y(ilp, storage, i - 1, -value);
  add_r(ilp, storage, i, value);
}

/* E_{n,i}: executions of group n at grid point i. */
static void add_runs(Ilp *ilp, int32_t node, int32_t i, double value) {
  if (ilp->runs[node] >= 0) {
    if (i >= ilp->run_start[node] && i <= ilp->run_end[node])
      mip_term(ilp->mip, ilp->runs[node] + i - ilp->run_start[node], value);
  } else {
    add_making(ilp, ilp->graph->nodes.items[node].outputs[0], i, value);
  }
}

static double in_units(const Ilp *ilp, int64_t bytes) { return (double)bytes / ilp->unit; }
static int64_t bytes_of(const Ilp *ilp, int32_t storage) { return ilp->graph->storages.items[storage].bytes; }
static bool is_root(const Ilp *ilp, int32_t node) {
  return ilp->model->nodes[node].group == node && ilp->run_end[node] >= ilp->run_start[node];
}

/* ---- columns ---- */

static bool group_may_run(const Ilp *ilp, int32_t node, int32_t stage) {
  for (int32_t n = 0; n <= node; n++)
    if (ilp->model->nodes[n].group == node && !plan_graph_may_rerun(ilp->graph, n, stage)) return false;
  return true;
}

static void add_storage_columns(Ilp *ilp, int32_t storage, double epsilon) {
  const PlanGraph *graph = ilp->graph;
  const RetainStorage *v = &ilp->model->storages[storage];
  ilp->x[storage] = ilp->y[storage] = -1;
  if (!v->member || v->last < 0) return;
  int32_t producer = graph->storages.items[storage].producer;
  if (ilp->model->nodes[producer].group >= 0 && ilp->model->nodes[producer].group != producer) return;
  const PlanStorage *what = &graph->storages.items[storage];
  bool certain = v->fixed && (v->needed || what->result || what->decision == PLAN_KEEP);
  ilp->x[storage] = mip_column(ilp->mip, certain, v->dropped && !certain ? 0 : 1, 0, true);
  if (v->fixed || v->home < 0) return;
  double cost = graph->nodes.items[producer].output_count == 1 ? ilp->model->nodes[producer].cost : 0;
  for (int32_t i = v->start; i <= v->home; i++) {
    double price = v->needed ? (i == v->home ? cost : epsilon) : cost + epsilon;
    int32_t column = mip_column(ilp->mip, 0, 1, price, true);
    if (i == v->start) ilp->y[storage] = column;
  }
}

static void add_run_columns(Ilp *ilp, int32_t node) {
  const PlanNode *what = &ilp->graph->nodes.items[node];
  ilp->runs[node] = -1;
  ilp->run_start[node] = INT32_MAX;
  ilp->run_end[node] = -1;
  if (ilp->model->nodes[node].group != node) return;
  for (int32_t o = 0; o < what->output_count; o++) {
    const RetainStorage *v = &ilp->model->storages[what->outputs[o]];
    if (ilp->y[what->outputs[o]] < 0) continue;
    if (v->start < ilp->run_start[node]) ilp->run_start[node] = v->start;
    if (v->home > ilp->run_end[node]) ilp->run_end[node] = v->home;
  }
  if (what->output_count == 1) return;
  for (int32_t i = ilp->run_start[node]; i <= ilp->run_end[node]; i++) {
    int32_t column = mip_column(ilp->mip, 0, 1, ilp->model->nodes[node].cost, false);
    if (i == ilp->run_start[node]) ilp->runs[node] = column;
  }
}

static void add_columns(Ilp *ilp) {
  const PlanGraph *graph = ilp->graph;
  int64_t members = 1;
  for (int64_t s = 0; s < graph->storages.count; s++) members += ilp->model->storages[s].needed;
  double epsilon = 1e-5 * graph->base_cost / ((double)members * (ilp->model->grid_count + 1.0));
  for (int32_t s = 0; s < graph->storages.count; s++) add_storage_columns(ilp, s, epsilon);
  for (int32_t n = 0; n < graph->first_stage; n++) add_run_columns(ilp, n);
}

/* ---- rows (0) to (3) ---- */

static void add_storage_rows(Ilp *ilp, int32_t storage) {
  const RetainStorage *v = &ilp->model->storages[storage];
  int32_t node = ilp->graph->storages.items[storage].producer;
  if (ilp->x[storage] < 0 || ilp->y[storage] < 0) return;
  for (int32_t i = v->start; i <= v->home; i++) {
    if (ilp->runs[node] >= 0) { /* (0) */
      add_making(ilp, storage, i, 1);
      add_runs(ilp, node, i, -1);
      mip_row_end(ilp->mip, -HUGE_VAL, 0);
    }
    if (v->needed && i > v->start) { /* (1) */
      add_y(ilp, storage, i - 1, 1);
      add_y(ilp, storage, i, -1);
      mip_row_end(ilp->mip, -HUGE_VAL, 0);
    }
  }
  if (!v->needed) return;
  mip_term(ilp->mip, ilp->x[storage], 1); /* (2) */
  add_y(ilp, storage, v->home, 1);
  mip_row_end(ilp->mip, 1, 1);
}

/* (3) for one input u of group n at grid point i. */
static void add_input_rows(Ilp *ilp, int32_t node, int32_t input, int32_t i) {
  const RetainStorage *u = &ilp->model->storages[input];
  const PlanNode *what = &ilp->graph->nodes.items[node];
  if (ilp->x[input] >= 0 && ilp->mip->columns.items[ilp->x[input]].lower == 1) return;
  for (int32_t o = 0; o < what->output_count && u->needed; o++) {
    const RetainStorage *w = &ilp->model->storages[what->outputs[o]];
    if (!w->needed || ilp->y[what->outputs[o]] < 0 || i > w->home || i < w->start) continue;
    add_y(ilp, what->outputs[o], i, 1);
    mip_term(ilp->mip, ilp->x[input], -1);
    add_y(ilp, input, i, -1);
    mip_row_end(ilp->mip, -HUGE_VAL, 0);
  }
  bool single_cumulative = u->needed && what->output_count == 1 && ilp->model->storages[what->outputs[0]].needed;
  if (single_cumulative) return;
  add_runs(ilp, node, i, 1);
  mip_term(ilp->mip, ilp->x[input], -1);
  add_y(ilp, input, i, -1);
  add_r(ilp, input, i, -1);
  mip_row_end(ilp->mip, -HUGE_VAL, 0);
}

static void add_node_rows(Ilp *ilp, int32_t node) {
  const RetainNode *group = &ilp->model->nodes[node];
  if (!is_root(ilp, node)) return;
  for (int32_t i = ilp->run_start[node]; i <= ilp->run_end[node]; i++) {
    if (!group_may_run(ilp, node, ilp->model->grid[i])) {
      add_runs(ilp, node, i, 1);
      mip_row_end(ilp->mip, -HUGE_VAL, 0);
      continue;
    }
    for (int32_t k = 0; k < group->input_count; k++) add_input_rows(ilp, node, group->inputs[k], i);
  }
}

/* ---- rows (4) to (6) ---- */

/* (4) stage t: everything that is held until t or later, beside the bytes that no choice changes. */
static void add_stage_row(Ilp *ilp, int32_t stage) {
  int32_t i = ilp->model->grid_of[stage - ilp->graph->first_stage];
  for (int32_t s = 0; s < ilp->graph->storages.count; s++) {
    if (ilp->x[s] < 0 || ilp->model->storages[s].last < stage) continue;
    mip_term(ilp->mip, ilp->x[s], in_units(ilp, bytes_of(ilp, s)));
    add_y(ilp, s, i, in_units(ilp, bytes_of(ilp, s)));
  }
  mip_row_end(ilp->mip, -HUGE_VAL, in_units(ilp, ilp->options->budget - ilp->model->base[stage]));
  ilp->stage_row[stage] = true;
}

static bool same_stage_sum(const Ilp *ilp, int32_t a, int32_t b) {
  int32_t first = ilp->graph->first_stage;
  if (ilp->model->grid_of[a - first] != ilp->model->grid_of[b - first]) return false;
  for (int32_t s = 0; s < ilp->graph->storages.count; s++)
    if (ilp->x[s] >= 0 && (ilp->model->storages[s].last >= a) != (ilp->model->storages[s].last >= b)) return false;
  return true;
}

/* Of consecutive stages with the same left side only the one with the largest base counts. */
static void add_stage_rows(Ilp *ilp) {
  int32_t count = (int32_t)ilp->graph->nodes.count;
  for (int32_t stage = ilp->graph->first_stage; stage < count;) {
    int32_t worst = stage, next = stage + 1;
    for (; next < count && same_stage_sum(ilp, stage, next); next++)
      if (ilp->model->base[next] > ilp->model->base[worst]) worst = next;
    add_stage_row(ilp, worst);
    stage = next;
  }
}

/* (5) forward node k: what is kept for later although its last forward use is past; in-place outputs of k were assumed
 * to take the bytes of their hosts, which a kept host does not allow. */
static void add_forward_row(Ilp *ilp, int32_t node) {
  const PlanNode *what = &ilp->graph->nodes.items[node];
  for (int32_t s = 0; s < ilp->graph->storages.count; s++)
    if (ilp->x[s] >= 0 && ilp->model->storages[s].forward_last < node)
      mip_term(ilp->mip, ilp->x[s], in_units(ilp, bytes_of(ilp, s)));
  for (int32_t p = 0; p < what->inplace_count; p++) {
    int32_t host = what->inplace[p].host;
    if (ilp->model->storages[host].member && ilp->model->storages[host].forward_last == node && ilp->x[host] >= 0)
      mip_term(ilp->mip, ilp->x[host], in_units(ilp, bytes_of(ilp, host)));
  }
  mip_row_end(ilp->mip, -HUGE_VAL, in_units(ilp, ilp->options->budget - ilp->model->base[node]));
  ilp->forward_row[node] = true;
}

static int32_t last_forward_reader(const Ilp *ilp, int32_t storage) {
  return ilp->model->storages[storage].forward_last;
}

/* (6) group n runs again at the grid point of `stage`: what was already made again, what waits, and its own bytes. */
static bool add_rerun_row(Ilp *ilp, int32_t stage, int32_t node) {
  const char *name = memory_format(ilp->scratch, "%d/%d", stage, node);
  if (string_map_find(&ilp->rerun_rows, name)) return false;
  string_map_set(&ilp->rerun_rows, name, 1);
  int32_t i = ilp->model->grid_of[stage - ilp->graph->first_stage];
  for (int32_t s = 0; s < ilp->graph->storages.count; s++) {
    const RetainStorage *v = &ilp->model->storages[s];
    if (ilp->x[s] < 0 || v->last < stage) continue;
    int32_t producer = ilp->graph->storages.items[s].producer;
    double bytes = in_units(ilp, bytes_of(ilp, s));
    mip_term(ilp->mip, ilp->x[s], bytes);
    add_y(ilp, s, producer < node ? i : i - 1, bytes);
    if (producer < node && last_forward_reader(ilp, s) >= node) add_r(ilp, s, i, bytes);
  }
  add_runs(ilp, node, i, in_units(ilp, ilp->model->nodes[node].transient));
  mip_row_end(ilp->mip, -HUGE_VAL, in_units(ilp, ilp->options->budget - ilp->model->base_idle[stage]));
  return true;
}

/* ---- solutions ---- */

static double making_value(const Ilp *ilp, int32_t storage, int32_t i, const double *values) {
  const RetainStorage *v = &ilp->model->storages[storage];
  if (ilp->y[storage] < 0 || i < v->start || i > v->home) return 0;
  double now = values[ilp->y[storage] + i - v->start];
  return v->needed && i > v->start ? now - values[ilp->y[storage] + i - 1 - v->start] : now;
}

static bool runs_at(const Ilp *ilp, int32_t node, int32_t i, const double *values) {
  const PlanNode *what = &ilp->graph->nodes.items[node];
  for (int32_t o = 0; o < what->output_count; o++)
    if (making_value(ilp, what->outputs[o], i, values) > 0.5) return true;
  return false;
}

/* The run sequence of an integral solution, in scratch memory. */
static RunList extract_runs(Ilp *ilp, const double *values) {
  const RetainModel *model = ilp->model;
  int32_t first = ilp->graph->first_stage;
  RunList runs = {0};
  for (int32_t n = 0; n < first; n++) array_push(ilp->scratch, &runs, n);
  for (int32_t stage = first; stage < ilp->graph->nodes.count; stage++) {
    int32_t i = model->grid_of[stage - first];
    for (int32_t n = 0; n < first && i >= 0 && model->grid[i] == stage; n++) {
      int32_t group = model->nodes[n].group;
      if (group >= 0 && is_root(ilp, group) && runs_at(ilp, group, i, values)) array_push(ilp->scratch, &runs, n);
    }
    array_push(ilp->scratch, &runs, stage);
  }
  return runs;
}

/* Adds a row for every moment of the sequence that exceeds the budget, at most a few per solution. */
static void add_violated_rows(Ilp *ilp, RunList runs, const int64_t *live) {
  int32_t first = ilp->graph->first_stage, done = 0;
  int added = 0;
  for (int64_t k = 0; k < runs.count && added < 20; k++) {
    int32_t node = runs.items[k];
    bool again = node < done;
    if (!again) done = node + 1;
    if (live[k] <= ilp->options->budget) continue;
    if (again) {
      added += add_rerun_row(ilp, done, ilp->model->nodes[node].group);
    } else if (node < first && !ilp->forward_row[node]) {
      add_forward_row(ilp, node);
      added++;
    } else if (node >= first && !ilp->stage_row[node]) {
      add_stage_row(ilp, node);
      added++;
    }
  }
}

static void on_candidate(void *context, Mip *mip, const double *values) {
  Ilp *ilp = context;
  (void)mip;
  memory_arena_reset(ilp->scratch);
  RunList runs = extract_runs(ilp, values);
  int64_t *live = NEW_ARRAY(ilp->scratch, int64_t, runs.count);
  int64_t peak = runs_profile(ilp->scratch, ilp->graph, runs.items, runs.count, live);
  if (peak <= ilp->options->budget)
    ilp->events->found(ilp->events->context, runs);
  else
    add_violated_rows(ilp, runs, live);
}

static bool on_stop(void *context) {
  Ilp *ilp = context;
  return ilp->events->stop(ilp->events->context);
}

static Ilp *create_ilp(MemoryArena *arena, const PlanGraph *graph, const RetainIlpOptions *options) {
  Ilp *ilp = NEW(arena, Ilp);
  ilp->arena = arena;
  ilp->graph = graph;
  ilp->options = options;
  ilp->model = retain_model_create(arena, graph, options->window);
  ilp->mip = mip_create(arena);
  ilp->mip->constant = graph->base_cost;
  ilp->unit = fmax(1.0, (double)options->budget / 1e4);
  ilp->x = NEW_ARRAY(arena, int32_t, graph->storages.count);
  ilp->y = NEW_ARRAY(arena, int32_t, graph->storages.count);
  ilp->runs = NEW_ARRAY(arena, int32_t, graph->first_stage);
  ilp->run_start = NEW_ARRAY(arena, int32_t, graph->first_stage);
  ilp->run_end = NEW_ARRAY(arena, int32_t, graph->first_stage);
  ilp->stage_row = NEW_ARRAY(arena, bool, graph->nodes.count);
  ilp->forward_row = NEW_ARRAY(arena, bool, graph->nodes.count);
  ilp->rerun_rows.arena = arena;
  return ilp;
}

MipStatus retain_ilp_solve(MemoryArena *arena, const PlanGraph *graph, const RetainIlpOptions *options,
                           const RetainIlpEvents *events) {
  Ilp *ilp = create_ilp(arena, graph, options);
  ilp->events = events;
  ilp->scratch = memory_arena_create();
  add_columns(ilp);
  for (int32_t s = 0; s < graph->storages.count; s++) add_storage_rows(ilp, s);
  for (int32_t n = 0; n < graph->first_stage; n++) add_node_rows(ilp, n);
  add_stage_rows(ilp);
  if (graph->first_stage > 0) add_forward_row(ilp, graph->first_stage - 1);
  MipEvents mip_events = {.context = ilp, .candidate = on_candidate, .stop = on_stop};
  MipLimits limits = {.nodes = options->nodes, .work = options->work, .gap = options->gap, .cutoff = options->cutoff};
  MipResult result = mip_solve(ilp->mip, &limits, &mip_events);
  memory_arena_destroy(ilp->scratch);
  return result.status;
}
