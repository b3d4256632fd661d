#include "tests/examples/model_run.h"

enum { SOLVER_NODES = 10 };

static double *costs_of_cpu(void *context, const Graph *graph, const StorageTable *table, MemoryArena *arena) {
  const char *error = NULL;
  (void)context;
  return model_costs(graph, table, find_device(arena, "cpu", &error), arena);
}

static Module *elaborate_model(MemoryArena *arena, const char *path, const Definition *definitions, int count) {
  const char *error = NULL;
  Module *module = elaborate_path(arena, path, definitions, count, &error);
  if (error) fprintf(stderr, "%s\n", error);
  return module;
}

/* The compiler as the driver calls it for the cpu target; without `checkpoint` everything is kept. */
static Compilation *compile_for_tests(Module *module, int64_t budget, const CheckpointOptions *checkpoint) {
  PipelineOptions options = {.alignment = 64, .budget = budget, .checkpoint = checkpoint, .costs = costs_of_cpu};
  Compilation *compilation = module ? compile_module(module, &options) : NULL;
  diag_print(stderr, false);
  diag_reset();
  return compilation;
}

static ModelRun *prepare(MemoryArena *arena, Module *module, Compilation *compilation, EvalPrecision precision) {
  ModelRun *run = NEW(arena, ModelRun);
  if (!compilation) return NULL;
  *run = (ModelRun){.arena = arena, .module = module, .compilation = compilation};
  run->evaluation = eval_create(arena, run->module->train, precision);
  run->evaluation->control.micro_step = -1;
  eval_fill_initial(run->evaluation, run->module->training.seed);
  return run;
}

ModelRun *model_run_create(MemoryArena *arena, const char *path, const Definition *definitions, int definition_count,
                           EvalPrecision precision) {
  Module *module = elaborate_model(arena, path, definitions, definition_count);
  return prepare(arena, module, compile_for_tests(module, -1, NULL), precision);
}

ModelRun *model_run_create_within(MemoryArena *arena, const char *path, const Definition *definitions,
                                  int definition_count, EvalPrecision precision, int64_t budget) {
  CheckpointOptions options = {.request = {.strategy = PLAN_STRATEGY_ILP, .nodes = SOLVER_NODES}};
  Module *module = elaborate_model(arena, path, definitions, definition_count);
  Compilation *compilation = compile_for_tests(module, budget, &options);
  bool fits = compilation && compilation->checkpoint->compiled.graph;
  return prepare(arena, module, fits ? compilation : NULL, precision);
}

ModelBudgets model_find_budgets(MemoryArena *arena, const char *path, const Definition *definitions,
                                int definition_count) {
  CheckpointOptions options = {.request = {.strategy = PLAN_STRATEGY_ILP, .nodes = SOLVER_NODES}};
  Compilation *compilation =
      compile_for_tests(elaborate_model(arena, path, definitions, definition_count), 1, &options);
  if (!compilation || !compilation->checkpoint->answer.smallest) die("%s: no smallest budget", path);
  ModelBudgets found = {compilation->checkpoint->answer.smallest->peak, compilation->keep_all.map->arena_bytes};
  compilation =
      compile_for_tests(elaborate_model(arena, path, definitions, definition_count), found.smallest, &options);
  /* where the smallest plan cannot be packed without gaps, the smallest budget is what it was packed into */
  if (!compilation->checkpoint->compiled.graph) found.smallest = compilation->checkpoint->packed;
  const MemoryMap *evaluation = compilation->evaluation.map; /* which no plan makes smaller */
  if (evaluation && evaluation->arena_bytes > found.smallest) found.smallest = evaluation->arena_bytes;
  if (evaluation && evaluation->arena_bytes > found.keep_all) found.keep_all = evaluation->arena_bytes;
  return found;
}

static double first_element(const ModelRun *run, ValueId value) {
  return eval_tensor_get(eval_value(run->evaluation, value), 0);
}

/* The loss of an update is sum over sum, or the mean of the micro-steps'. */
static void add_loss(ModelRun *run, bool first) {
  const GraphOutput *loss = &run->module->train->loss;
  if (first) run->loss = run->denominator = 0;
  run->loss += first_element(run, loss->value);
  run->denominator += loss->denominator == NO_VALUE ? 1 : first_element(run, loss->denominator);
}

static void keep_gradients(ModelRun *run) {
  const Graph *graph = run->module->train;
  run->gradients = NEW_ARRAY(run->arena, EvalTensor, graph->gradients.count);
  for (int64_t g = 0; g < graph->gradients.count; g++) {
    const GraphGradient *gradient = &graph->gradients.items[g];
    const EvalTensor *value = eval_value(run->evaluation, gradient->gradient);
    double divisor = gradient->divisor == NO_VALUE ? 1 : first_element(run, gradient->divisor);
    run->gradients[g] = eval_tensor_create(run->arena, &value->type);
    for (int64_t i = 0; i < type_elements(&value->type); i++)
      eval_tensor_set(&run->gradients[g], i, eval_tensor_get(value, i) / divisor);
  }
}

bool model_run_micro_step(ModelRun *run) {
  Evaluation *evaluation = run->evaluation;
  int64_t accumulate = run->module->training.accumulate, index = ++evaluation->control.micro_step % accumulate;
  bool last = index + 1 == accumulate;
  evaluation->control.update = evaluation->control.micro_step / accumulate + 1;
  if (accumulate == 1) {
    if (!eval_run(evaluation)) return false;
  } else {
    if (!eval_run_phases(evaluation, PHASE_FORWARD, PHASE_BACKWARD)) return false;
    eval_commit(evaluation);
  }
  add_loss(run, index == 0);
  if (!last) return true;
  keep_gradients(run);
  run->loss /= run->denominator;
  if (accumulate > 1 && !eval_run_phases(evaluation, PHASE_UPDATE, PHASE_UPDATE)) return false;
  eval_commit(evaluation);
  return true;
}

EvalTensor *model_run_input(ModelRun *run, const char *name) {
  for (int64_t i = 0; i < run->module->inputs.count; i++)
    if (string_equal(run->module->inputs.items[i].name, name)) return &run->evaluation->inputs[i];
  return NULL;
}

EvalTensor *model_run_persistent(ModelRun *run, const char *name) {
  for (int64_t i = 0; i < run->module->persistents.count; i++)
    if (string_equal(run->module->persistents.items[i].name, name)) return &run->evaluation->persistents[i];
  return NULL;
}

const EvalTensor *model_run_output(const ModelRun *run, const char *name) {
  const Graph *graph = run->module->train;
  for (int64_t i = 0; i < graph->outputs.count; i++)
    if (string_equal(graph->outputs.items[i].name, name))
      return eval_value(run->evaluation, graph->outputs.items[i].value);
  return NULL;
}

const EvalTensor *model_run_gradient(const ModelRun *run, const char *name) {
  const Graph *graph = run->module->train;
  for (int64_t i = 0; i < graph->gradients.count; i++)
    if (string_equal(graph->gradients.items[i].name, name)) return &run->gradients[i];
  return NULL;
}
