/* frontend/driver/plan_report.c - plans in words and numbers. */
#include "frontend/driver/plan_report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "codegen/pictures/decision_groups.h"
#include "frontend/driver/picture_output.h"
#include "passes/planner/replay.h"

enum { MOST_LISTED = 12 };

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/* ---- a plan ---- */

enum { BAR_WIDTH = 56, VALUE_WIDTH = 22, LONGEST_NAME = 24, LONGEST_PLACE = 44 };

/* Anatomy letters and their colours (256-colour terminals), in the order of the bar. */
static const struct {
  PlanRole role;
  char letter;
  int colour;
} bar_order[PLAN_ROLE_COUNT] = {
    {PLAN_ROLE_WEIGHTS, 'W', 61},    {PLAN_ROLE_OPTIMIZER_STATE, 'O', 110}, {PLAN_ROLE_GRADIENTS, 'G', 97},
    {PLAN_ROLE_INPUTS, 'I', 248},    {PLAN_ROLE_ACTIVATIONS, 'A', 36},      {PLAN_ROLE_TEMPORARIES, 'T', 179},
    {PLAN_ROLE_WORKSPACE, 'S', 167},
};

typedef struct Page {
  FILE *file;
  MemoryArena *arena;
  const Picture *picture;
  bool colour;
} Page;

static void print_verdict(const Page *page) {
  const Picture *picture = page->picture;
  const char *name = shorten_text(page->arena, picture->name, LONGEST_NAME);
  const char *limit = picture->budget >= 0
                          ? memory_format(page->arena, "fits %s", format_bytes(page->arena, picture->budget))
                          : "without a budget";
  fprintf(page->file, page->colour ? "\033[1m%s %s: " : "%s %s: ", name, limit);
  if (!picture->recomputed_count)
    fprintf(page->file, "everything is kept, no time is lost");
  else
    fprintf(page->file, "+%.2f %% time, %s", picture_overhead(picture->plan),
            picture->plan->status == PLAN_STATUS_OPTIMAL
                ? "proven optimal"
                : memory_format(page->arena, "proven within %.2f %%", picture_gap(picture->plan)));
  fputs(page->colour ? "\033[0m\n" : "\n", page->file);
}

static void print_pair(const Page *page, const char *name, const char *value, const char *beside) {
  fprintf(page->file, "  %-12s %-*s %s\n", name, VALUE_WIDTH, value, beside);
}

static void print_recomputed(const Page *page) {
  const Picture *picture = page->picture;
  int64_t all = 0, recomputed = 0;
  for (int64_t i = 0; i < picture->decisions.count; i++) {
    int64_t bytes = picture->graph->storages.items[picture->decisions.items[i].storage].bytes;
    all += bytes;
    if (!picture->decisions.items[i].kept) recomputed += bytes;
  }
  print_pair(
      page, "recomputed",
      memory_format(page->arena, "%lld of %lld activations", (long long)picture->recomputed_count,
                    (long long)picture->decisions.count),
      memory_format(page->arena, "%s of %s", format_bytes(page->arena, recomputed), format_bytes(page->arena, all)));
}

static void print_shadow_price(const Page *page, const ShadowPrice *price) {
  const PlanGraph *graph = page->picture->graph;
  const char *more = isnan(price->saved)
                         ? "more: no plan was found"
                         : memory_format(page->arena, "more saves %s", format_cost(page->arena, graph, price->saved));
  const char *less = isnan(price->added)
                         ? "less: nothing fits"
                         : memory_format(page->arena, "less costs %s", format_cost(page->arena, graph, price->added));
  fprintf(page->file, "  %-12s %s; %s (%s)\n", "1 % memory", more, less, format_bytes(page->arena, price->step));
}

/* The node that runs at a plan's peak, -1 where no step needs more than what is persistent. */
static int32_t peak_node(const Replay *replay, const Plan *plan) {
  return replay->peak_step < 0 ? -1 : plan->steps.items[replay->peak_step].target;
}

/* "backward, model.rp:5:14". */
static const char *peak_place(MemoryArena *arena, const PlanGraph *graph, int32_t node) {
  const char *source = graph->nodes.items[node].source;
  const char *phase = phase_name(picture_phase(graph, node));
  return source && *source ? memory_format(arena, "%s, %s", phase, source)
                           : memory_format(arena, "%s, %s", phase, graph->nodes.items[node].id);
}

