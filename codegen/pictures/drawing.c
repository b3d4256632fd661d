/* codegen/pictures/drawing.c - executions become boxes, storages that one hands to another become arrows. */
#include "codegen/pictures/drawing.h"

/* Boxes up to which a level of detail is still read by people; without modules the coarser levels tell less. */
enum { READABLE = 300, READABLE_WITHOUT_MODULES = 600 };

RunClass run_class(const Picture *picture, const PictureRun *run) {
  PlanPhase phase = picture_phase(picture->graph, run->node);
  if (phase == PLAN_PHASE_FORWARD) return run->ordinal ? RUN_CLONE : RUN_FORWARD;
  return phase == PLAN_PHASE_BACKWARD ? RUN_BACKWARD : RUN_UPDATE;
}

/* ---- boxes ---- */

/* Runs with the same key are one box: the counterpart itself, or unit and class; updates are one box below full. */
static int64_t box_key(const Drawing *drawing, int64_t counterpart, int32_t unit, RunClass class) {
  if (drawing->detail == DETAIL_FULL) return counterpart;
  if (class == RUN_UPDATE) return -1;
  if (drawing->detail == DETAIL_MODULE) return -2 - ((int64_t)unit * RUN_CLASS_COUNT + class);
  return counterpart;
}

static void add_outputs(const Picture *picture, DrawnNode *box, const PictureRun *run) {
  const PlanNode *node = &picture->graph->nodes.items[run->node];
  for (int32_t o = 0; o < node->output_count; o++) {
    Fate fate = picture->fates[node->outputs[o]];
    box->bytes[fate] += picture->graph->storages.items[node->outputs[o]].bytes;
    box->outputs[fate]++;
  }
  box->cost += node->cost;
  box->runs++;
}

static Fate main_fate(const DrawnNode *box) {
  if (box->class == RUN_CLONE) return FATE_RECOMPUTED;
  if (box->class != RUN_FORWARD) return FATE_OTHER;
  for (int fate = 0; fate < FATE_FREED && box->runs == box->times; fate++)
    if (box->outputs[fate]) return (Fate)fate;
  Fate best = FATE_FREED;
  for (int fate = 0; fate < FATE_COUNT; fate++)
    if (box->bytes[fate] > box->bytes[best]) best = (Fate)fate;
  return best;
}

static void collect_boxes(Drawing *drawing, const int32_t *units, const int64_t *counterpart) {
  const Picture *picture = drawing->picture;
  StringMap boxes = {.arena = picture->arena};
  drawing->node_of_run = NEW_ARRAY(picture->arena, int32_t, picture->planned.runs.count);
  for (int64_t r = 0; r < picture->planned.runs.count; r++) {
    const PictureRun *run = &picture->planned.runs.items[r];
    RunClass class = run_class(picture, run);
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)box_key(drawing, counterpart[r], units[r], class));
    const int64_t *known = string_map_find(&boxes, key);
    int64_t box = known ? *known : drawing->nodes.count;
    if (!known) {
      DrawnNode node = {
          .unit = units[r], .class = class, .first_run = r, .times = drawing->units.items[units[r]].times};
      string_map_set(&boxes, key, box);
      array_push(picture->arena, &drawing->nodes, node);
    }
    add_outputs(picture, &drawing->nodes.items[box], run);
    drawing->node_of_run[r] = (int32_t)box;
  }
  for (int64_t n = 0; n < drawing->nodes.count; n++) drawing->nodes.items[n].fate = main_fate(&drawing->nodes.items[n]);
}

/* ---- arrows ---- */

static EdgeKind edge_kind(RunClass from, RunClass to) {
  if (from == RUN_UPDATE || to == RUN_UPDATE) return EDGE_UPDATE;
  if (to == RUN_BACKWARD) return from == RUN_BACKWARD ? EDGE_BACKWARD : EDGE_SAVED;
  return EDGE_FORWARD;
}

/* Forward boxes come before clones, clones before backward ones; within a class the order of execution decides. Updates
 * take part only among themselves. */
