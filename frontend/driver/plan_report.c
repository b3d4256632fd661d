/* frontend/driver/plan_report.c - plans in words and numbers. */
#include "frontend/driver/plan_report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "passes/planner/replay.h"

enum { MOST_LISTED = 12 };

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/* "12.3 ms" for microseconds; other units as they are. */
static char *format_cost(MemoryArena *arena, const PlanGraph *graph, double cost) {
  if (graph->cost_unit && !string_equal(graph->cost_unit, "us"))
    return memory_format(arena, "%.6g %s", cost, graph->cost_unit);
  if (!graph->cost_unit) return memory_format(arena, "%.6g", cost);
  if (fabs(cost) >= 1e6) return memory_format(arena, "%.3f s", cost / 1e6);
  return fabs(cost) >= 1e3 ? memory_format(arena, "%.3f ms", cost / 1e3) : memory_format(arena, "%.1f us", cost);
}

static const char *source_of(const PlanGraph *graph, const PlanStorage *storage) {
  const char *source = storage->producer < 0 ? NULL : graph->nodes.items[storage->producer].source;
  return source ? source : "";
}

/* ---- a plan ---- */

static void print_verdict(FILE *file, MemoryArena *arena, const PlanView *view, int64_t recomputed, int64_t decided) {
  const Plan *plan = view->answer.plan;
  double overhead = percent(plan->cost - plan->base_cost, plan->base_cost),
         gap = percent(plan->cost - plan->lower_bound, plan->cost);
  if (view->budget >= 0)
    fprintf(file, "%s fits %s: ", view->name, format_bytes(arena, view->budget));
  else
    fprintf(file, "%s without a budget: ", view->name);
  if (!recomputed)
    fprintf(file, "everything is kept, no time is lost\n");
  else
    fprintf(
        file, "%lld of %lld activations recomputed, +%.2f %% time, %s\n", (long long)recomputed, (long long)decided,
        overhead,
        plan->status == PLAN_STATUS_OPTIMAL ? "proven optimal" : memory_format(arena, "proven within %.2f %%", gap));
}

static void print_figures(FILE *file, MemoryArena *arena, const PlanView *view, const ShadowPrice *price) {
  const Plan *plan = view->answer.plan;
  fprintf(file, "  %-12s %s, keeping everything %s\n", "live peak", format_bytes_exact(arena, plan->peak),
          format_bytes_exact(arena, view->keep_all->peak));
  if (view->arena_bytes >= 0)
    fprintf(file, "  %-12s %s, %.4f of the live peak%s\n", "arena", format_bytes_exact(arena, view->arena_bytes),
            (double)view->arena_bytes / (double)plan->peak,
            view->replans ? memory_format(arena, ", planned %d times for it", view->replans + 1) : "");
  fprintf(file, "  %-12s %s, at least %s (%s), keeping everything %s\n", "time",
          format_cost(arena, view->graph, plan->cost), format_cost(arena, view->graph, plan->lower_bound),
          plan->scope == PLAN_SCOPE_ORDER ? "this order of nodes" : "any order",
          format_cost(arena, view->graph, plan->base_cost));
  if (plan->stopped_by) fprintf(file, "  %-12s %s\n", "stopped by", plan->stopped_by);
  if (view->answer.note) fprintf(file, "  %-12s %s\n", "note", view->answer.note);
  if (!price) return;
  fprintf(file, "  %-12s ", "1 % memory");
  if (isnan(price->saved))
    fprintf(file, "more: no plan was found");
  else
    fprintf(file, "more saves %s", format_cost(arena, view->graph, price->saved));
  if (isnan(price->added))
    fprintf(file, "; less: nothing fits\n");
  else
    fprintf(file, "; less costs %s (%s)\n", format_cost(arena, view->graph, price->added),
            format_bytes(arena, price->step));
}

static void print_anatomy(FILE *file, MemoryArena *arena, const int64_t *before, const int64_t *after) {
  fprintf(file, "at the peak %29s %22s\n", after ? "keeping everything" : "", after ? "with this plan" : "");
  for (int role = 0; role < PLAN_ROLE_COUNT; role++) {
    if (!before[role] && (!after || !after[role])) continue;
    fprintf(file, "  %-16s %22s", plan_role_name((PlanRole)role), format_bytes_exact(arena, before[role]));
    fprintf(file, after ? " %22s\n" : "%s\n", after ? format_bytes_exact(arena, after[role]) : "");
  }
}

static void print_decision(FILE *file, MemoryArena *arena, const PlanGraph *graph, const StorageDecision *decision) {
  const PlanStorage *storage = &graph->storages.items[decision->storage];
  fprintf(file, "  %-9s %2dx %10s  %-32s %s\n", decision->kept ? "keep" : "recompute", decision->times_run,
          format_bytes(arena, storage->bytes), storage->id, source_of(graph, storage));
}

static int by_bytes(const void *a, const void *b) {
  const StorageDecision *const *x = a, *const *y = b;
  return (*x)->storage < (*y)->storage ? -1 : 1;
}

static void print_decisions(FILE *file, MemoryArena *arena, const PlanView *view, const DecisionList *list,
                            bool every) {
  const StorageDecision **shown = NEW_ARRAY(arena, const StorageDecision *, list->count + 1);
  int64_t kept_bytes = 0, count = 0;
  for (int64_t i = 0; i < list->count; i++) {
    if (list->items[i].kept) kept_bytes += view->graph->storages.items[list->items[i].storage].bytes;
    shown[count++] = &list->items[i];
  }
  qsort(shown, (size_t)count, sizeof *shown, by_bytes);
  fprintf(file, "activations that the backward pass reads: kept %s\n", format_bytes_exact(arena, kept_bytes));
  int64_t listed = every || count <= 2 * MOST_LISTED ? count : MOST_LISTED;
  for (int64_t i = 0; i < listed; i++) print_decision(file, arena, view->graph, shown[i]);
  if (listed < count) fprintf(file, "  ... and %lld more (-v lists them all)\n", (long long)(count - listed));
}

