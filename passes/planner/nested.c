/* passes/planner/nested.c - separators, the recursion over them, and the run sequence that follows its choices. */
#include "passes/planner/nested.h"

#include <math.h>
#include <stdlib.h>

#include "passes/planner/retain_model.h"

enum { MOST_CUTS = 110, MOST_SLOTS = 240, WIDEST_CUT = 6 };

typedef struct Cut {
  int32_t position;  /* between forward nodes position - 1 and position */
  int32_t *storages; /* what crosses and may be dropped */
  int32_t count;
  int64_t bytes;
} Cut;

typedef struct Segment {
  double cost;      /* of running it once */
  double inside;    /* cost of making its interior again for the stages */
  int64_t pass;     /* bytes while passing through, its first separator included */
  int64_t stay;     /* bytes of the interior that stages need, and of the stages themselves (without separators) */
  int64_t gradient; /* bytes of what is live beside while its stages are handled, before they run */
} Segment;

typedef struct Nest {
  MemoryArena *arena;
  const PlanGraph *graph;
  const RetainModel *model;
  int64_t budget;
  ARRAY(Cut) cuts;     /* cuts.items[0] is at position 0 */
  Segment *segments;   /* one per cut: from it to the next one */
  int32_t *segment_of; /* per storage made before the first stage: the segment that it belongs to */
  int64_t unit;        /* bytes per slot */
  int32_t slots;
  float *cost;       /* C(i,j,m) at index (i,j,m) */
  int16_t *choice;   /* the best k, or -1 */
  float *first_cost; /* the same for the first pass, whose advance is free: T(i,m), to the end */
  int16_t *first_choice;
  bool *live;      /* per storage, in the simulation */
  int32_t *marked; /* per node: stage that asked for it last */
  ARRAY(int32_t) stack;
  RunList again, runs;
} Nest;

static int32_t segment_count(const Nest *nest) { return (int32_t)nest->cuts.count; }

static bool droppable(const Nest *nest, int32_t storage) {
  const RetainStorage *v = &nest->model->storages[storage];
  return v->member && !v->fixed;
}

/* ---- separators ---- */

static int32_t last_forward_read(const Nest *nest, int32_t storage) {
  return nest->model->storages[storage].forward_last;
}

static Cut make_cut(Nest *nest, int32_t position) {
  Cut cut = {.position = position, .storages = NEW_ARRAY(nest->arena, int32_t, WIDEST_CUT + 1)};
  for (int32_t s = 0; s < nest->graph->storages.count && cut.count <= WIDEST_CUT; s++) {
    const PlanStorage *storage = &nest->graph->storages.items[s];
    if (!droppable(nest, s) || storage->producer >= position || last_forward_read(nest, s) < position) continue;
    cut.storages[cut.count++] = s;
    cut.bytes += storage->bytes;
  }
  return cut;
}

/* Cuts with few storages; of too many, those that leave segments of about equal cost. */
static void find_cuts(Nest *nest) {
  const PlanGraph *graph = nest->graph;
  double total = 0, since = 0;
  int32_t *crossing = NEW_ARRAY(nest->arena, int32_t, graph->first_stage + 1); /* change of the number that crosses */
  for (int32_t s = 0; s < graph->storages.count; s++) {
    if (!droppable(nest, s) || last_forward_read(nest, s) <= graph->storages.items[s].producer) continue;
    crossing[graph->storages.items[s].producer + 1]++;
    crossing[last_forward_read(nest, s) + 1 <= graph->first_stage ? last_forward_read(nest, s) + 1
                                                                  : graph->first_stage]--;
  }
  for (int32_t n = 0; n < graph->first_stage; n++) total += graph->nodes.items[n].cost + 1e-12;
  array_push(nest->arena, &nest->cuts, ((Cut){.position = 0}));
  int32_t width = 0, fewest = WIDEST_CUT, many = 0;
  int32_t *widths = NEW_ARRAY(nest->arena, int32_t, graph->first_stage + 1);
  for (int32_t n = 1; n < graph->first_stage; n++) {
    width += crossing[n];
    widths[n] = width;
    many += width <= 1;
  }
  if (many > 8) fewest = 1;
  int32_t usable = 0;
  for (int32_t n = 1; n < graph->first_stage; n++) usable += widths[n] <= fewest;
  double stride = usable > MOST_CUTS ? total / MOST_CUTS : 0;
  for (int32_t n = 1; n < graph->first_stage; n++) {
    since += graph->nodes.items[n - 1].cost + 1e-12;
    if (widths[n] > fewest || since < stride) continue;
    Cut cut = make_cut(nest, n);
    if (cut.count == 0 || cut.count > WIDEST_CUT) continue;
    array_push(nest->arena, &nest->cuts, cut);
    since = 0;
  }
}

