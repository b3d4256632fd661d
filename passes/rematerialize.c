/* passes/rematerialize.c - stating the planning problem of a graph, and turning a plan into a graph with clones. */
#include "passes/rematerialize.h"

#include "passes/facts.h"

/* ---- the problem ---- */

static const PlanRole roles[STORAGE_CLASS_COUNT] = {
    [STORAGE_WEIGHT] = PLAN_ROLE_WEIGHTS,
    [STORAGE_GRADIENT] = PLAN_ROLE_GRADIENTS,
    [STORAGE_OPTIMIZER] = PLAN_ROLE_OPTIMIZER_STATE,
    [STORAGE_ACTIVATION] = PLAN_ROLE_ACTIVATIONS,
    [STORAGE_TEMPORARY] = PLAN_ROLE_TEMPORARIES,
    [STORAGE_WORKSPACE] = PLAN_ROLE_WORKSPACE,
    [STORAGE_INPUT] = PLAN_ROLE_INPUTS,
};

static const PlanDecision decisions[] = {
    [CONSTRAINT_NONE] = PLAN_FREE_CHOICE, [CONSTRAINT_KEEP] = PLAN_KEEP, [CONSTRAINT_RECOMPUTE] = PLAN_RECOMPUTE};

static const PlanPhase phases[] = {
    [PHASE_FORWARD] = PLAN_PHASE_FORWARD, [PHASE_BACKWARD] = PLAN_PHASE_BACKWARD, [PHASE_UPDATE] = PLAN_PHASE_UPDATE};

typedef struct ProblemBuilder {
  const Graph *graph;
  const StorageTable *table;
  MemoryArena *arena;
  PlanningProblem *problem;
  int32_t *plan_storage; /* per storage of the table: its number in the plan graph, -1 before it is added */
  int64_t next_pair;     /* into table->inplace, which is in node order; found by search for reordered nodes */
  int32_t micro_step;    /* see add_micro_step(); -1: none */
} ProblemBuilder;

static void add_persistents(ProblemBuilder *b) {
  for (int64_t s = 0; s < b->table->storages.count; s++) {
    const Storage *storage = &b->table->storages.items[s];
    b->plan_storage[s] = -1;
    if (!storage->persistent) continue;
    b->plan_storage[s] =
        plan_graph_add_tensor(b->problem->plan_graph, storage->name, storage->bytes, roles[storage->class]);
    b->problem->storages[b->plan_storage[s]] = (int)s;
  }
}

/* With accumulation the updates are a program of their own, so nothing of the micro-step may run again behind the first
 * of them. To the planner that is a tensor without bytes that every forward node reads and the first update overwrites.
 */
static void add_micro_step(ProblemBuilder *b) {
  b->micro_step = -1;
  if (b->graph->module->training.accumulate <= 1) return;
  b->micro_step = plan_graph_add_tensor(b->problem->plan_graph, "micro-step", 0, PLAN_ROLE_TEMPORARIES);
  b->problem->storages[b->micro_step] = -1;
}

static void mark_micro_step(ProblemBuilder *b, PlanNode *plan_node) {
  if (b->micro_step < 0) return;
  if (plan_node->recompute) plan_node->inputs[plan_node->input_count++] = b->micro_step;
  if (plan_node->phase != PLAN_PHASE_UPDATE) return;
  plan_node->writes[plan_node->write_count++] = b->micro_step;
  b->micro_step = -1;
}

/* Storages of some values, each once, in order; NO_VALUE is skipped. */
static int32_t *storages_of(ProblemBuilder *b, int count, const ValueId *values, int32_t *result_count) {
  int32_t *result = NEW_ARRAY(b->arena, int32_t, count + 1); /* one more may be added */
  *result_count = 0;
  for (int i = 0; i < count; i++) {
    if (values[i] == NO_VALUE) continue;
    int32_t storage = b->plan_storage[b->table->layouts[values[i]].storage], at = 0;
    while (at < *result_count && result[at] != storage) at++;
    if (at == *result_count) result[(*result_count)++] = storage;
  }
  return result;
}

