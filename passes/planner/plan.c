/* passes/planner/plan.c - run sequences: where each storage lives, the plan with its frees, and its peak. */
#include "passes/planner/plan.h"

#include <math.h>

#include "passes/planner/replay.h"

PlanStatus plan_status_of(double cost, double lower_bound) {
  return cost - lower_bound <= 1e-9 * fmax(1, cost) ? PLAN_STATUS_OPTIMAL : PLAN_STATUS_FEASIBLE;
}

/* Walks the sequence backwards. `wanted[s]` says whether some later run (or the end) reads the instance of s that is
 * current at this point. A new making ends the older instance, except for storages that must be kept. */
RunUses run_uses(MemoryArena *arena, const PlanGraph *graph, const int32_t *runs, int64_t count) {
  RunUses uses = {.input_base = NEW_ARRAY(arena, int32_t, count + 1),
                  .output_base = NEW_ARRAY(arena, int32_t, count + 1)};
  int32_t *left = NEW_ARRAY(arena, int32_t, graph->nodes.count); /* executions before and at this point */
  for (int64_t k = 0; k < count; k++) {
    uses.input_base[k + 1] = uses.input_base[k] + graph->nodes.items[runs[k]].input_count;
    uses.output_base[k + 1] = uses.output_base[k] + graph->nodes.items[runs[k]].output_count;
    left[runs[k]]++;
  }
  uses.first = NEW_ARRAY(arena, bool, count);
  uses.input_ends = NEW_ARRAY(arena, bool, uses.input_base[count]);
  uses.output_used = NEW_ARRAY(arena, bool, uses.output_base[count]);
  bool *wanted = NEW_ARRAY(arena, bool, graph->storages.count);
  for (int64_t s = 0; s < graph->storages.count; s++)
    wanted[s] = graph->storages.items[s].result || graph->storages.items[s].persistent;
  for (int64_t k = count - 1; k >= 0; k--) {
    const PlanNode *node = &graph->nodes.items[runs[k]];
    bool first = uses.first[k] = --left[runs[k]] == 0;
    for (int32_t o = 0; o < node->output_count; o++) {
      int32_t output = node->outputs[o];
      if (!first && graph->storages.items[output].decision == PLAN_KEEP) continue;
      uses.output_used[uses.output_base[k] + o] = wanted[output];
      wanted[output] = false;
    }
    for (int32_t i = 0; i < node->input_count; i++) {
      uses.input_ends[uses.input_base[k] + i] = !wanted[node->inputs[i]];
      wanted[node->inputs[i]] = true;
    }
  }
  return uses;
}

static bool ends_here(const PlanNode *node, const RunUses *uses, int64_t k, int32_t storage) {
  for (int32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] == storage && uses->input_ends[uses->input_base[k] + i]) return true;
  return false;
}

/* A storage that must be kept is dropped by every later run of its node. Other outputs that nobody wants may still take
 * an input's bytes and be freed afterwards. */
static bool is_pinned(const PlanGraph *graph, const RunUses *uses, int64_t k, int32_t storage) {
  return !uses->first[k] && graph->storages.items[storage].decision == PLAN_KEEP;
}

int32_t run_inplace(const PlanGraph *graph, const RunUses *uses, const int32_t *runs, int64_t k, PlanInplace *pairs) {
  const PlanNode *node = &graph->nodes.items[runs[k]];
  int32_t count = 0;
  for (int32_t i = 0; i < node->inplace_count; i++) {
    PlanInplace pair = node->inplace[i];
    const PlanStorage *host = &graph->storages.items[pair.host];
    bool free_pair = !host->persistent && host->bytes == graph->storages.items[pair.output].bytes &&
                     ends_here(node, uses, k, pair.host) && !is_pinned(graph, uses, k, pair.output);
    for (int32_t p = 0; p < count; p++)
      free_pair = free_pair && pairs[p].host != pair.host && pairs[p].output != pair.output;
    if (free_pair) pairs[count++] = pair;
  }
  return count;
}