/* A storage belongs to the segment that starts with the first cut it crosses, else to the one that makes it. */
static void assign_storages(Nest *nest) {
  int32_t count = segment_count(nest);
  for (int32_t s = 0; s < nest->graph->storages.count; s++) {
    int32_t producer = nest->graph->storages.items[s].producer, segment = 0;
    nest->segment_of[s] = -1;
    if (!droppable(nest, s)) continue;
    while (segment + 1 < count && nest->cuts.items[segment + 1].position <= producer) segment++;
    bool crosses = segment + 1 < count && last_forward_read(nest, s) >= nest->cuts.items[segment + 1].position;
    nest->segment_of[s] = crosses ? segment + 1 : segment;
  }
}

static bool in_cut(const Cut *cut, int32_t storage) {
  for (int32_t i = 0; i < cut->count; i++)
    if (cut->storages[i] == storage) return true;
  return false;
}

/* Bytes while the nodes of a segment run one after the other and each storage goes with its last forward reader. */
static int64_t passing_bytes(const Nest *nest, int32_t segment) {
  const PlanGraph *graph = nest->graph;
  int32_t from = nest->cuts.items[segment].position;
  int32_t to = segment + 1 < segment_count(nest) ? nest->cuts.items[segment + 1].position : graph->first_stage;
  int64_t held = nest->cuts.items[segment].bytes, most = held;
  for (int32_t n = from; n < to; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    for (int32_t o = 0; o < node->output_count; o++)
      if (droppable(nest, node->outputs[o])) held += graph->storages.items[node->outputs[o]].bytes;
    if (held + node->workspace > most) most = held + node->workspace;
    for (int32_t i = 0; i < node->input_count; i++)
      if (droppable(nest, node->inputs[i]) && last_forward_read(nest, node->inputs[i]) == n)
        held -= graph->storages.items[node->inputs[i]].bytes;
    for (int32_t o = 0; o < node->output_count; o++)
      if (droppable(nest, node->outputs[o]) && last_forward_read(nest, node->outputs[o]) == n)
        held -= graph->storages.items[node->outputs[o]].bytes;
  }
  return most;
}

static void describe_segments(Nest *nest) {
  const PlanGraph *graph = nest->graph;
  int32_t count = segment_count(nest);
  nest->segments = NEW_ARRAY(nest->arena, Segment, count);
  for (int32_t i = 0; i < count; i++) {
    nest->segments[i].pass = passing_bytes(nest, i);
    int32_t to = i + 1 < count ? nest->cuts.items[i + 1].position : graph->first_stage;
    for (int32_t n = nest->cuts.items[i].position; n < to; n++) nest->segments[i].cost += graph->nodes.items[n].cost;
  }
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const RetainStorage *v = &nest->model->storages[s];
    int32_t at = nest->segment_of[s];
    if (at < 0 || !v->needed) continue;
    Segment *segment = &nest->segments[at];
    int64_t base = nest->model->base[v->first], idle = nest->model->base_idle[v->first];
    if (idle > segment->gradient) segment->gradient = idle;
    if (in_cut(&nest->cuts.items[at], s)) {
      if (base > segment->stay) segment->stay = base;
      continue;
    }
    segment->inside = segment->cost;
  }
  /* With an interior: what is needed of it is live together when the first of its stages runs. */
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const RetainStorage *v = &nest->model->storages[s];
    int32_t at = nest->segment_of[s];
    if (at < 0 || !v->needed || in_cut(&nest->cuts.items[at], s)) continue;
    int64_t bytes = nest->model->base[v->first];
    for (int32_t u = 0; u < graph->storages.count; u++) {
      const RetainStorage *other = &nest->model->storages[u];
      bool together = nest->segment_of[u] == at && other->needed && other->last >= v->first;
      if (together && !in_cut(&nest->cuts.items[at], u)) bytes += graph->storages.items[u].bytes;
    }
    if (bytes > nest->segments[at].stay) nest->segments[at].stay = bytes;
  }
}

/* ---- the recursion ---- */

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Slots of the size that divides all separators when that gives few enough; else of an even share of the budget. */
static void choose_unit(Nest *nest) {
  int64_t unit = 0;
  for (int64_t i = 0; i < nest->cuts.count; i++) unit = common_divisor(unit, nest->cuts.items[i].bytes);
  if (unit == 0 || nest->budget / unit > MOST_SLOTS) unit = nest->budget / MOST_SLOTS + 1;
  nest->unit = unit;
  nest->slots = (int32_t)(nest->budget / unit) + 1;
}

static int64_t index_of(const Nest *nest, int32_t i, int32_t j, int32_t m) {
  return ((int64_t)i * (segment_count(nest) + 1) + j) * nest->slots + m;
}

