/* tests/planner/replay_samples.c - prints random graphs with random plans, many of them broken, and the replay's
 * verdict. */
#include "passes/planner/json_text.h"
#include "passes/planner/replay.h"
#include "passes/planner/retain.h"
#include "tests/planner/sample_graphs.h"

static Plan *random_plan(MemoryArena *arena, const PlanGraph *graph, uint64_t *random) {
  bool *kept = retain_all(arena, graph);
  for (int32_t s = 0; s < graph->storages.count; s++)
    if (retain_is_choice(graph, s)) kept[s] = random_below(random, 2);
  int32_t storage;
  RunList runs = retain_runs(arena, graph, kept, &storage);
  return plan_from_runs(arena, graph, runs.items, runs.count);
}

/* Removes, repeats, swaps or retargets a step. */
static void break_plan(MemoryArena *arena, const PlanGraph *graph, Plan *plan, uint64_t *random) {
  int64_t at = random_below(random, (int)plan->steps.count - 1);
  PlanStep *step = &plan->steps.items[at], next = plan->steps.items[at + 1];
  switch (random_below(random, 6)) {
    case 0:
      for (int64_t i = at; i + 1 < plan->steps.count; i++) plan->steps.items[i] = plan->steps.items[i + 1];
      plan->steps.count--;
      break;
    case 1:
      array_push(arena, &plan->steps, plan->steps.items[at]);
      break;
    case 2:
      plan->steps.items[at + 1] = *step;
      plan->steps.items[at] = next;
      break;
    case 3:
      step->target = random_below(random, (int)(step->kind == PLAN_RUN ? graph->nodes.count : graph->storages.count));
      break;
    case 4:
      step->into_count = 1;
      step->into = NEW(arena, PlanInplace);
      step->into->host = random_below(random, (int)graph->storages.count);
      step->into->output = random_below(random, (int)graph->storages.count);
      break;
    default:
      step->drop_count = 1;
      step->drops = NEW(arena, int32_t);
      *step->drops = random_below(random, (int)graph->storages.count);
  }
}

static void print_sample(MemoryArena *arena, const PlanGraph *graph, const Plan *plan) {
  Replay *replay = replay_plan(arena, graph, plan);
  char *text = plan_graph_text(arena, graph);
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = ' ';
  printf("{\"graph\": %s, \"plan\": %s, \"peak\": %lld, \"cost\": %.17g, \"faults\": %lld, \"runs\": {", text,
         plan_text(arena, graph, plan, true), (long long)replay->peak, replay->cost, (long long)replay->faults.count);
  for (int64_t n = 0; n < graph->nodes.count; n++)
    printf("%s\"%s\": %d", n ? ", " : "", graph->nodes.items[n].id, replay->runs[n]);
  JsonText first = {.arena = arena};
  json_text_string(&first, replay->faults.count ? replay->faults.items[0] : "");
  printf("}, \"first\": %s}\n", json_text_finish(&first));
}

int main(void) {
  uint64_t random = 1;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = random_graph(arena, seed, 2 + (int)(seed % 9));
    Plan *plan = random_plan(arena, graph, &random);
    for (int breaks = (int)(seed % 3); breaks > 0; breaks--) break_plan(arena, graph, plan, &random);
    print_sample(arena, graph, plan);
    memory_arena_destroy(arena);
  }
  return 0;
}