int64_t runs_profile(MemoryArena *scratch, const PlanGraph *graph, const int32_t *runs, int64_t count, int64_t *live) {
  RunUses uses = run_uses(scratch, graph, runs, count);
  int64_t held = graph->persistent_bytes, peak = held;
  for (int64_t k = 0; k < count; k++) {
    const PlanNode *node = &graph->nodes.items[runs[k]];
    PlanInplace *pairs = NEW_ARRAY(scratch, PlanInplace, node->output_count);
    int32_t pair_count = node->inplace_count ? run_inplace(graph, &uses, runs, k, pairs) : 0;
    int64_t during = held + node->workspace, after = held;
    for (int32_t o = 0; o < node->output_count; o++) {
      during += graph->storages.items[node->outputs[o]].bytes;
      if (uses.output_used[uses.output_base[k] + o]) after += graph->storages.items[node->outputs[o]].bytes;
    }
    for (int32_t p = 0; p < pair_count; p++) during -= graph->storages.items[pairs[p].output].bytes;
    for (int32_t i = 0; i < node->input_count; i++)
      if (uses.input_ends[uses.input_base[k] + i]) after -= graph->storages.items[node->inputs[i]].bytes;
    if (live) live[k] = during;
    if (during > peak) peak = during;
    held = after;
  }
  return peak;
}

double runs_cost(const PlanGraph *graph, const int32_t *runs, int64_t count) {
  double cost = 0;
  for (int64_t k = 0; k < count; k++) cost += graph->nodes.items[runs[k]].cost;
  return cost;
}

static void push_free(MemoryArena *arena, Plan *plan, int32_t storage) {
  array_push(arena, &plan->steps, ((PlanStep){.kind = PLAN_FREE, .target = storage}));
}

static bool is_host(const PlanStep *step, int32_t storage) {
  for (int32_t i = 0; i < step->into_count; i++)
    if (step->into[i].host == storage) return true;
  return false;
}

static bool is_placed(const PlanStep *step, int32_t output) {
  for (int32_t i = 0; i < step->into_count; i++)
    if (step->into[i].output == output) return true;
  return false;
}

static void push_run(MemoryArena *arena, Plan *plan, const PlanGraph *graph, const RunUses *uses, const int32_t *runs,
                     int64_t k) {
  const PlanNode *node = &graph->nodes.items[runs[k]];
  PlanStep step = {.kind = PLAN_RUN, .target = runs[k]};
  step.into = NEW_ARRAY(arena, PlanInplace, node->output_count);
  step.into_count = run_inplace(graph, uses, runs, k, step.into);
  step.drops = NEW_ARRAY(arena, int32_t, node->output_count);
  for (int32_t o = 0; o < node->output_count; o++) {
    bool wanted = uses->output_used[uses->output_base[k] + o];
    if (!uses->first[k] && !wanted && !is_placed(&step, node->outputs[o]))
      step.drops[step.drop_count++] = node->outputs[o];
  }
  array_push(arena, &plan->steps, step);
  for (int32_t i = 0; i < node->input_count; i++)
    if (uses->input_ends[uses->input_base[k] + i] && !is_host(&step, node->inputs[i]))
      push_free(arena, plan, node->inputs[i]);
  for (int32_t o = 0; o < node->output_count; o++) {
    bool wanted = uses->output_used[uses->output_base[k] + o];
    if (!wanted && (uses->first[k] || is_placed(&step, node->outputs[o]))) push_free(arena, plan, node->outputs[o]);
  }
}