static void print_peak_place(const Page *page, const PlanView *view) {
  MemoryArena *arena = page->arena;
  const Plan *plan = view->answer.plan;
  int32_t node = peak_node(replay_plan(arena, view->graph, plan), plan),
          all = peak_node(replay_plan(arena, view->graph, view->keep_all), view->keep_all);
  if (node < 0 || all < 0) return;
  char *place = shorten_text(arena, peak_place(arena, view->graph, node), LONGEST_PLACE);
  if (text_width(place) > VALUE_WIDTH) place = memory_format(arena, "%s;", place);
  print_pair(page, "peak phase", place,
             memory_format(arena, "all kept: %s", phase_name(picture_phase(view->graph, all))));
}

static void print_figures(const Page *page, const PlanView *view, const ShadowPrice *price) {
  MemoryArena *arena = page->arena;
  const Plan *plan = view->answer.plan;
  if (page->picture->recomputed_count) print_recomputed(page);
  print_pair(page, "live peak", format_bytes_exact(arena, plan->peak),
             memory_format(arena, "all kept: %s", format_bytes_exact(arena, view->keep_all->peak)));
  print_peak_place(page, view);
  if (view->arena_bytes >= 0)
    print_pair(page, "arena", format_bytes_exact(arena, view->arena_bytes),
               memory_format(arena, "%.4f of the live peak%s", (double)view->arena_bytes / (double)plan->peak,
                             view->replans ? memory_format(arena, ", planned %d times", view->replans + 1) : ""));
  print_pair(page, "time", format_cost(arena, view->graph, plan->cost),
             memory_format(arena, "all kept: %s", format_cost(arena, view->graph, plan->base_cost)));
  print_pair(page, "lower bound", format_cost(arena, view->graph, plan->lower_bound),
             plan->scope == PLAN_SCOPE_ORDER ? "for this order of nodes" : "for any order of nodes");
  if (plan->stopped_by) fprintf(page->file, "  %-12s %s\n", "stopped by", plan->stopped_by);
  if (view->answer.note) fprintf(page->file, "  %-12s %s\n", "note", view->answer.note);
  if (price) print_shadow_price(page, price);
}

/* One letter per share of the largest peak; what is there gets at least one while there is room. */
static void print_bar(const Page *page, const char *name, const int64_t *anatomy, int64_t peak, int64_t whole) {
  int width = whole > 0 ? (int)((double)BAR_WIDTH * (double)peak / (double)whole + 0.5) : 0, used = 0;
  int64_t bytes = 0;
  fprintf(page->file, "  %-9s |", name);
  for (int i = 0; i < PLAN_ROLE_COUNT; i++) {
    bytes += anatomy[bar_order[i].role];
    int end = peak > 0 ? (int)((double)width * (double)bytes / (double)peak + 0.5) : 0;
    if (anatomy[bar_order[i].role] && end <= used && used < width) end = used + 1;
    if (end > used && page->colour) fprintf(page->file, "\033[30;48;5;%dm", bar_order[i].colour);
    for (; used < end; used++) fputc(bar_order[i].letter, page->file);
    if (page->colour) fputs("\033[0m", page->file);
  }
  fprintf(page->file, "%*s| %s\n", BAR_WIDTH - used, "", format_bytes(page->arena, peak));
}

/* Columns of bytes by role, each row led by the letter of the bars. */
static void print_anatomy(FILE *file, MemoryArena *arena, const int64_t *before, const int64_t *after) {
  fprintf(file, after ? "at the peak%33s%25s\n" : "at the peak\n", "everything kept", "this plan");
  for (int i = 0; i < PLAN_ROLE_COUNT; i++) {
    PlanRole role = bar_order[i].role;
    if (!before[role] && (!after || !after[role])) continue;
    fprintf(file, "  %c %-17s %22s", bar_order[i].letter, plan_role_name(role),
            format_bytes_exact(arena, before[role]));
    fprintf(file, after ? "   %22s\n" : "%s\n", after ? format_bytes_exact(arena, after[role]) : "");
  }
}