static void add_node(ProblemBuilder *b, NodeId id, double cost) {
  const Node *node = graph_node(b->graph, id);
  PlanGraph *plan_graph = b->problem->plan_graph;
  PlanNode plan_node = {
      .id = memory_format(b->arena, "n%lld.%s", (long long)plan_graph->nodes.count, op_info(node->op)->name),
      .cost = cost,
      .workspace = node->workspace,
      .phase = phases[node->phase],
      .op = op_info(node->op)->name,
      .module = node->module,
      .source = location_text(b->arena, node->location)};
  plan_node.recompute = node->phase == PHASE_FORWARD && node->write_count == 0;
  plan_node.inputs = storages_of(b, node->input_count, node->inputs, &plan_node.input_count);
  plan_node.writes = storages_of(b, node->write_count, node->writes, &plan_node.write_count);
  mark_micro_step(b, &plan_node);
  int32_t number = plan_graph_add_node(plan_graph, &plan_node);
  b->problem->nodes[number] = id;
  for (int i = 0; i < node->output_count; i++) {
    int s = b->table->layouts[node->outputs[i]].storage;
    const Storage *storage = &b->table->storages.items[s];
    if (storage->root != node->outputs[i]) continue; /* it shares the storage of an output before it */
    int32_t added =
        plan_graph_add_output(plan_graph, number, storage->name, storage->bytes, decisions[storage->constraint]);
    b->plan_storage[s] = added;
    b->problem->storages[added] = s;
    plan_graph->storages.items[added].role = roles[storage->class];
    if (storage->result) plan_graph_add_result(plan_graph, added);
  }
}

static void add_pairs(ProblemBuilder *b, const int32_t *plan_node) {
  for (int64_t i = 0; i < b->table->inplace.count; i++) {
    const InplacePair *pair = &b->table->inplace.items[i];
    plan_graph_add_inplace(b->problem->plan_graph, plan_node[pair->node], b->plan_storage[pair->host],
                           b->plan_storage[pair->output]);
  }
}

PlanningProblem *state_problem(const Graph *graph, const StorageTable *table, const Schedule *schedule,
                               const double *costs, MemoryArena *arena) {
  ProblemBuilder b = {.graph = graph, .table = table, .arena = arena, .problem = NEW(arena, PlanningProblem)};
  b.problem->plan_graph = plan_graph_create(arena, table->alignment);
  b.problem->plan_graph->name = graph->module->name;
  b.problem->plan_graph->cost_unit = "us";
  b.problem->nodes = NEW_ARRAY(arena, NodeId, graph->nodes.count + 1);
  b.problem->storages = NEW_ARRAY(arena, int, table->storages.count + 2);
  b.plan_storage = NEW_ARRAY(arena, int32_t, table->storages.count + 1);
  int32_t *plan_node = NEW_ARRAY(arena, int32_t, graph->nodes.count + 1);
  add_persistents(&b);
  add_micro_step(&b);
  for (int64_t i = 0; i < schedule->steps.count; i++) {
    const Step *step = &schedule->steps.items[i];
    if (!step->run) continue;
    plan_node[step->node] = (int32_t)b.problem->plan_graph->nodes.count;
    add_node(&b, step->node, costs[step->node]);
  }
  add_pairs(&b, plan_node);
  plan_graph_finish(b.problem->plan_graph);
  return b.problem;
}

/* ---- clones ---- */

/* A step of the new schedule while storages of the new graph are not known yet: they are named by a value in them. */
typedef struct PendingStep {
  bool run;
  NodeId node;
  ValueId value;
  int into_count;
  ValueId into_outputs[MAX_OP_OUTPUTS], into_hosts[MAX_OP_OUTPUTS];
} PendingStep;

typedef struct CloneBuilder {
  const Graph *old;
  const StorageTable *table;
  const PlanningProblem *problem;
  MemoryArena *arena;
  Graph *graph;
  ValueId *current;   /* per value of the old graph: what stands for it now, NO_VALUE: a view to be made anew */
  NodeId *copies;     /* per node of the old graph: its first run in the new one, or NO_NODE */
  NodeId *first_view; /* per value of the old graph: first view node that reads it, or NO_NODE */
  NodeId *next_view;  /* per node: next view of the same value */
  ValueIds *members;  /* per storage of the table: the values in it that are views */
  ARRAY(PendingStep) steps;
} CloneBuilder;

static Graph *copy_graph(const Graph *old, MemoryArena *arena) {
  Graph *graph = NEW(arena, Graph);
  *graph = *old;
  memset(&graph->nodes, 0, sizeof graph->nodes);
  graph->values.items = NEW_ARRAY(arena, Value, old->values.capacity);
  memcpy(graph->values.items, old->values.items, (size_t)old->values.count * sizeof(Value));
  return graph;
}

/* Lists views by what they read, and the views of each storage. */
static void index_views(CloneBuilder *b) {
  const Graph *old = b->old;
  for (int64_t v = 0; v < old->values.count; v++) b->current[v] = (ValueId)v, b->first_view[v] = NO_NODE;
  for (int64_t id = old->nodes.count - 1; id >= 0; id--) {
    const Node *node = graph_node(old, (NodeId)id);
    b->copies[id] = NO_NODE;
    if (op_kind(node->op) != KIND_VIEW) continue;
    b->next_view[id] = b->first_view[node->inputs[0]];
    b->first_view[node->inputs[0]] = (NodeId)id;
    array_push(b->arena, &b->members[b->table->layouts[node->outputs[0]].storage], node->outputs[0]);
  }
}