static int32_t slots_of(const Nest *nest, int64_t bytes) { return (int32_t)((bytes + nest->unit - 1) / nest->unit); }

/* Bytes that m slots leave; the remainder of the budget that fills no slot counts too. */
static int64_t bytes_left(const Nest *nest, int32_t m) {
  return nest->budget - (int64_t)(nest->slots - 1 - m) * nest->unit;
}

static float solved(const Nest *nest, int32_t i, int32_t j, int32_t m) {
  return m < 0 ? HUGE_VALF : nest->cost[index_of(nest, i, j, m)];
}

static void solve_span(Nest *nest, int32_t i, int32_t j, int32_t m) {
  int64_t at = index_of(nest, i, j, m);
  nest->cost[at] = HUGE_VALF;
  nest->choice[at] = -1;
  if (j == i + 1) {
    if (nest->segments[i].stay <= bytes_left(nest, m)) nest->cost[at] = (float)nest->segments[i].inside;
    return;
  }
  float advance = 0;
  int64_t most = 0;
  for (int32_t k = i + 1; k < j; k++) {
    advance += (float)nest->segments[k - 1].cost;
    int64_t pass = nest->segments[k - 1].pass - (k - 1 == i ? nest->cuts.items[i].bytes : 0);
    if (pass > most) most = pass;
    if (most + nest->segments[j - 1].gradient > bytes_left(nest, m)) break;
    float right = solved(nest, k, j, m - slots_of(nest, nest->cuts.items[k].bytes));
    float total = advance + right + solved(nest, i, k, m);
    if (total < nest->cost[at]) {
      nest->cost[at] = total;
      nest->choice[at] = (int16_t)k;
    }
  }
}

/* The first pass runs all nodes anyway, and what is inside the last segment is there when its stages come. */
static void solve_first(Nest *nest, int32_t i, int32_t m) {
  int32_t end = segment_count(nest);
  int64_t at = (int64_t)i * nest->slots + m;
  nest->first_cost[at] = HUGE_VALF;
  nest->first_choice[at] = -1;
  if (i + 1 == end) {
    if (nest->segments[i].stay <= bytes_left(nest, m)) nest->first_cost[at] = 0;
    return;
  }
  for (int32_t k = i + 1; k < end; k++) {
    int32_t rest = m - slots_of(nest, nest->cuts.items[k].bytes);
    if (rest < 0) continue;
    float total = nest->first_cost[(int64_t)k * nest->slots + rest] + solved(nest, i, k, m);
    if (total >= nest->first_cost[at]) continue;
    nest->first_cost[at] = total;
    nest->first_choice[at] = (int16_t)k;
  }
}

static void solve(Nest *nest) {
  int32_t count = segment_count(nest);
  int64_t entries = (int64_t)(count + 1) * (count + 1) * nest->slots;
  nest->cost = NEW_ARRAY(nest->arena, float, entries);
  nest->choice = NEW_ARRAY(nest->arena, int16_t, entries);
  nest->first_cost = NEW_ARRAY(nest->arena, float, (int64_t)count * nest->slots);
  nest->first_choice = NEW_ARRAY(nest->arena, int16_t, (int64_t)count * nest->slots);
  for (int32_t length = 1; length <= count; length++)
    for (int32_t i = 0; i + length <= count; i++)
      for (int32_t m = 0; m < nest->slots; m++) solve_span(nest, i, i + length, m);
  for (int32_t i = count - 1; i >= 0; i--)
    for (int32_t m = 0; m < nest->slots; m++) solve_first(nest, i, m);
}

/* ---- the run sequence ---- */

static void hold_cut(Nest *nest, bool *held, int32_t k) {
  for (int32_t i = 0; i < nest->cuts.items[k].count; i++) held[nest->cuts.items[k].storages[i]] = true;
}

static int32_t slots_held(const Nest *nest, const bool *cut_held) {
  int32_t used = 0;
  for (int32_t k = 1; k < segment_count(nest); k++)
    if (cut_held[k]) used += slots_of(nest, nest->cuts.items[k].bytes);
  return nest->slots - 1 - used;
}

static void start_first_pass(Nest *nest, bool *cut_held, bool *held) {
  int32_t m = nest->slots - 1, i = 0;
  while (i + 1 < segment_count(nest)) {
    i = nest->first_choice[(int64_t)i * nest->slots + m];
    m -= slots_of(nest, nest->cuts.items[i].bytes);
    cut_held[i] = true;
    hold_cut(nest, held, i);
  }
  for (int32_t s = 0; s < nest->graph->storages.count; s++)
    nest->live[s] = !droppable(nest, s) || held[s] || nest->segment_of[s] == i;
}

