/* passes/checkpoint.c - asks for a plan, inserts its clones, packs, and asks again when packing misses the budget. */
#include "passes/checkpoint.h"

#include "passes/planner/replay.h"

/* Keeping everything: the planner's plan of it and our own schedule are the same thing. */
static bool keeps_all(Checkpoint *checkpoint, const CompiledGraph *keep_all, int64_t budget) {
  checkpoint->packed = keep_all->map->arena_bytes;
  if (budget >= 0 && keep_all->map->arena_bytes > budget) return false;
  checkpoint->answer = (PlanAnswer){.plan = checkpoint->keep_all, .exit = EXIT_OK, .largest_impossible = -1};
  checkpoint->compiled = *keep_all;
  return true;
}

static Plan *read_incumbent(const PlanGraph *plan_graph, const char *path, MemoryArena *arena) {
  Plan *plan = plan_read(arena, plan_graph, path);
  if (!plan) return NULL;
  Replay *replay = replay_plan(arena, plan_graph, plan);
  if (!replay->faults.count) return plan;
  diag_error((Location){0}, "%s: not a plan of this graph: %s", path, replay->faults.items[0]);
  return NULL;
}

/* A map that misses the budget by more than this is not searched on: the planner is asked for less. */
static const double near_miss = 1.03;

/* Packs within the budget: quickly, and with all effort only where that may help. */
static MemoryMap *pack_plan(const CompiledGraph *compiled, int64_t budget, MemoryArena *arena) {
  MemoryMap *map = plan_memory(compiled->graph, compiled->table, compiled->schedule, budget, QUICK_EFFORT, arena);
  if (map->arena_bytes <= budget || (double)map->arena_bytes > near_miss * (double)budget) return map;
  return plan_memory(compiled->graph, compiled->table, compiled->schedule, budget, 0, arena);
}

/* Inserts and packs one plan; true when the arena holds the budget. */
static bool realize_plan(Checkpoint *checkpoint, const CompiledGraph *keep_all, int64_t budget, MemoryArena *arena) {
  CompiledGraph compiled =
      insert_clones(keep_all->graph, keep_all->table, checkpoint->problem, checkpoint->answer.plan, arena);
  compiled.map = pack_plan(&compiled, budget, arena);
  if (compiled.map->arena_bytes < checkpoint->packed) checkpoint->packed = compiled.map->arena_bytes;
  if (compiled.map->arena_bytes > budget) return false;
  checkpoint->compiled = compiled;
  return true;
}

/* budget · budget / arena, rounded down and smaller than what was asked before. */
static int64_t shrink(int64_t asked, int64_t budget, int64_t arena_bytes) {
  int64_t smaller = (int64_t)((double)asked * ((double)budget / (double)arena_bytes));
  return smaller < asked ? smaller : asked - 1;
}

Checkpoint *checkpoint_graph(const CompiledGraph *keep_all, const double *costs, int64_t wanted,
                             const CheckpointOptions *options, MemoryArena *arena) {
  Checkpoint *checkpoint = NEW(arena, Checkpoint);
  PlanRequest request = options->request;
  checkpoint->problem = state_problem(keep_all->graph, keep_all->table, keep_all->schedule, costs, arena);
  checkpoint->keep_all = plan_keep_all(arena, checkpoint->problem->plan_graph);
  checkpoint->asked = wanted;
  if (options->plan_input) {
    request.incumbent = read_incumbent(checkpoint->problem->plan_graph, options->plan_input, arena);
    if (!request.incumbent) return NULL;
  }
  int32_t unmet;
  bool free_choice = plan_obeys_decisions(arena, checkpoint->problem->plan_graph, checkpoint->keep_all, &unmet);
  if (free_choice && keeps_all(checkpoint, keep_all, wanted)) return checkpoint;
  checkpoint->packed = INT64_MAX;
  /* without a budget, what the source wants recomputed is still to be recomputed */
  int64_t budget = wanted >= 0 ? wanted : keep_all->map->arena_bytes;
  checkpoint->asked = budget;
  for (;; checkpoint->replans++) {
    request.budget = checkpoint->asked;
    checkpoint->answer = plan_request(arena, checkpoint->problem->plan_graph, &request);
    if (!checkpoint->answer.plan || realize_plan(checkpoint, keep_all, budget, arena)) return checkpoint;
    if (checkpoint->replans == MOST_REPLANS) return checkpoint;
    checkpoint->asked = shrink(checkpoint->asked, budget, checkpoint->packed);
  }
}