static NodeId append_copy(CloneBuilder *b, Node node) {
  ValueId *inputs = NEW_ARRAY(b->arena, ValueId, node.input_count + 1);
  for (int i = 0; i < node.input_count; i++)
    inputs[i] = node.inputs[i] == NO_VALUE ? NO_VALUE : b->current[node.inputs[i]];
  node.inputs = inputs;
  return graph_append(b->graph, node);
}

/* The views of a value as they were, right behind it, views of views included. */
static void append_views(CloneBuilder *b, ValueId root) {
  ARRAY(ValueId) waiting = {0};
  array_push(b->arena, &waiting, root);
  for (int64_t i = 0; i < waiting.count; i++)
    for (NodeId id = b->first_view[waiting.items[i]]; id != NO_NODE; id = b->next_view[id]) {
      b->copies[id] = append_copy(b, *graph_node(b->old, id));
      array_push(b->arena, &waiting, graph_node(b->old, id)->outputs[0]);
    }
}

static ValueId copy_value(CloneBuilder *b, ValueId old) {
  Value value = b->old->values.items[old];
  array_push(b->arena, &b->graph->values, value);
  return (ValueId)(b->graph->values.count - 1);
}

/* Makes sure that current[] of a value stands for the live instance: rebuilds the chain of views down from it. */
static void refresh(CloneBuilder *b, ValueId value) {
  ARRAY(ValueId) chain = {0};
  for (ValueId v = value; b->current[v] == NO_VALUE;
       v = graph_node(b->old, graph_value(b->old, v)->producer)->inputs[0])
    array_push(b->arena, &chain, v);
  while (chain.count) {
    ValueId v = chain.items[--chain.count];
    NodeId original = graph_value(b->old, v)->producer;
    Node view = *graph_node(b->old, original);
    ValueId *output = NEW(b->arena, ValueId);
    *output = copy_value(b, v);
    view.outputs = output;
    view.original = b->copies[original];
    append_copy(b, view);
    b->current[v] = *output;
  }
}

static void refresh_inputs(CloneBuilder *b, const Node *node) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != NO_VALUE) refresh(b, node->inputs[i]);
}

/* A further run: new outputs; those that are wanted take the place of the old ones, and their views are made anew when
 * read. */
static NodeId append_clone(CloneBuilder *b, NodeId id, const PlanStep *step) {
  Node clone = *graph_node(b->old, id);
  clone.original = b->copies[id];
  ValueId *outputs = NEW_ARRAY(b->arena, ValueId, clone.output_count + 1);
  for (int i = 0; i < clone.output_count; i++) outputs[i] = copy_value(b, clone.outputs[i]);
  const ValueId *old_outputs = clone.outputs;
  clone.outputs = outputs;
  NodeId copy = append_copy(b, clone);
  for (int i = 0; i < clone.output_count; i++) {
    int storage = b->table->layouts[old_outputs[i]].storage;
    bool dropped = false;
    for (int d = 0; d < step->drop_count; d++) dropped = dropped || b->problem->storages[step->drops[d]] == storage;
    if (dropped) continue;
    b->current[old_outputs[i]] = outputs[i];
    for (int64_t m = 0; m < b->members[storage].count; m++) b->current[b->members[storage].items[m]] = NO_VALUE;
  }
  return copy;
}

static ValueId root_of(const CloneBuilder *b, int32_t plan_storage) {
  return b->table->storages.items[b->problem->storages[plan_storage]].root;
}

/* The output of the node, in the new graph, that an output storage of the plan means for this run. */
static ValueId output_in(const CloneBuilder *b, NodeId old, NodeId new, int32_t plan_storage) {
  const Node *node = graph_node(b->old, old);
  for (int i = 0; i < node->output_count; i++)
    if (b->table->layouts[node->outputs[i]].storage == b->problem->storages[plan_storage])
      return graph_node(b->graph, new)->outputs[i];
  die("plan: storage %d is no output of its node", plan_storage);
}

static void run_step(CloneBuilder *b, const PlanStep *step) {
  NodeId id = b->problem->nodes[step->target];
  Node node = *graph_node(b->old, id);
  PendingStep pending = {.run = true, .into_count = step->into_count};
  refresh_inputs(b, &node);
  for (int i = 0; i < step->into_count; i++) pending.into_hosts[i] = b->current[root_of(b, step->into[i].host)];
  bool first = b->copies[id] == NO_NODE;
  pending.node = first ? (b->copies[id] = append_copy(b, node)) : append_clone(b, id, step);
  for (int i = 0; first && i < node.output_count; i++) append_views(b, node.outputs[i]);
  for (int i = 0; i < step->into_count; i++)
    pending.into_outputs[i] = output_in(b, id, pending.node, step->into[i].output);
  array_push(b->arena, &b->steps, pending);
  for (int d = 0; d < step->drop_count; d++) {
    PendingStep dropped = {.value = output_in(b, id, pending.node, step->drops[d])};
    array_push(b->arena, &b->steps, dropped);
  }
}