static void print_bars(const Page *page, const PlanView *view) {
  const Plan *plan = view->answer.plan, *keep_all = view->keep_all;
  int64_t whole = plan->peak > keep_all->peak ? plan->peak : keep_all->peak;
  print_bar(page, "all kept", keep_all->anatomy, keep_all->peak, whole);
  if (page->picture->recomputed_count) print_bar(page, "this plan", plan->anatomy, plan->peak, whole);
}

static void print_decision(const Page *page, const StorageDecision *decision) {
  const PlanGraph *graph = page->picture->graph;
  const PlanStorage *storage = &graph->storages.items[decision->storage];
  fprintf(page->file, "  %-9s %2dx %10s  %-32s %s\n", decision->kept ? "keep" : "recompute", decision->times_run,
          format_bytes(page->arena, storage->bytes), storage->id, source_of_storage(graph, decision->storage));
}

enum { VERDICT_WIDTH = 24 };

/* "recompute", "keep; recompute h.3", "keep 8, recompute 4". */
static char *group_verdict(const Page *page, const DecisionGroup *group) {
  MemoryArena *arena = page->arena;
  const char *again = group->most_runs > 2 ? memory_format(arena, ", %d runs", group->most_runs) : "";
  if (!group->recomputed) return memory_string(arena, "keep");
  if (!group->kept) return memory_format(arena, "recompute%s", again);
  bool few_kept = group->kept <= group->recomputed;
  const char *more = few_kept ? "recompute" : "keep", *less = few_kept ? "keep" : "recompute";
  char *named = group->minority ? memory_format(arena, "%s; %s %s", more, less, group->minority) : NULL;
  if (named && text_width(named) <= VERDICT_WIDTH) return named;
  return memory_format(arena, "%s %lld, %s %lld", more, (long long)(few_kept ? group->recomputed : group->kept), less,
                       (long long)(few_kept ? group->kept : group->recomputed));
}

static int by_size(const void *a, const void *b) {
  const DecisionGroup *const *x = a, *const *y = b;
  int64_t first = multiply_sizes((*x)->bytes, (*x)->storages.count);
  int64_t second = multiply_sizes((*y)->bytes, (*y)->storages.count);
  if (first != second) return first > second ? -1 : 1;
  return (*x)->storages.items[0] < (*y)->storages.items[0] ? -1 : 1;
}

static int by_storage(const void *a, const void *b) {
  const DecisionGroup *const *x = a, *const *y = b;
  return (*x)->storages.items[0] < (*y)->storages.items[0] ? -1 : 1;
}

static void print_group(const Page *page, const DecisionGroup *group, const char **module) {
  bool same = *module && string_equal(*module, group->module);
  const char *where = shorten_text(page->arena, same ? "" : group->module[0] ? group->module : "(no module)", 18);
  const char *name = shorten_text(page->arena, group->name, 17);
  const char *colour = !page->colour ? "" : group->recomputed ? "\033[33m" : "\033[34m";
  char *times = group->storages.count > 1 ? memory_format(page->arena, "x%lld", (long long)group->storages.count) : "";
  *module = group->module;
  /* columns are counted in characters, widths of printf in bytes */
  fprintf(page->file, "  %s%*s %s%*s %10s %-5s %s%s%s\n", where, 18 - text_width(where), "", name,
          17 - text_width(name), "", format_bytes(page->arena, group->bytes), times, colour,
          shorten_text(page->arena, group_verdict(page, group), VERDICT_WIDTH), page->colour ? "\033[0m" : "");
}

static void print_groups(const Page *page) {
  DecisionGroupList list = group_decisions(page->picture);
  const DecisionGroup **groups = NEW_ARRAY(page->arena, const DecisionGroup *, list.count + 1);
  const char *module = NULL;
  int64_t shown = list.count > 2 * MOST_LISTED ? MOST_LISTED + MOST_LISTED / 2 : list.count, left = 0;
  for (int64_t i = 0; i < list.count; i++) groups[i] = &list.items[i];
  qsort(groups, (size_t)list.count, sizeof *groups, by_size);
  qsort(groups, (size_t)shown, sizeof *groups, by_storage);
  for (int64_t i = 0; i < shown; i++) print_group(page, groups[i], &module);
  for (int64_t i = shown; i < list.count; i++) left += groups[i]->storages.count;
  if (left) fprintf(page->file, "  ... and %lld smaller ones (-v lists every storage)\n", (long long)left);
}