static void ask(Nest *nest, int32_t node, int32_t stage) {
  const PlanNode *what = &nest->graph->nodes.items[node];
  for (int32_t i = 0; i < what->input_count; i++) {
    if (nest->live[what->inputs[i]]) continue;
    int32_t producer = nest->graph->storages.items[what->inputs[i]].producer;
    if (nest->marked[producer] == stage) continue;
    nest->marked[producer] = stage;
    array_push(nest->arena, &nest->again, producer);
    array_push(nest->arena, &nest->stack, producer);
  }
}

/* Chooses the separators to hold on the way to the segment: those of the recursion for the room there is. */
static void hold_on_the_way(Nest *nest, int32_t segment, bool *cut_held, bool *held) {
  int32_t i = segment;
  while (i > 0 && !cut_held[i]) i--;
  int32_t m = slots_held(nest, cut_held);
  while (i < segment && m >= 0) {
    int32_t k = nest->choice[index_of(nest, i, segment + 1, m)];
    if (k < 0) return;
    cut_held[k] = true;
    hold_cut(nest, held, k);
    m -= slots_of(nest, nest->cuts.items[k].bytes);
    i = k;
  }
}

static int by_number(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* The highest segment that a stage needs; -1 when it needs no droppable storage. */
static int32_t segment_of_stage(const Nest *nest, int32_t stage) {
  const PlanNode *node = &nest->graph->nodes.items[stage];
  int32_t highest = -1;
  for (int32_t i = 0; i < node->input_count; i++) {
    const PlanStorage *input = &nest->graph->storages.items[node->inputs[i]];
    if (input->producer < 0 || input->producer >= nest->graph->first_stage) continue;
    if (nest->segment_of[node->inputs[i]] > highest) highest = nest->segment_of[node->inputs[i]];
  }
  return highest;
}

static bool simulate_stage(Nest *nest, int32_t stage, bool *cut_held, bool *held) {
  nest->again.count = nest->stack.count = 0;
  ask(nest, stage, stage);
  while (nest->stack.count > 0) ask(nest, nest->stack.items[--nest->stack.count], stage);
  if (nest->again.count) qsort(nest->again.items, (size_t)nest->again.count, sizeof *nest->again.items, by_number);
  for (int64_t i = 0; i < nest->again.count; i++) {
    const PlanNode *node = &nest->graph->nodes.items[nest->again.items[i]];
    if (!plan_graph_may_rerun(nest->graph, nest->again.items[i], stage)) return false;
    for (int32_t o = 0; o < node->output_count; o++) nest->live[node->outputs[o]] = true;
    array_push(nest->arena, &nest->runs, nest->again.items[i]);
  }
  array_push(nest->arena, &nest->runs, stage);
  int32_t segment = segment_of_stage(nest, stage);
  if (segment < 0) return true;
  for (int32_t k = segment + 1; k < segment_count(nest); k++) cut_held[k] = false;
  if (nest->again.count) hold_on_the_way(nest, segment, cut_held, held);
  memset(held, 0, (size_t)nest->graph->storages.count);
  for (int32_t k = 1; k <= segment; k++)
    if (cut_held[k]) hold_cut(nest, held, k);
  for (int32_t s = 0; s < nest->graph->storages.count; s++)
    if (nest->segment_of[s] >= 0 && nest->segment_of[s] != segment && !held[s]) nest->live[s] = false;
  return true;
}

static bool simulate(Nest *nest) {
  bool *cut_held = NEW_ARRAY(nest->arena, bool, segment_count(nest) + 1);
  bool *held = NEW_ARRAY(nest->arena, bool, nest->graph->storages.count);
  start_first_pass(nest, cut_held, held);
  for (int32_t n = 0; n < nest->graph->nodes.count; n++) {
    if (n < nest->graph->first_stage)
      array_push(nest->arena, &nest->runs, n);
    else if (!simulate_stage(nest, n, cut_held, held))
      return false;
  }
  return true;
}

RunList nested_runs(MemoryArena *arena, const PlanGraph *graph, int64_t budget) {
  Nest *nest = NEW(arena, Nest);
  nest->arena = arena;
  nest->graph = graph;
  nest->budget = budget;
  nest->model = retain_model_create(arena, graph, 1);
  nest->segment_of = NEW_ARRAY(arena, int32_t, graph->storages.count);
  nest->live = NEW_ARRAY(arena, bool, graph->storages.count);
  nest->marked = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  for (int64_t n = 0; n < graph->nodes.count; n++) nest->marked[n] = -1;
  find_cuts(nest);
  assign_storages(nest);
  describe_segments(nest);
  choose_unit(nest);
  solve(nest);
  int32_t most = nest->slots - 1;
  if (nest->first_cost[most] == HUGE_VALF || !simulate(nest)) return (RunList){0};
  return nest->runs;
}