static Schedule *finish_schedule(CloneBuilder *b, const StorageTable *table) {
  Schedule *schedule = NEW(b->arena, Schedule);
  for (int64_t i = 0; i < b->steps.count; i++) {
    const PendingStep *pending = &b->steps.items[i];
    Step step = {.run = pending->run, .node = pending->node, .into_count = pending->into_count};
    if (!step.run) step.storage = table->layouts[pending->value].storage;
    for (int k = 0; k < step.into_count; k++) {
      step.into_outputs[k] = table->layouts[pending->into_outputs[k]].storage;
      step.into_hosts[k] = table->layouts[pending->into_hosts[k]].storage;
    }
    array_push(b->arena, &schedule->steps, step);
  }
  return schedule;
}

/* Storages keep their classes, so that the anatomy of a plan is that of its program. */
static void keep_classes(const CloneBuilder *b, const StorageTable *table) {
  for (NodeId id = 0; id < b->old->nodes.count; id++) {
    const Node *old = graph_node(b->old, id);
    if (b->copies[id] == NO_NODE || node_is_view(old)) continue;
    const Node *copy = graph_node(b->graph, b->copies[id]);
    for (int i = 0; i < old->output_count; i++)
      table->storages.items[table->layouts[copy->outputs[i]].storage].class =
          b->table->storages.items[b->table->layouts[old->outputs[i]].storage].class;
  }
  for (NodeId id = 0; id < b->graph->nodes.count; id++) {
    const Node *clone = graph_node(b->graph, id);
    if (clone->original == NO_NODE || node_is_view(clone)) continue;
    const Node *first = graph_node(b->graph, clone->original);
    for (int i = 0; i < clone->output_count; i++)
      table->storages.items[table->layouts[clone->outputs[i]].storage].class =
          table->storages.items[table->layouts[first->outputs[i]].storage].class;
  }
}

/* Logged scalars are read when the step has ended, from the instance that is live then. */
static void rename_result(CloneBuilder *b, ValueId *value) {
  if (*value == NO_VALUE || value_type(b->old, *value)->rank > 0) return;
  refresh(b, *value);
  *value = b->current[*value];
}

static void rename_results(CloneBuilder *b) {
  Graph *graph = b->graph;
  rename_result(b, &graph->loss.value);
  rename_result(b, &graph->loss.denominator);
  memset(&graph->outputs, 0, sizeof graph->outputs);
  for (int64_t i = 0; i < b->old->outputs.count; i++) {
    GraphOutput output = b->old->outputs.items[i];
    bool scalar = value_type(b->old, output.value)->rank == 0;
    rename_result(b, &output.value);
    if (scalar) rename_result(b, &output.denominator);
    array_push(b->arena, &graph->outputs, output);
  }
}

CompiledGraph insert_clones(const Graph *old, const StorageTable *table, const PlanningProblem *problem,
                            const Plan *plan, MemoryArena *arena) {
  CloneBuilder b = {.old = old, .table = table, .problem = problem, .arena = arena, .graph = copy_graph(old, arena)};
  b.current = NEW_ARRAY(arena, ValueId, old->values.count + 1);
  b.copies = NEW_ARRAY(arena, NodeId, old->nodes.count + 1);
  b.first_view = NEW_ARRAY(arena, NodeId, old->values.count + 1);
  b.next_view = NEW_ARRAY(arena, NodeId, old->nodes.count + 1);
  b.members = NEW_ARRAY(arena, ValueIds, table->storages.count + 1);
  index_views(&b);
  for (int64_t v = 0; v < old->values.count; v++)
    if (old->values.items[v].kind != VALUE_RESULT) append_views(&b, (ValueId)v);
  for (int64_t i = 0; i < plan->steps.count; i++) {
    const PlanStep *step = &plan->steps.items[i];
    if (step->kind == PLAN_RUN) {
      run_step(&b, step);
    } else {
      PendingStep freed = {.value = b.current[root_of(&b, step->target)]};
      array_push(arena, &b.steps, freed);
    }
  }
  rename_results(&b);
  CompiledGraph result = {.graph = b.graph};
  result.table = assign_storages_like(b.graph, table, arena);
  keep_classes(&b, result.table);
  result.schedule = finish_schedule(&b, result.table);
  const char *fault = replay_schedule(b.graph, result.table, result.schedule, NULL, arena);
  if (fault) die("the schedule with clones breaks the counting rules: %s", fault);
  if (result.schedule->live_peak != plan->peak)
    die("the schedule with clones peaks at %lld bytes, its plan at %lld", (long long)result.schedule->live_peak,
        (long long)plan->peak);
  return result;
}
