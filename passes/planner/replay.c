/* passes/planner/replay.c - executes a plan by the counting rules and lists everything that breaks them. */
#include "passes/planner/replay.h"

#include <math.h>

typedef struct State {
  MemoryArena *arena;
  const PlanGraph *graph;
  Replay *replay;
  bool *live;
  int64_t held; /* bytes of everything live */
  int64_t step;
  int64_t snapshot; /* the step whose anatomy is wanted, -1 for none */
} State;

static void fault(State *state, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault(State *state, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = memory_format_list(state->arena, format, arguments);
  va_end(arguments);
  if (state->step >= 0) message = memory_format(state->arena, "step %lld: %s", (long long)state->step, message);
  array_push(state->arena, &state->replay->faults, message);
}

static const PlanStorage *storage_at(const State *state, int32_t storage) {
  return &state->graph->storages.items[storage];
}

static bool lists(const int32_t *items, int32_t count, int32_t value) {
  for (int32_t i = 0; i < count; i++)
    if (items[i] == value) return true;
  return false;
}

static void replay_free(State *state, int32_t storage) {
  const PlanStorage *what = storage_at(state, storage);
  if (what->persistent) {
    fault(state, "frees \"%s\", which is persistent", what->id);
  } else if (!state->live[storage]) {
    fault(state, "frees \"%s\", which is not live", what->id);
  } else {
    state->live[storage] = false;
    state->held -= what->bytes;
  }
}

/* A node by name, with its place in the source where the graph says it. */
static const char *describe_node(const State *state, const PlanNode *node) {
  bool placed = node->source && node->source[0];
  return placed ? memory_format(state->arena, "\"%s\" (%s)", node->id, node->source)
                : memory_format(state->arena, "\"%s\"", node->id);
}

/* Inputs are live and as they were before any later node of the graph wrote them. */
static void check_reads(State *state, int32_t index) {
  const PlanNode *node = &state->graph->nodes.items[index];
  for (int32_t i = 0; i < node->input_count; i++) {
    const PlanStorage *input = storage_at(state, node->inputs[i]);
    if (!state->live[node->inputs[i]])
      fault(state, "%s reads \"%s\", which is not live", describe_node(state, node), input->id);
    for (int32_t w = 0; w < input->writer_count; w++)
      if (input->writers[w] > index && state->replay->runs[input->writers[w]] > 0)
        fault(state, "%s must see \"%s\" as it was before %s wrote it", describe_node(state, node), input->id,
              describe_node(state, &state->graph->nodes.items[input->writers[w]]));
  }
}

static void check_writes(State *state, int32_t index) {
  const PlanNode *node = &state->graph->nodes.items[index];
  for (int32_t i = 0; i < node->write_count; i++) {
    const PlanStorage *written = storage_at(state, node->writes[i]);
    for (int32_t r = 0; r < written->reader_count; r++)
      if (written->readers[r] < index && state->replay->runs[written->readers[r]] == 0)
        fault(state, "\"%s\" writes \"%s\" before \"%s\" has read it", node->id, written->id,
              state->graph->nodes.items[written->readers[r]].id);
  }
}

static bool permitted(const PlanNode *node, PlanInplace pair) {
  for (int32_t i = 0; i < node->inplace_count; i++)
    if (node->inplace[i].host == pair.host && node->inplace[i].output == pair.output) return true;
  return false;
}

static int32_t host_of(const PlanStep *step, int32_t output) {
  for (int32_t i = 0; i < step->into_count; i++)
    if (step->into[i].output == output) return step->into[i].host;
  return -1;
}

/* Tries to place an output into its host; on success the host is gone when the node ends. */
static bool take_host(State *state, const PlanNode *node, PlanInplace pair, int32_t *gone, int32_t gone_count) {
  const PlanStorage *host = storage_at(state, pair.host), *output = storage_at(state, pair.output);
  if (!permitted(node, pair)) {
    fault(state, "\"%s\" may not put \"%s\" into \"%s\"", node->id, output->id, host->id);
  } else if (!lists(node->inputs, node->input_count, pair.host) || host->persistent || !state->live[pair.host] ||
             lists(gone, gone_count, pair.host) || host->bytes != output->bytes) {
    fault(state, "\"%s\" cannot take the bytes of \"%s\"", output->id, host->id);
  } else {
    gone[gone_count] = pair.host;
    return true;
  }
  return false;
}

static void note_peak(State *state, int64_t now) {
  Replay *replay = state->replay;
  replay->live[state->step] = now;
  if (now < replay->peak || (now == replay->peak && replay->peak_step >= 0)) return;
  replay->peak = now;
  replay->peak_step = state->step;
}

/* The bytes of this moment by role. */
static void take_anatomy(const State *state, const PlanStep *step, int64_t scratch, const int32_t *gone,
                         int32_t gone_count) {
  Replay *replay = state->replay;
  memset(replay->anatomy, 0, sizeof replay->anatomy);
  for (int32_t s = 0; s < state->graph->storages.count; s++) {
    replay->live_at_peak[s] = state->live[s];
    if (state->live[s]) replay->anatomy[storage_at(state, s)->role] += storage_at(state, s)->bytes;
  }
  const PlanNode *node = &state->graph->nodes.items[step->target];
  for (int32_t o = 0; o < node->output_count; o++) {
    int32_t output = node->outputs[o], host = host_of(step, output);
    if (lists(step->drops, step->drop_count, output) || state->live[output]) continue;
    replay->live_at_peak[output] = true;
    if (host < 0 || !lists(gone, gone_count, host))
      replay->anatomy[storage_at(state, output)->role] += storage_at(state, output)->bytes;
  }
  replay->anatomy[PLAN_ROLE_WORKSPACE] += scratch;
}

static void replay_run(State *state, const PlanStep *step) {
  const PlanNode *node = &state->graph->nodes.items[step->target];
  bool again = state->replay->runs[step->target] > 0;
  if (again && !node->recompute) fault(state, "runs \"%s\" again, which may run only once", node->id);
  if (step->drop_count && !again) fault(state, "\"%s\" drops outputs on its first run", node->id);
  check_reads(state, step->target);
  check_writes(state, step->target);
  int64_t scratch = node->workspace, made = 0;
  int32_t gone_count = 0, *gone = NEW_ARRAY(state->arena, int32_t, node->output_count);
  for (int32_t o = 0; o < node->output_count; o++) {
    int32_t output = node->outputs[o], host = host_of(step, output);
    if (lists(step->drops, step->drop_count, output)) {
      scratch += storage_at(state, output)->bytes;
    } else if (state->live[output]) {
      fault(state, "\"%s\" makes \"%s\", which is live (free it first, or drop it)", node->id,
            storage_at(state, output)->id);
    } else if (host >= 0 && take_host(state, node, (PlanInplace){host, output}, gone, gone_count)) {
      gone_count++;
    } else {
      made += storage_at(state, output)->bytes;
    }
  }
  for (int32_t d = 0; d < step->drop_count; d++)
    if (!lists(node->outputs, node->output_count, step->drops[d]))
      fault(state, "\"%s\" drops \"%s\", which is not its output", node->id, storage_at(state, step->drops[d])->id);
  for (int32_t i = 0; i < step->into_count; i++)
    if (!lists(node->outputs, node->output_count, step->into[i].output))
      fault(state, "\"%s\" places \"%s\", which is not its output", node->id,
            storage_at(state, step->into[i].output)->id);
  note_peak(state, state->held + made + scratch);
  if (state->step == state->snapshot) take_anatomy(state, step, scratch, gone, gone_count);
  for (int32_t i = 0; i < gone_count; i++) replay_free(state, gone[i]);
  for (int32_t o = 0; o < node->output_count; o++) {
    int32_t output = node->outputs[o];
    if (lists(step->drops, step->drop_count, output) || state->live[output]) continue;
    state->live[output] = true;
    state->held += storage_at(state, output)->bytes;
  }
  state->replay->runs[step->target]++;
  state->replay->cost += node->cost;
}

static void check_end(State *state) {
  state->step = -1;
  for (int32_t s = 0; s < state->graph->storages.count; s++) {
    const PlanStorage *storage = storage_at(state, s);
    if (storage->result && !state->live[s]) fault(state, "end: result \"%s\" is not live", storage->id);
    if (!storage->result && !storage->persistent && state->live[s])
      fault(state, "end: \"%s\" was never freed", storage->id);
  }
  for (int64_t n = 0; n < state->graph->nodes.count; n++)
    if (!state->replay->runs[n]) fault(state, "end: node \"%s\" never ran", state->graph->nodes.items[n].id);
}

static void run_steps(State *state, const Plan *plan, int64_t count) {
  const PlanGraph *graph = state->graph;
  Replay *replay = state->replay;
  replay->peak = state->held = graph->persistent_bytes;
  replay->peak_step = -1;
  for (int64_t s = 0; s < graph->storages.count; s++) {
    const PlanStorage *storage = &graph->storages.items[s];
    state->live[s] = replay->live_at_peak[s] = storage->persistent;
    if (storage->persistent) replay->anatomy[storage->role] += storage->bytes;
  }
  for (state->step = 0; state->step < count; state->step++) {
    const PlanStep *step = &plan->steps.items[state->step];
    if (step->kind == PLAN_RUN) {
      replay_run(state, step);
    } else {
      replay_free(state, step->target);
      replay->live[state->step] = state->held;
    }
  }
}

static Replay *create_replay(MemoryArena *arena, const PlanGraph *graph, const Plan *plan) {
  Replay *replay = NEW(arena, Replay);
  replay->runs = NEW_ARRAY(arena, int32_t, graph->nodes.count);
  replay->live = NEW_ARRAY(arena, int64_t, plan->steps.count);
  replay->live_at_peak = NEW_ARRAY(arena, bool, graph->storages.count);
  return replay;
}

Replay *replay_plan(MemoryArena *arena, const PlanGraph *graph, const Plan *plan) {
  Replay *replay = create_replay(arena, graph, plan);
  State state = {.arena = arena, .graph = graph, .replay = replay, .snapshot = -1};
  state.live = NEW_ARRAY(arena, bool, graph->storages.count);
  run_steps(&state, plan, plan->steps.count);
  check_end(&state);
  /* The anatomy is that of the first moment of the peak, which is known only now: a second run up to it. */
  State again = state;
  again.replay = create_replay(arena, graph, plan);
  again.snapshot = replay->peak_step;
  run_steps(&again, plan, replay->peak_step + 1);
  memcpy(replay->anatomy, again.replay->anatomy, sizeof replay->anatomy);
  replay->live_at_peak = again.replay->live_at_peak;
  return replay;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(1.0, fabs(b)); }

void replay_check_claims(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, Replay *replay) {
  State state = {.arena = arena, .graph = graph, .replay = replay, .step = -1};
  if (!near((double)plan->peak, (double)replay->peak))
    fault(&state, "plan: claims peak %lld, replay finds %lld", (long long)plan->peak, (long long)replay->peak);
  if (!near(plan->cost, replay->cost))
    fault(&state, "plan: claims cost %.17g, replay finds %.17g", plan->cost, replay->cost);
  if (!near(plan->base_cost, graph->base_cost))
    fault(&state, "plan: claims base_cost %.17g, replay finds %.17g", plan->base_cost, graph->base_cost);
  if (!isfinite(plan->lower_bound) || plan->lower_bound > replay->cost + 1e-6 * fmax(1.0, replay->cost))
    fault(&state, "plan: lower_bound %.17g is above its own cost %.17g", plan->lower_bound, replay->cost);
  else if (plan->status == PLAN_STATUS_OPTIMAL && !near(plan->lower_bound, replay->cost))
    fault(&state, "plan: says optimal, but its bound is %.17g and its cost %.17g", plan->lower_bound, replay->cost);
  if (plan->budget && replay->peak > plan->budget)
    fault(&state, "peak %lld exceeds the budget %lld by %lld", (long long)replay->peak, (long long)plan->budget,
          (long long)(replay->peak - plan->budget));
}
