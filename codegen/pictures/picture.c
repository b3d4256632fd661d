/* codegen/pictures/picture.c - live bytes by role of every execution, and what becomes of every storage. */
#include "codegen/pictures/picture.h"

#include <math.h>
#include <stdlib.h>

const char *fate_name(Fate fate) {
  static const char *const names[FATE_COUNT] = {"kept", "recomputed", "freed early", ""};
  return names[fate];
}

PlanPhase picture_phase(const PlanGraph *graph, int32_t node) {
  PlanPhase phase = graph->nodes.items[node].phase;
  if (phase != PLAN_PHASE_NONE) return phase;
  return node < graph->first_stage ? PLAN_PHASE_FORWARD : PLAN_PHASE_BACKWARD;
}

const char *phase_name(PlanPhase phase) {
  return phase == PLAN_PHASE_FORWARD ? "forward" : phase == PLAN_PHASE_BACKWARD ? "backward" : "update";
}

bool run_drops(const PictureRun *run, int32_t storage) {
  for (int32_t i = 0; i < run->step->drop_count; i++)
    if (run->step->drops[i] == storage) return true;
  return false;
}

/* ---- live bytes ---- */

typedef struct Walk {
  Picture *picture;
  const PlanGraph *graph;
  int64_t held[PLAN_ROLE_COUNT];
  bool *dropped, *hosted; /* per storage, during one run */
} Walk;

static void mark_outputs(Walk *walk, const PlanStep *step, bool value) {
  for (int32_t i = 0; i < step->drop_count; i++) walk->dropped[step->drops[i]] = value;
  for (int32_t i = 0; i < step->into_count; i++) walk->hosted[step->into[i].output] = value;
}

/* Inputs, outputs, workspace and everything not yet freed are live while a node runs; dropped outputs are workspace,
 * and an output in its input's bytes counts as that input until the node ends. */
static void walk_run(Walk *walk, const PlanStep *step, PictureRun *run) {
  const PlanNode *node = &walk->graph->nodes.items[step->target];
  memcpy(run->live, walk->held, sizeof run->live);
  run->live[PLAN_ROLE_WORKSPACE] += node->workspace;
  mark_outputs(walk, step, true);
  for (int32_t o = 0; o < node->output_count; o++) {
    const PlanStorage *output = &walk->graph->storages.items[node->outputs[o]];
    PlanRole role = walk->dropped[node->outputs[o]] ? PLAN_ROLE_WORKSPACE : output->role;
    if (!walk->hosted[node->outputs[o]]) run->live[role] += output->bytes;
    if (!walk->dropped[node->outputs[o]]) walk->held[output->role] += output->bytes;
  }
  for (int32_t i = 0; i < step->into_count; i++) {
    const PlanStorage *host = &walk->graph->storages.items[step->into[i].host];
    walk->held[host->role] -= host->bytes;
  }
  mark_outputs(walk, step, false);
  for (int role = 0; role < PLAN_ROLE_COUNT; role++) run->total += run->live[role];
}

static PictureRuns walk_plan(Picture *picture, const Plan *plan) {
  const PlanGraph *graph = picture->graph;
  Walk walk = {.picture = picture, .graph = graph};
  PictureRuns result = {.peak = graph->persistent_bytes};
  int32_t *times = NEW_ARRAY(picture->arena, int32_t, graph->nodes.count);
  walk.dropped = NEW_ARRAY(picture->arena, bool, graph->storages.count);
  walk.hosted = NEW_ARRAY(picture->arena, bool, graph->storages.count);
  for (int64_t s = 0; s < graph->storages.count; s++)
    if (graph->storages.items[s].persistent) walk.held[graph->storages.items[s].role] += graph->storages.items[s].bytes;
  for (int64_t i = 0; i < plan->steps.count; i++) {
    const PlanStep *step = &plan->steps.items[i];
    if (step->kind == PLAN_FREE) {
      const PlanStorage *freed = &graph->storages.items[step->target];
      walk.held[freed->role] -= freed->bytes;
      continue;
    }
    PictureRun run = {.node = step->target, .ordinal = times[step->target]++, .step = step, .start = result.cost};
    walk_run(&walk, step, &run);
    if (run.total > result.peak || !result.runs.count) result.peak = run.total, result.peak_run = result.runs.count;
    result.cost += graph->nodes.items[step->target].cost;
    array_push(picture->arena, &result.runs, run);
  }
  if (result.peak != plan->peak)
    die("picture: live bytes reach %lld, the plan says %lld", (long long)result.peak, (long long)plan->peak);
  return result;
}

/* ---- fates ---- */