void print_plan(FILE *file, MemoryArena *arena, const PlanView *view, const ShadowPrice *price, bool every_storage) {
  DecisionList list = plan_decisions(arena, view->graph, view->answer.plan);
  int64_t recomputed = 0;
  for (int64_t i = 0; i < list.count; i++) recomputed += list.items[i].times_run > 1;
  print_verdict(file, arena, view, recomputed, list.count);
  print_figures(file, arena, view, price);
  print_anatomy(file, arena, view->keep_all->anatomy, view->answer.plan->anatomy);
  if (list.count) print_decisions(file, arena, view, &list, every_storage);
}

/* ---- the same as JSON ---- */

static json_t *anatomy_json(const int64_t *anatomy) {
  json_t *object = json_object();
  for (int role = 0; role < PLAN_ROLE_COUNT; role++)
    json_object_set_new(object, plan_role_name((PlanRole)role), json_integer(anatomy[role]));
  return object;
}

static void add_sources(const PlanGraph *graph, json_t *root) {
  size_t index;
  json_t *decision;
  json_array_foreach(json_object_get(root, "decisions"), index, decision) {
    const char *id = json_string_value(json_object_get(decision, "storage"));
    int32_t storage = id ? plan_graph_storage(graph, id) : -1;
    if (storage < 0) continue;
    json_object_set_new(decision, "bytes", json_integer(graph->storages.items[storage].bytes));
    json_object_set_new(decision, "source", json_string(source_of(graph, &graph->storages.items[storage])));
  }
}

char *plan_report_json(MemoryArena *arena, const PlanView *view, const ShadowPrice *price) {
  json_t *root = json_loads(plan_text(arena, view->graph, view->answer.plan, true), 0, NULL);
  if (!root) die("a plan's own text does not parse");
  json_object_set_new(root, "name", json_string(view->name));
  if (view->arena_bytes >= 0) json_object_set_new(root, "arena", json_integer(view->arena_bytes));
  json_object_set_new(root, "keep_all",
                      json_pack("{s:I, s:f, s:o}", "peak", (json_int_t)view->keep_all->peak, "cost",
                                view->keep_all->cost, "anatomy", anatomy_json(view->keep_all->anatomy)));
  if (view->answer.note) json_object_set_new(root, "note", json_string(view->answer.note));
  if (price)
    json_object_set_new(root, "shadow_price",
                        json_pack("{s:I, s:o, s:o}", "bytes", (json_int_t)price->step, "saved",
                                  isnan(price->saved) ? json_null() : json_real(price->saved), "added",
                                  isnan(price->added) ? json_null() : json_real(price->added)));
  add_sources(view->graph, root);
  char *dumped = json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15)), *text;
  json_decref(root);
  if (!dumped) die("out of memory");
  text = memory_format(arena, "%s\n", dumped);
  free(dumped);
  return text;
}

/* ---- no plan ---- */

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
    fprintf(file, "  %12s  %-16s %-32s %s\n", format_bytes(arena, storage->bytes), plan_role_name(storage->role),
            storage->id, source_of(graph, storage));
  }
}

/* What `keep` in the source holds on to. */
static void print_kept(FILE *file, MemoryArena *arena, const PlanGraph *graph) {
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (storage->decision == PLAN_KEEP)
      fprintf(file, "  'keep' at %s holds %s of %s: without it the budget may be enough\n", source_of(graph, storage),
              format_bytes(arena, storage->bytes), storage->id);
  }
}

static void print_advice(FILE *file, const PlanGraph *graph, const Replay *replay) {
  int64_t fixed = replay->anatomy[PLAN_ROLE_WEIGHTS] + replay->anatomy[PLAN_ROLE_OPTIMIZER_STATE] +
                  replay->anatomy[PLAN_ROLE_GRADIENTS];
  double share = percent((double)fixed, (double)replay->peak);
  (void)graph;
  if (share > 50)
    fprintf(file,
            "advice: weights, gradients and optimizer state are %.0f %% of it, so recomputing helps little;\n"
            "        freeze parts of the model, use sgd in place of adam, or make the model smaller\n",
            share);
  else
    fprintf(file,
            "advice: make the batch or the sequence smaller (-D B=...), with accumulate to keep the effective batch\n");
}

void print_infeasible(FILE *file, MemoryArena *arena, const PlanView *view) {
  const Plan *smallest = view->answer.smallest ? view->answer.smallest : view->keep_all;
  Replay *replay = replay_plan(arena, view->graph, smallest);
  fprintf(file, "reprise: %s does not fit %s\n", view->name, format_bytes_exact(arena, view->budget));
  if (view->answer.plan)
    fprintf(file, "  a plan of %s was found, but the smallest arena it was packed into is %s (asked %d times)\n",
            format_bytes_exact(arena, view->answer.plan->peak), format_bytes_exact(arena, view->arena_bytes),
            view->replans + 1);
  else
    fprintf(file, "  smallest budget with a plan: %s\n", format_bytes_exact(arena, smallest->peak));
  if (view->answer.largest_impossible >= 0)
    fprintf(file, "  proven impossible up to:     %s\n", format_bytes_exact(arena, view->answer.largest_impossible));
  if (view->answer.note) fprintf(file, "  note: %s\n", view->answer.note);
  print_anatomy(file, arena, replay->anatomy, NULL);
  print_largest(file, arena, view->graph, replay);
  print_kept(file, arena, view->graph);
  print_advice(file, view->graph, replay);
}
