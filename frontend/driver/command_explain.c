/* frontend/driver/command_explain.c - `reprise explain`: why a storage is kept or recomputed, and what the other way
 * would cost.
 *
 * The other way is solved, not estimated: the same problem, budget and strategy with that one decision forced. Both
 * plans are compared by the counting rules, before packing. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "frontend/driver/commands.h"
#include "frontend/driver/picture_output.h"

enum { MOST_CHANGES = 8 };

typedef struct Explanation {
  Planning *planning;
  MemoryArena *arena;
  const PlanGraph *graph;
  int32_t storage;
  int64_t budget;   /* of both plans; -1: none was given */
  PlanView view;    /* as it is planned */
  Picture *picture; /* of that */
  bool kept;
  bool solved;      /* there are two ways, and the other one was asked for */
  PlanAnswer other; /* solved: with the decision turned round */
} Explanation;

/* ---- finding the storage ---- */

/* The nearest id, else the shortest that holds the name. */
static const char *closest_id(const PlanGraph *graph, const char *name) {
  const char *close = NULL, *holder = NULL;
  int best = 2 + (int)strlen(name) / 3;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const char *id = graph->storages.items[s].id;
    int distance = string_distance(name, id, best - 1);
    if (distance < best) best = distance, close = id;
    if (strstr(id, name) && (!holder || strlen(id) < strlen(holder))) holder = id;
  }
  return close ? close : holder;
}

static void suggest(const PlanGraph *graph, const char *name) {
  const char *close = closest_id(graph, name);
  fprintf(stderr, "reprise explain: no storage is called '%s'", name);
  if (close) fprintf(stderr, "; did you mean '%s'?", close);
  fputs("\n('reprise plan -v' lists those that the backward pass reads)\n", stderr);
}

/* ---- the other way ---- */

/* The graph with one decision replaced; everything else is shared. */
static PlanGraph *force_decision(MemoryArena *arena, const PlanGraph *graph, int32_t storage, PlanDecision decision) {
  PlanGraph *forced = NEW(arena, PlanGraph);
  *forced = *graph;
  forced->storages.items = NEW_ARRAY(arena, PlanStorage, graph->storages.count);
  memcpy(forced->storages.items, graph->storages.items, (size_t)graph->storages.count * sizeof *forced->storages.items);
  forced->storages.items[storage].decision = decision;
  return forced;
}

static void solve_other_way(Explanation *explanation) {
  const Options *options = explanation->planning->options;
  PlanDecision turned = explanation->kept ? PLAN_RECOMPUTE : PLAN_KEEP;
  PlanRequest request = plan_request_of(options);
  request.budget = explanation->view.answer.plan->budget;
  if (request.budget <= 0) request.budget = explanation->budget;
  if (request.budget <= 0) request.budget = explanation->planning->keep_all->peak;
  PlanGraph *forced = force_decision(explanation->arena, explanation->graph, explanation->storage, turned);
  explanation->other = plan_request(explanation->arena, forced, &request);
  explanation->solved = true;
}

/* ---- why there is nothing to decide ---- */

/* The reason in words, or NULL where there are two ways. */
static const char *settled(const Explanation *explanation) {
  const PlanGraph *graph = explanation->graph;
  const PlanStorage *storage = &graph->storages.items[explanation->storage];
  if (storage->persistent)
    return memory_format(explanation->arena, "it holds %s and lives from step to step: nothing is decided about it",
                         plan_role_name(storage->role));
  if (picture_phase(graph, storage->producer) != PLAN_PHASE_FORWARD)
    return "the backward pass makes it, and frees it after its last use; only what the forward pass makes can be "
           "recomputed";
  bool decided = false;
  for (int64_t i = 0; i < explanation->picture->decisions.count; i++)
    decided |= explanation->picture->decisions.items[i].storage == explanation->storage;
  if (!decided && explanation->picture->fates[explanation->storage] == FATE_RECOMPUTED)
    return "the backward pass does not read it; it is made again only on the way to others";
  if (!decided) return "the backward pass does not read it: it is freed after its last use in the forward pass";
  if (!graph->nodes.items[storage->producer].recompute) return "its node may run only once, so it has to be kept";
  return NULL;
}

/* ---- words ---- */

static void print_storage(const Explanation *explanation) {
  const PlanGraph *graph = explanation->graph;
  const PlanStorage *storage = &graph->storages.items[explanation->storage];
  const PlanNode *node = storage->producer < 0 ? NULL : &graph->nodes.items[storage->producer];
  Fate fate = explanation->picture->fates[explanation->storage];
  const char *state = storage->persistent                                                      ? "persistent"
                      : !node || picture_phase(graph, storage->producer) != PLAN_PHASE_FORWARD ? "transient"
                                                                                               : fate_name(fate);
  printf("%s: %s\n", storage->id, state);
  printf("  %-12s %s\n", "bytes", format_bytes_exact(explanation->arena, storage->bytes));
  if (!node) return;
  printf("  %-12s %s%s%s, %s a run\n", "made by", node->id, node->module && *node->module ? " in " : "",
         node->module ? node->module : "", format_cost(explanation->arena, graph, node->cost));
  if (node->source && *node->source) printf("  %-12s %s\n", "source", node->source);
  int stages = 0;
  for (int32_t r = 0; r < storage->reader_count; r++) stages += storage->readers[r] >= graph->first_stage;
  printf("  %-12s %d forward, %d backward\n", "readers", storage->reader_count - stages, stages);
  printf("  %-12s %d\n", "runs", explanation->picture->times_run[storage->producer]);
}

