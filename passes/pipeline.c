/* passes/pipeline.c - the compiler on one screen: every pass, in order. */
#include "passes/checkpoint.h"

typedef struct Pipeline {
  const PipelineOptions *options;
  Module *module;
  MemoryArena *scratch;
} Pipeline;

/* After each pass: scratch is forgotten, the graph is verified, and printed when --dump asks for this pass. */
static void finish_pass(Pipeline *pipeline, const char *pass, const Graph *graph) {
  const char *fault = diag_error_count() ? NULL : graph_verify(pipeline->scratch, graph);
  if (fault) die("after %s of the %s graph: %s", pass, graph->evaluation ? "evaluation" : "training", fault);
  if (pipeline->options->dump_pass && string_equal(pipeline->options->dump_pass, pass) &&
      graph == (pipeline->module->train ? pipeline->module->train : graph))
    fputs(module_print(pipeline->scratch, pipeline->module), stdout);
  memory_arena_reset(pipeline->scratch);
}

static void finish_map(Pipeline *pipeline, const CompiledGraph *result) {
  const char *overlap = check_memory(result->graph, result->table, result->schedule, result->map, pipeline->scratch);
  if (overlap) die("memory map of the %s graph: %s", result->graph->evaluation ? "evaluation" : "training", overlap);
  memory_arena_reset(pipeline->scratch);
}

static void set_workspaces(const PipelineOptions *options, Graph *graph) {
  for (int64_t id = 0; options->workspace && id < graph->nodes.count; id++) {
    Node *node = graph_node(graph, (NodeId)id);
    node->workspace = options->workspace(options->workspace_context, graph, node);
  }
}

static CompiledGraph compile_graph(Pipeline *pipeline, Graph *graph) {
  MemoryArena *arena = pipeline->module->arena, *scratch = pipeline->scratch;
  CompiledGraph result = {.graph = graph};
  finish_pass(pipeline, "frontend", graph);
  simplify_graph(graph, scratch);
  finish_pass(pipeline, "simplify", graph);
  if (!graph->evaluation) {
    differentiate_graph(graph, scratch);
    finish_pass(pipeline, "grad", graph);
    if (diag_error_count()) return result;
    simplify_graph(graph, scratch);
    hold_old_values(graph, scratch);
  }
  fuse_graph(graph, scratch);
  finish_pass(pipeline, "fuse", graph);
  choose_kernels(graph, scratch);
  set_workspaces(pipeline->options, graph);
  finish_pass(pipeline, "kernels", graph);
  result.table = assign_storages(graph, pipeline->options->alignment, arena);
  result.schedule = order_graph(graph, result.table, arena);
  result.table = place_parts(graph, result.table, &result.schedule, arena);
  /* a training graph that will be planned again for its budget is packed for comparison only */
  int64_t budget = pipeline->options->budget;
  bool compared =
      !graph->evaluation && pipeline->options->checkpoint && budget >= 0 && result.schedule->live_peak > budget;
  result.map = plan_memory(graph, result.table, result.schedule, -1, compared ? QUICK_EFFORT : 0, arena);
  finish_map(pipeline, &result);
  return result;
}

/* The training graph once more, with clones where the budget asks for them. */
static CompiledGraph checkpoint_train(Pipeline *pipeline, Compilation *compilation) {
  MemoryArena *arena = pipeline->module->arena;
  const CompiledGraph *keep_all = &compilation->keep_all;
  compilation->costs = pipeline->options->costs(pipeline->options->context, keep_all->graph, keep_all->table, arena);
  compilation->checkpoint =
      checkpoint_graph(keep_all, compilation->costs, pipeline->options->budget, pipeline->options->checkpoint, arena);
  if (!compilation->checkpoint || !compilation->checkpoint->compiled.graph) return *keep_all;
  CompiledGraph result = compilation->checkpoint->compiled;
  pipeline->module->train = result.graph;
  finish_pass(pipeline, "checkpoint", result.graph);
  finish_map(pipeline, &result);
  return result;
}

Compilation *compile_module(Module *module, const PipelineOptions *options) {
  Pipeline pipeline = {.options = options, .module = module, .scratch = memory_arena_create()};
  Compilation *compilation = NEW(module->arena, Compilation);
  *compilation = (Compilation){.module = module, .alignment = options->alignment, .budget = options->budget};
  if (module->train) compilation->train = compilation->keep_all = compile_graph(&pipeline, module->train);
  if (module->evaluation && !diag_error_count()) compilation->evaluation = compile_graph(&pipeline, module->evaluation);
  if (module->train && options->checkpoint && !diag_error_count())
    compilation->train = checkpoint_train(&pipeline, compilation);
  memory_arena_destroy(pipeline.scratch);
  if (diag_error_count()) return NULL;
  const MemoryMap *train = compilation->train.map, *evaluation = compilation->evaluation.map;
  if (train) compilation->arena_bytes = train->arena_bytes;
  if (evaluation && evaluation->arena_bytes > compilation->arena_bytes)
    compilation->arena_bytes = evaluation->arena_bytes;
  return compilation;
}