static void print_decisions(const Page *page, bool every_storage) {
  const Picture *picture = page->picture;
  int64_t kept = 0;
  for (int64_t i = 0; i < picture->decisions.count; i++)
    if (picture->decisions.items[i].kept)
      kept += picture->graph->storages.items[picture->decisions.items[i].storage].bytes;
  fprintf(page->file, "activations that the backward pass reads: kept %s\n", format_bytes_exact(page->arena, kept));
  if (!every_storage) print_groups(page);
  for (int64_t i = 0; i < picture->decisions.count && every_storage; i++)
    print_decision(page, &picture->decisions.items[i]);
}

void print_plan(FILE *file, MemoryArena *arena, const PlanView *view, const ShadowPrice *price, bool every_storage) {
  const char *no_colour = getenv("NO_COLOR");
  Page page = {.file = file, .arena = arena, .picture = picture_of_view(arena, view)};
  page.colour = isatty(fileno(file)) == 1 && !(no_colour && *no_colour);
  print_verdict(&page);
  print_figures(&page, view, price);
  print_bars(&page, view);
  print_anatomy(file, arena, view->keep_all->anatomy, view->answer.plan->anatomy);
  if (page.picture->decisions.count) print_decisions(&page, every_storage);
}

/* ---- the same as JSON ---- */

static json_t *anatomy_json(const int64_t *anatomy) {
  json_t *object = json_object();
  for (int role = 0; role < PLAN_ROLE_COUNT; role++)
    json_object_set_new(object, plan_role_name((PlanRole)role), json_integer(anatomy[role]));
  return object;
}

static json_t *peak_json(MemoryArena *arena, const PlanGraph *graph, const Plan *plan) {
  int32_t node = peak_node(replay_plan(arena, graph, plan), plan);
  if (node < 0) return json_null();
  const PlanNode *at = &graph->nodes.items[node];
  return json_pack("{s:s, s:s, s:s}", "node", at->id, "phase", phase_name(picture_phase(graph, node)), "source",
                   at->source ? at->source : "");
}

static void add_sources(const PlanGraph *graph, json_t *root) {
  size_t index;
  json_t *decision;
  json_array_foreach(json_object_get(root, "decisions"), index, decision) {
    const char *id = json_string_value(json_object_get(decision, "storage"));
    int32_t storage = id ? plan_graph_storage(graph, id) : -1;
    if (storage < 0) continue;
    json_object_set_new(decision, "bytes", json_integer(graph->storages.items[storage].bytes));
    json_object_set_new(decision, "source", json_string(source_of_storage(graph, storage)));
  }
}

char *view_plan_text(MemoryArena *arena, const PlanView *view, bool compact) {
  Plan stated = *view->answer.plan;
  if (view->budget >= 0) stated.budget = view->budget;
  return plan_text(arena, view->graph, &stated, compact);
}

static char *json_text(MemoryArena *arena, json_t *root) {
  char *dumped = json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15)), *text;
  json_decref(root);
  if (!dumped) die_out_of_memory(0);
  text = memory_format(arena, "%s\n", dumped);
  free(dumped);
  return text;
}

char *plan_report_json(MemoryArena *arena, const PlanView *view, const ShadowPrice *price) {
  json_t *root = json_loads(view_plan_text(arena, view, true), 0, NULL);
  if (!root) die("a plan's own text does not parse");
  json_object_set_new(root, "name", json_string(view->name));
  if (view->arena_bytes >= 0) json_object_set_new(root, "arena", json_integer(view->arena_bytes));
  json_object_set_new(root, "keep_all",
                      json_pack("{s:I, s:f, s:o}", "peak", (json_int_t)view->keep_all->peak, "cost",
                                view->keep_all->cost, "anatomy", anatomy_json(view->keep_all->anatomy)));
  json_object_set_new(root, "peak_at", peak_json(arena, view->graph, view->answer.plan));
  if (view->answer.note) json_object_set_new(root, "note", json_string(view->answer.note));
  if (price)
    json_object_set_new(root, "shadow_price",
                        json_pack("{s:I, s:o, s:o}", "bytes", (json_int_t)price->step, "saved",
                                  isnan(price->saved) ? json_null() : json_real(price->saved), "added",
                                  isnan(price->added) ? json_null() : json_real(price->added)));
  add_sources(view->graph, root);
  return json_text(arena, root);
}