static bool is_ranked(const Drawing *drawing, int32_t from, int32_t to) {
  const DrawnNode *a = &drawing->nodes.items[from], *b = &drawing->nodes.items[to];
  if (a->class == b->class) return a->first_run < b->first_run;
  return a->class < b->class && b->class != RUN_UPDATE;
}

typedef struct EdgeIndex {
  Drawing *drawing;
  StringMap index;
} EdgeIndex;

static void add_edge(EdgeIndex *edges, int32_t from, int32_t to, EdgeKind kind, int32_t storage) {
  Drawing *drawing = edges->drawing;
  const PlanStorage *what = storage < 0 ? NULL : &drawing->picture->graph->storages.items[storage];
  if (from == to) return;
  if (kind == EDGE_UPDATE && drawing->detail != DETAIL_FULL) {
    drawing->gradient_bytes += what ? what->bytes : 0;
    return;
  }
  char key[64];
  snprintf(key, sizeof key, "%d %d %d", from, to, kind);
  const int64_t *known = string_map_find(&edges->index, key);
  int64_t e = known ? *known : drawing->edges.count;
  if (!known) {
    DrawnEdge edge = {
        .from = from, .to = to, .kind = kind, .example = what ? what->id : "", .ranked = is_ranked(drawing, from, to)};
    string_map_set(&edges->index, key, e);
    array_push(drawing->picture->arena, &drawing->edges, edge);
  }
  if (!what) return;
  drawing->edges.items[e].bytes += what->bytes;
  drawing->edges.items[e].storages++;
}

static void collect_edges(Drawing *drawing) {
  const Picture *picture = drawing->picture;
  const PlanGraph *graph = picture->graph;
  EdgeIndex edges = {.drawing = drawing, .index = {.arena = picture->arena}};
  int64_t *maker = NEW_ARRAY(picture->arena, int64_t, graph->storages.count);
  int64_t *original = NEW_ARRAY(picture->arena, int64_t, graph->nodes.count);
  for (int64_t r = 0; r < picture->planned.runs.count; r++) {
    const PictureRun *run = &picture->planned.runs.items[r];
    const PlanNode *node = &graph->nodes.items[run->node];
    int32_t to = drawing->node_of_run[r];
    for (int32_t i = 0; i < node->input_count; i++) {
      if (graph->storages.items[node->inputs[i]].persistent) continue;
      int64_t source = maker[node->inputs[i]];
      EdgeKind kind = edge_kind(run_class(picture, &picture->planned.runs.items[source]), run_class(picture, run));
      add_edge(&edges, drawing->node_of_run[source], to, kind, node->inputs[i]);
    }
    for (int32_t o = 0; o < node->output_count; o++)
      if (!run_drops(run, node->outputs[o])) maker[node->outputs[o]] = r;
    if (run->ordinal)
      add_edge(&edges, drawing->node_of_run[original[run->node]], to, EDGE_AGAIN, -1);
    else
      original[run->node] = r;
  }
}

static Drawing *draw(const Picture *picture, Detail detail) {
  Drawing *drawing = NEW(picture->arena, Drawing);
  drawing->picture = picture;
  drawing->detail = detail;
  int64_t *counterpart = NEW_ARRAY(picture->arena, int64_t, picture->planned.runs.count);
  int32_t *units = find_units(drawing, counterpart);
  collect_boxes(drawing, units, counterpart);
  return drawing;
}

Drawing *drawing_create(const Picture *picture, Detail detail) {
  bool modules = adopt_modules(picture) != NULL;
  if (detail == DETAIL_BLOCK && !modules) detail = DETAIL_MODULE; /* stretches are the only blocks there */
  int64_t most = modules ? READABLE : READABLE_WITHOUT_MODULES;
  Drawing *drawing = draw(picture, detail == DETAIL_AUTOMATIC ? DETAIL_FULL : detail);
  if (detail == DETAIL_AUTOMATIC && drawing->nodes.count > most)
    drawing = draw(picture, modules ? DETAIL_BLOCK : DETAIL_MODULE);
  if (detail == DETAIL_AUTOMATIC && drawing->nodes.count > most) drawing = draw(picture, DETAIL_MODULE);
  collect_edges(drawing);
  return drawing;
}
