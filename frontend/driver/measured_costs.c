/* frontend/driver/measured_costs.c - runs the model's program with --trace and reads the times of its kernels. */
#include "frontend/driver/measured_costs.h"

#include <jansson.h>
#include <unistd.h>

#include "frontend/driver/commands.h"
#include "frontend/driver/produce.h"
#include "frontend/driver/trial.h"

enum { TRIAL_STEPS = 2, TRIAL_RUNS = 3 };

/* Nodes in the order in which the program's kernels run: those of the micro-step, then those of the update. */
typedef struct KernelOrder {
  NodeId *nodes;
  int64_t count, micro_step;
} KernelOrder;

static KernelOrder order_kernels(MemoryArena *arena, const CompiledGraph *train) {
  const Schedule *schedule = train->schedule;
  bool split = train->graph->module->training.accumulate > 1;
  KernelOrder order = {.nodes = NEW_ARRAY(arena, NodeId, schedule->steps.count + 1)};
  for (int64_t i = 0; i < schedule->steps.count; i++) {
    const Step *step = &schedule->steps.items[i];
    if (!step->run) continue;
    order.nodes[order.count++] = step->node;
    if (!split || graph_node(train->graph, step->node)->phase != PHASE_UPDATE) order.micro_step = order.count;
  }
  return order;
}

/* Adds the times of one trace: the micro-step's kernels once per micro-step, then the update's. */
static bool add_trace(Profile *profile, const CompiledGraph *train, const KernelOrder *order, const char *path) {
  int64_t accumulate = train->graph->module->training.accumulate, position = 0, length;
  const char *error;
  char *text = file_read(profile->arena, path, &length, &error);
  json_t *root = text ? json_loadb(text, (size_t)length, 0, NULL) : NULL, *event;
  size_t index;
  json_array_foreach(json_object_get(root, "traceEvents"), index, event) {
    const char *kind = json_string_value(json_object_get(event, "ph"));
    if (!kind || !string_equal(kind, "X")) continue;
    int64_t in_steps = accumulate * order->micro_step;
    int64_t kernel = position < in_steps ? position % order->micro_step : position - in_steps + order->micro_step;
    position++;
    if (kernel >= order->count) break;
    const Node *node = graph_node(train->graph, order->nodes[kernel]);
    profile_add(profile, node_signature(profile->arena, train->graph, train->table, node),
                json_number_value(json_object_get(event, "dur")));
  }
  json_decref(root);
  return position == accumulate * order->micro_step + order->count - order->micro_step;
}

static bool run_and_read(Profile *profile, Trial *trial, const CompiledGraph *train) {
  char *trace = trial_path(trial, "trace.json");
  const char *arguments[] = {"--steps", memory_format(profile->arena, "%d", TRIAL_STEPS), "--trace", trace, NULL};
  KernelOrder order = order_kernels(profile->arena, train);
  for (int run = 0; run < TRIAL_RUNS; run++)
    if (run_trial(trial, arguments) != EXIT_OK || !add_trace(profile, train, &order, trace)) return false;
  return true;
}

/* options: with modelled costs; path: of the profile. */
static int measure(const Options *options, const char *path, Profile *profile, Module *module, Trial *trial) {
  const char *error;
  int code;
  int64_t missing;
  if (!write_trial_data(trial, module, TRIAL_STEPS * module->training.accumulate, &error)) {
    fprintf(stderr, "reprise: %s\n", error);
    return EXIT_IO;
  }
  Compilation *compilation = compile_for_target(options, module, &code);
  if (!compilation) return code;
  profile_costs(profile, compilation->keep_all.graph, compilation->keep_all.table, &missing, options->arena);
  if (!missing) return EXIT_OK;
  if (!options->quiet) fprintf(stderr, "reprise: measuring %lld kernels of %s\n", (long long)missing, module->name);
  code = produce_executable(options, compilation, trial_path(trial, "program"));
  if (code != EXIT_OK) return code;
  if (run_and_read(profile, trial, &compilation->train)) return write_text(options, path, profile_text(profile));
  fprintf(stderr, "reprise: the program that measures kernels failed\n");
  return EXIT_DEVICE;
}

Profile *complete_profile(const Options *options, int *code) {
  const char *io_error = NULL;
  Options modelled = *options;
  Trial trial;
  bool exists = access(options->profile, F_OK) == 0;
  Profile *profile =
      exists ? profile_read(options->arena, options->profile, &io_error) : profile_create(options->arena);
  *code = io_error ? EXIT_IO : EXIT_SOURCE_ERROR;
  if (io_error) fprintf(stderr, "reprise: %s\n", io_error);
  if (!profile) return NULL;
  modelled.profile = NULL;
  modelled.plan_input = NULL;
  Module *module = load_module(&modelled, code);
  if (!module) return NULL;
  if (!open_trial(&trial, options, module->train)) {
    *code = EXIT_IO;
    return NULL;
  }
  *code = measure(&modelled, options->profile, profile, module, &trial);
  close_trial(&trial);
  return *code == EXIT_OK ? profile : NULL;
}