/* ---- no plan ---- */

/* The smallest budget that is known to work, in training and evaluation. */
static int64_t smallest_budget(const PlanView *view, const Plan *smallest) {
  return smallest->peak > view->evaluation_bytes ? smallest->peak : view->evaluation_bytes;
}

/* Storages that are live at the peak, the largest first. */
static void print_largest(FILE *file, MemoryArena *arena, const PlanGraph *graph, const Replay *replay) {
  fprintf(file, "the largest tensors there:\n");
  bool *listed = NEW_ARRAY(arena, bool, graph->storages.count + 1);
  for (int i = 0; i < MOST_LISTED; i++) {
    int64_t best = -1;
    for (int64_t s = 0; s < graph->storages.count; s++) {
      bool candidate = replay->live_at_peak[s] && !listed[s] && graph->storages.items[s].bytes > 0;
      if (candidate && (best < 0 || graph->storages.items[s].bytes > graph->storages.items[best].bytes)) best = s;
    }
    if (best < 0) return;
    listed[best] = true;
    const PlanStorage *storage = &graph->storages.items[best];
    const char *source = source_of_storage(graph, (int32_t)best);
    fprintf(file, *source ? "  %10s  %-15s %-26s %s\n" : "  %10s  %-15s %s\n", format_bytes(arena, storage->bytes),
            plan_role_name(storage->role), shorten_text(arena, storage->id, 26), shorten_text(arena, source, 23));
  }
}

/* What each `keep` in the source holds on to, in all uses of its module together. */
static void print_kept(FILE *file, MemoryArena *arena, const PlanGraph *graph) {
  StringMap told = {.arena = arena};
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const char *source = source_of_storage(graph, (int32_t)s), *name = graph->storages.items[s].id;
    if (graph->storages.items[s].decision != PLAN_KEEP || string_map_find(&told, source)) continue;
    string_map_set(&told, source, s);
    int64_t bytes = 0, count = 0;
    for (int64_t other = s; other < graph->storages.count; other++)
      if (graph->storages.items[other].decision == PLAN_KEEP &&
          string_equal(source_of_storage(graph, (int32_t)other), source))
        bytes += graph->storages.items[other].bytes, count++;
    /* a fused kernel has one place in the source, which may be another than that of the `keep` */
    const char *what = count > 1 ? memory_format(arena, "%lld tensors", (long long)count) : name;
    fprintf(file, "  'keep' holds %s of %s%s%s;\n        without it a smaller budget may be enough\n",
            format_bytes(arena, bytes), what, *source ? ", made at " : "", source);
  }
}

/* "weights, gradients and optimizer state": those of the three that are there at the peak. */
static char *fixed_kinds(MemoryArena *arena, const int64_t *anatomy) {
  const char *names[3];
  int count = 0;
  if (anatomy[PLAN_ROLE_WEIGHTS]) names[count++] = "weights";
  if (anatomy[PLAN_ROLE_GRADIENTS]) names[count++] = "gradients";
  if (anatomy[PLAN_ROLE_OPTIMIZER_STATE]) names[count++] = "optimizer state";
  return count == 3   ? memory_format(arena, "%s, %s and %s", names[0], names[1], names[2])
         : count == 2 ? memory_format(arena, "%s and %s", names[0], names[1])
                      : memory_string(arena, count ? names[0] : "");
}

static void print_advice(FILE *file, MemoryArena *arena, const Replay *replay) {
  const int64_t *anatomy = replay->anatomy;
  int64_t fixed = anatomy[PLAN_ROLE_WEIGHTS] + anatomy[PLAN_ROLE_OPTIMIZER_STATE] + anatomy[PLAN_ROLE_GRADIENTS];
  double share = percent((double)fixed, (double)replay->peak);
  if (share > 50)
    fprintf(file,
            "advice: %s are %.0f %% of it, so recomputing helps little;\n"
            "        %s%smake the model smaller\n",
            fixed_kinds(arena, anatomy), share, anatomy[PLAN_ROLE_WEIGHTS] ? "freeze parts of the model, " : "",
            anatomy[PLAN_ROLE_OPTIMIZER_STATE] ? "use an optimizer with less state, or "
            : anatomy[PLAN_ROLE_WEIGHTS]       ? "or "
                                               : "");
  else
    fprintf(file,
            "advice: make the batch or the sequence smaller (-D B=...);\n"
            "        with accumulate the effective batch stays what it is\n");
}