static bool is_kept(const Picture *picture, int32_t storage) { return picture->fates[storage] == FATE_KEPT; }

/* What else changes when the decision is turned round. */
static void print_changes(const Explanation *explanation, const Picture *other) {
  const Picture *picture = explanation->picture;
  int64_t changes = 0;
  for (int64_t i = 0; i < picture->decisions.count; i++) {
    int32_t storage = picture->decisions.items[i].storage;
    if (storage == explanation->storage || is_kept(picture, storage) == is_kept(other, storage)) continue;
    if (changes++ == 0) puts("  then also");
    if (changes <= MOST_CHANGES)
      printf("    %-10s %10s  %s\n", is_kept(other, storage) ? "keep" : "recompute",
             format_bytes(explanation->arena, explanation->graph->storages.items[storage].bytes),
             explanation->graph->storages.items[storage].id);
  }
  if (changes > MOST_CHANGES) printf("    and %lld more\n", (long long)(changes - MOST_CHANGES));
}

static void print_comparison(const Explanation *explanation) {
  MemoryArena *arena = explanation->arena;
  const Plan *now = explanation->view.answer.plan, *other = explanation->other.plan;
  const char *verb = explanation->kept ? "recomputing it" : "keeping it";
  if (!other) {
    printf("  %s does not fit: no plan within %s was found\n", verb,
           explanation->budget >= 0 ? format_bytes(arena, explanation->budget) : "the memory of keeping everything");
    if (explanation->other.largest_impossible >= 0)
      printf("  %-12s up to %s\n", "impossible", format_bytes_exact(arena, explanation->other.largest_impossible));
    return;
  }
  double difference = other->cost - now->cost;
  double share = now->base_cost > 0 ? 100 * fabs(difference) / now->base_cost : 0;
  if (fabs(difference) <= 1e-9 * fabs(now->cost))
    printf("  %s would cost the same time\n", verb);
  else
    printf("  %s would %s %s (%.2f %% of the step with everything kept)\n", verb, difference > 0 ? "cost" : "save",
           format_cost(arena, explanation->graph, fabs(difference)), share);
  printf("  %-12s %s as planned, %s the other way\n", "time", format_cost(arena, explanation->graph, now->cost),
         format_cost(arena, explanation->graph, other->cost));
  printf("  %-12s %s as planned, %s the other way\n", "live peak", format_bytes(arena, now->peak),
         format_bytes(arena, other->peak));
  if (difference < 0)
    printf("  a better plan than the one found: the search had stopped within %.2f %% of the best\n", picture_gap(now));
  print_changes(explanation, picture_create(arena, explanation->view.name, explanation->graph, other,
                                            explanation->view.keep_all, explanation->budget, -1));
}

static void print_explanation(const Explanation *explanation, const char *reason) {
  const PlanStorage *storage = &explanation->graph->storages.items[explanation->storage];
  print_storage(explanation);
  if (!reason && storage->decision != PLAN_FREE_CHOICE)
    printf("  the source says '%s'; without that:\n", storage->decision == PLAN_KEEP ? "keep" : "recompute");
  if (reason)
    printf("  %s\n", reason);
  else
    print_comparison(explanation);
  const char *note = explanation->solved ? explanation->other.note : NULL;
  if (note && !string_equal(note, "infeasible")) printf("  %-12s %s\n", "note", note);
}

static void print_explanation_json(const Explanation *explanation, const char *reason) {
  const PlanStorage *storage = &explanation->graph->storages.items[explanation->storage];
  const Plan *now = explanation->view.answer.plan, *other = explanation->other.plan;
  json_t *root = json_pack("{s:s, s:I, s:s, s:f, s:I}", "storage", storage->id, "bytes", (json_int_t)storage->bytes,
                           "decision", fate_name(explanation->picture->fates[explanation->storage]), "cost", now->cost,
                           "peak", (json_int_t)now->peak);
  if (reason) json_object_set_new(root, "reason", json_string(reason));
  if (explanation->solved)
    json_object_set_new(
        root, "other_way",
        other ? json_pack("{s:f, s:I}", "cost", other->cost, "peak", (json_int_t)other->peak) : json_null());
  json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
  putchar('\n');
  json_decref(root);
}

int explain_command(const Options *given) {
  Options options = *given;
  const char *name = given->files.items[0];
  options.files.items = given->files.items + 1;
  options.files.count = 1;
  int code;
  Planning *planning = open_planning(&options, &code);
  if (!planning) return code;
  Explanation explanation = {
      .planning = planning, .arena = options.arena, .graph = planning->graph, .budget = options.budget};
  explanation.storage = plan_graph_storage(planning->graph, name);
  if (explanation.storage < 0) return suggest(planning->graph, name), EXIT_USAGE;
  explanation.view = solve_planning(planning, options.budget, options.strategy, NULL);
  if (!planning_fits(&explanation.view)) return fail_planning(&options, &explanation.view);
  explanation.picture = picture_of_view(options.arena, &explanation.view);
  explanation.kept = is_kept(explanation.picture, explanation.storage);
  const char *reason = settled(&explanation);
  if (!reason) solve_other_way(&explanation);
  if (options.json)
    print_explanation_json(&explanation, reason);
  else
    print_explanation(&explanation, reason);
  return EXIT_OK;
}