Plan *plan_from_runs(MemoryArena *arena, const PlanGraph *graph, const int32_t *runs, int64_t count) {
  Plan *plan = NEW(arena, Plan);
  RunUses uses = run_uses(arena, graph, runs, count);
  for (int64_t k = 0; k < count; k++) push_run(arena, plan, graph, &uses, runs, k);
  Replay *replay = replay_plan(arena, graph, plan);
  if (replay->faults.count) die("a run sequence breaks the counting rules: %s", replay->faults.items[0]);
  plan->peak = replay->peak;
  plan->cost = replay->cost;
  plan->base_cost = plan->lower_bound = graph->base_cost;
  plan->scope = PLAN_SCOPE_ANY;
  plan->status = plan_status_of(plan->cost, plan->base_cost);
  memcpy(plan->anatomy, replay->anatomy, sizeof plan->anatomy);
  return plan;
}

Plan *plan_keep_all(MemoryArena *arena, const PlanGraph *graph) {
  int32_t *runs = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  for (int32_t n = 0; n < graph->nodes.count; n++) runs[n] = n;
  return plan_from_runs(arena, graph, runs, graph->nodes.count);
}

RunList plan_runs(MemoryArena *arena, const Plan *plan) {
  RunList runs = {0};
  for (int64_t i = 0; i < plan->steps.count; i++)
    if (plan->steps.items[i].kind == PLAN_RUN) array_push(arena, &runs, plan->steps.items[i].target);
  return runs;
}

/* ---- decisions ---- */

static bool step_drops(const PlanStep *step, int32_t storage) {
  for (int32_t i = 0; i < step->drop_count; i++)
    if (step->drops[i] == storage) return true;
  return false;
}

/* How often each storage was made and kept (drops do not count), and whether it is live between the last node before
 * the first stage and whatever runs next. */
static void count_makings(const PlanGraph *graph, const Plan *plan, int32_t *made, bool *live) {
  bool forward = true, last_ran = graph->first_stage == 0;
  for (int64_t i = 0; i < plan->steps.count; i++) {
    const PlanStep *step = &plan->steps.items[i];
    if (step->kind == PLAN_FREE) {
      if (forward) live[step->target] = false;
      continue;
    }
    const PlanNode *node = &graph->nodes.items[step->target];
    forward = forward && !last_ran;
    last_ran = last_ran || step->target == graph->first_stage - 1;
    for (int32_t p = 0; p < step->into_count && forward; p++) live[step->into[p].host] = false;
    for (int32_t o = 0; o < node->output_count; o++) {
      int32_t output = node->outputs[o];
      if (step_drops(step, output)) continue;
      made[output]++;
      if (forward) live[output] = true;
    }
  }
}

DecisionList plan_decisions(MemoryArena *arena, const PlanGraph *graph, const Plan *plan) {
  int32_t *made = NEW_ARRAY(arena, int32_t, graph->storages.count);
  int32_t *ran = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  count_makings(graph, plan, made, NEW_ARRAY(arena, bool, graph->storages.count));
  for (int64_t i = 0; i < plan->steps.count; i++)
    if (plan->steps.items[i].kind == PLAN_RUN) ran[plan->steps.items[i].target]++;
  DecisionList list = {0};
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    if (storage->persistent || storage->producer >= graph->first_stage || !plan_graph_read_by_stages(graph, s))
      continue;
    StorageDecision decision = {.storage = s, .kept = made[s] == 1, .times_run = ran[storage->producer]};
    array_push(arena, &list, decision);
  }
  return list;
}

bool plan_obeys_decisions(MemoryArena *scratch, const PlanGraph *graph, const Plan *plan, int32_t *storage) {
  int32_t *made = NEW_ARRAY(scratch, int32_t, graph->storages.count);
  bool *live = NEW_ARRAY(scratch, bool, graph->storages.count);
  count_makings(graph, plan, made, live);
  for (int32_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *what = &graph->storages.items[s];
    bool broken = (what->decision == PLAN_KEEP && made[s] > 1) ||
                  (what->decision == PLAN_RECOMPUTE && what->producer < graph->first_stage && !what->result &&
                   plan_graph_read_by_stages(graph, s) && live[s]);
    if (!broken) continue;
    *storage = s;
    return false;
  }
  return true;
}
