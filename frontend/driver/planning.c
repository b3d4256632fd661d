/* frontend/driver/planning.c - one way to ask for plans, whatever the file. */
#include "frontend/driver/planning.h"

#include <stdlib.h>

#include "frontend/driver/commands.h"
#include "passes/planner/replay.h"

static PlanView view_of(const Planning *planning, int64_t budget) {
  return (PlanView){.name = planning->name,
                    .graph = planning->graph,
                    .keep_all = planning->keep_all,
                    .budget = budget,
                    .arena_bytes = -1,
                    .keep_all_arena = -1};
}

static int64_t evaluation_of(const Compilation *compilation) {
  return compilation->evaluation.map ? compilation->evaluation.map->arena_bytes : 0;
}

static void read_checkpoint(PlanView *view, const Checkpoint *checkpoint) {
  view->answer = checkpoint->answer;
  view->replans = checkpoint->replans;
  view->arena_bytes = checkpoint->compiled.graph ? checkpoint->compiled.map->arena_bytes : checkpoint->packed;
}

PlanView view_of_compilation(const Compilation *compilation) {
  const Checkpoint *checkpoint = compilation->checkpoint;
  PlanView view = {.name = compilation->module->name,
                   .graph = checkpoint->problem->plan_graph,
                   .keep_all = checkpoint->keep_all,
                   .budget = compilation->budget,
                   .keep_all_arena = compilation->keep_all.map->arena_bytes,
                   .evaluation_bytes = evaluation_of(compilation)};
  read_checkpoint(&view, checkpoint);
  return view;
}

Planning planning_of_compilation(const Options *options, const Compilation *compilation) {
  return (Planning){.options = options,
                    .name = compilation->module->name,
                    .graph = compilation->checkpoint->problem->plan_graph,
                    .keep_all = compilation->checkpoint->keep_all,
                    .compilation = compilation};
}

static Planning *open_model(const Options *options, Planning *planning, int *code) {
  Options unlimited = *options;
  unlimited.budget = -1;
  Module *module = load_module(options, code);
  if (!module) return NULL;
  const Compilation *compilation = compile_for_target(&unlimited, module, code);
  if (!compilation) return NULL;
  *planning = planning_of_compilation(options, compilation);
  return planning;
}

/* What a graph file says itself: an option that goes with model files only, or NULL. */
static const char *option_of_models(const Options *options) {
  if (options->definitions.count) return "-D";
  if (options->profile) return "--profile";
  if (options->device) return "--device";
  return options->target == &target_cuda ? "--target" : NULL;
}

static Planning *open_graph(const Options *options, Planning *planning, int *code) {
  const char *path = options->files.items[0], *option = option_of_models(options);
  if (option) {
    fprintf(stderr, "reprise %s: %s goes with model files; '%s' is a graph file\n", options->command, option, path);
    *code = EXIT_USAGE;
    return NULL;
  }
  if (!can_read(options, path)) {
    *code = EXIT_IO;
    return NULL;
  }
  *code = EXIT_SOURCE_ERROR;
  planning->graph = plan_graph_read(options->arena, path);
  if (!planning->graph) return NULL;
  planning->name = planning->graph->name ? planning->graph->name : path;
  planning->keep_all = plan_keep_all(options->arena, planning->graph);
  return planning;
}

static bool read_incumbent(Planning *planning, int *code) {
  const Options *options = planning->options;
  if (!options->plan_input) return true;
  Plan *plan = plan_read(options->arena, planning->graph, options->plan_input);
  *code = EXIT_SOURCE_ERROR;
  if (!plan) return false;
  Replay *replay = replay_plan(options->arena, planning->graph, plan);
  planning->incumbent = plan;
  if (!replay->faults.count) return true;
  diag_error((Location){0}, "%s: not a plan of this graph: %s", options->plan_input, replay->faults.items[0]);
  return false;
}

Planning *open_planning(const Options *options, int *code) {
  Planning *planning = NEW(options->arena, Planning);
  planning->options = options;
  bool model = string_ends(options->files.items[0], ".rp");
  if (!(model ? open_model(options, planning, code) : open_graph(options, planning, code))) return NULL;
  return read_incumbent(planning, code) ? planning : NULL;
}

/* Ctrl-C has stopped the planner: no further plans are asked for. */
static void end_when_interrupted(const PlanView *view) {
  if (view->answer.exit != EXIT_INTERRUPTED) return;
  fprintf(stderr, "reprise: %s\n", view->answer.note ? view->answer.note : "interrupted");
  exit(EXIT_INTERRUPTED);
}

PlanView solve_planning(Planning *planning, int64_t budget, PlanStrategy strategy, const Plan *incumbent) {
  MemoryArena *arena = planning->options->arena;
  PlanView view = view_of(planning, budget);
  PlanRequest request = plan_request_of(planning->options);
  request.strategy = strategy;
  request.incumbent = incumbent;
  if (planning->compilation) {
    const Compilation *compilation = planning->compilation;
    CheckpointOptions checkpoint = {.request = request};
    view.keep_all_arena = compilation->keep_all.map->arena_bytes;
    view.evaluation_bytes = evaluation_of(compilation);
    read_checkpoint(&view, checkpoint_graph(&compilation->keep_all, compilation->costs, budget, &checkpoint, arena));
    end_when_interrupted(&view);
    /* the problem was stated anew: same numbers, so names may come from the first */
    return view;
  }
  request.budget = budget < 0 ? planning->keep_all->peak : budget;
  view.answer = plan_request(arena, planning->graph, &request);
  end_when_interrupted(&view);
  return view;
}

bool planning_fits(const PlanView *view) {
  return view->answer.plan &&
         (view->budget < 0 || (view->answer.plan->peak <= view->budget && view->arena_bytes <= view->budget &&
                               view->evaluation_bytes <= view->budget));
}