/* Per storage: runs that make it without dropping it at once. */
static int32_t *count_makings(const Picture *picture) {
  int32_t *makings = NEW_ARRAY(picture->arena, int32_t, picture->graph->storages.count);
  for (int64_t i = 0; i < picture->plan->steps.count; i++) {
    const PlanStep *step = &picture->plan->steps.items[i];
    if (step->kind != PLAN_RUN) continue;
    const PlanNode *node = &picture->graph->nodes.items[step->target];
    for (int32_t o = 0; o < node->output_count; o++) makings[node->outputs[o]]++;
    for (int32_t d = 0; d < step->drop_count; d++) makings[step->drops[d]]--;
  }
  return makings;
}

static void find_fates(Picture *picture) {
  const PlanGraph *graph = picture->graph;
  const int32_t *makings = count_makings(picture);
  picture->times_run = NEW_ARRAY(picture->arena, int32_t, graph->nodes.count);
  picture->fates = NEW_ARRAY(picture->arena, Fate, graph->storages.count);
  for (int64_t i = 0; i < picture->planned.runs.count; i++) picture->times_run[picture->planned.runs.items[i].node]++;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    int32_t producer = graph->storages.items[s].producer;
    bool forward = producer >= 0 && picture_phase(graph, producer) == PLAN_PHASE_FORWARD;
    picture->fates[s] = !forward ? FATE_OTHER : makings[s] > 1 ? FATE_RECOMPUTED : FATE_FREED;
    if (forward && graph->storages.items[s].result) picture->fates[s] = FATE_KEPT;
  }
  picture->decisions = plan_decisions(picture->arena, graph, picture->plan);
  for (int64_t i = 0; i < picture->decisions.count; i++) {
    const StorageDecision *decision = &picture->decisions.items[i];
    picture->fates[decision->storage] = decision->kept ? FATE_KEPT : FATE_RECOMPUTED;
    picture->recomputed_count += !decision->kept;
  }
}

Picture *picture_create(MemoryArena *arena, const char *name, const PlanGraph *graph, const Plan *plan,
                        const Plan *keep_all, int64_t budget, int64_t arena_bytes) {
  Picture *picture = NEW(arena, Picture);
  *picture = (Picture){.arena = arena,
                       .name = name,
                       .graph = graph,
                       .plan = plan,
                       .keep_all = keep_all,
                       .budget = budget,
                       .arena_bytes = arena_bytes};
  picture->planned = walk_plan(picture, plan);
  picture->kept = walk_plan(picture, keep_all);
  find_fates(picture);
  return picture;
}

/* ---- figures ---- */

double picture_overhead(const Plan *plan) {
  return plan->base_cost > 0 ? 100 * (plan->cost - plan->base_cost) / plan->base_cost : 0;
}

double picture_gap(const Plan *plan) {
  double percent = plan->cost > 0 ? 100 * (plan->cost - plan->lower_bound) / plan->cost : 0;
  return ceil(100 * percent - 1e-9) / 100;
}

char *format_cost(MemoryArena *arena, const PlanGraph *graph, double cost) {
  if (!graph->cost_unit) return memory_format(arena, fabs(cost) >= 1e6 && fabs(cost) < 1e15 ? "%.0f" : "%.6g", cost);
  if (!string_equal(graph->cost_unit, "us")) return memory_format(arena, "%.6g %s", cost, graph->cost_unit);
  if (fabs(cost) >= 1e6) return memory_format(arena, "%.3f s", cost / 1e6);
  return fabs(cost) >= 1e3 ? memory_format(arena, "%.3f ms", cost / 1e3) : memory_format(arena, "%.1f us", cost);
}

char *exact_number(MemoryArena *arena, double value) {
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  return memory_string(arena, text);
}

char *picture_title(const Picture *picture) {
  MemoryArena *arena = picture->arena;
  const Plan *plan = picture->plan;
  const char *limit = picture->budget >= 0 ? memory_format(arena, "within %s", format_bytes(arena, picture->budget))
                                           : "without a budget";
  const char *proof = plan->status == PLAN_STATUS_OPTIMAL
                          ? "proven optimal"
                          : memory_format(arena, "proven within %.2f %%", picture_gap(plan));
  return memory_format(arena, "%s %s: live peak %s, +%.2f %% time, %s", picture->name, limit,
                       format_bytes(arena, plan->peak), picture_overhead(plan), proof);
}

const char *source_of_storage(const PlanGraph *graph, int32_t storage) {
  int32_t producer = graph->storages.items[storage].producer;
  const char *source = producer < 0 ? NULL : graph->nodes.items[producer].source;
  return source ? source : "";
}