/* Training fits, evaluation does not: no plan can change that. */
static void print_evaluation(FILE *file, MemoryArena *arena, const PlanView *view) {
  fprintf(file,
          "reprise: training fits %s, but evaluation needs %s; make the batch smaller\n"
          "  smallest budget with a plan: %s\n",
          format_bytes_exact(arena, view->budget), format_bytes_exact(arena, view->evaluation_bytes),
          format_bytes_exact(arena, view->evaluation_bytes));
}

static void print_failure(FILE *file, MemoryArena *arena, const PlanView *view) {
  const char *budget = view->budget >= 0 ? format_bytes_exact(arena, view->budget) : NULL;
  if (!budget)
    fprintf(file, "reprise: %s: what its source keeps and recomputes has no plan\n", view->name);
  else if (view->answer.plan || view->answer.exit == EXIT_BUDGET_INFEASIBLE)
    fprintf(file, "reprise: %s does not fit %s\n", view->name, budget);
  else
    fprintf(file, "reprise: no plan of %s within %s was found, nor that there is none\n", view->name, budget);
}

void print_infeasible(FILE *file, MemoryArena *arena, const PlanView *view) {
  if (view->answer.plan && view->arena_bytes >= 0 && view->arena_bytes <= view->budget) {
    print_evaluation(file, arena, view);
    return;
  }
  const Plan *smallest = view->answer.smallest ? view->answer.smallest : view->keep_all;
  Replay *replay = replay_plan(arena, view->graph, smallest);
  print_failure(file, arena, view);
  if (view->answer.plan)
    fprintf(file, "  a plan of %s was found, but the smallest arena it was packed into is %s (asked %d times)\n",
            format_bytes_exact(arena, view->answer.plan->peak), format_bytes_exact(arena, view->arena_bytes),
            view->replans + 1);
  else
    fprintf(file, "  smallest budget with a plan: %s%s\n", format_bytes_exact(arena, smallest_budget(view, smallest)),
            smallest->peak < view->evaluation_bytes ? ", which evaluation needs" : "");
  if (view->answer.largest_impossible >= 0)
    fprintf(file, "  proven impossible up to:     %s\n", format_bytes_exact(arena, view->answer.largest_impossible));
  if (view->answer.note && !string_equal(view->answer.note, "infeasible"))
    fprintf(file, "  note: %s\n", view->answer.note);
  int32_t node = peak_node(replay, smallest);
  if (node >= 0) fprintf(file, "  peak phase:                  %s\n", peak_place(arena, view->graph, node));
  print_anatomy(file, arena, replay->anatomy, NULL);
  print_largest(file, arena, view->graph, replay);
  print_kept(file, arena, view->graph);
  print_advice(file, arena, replay);
}

char *infeasible_json(MemoryArena *arena, const PlanView *view) {
  bool planned = view->answer.plan && view->arena_bytes >= 0;
  bool trains = planned && view->arena_bytes <= view->budget; /* evaluation is what does not fit */
  const Plan *smallest = view->answer.smallest ? view->answer.smallest : view->keep_all;
  int64_t least = trains ? view->evaluation_bytes : planned ? view->arena_bytes : smallest_budget(view, smallest);
  json_int_t impossible = view->answer.largest_impossible;
  const char *status = planned || view->answer.exit == EXIT_BUDGET_INFEASIBLE ? "infeasible" : "unknown";
  return json_text(arena, json_pack("{s:s, s:s, s:o, s:I, s:o, s:o, s:o}", "name", view->name, "status", status,
                                    "budget", view->budget >= 0 ? json_integer(view->budget) : json_null(),
                                    "smallest_budget", (json_int_t)least, "largest_impossible",
                                    impossible >= 0 ? json_integer(impossible) : json_null(), "anatomy",
                                    anatomy_json(replay_plan(arena, view->graph, smallest)->anatomy), "peak_at",
                                    peak_json(arena, view->graph, smallest)));
}
