/* codegen/emission.c - what the targets share: definitions by their text, layouts, what is supported, step functions.
 */
#include <inttypes.h>

#include "codegen/emission.h"
#include "codegen/expression.h"

/* ---- shared by the files that write nodes ---- */

/* A definition is known by its text without its name, so that equal ones are one. */
static const char *define(Emission *emission, const char *key, const char *stem, bool *fresh) {
  int64_t *known = string_map_find(&emission->function_names, key);
  *fresh = !known;
  if (known) return emission->names.items[*known];
  int64_t *count = string_map_find(&emission->stems, stem), number = count ? *count + 1 : 1;
  string_map_set(&emission->stems, stem, number);
  string_map_set(&emission->function_names, key, emission->names.count);
  const char *name = memory_format(emission->arena, "%s_%" PRId64, stem, number);
  array_push(emission->arena, &emission->names, name);
  return name;
}

const char *emission_function(Emission *emission, const char *result, const char *stem, const char *parameters,
                              const char *body) {
  bool fresh;
  const char *key = memory_format(emission->arena, "%s %s(%s)\n%s", result, stem, parameters, body);
  const char *name = define(emission, key, stem, &fresh);
  if (fresh) {
    text_wrapped(&emission->functions, memory_format(emission->arena, "%s %s(%s) {", result, name, parameters));
    emission->functions.indent++;
    text_append(&emission->functions, "%s", body);
    text_close(&emission->functions);
    text_line(&emission->functions, "%s", "");
  }
  return name;
}

const char *emission_constant(Emission *emission, const char *type, const char *stem, const char *initializer) {
  bool fresh;
  const char *name = define(emission, memory_format(emission->arena, "%s %s", type, initializer), stem, &fresh);
  Text *text = emission->cuda ? &emission->constants : &emission->functions;
  if (fresh) text_line(text, "%s %s = %s;\n", type, name, initializer);
  return name;
}

char *source_text(MemoryArena *arena, Location location) {
  char *text = location_text(arena, location), *slash = strrchr(text, '/');
  return slash ? slash + 1 : text;
}

/* Names of a fused node: its last few operators without constants and repetitions. */
char *node_title(MemoryArena *arena, const Node *node, char separator) {
  enum { NAMED = 4 };
  ARRAY(const char *) names = {0};
  for (int i = 0; node->body && i < node->body->instruction_count; i++) {
    const OpInfo *info = op_info(node->body->instructions[i].op);
    bool repeated = names.count && names.items[names.count - 1] == info->name;
    if (!(info->properties & OP_UNIFORM) && !repeated) array_push(arena, &names, info->name);
  }
  if (!names.count || op_kind(node->op) == KIND_REDUCTION) array_push(arena, &names, op_info(node->op)->name);
  Text text = {.arena = arena};
  for (int64_t i = names.count > NAMED ? names.count - NAMED : 0; i < names.count; i++)
    text_append(&text, "%s%c", names.items[i], i + 1 < names.count ? separator : '\0');
  return text.bytes;
}

const Layout *value_layout(const GraphEmission *graph, ValueId value) {
  return &graph->compiled->table->layouts[value];
}

int64_t layout_offset(const GraphEmission *graph, const Layout *layout, DataType dtype) {
  return graph->compiled->map->offsets[layout->storage] + layout->view.offset * dtype_bytes(dtype);
}

char *layout_pointer(const GraphEmission *graph, const Layout *layout, DataType dtype) {
  return memory_format(graph->emission->arena, "AT(%s, %" PRId64 ")", c_storage_type(dtype),
                       layout_offset(graph, layout, dtype));
}

char *value_pointer(const GraphEmission *graph, ValueId value) {
  return layout_pointer(graph, value_layout(graph, value), value_type(graph->compiled->graph, value)->dtype);
}

/* ---- what the target can compute ---- */

/* Hand-made kernels take float and int32_t. */
static bool node_supported(const Target *target, const Graph *graph, const Node *node, DataType *offender) {
  bool kernel = op_kind(node->op) == KIND_KERNEL;
  for (int i = 0; i < node->input_count + node->output_count; i++) {
    ValueId value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (value == NO_VALUE) continue;
    *offender = value_type(graph, value)->dtype;
    if (!target->holds(*offender) || (kernel && *offender != F32 && *offender != I32)) return false;
  }
  return true;
}

bool emission_supports(const Emission *emission, const Graph *graph) {
  int errors = diag_error_count();
  for (int64_t id = 0; graph && id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    DataType offender;
    if (!node_supported(emission->target, graph, node, &offender))
      diag_error(node->location, "target '%s' has no '%s' on %s; convert its inputs with %s(…)", emission->target->name,
                 op_info(node->op)->name, dtype_name(offender),
                 dtype_name(dtype_class(offender) == CLASS_REAL ? F32 : I32));
  }
  return diag_error_count() == errors;
}

/* ---- step functions ---- */

/* "h.0.mlp add gelu, gpt2.rp:31:9" */
static char *node_comment(MemoryArena *arena, const Node *node) {
  const char *source = source_text(arena, node->location);
  return memory_format(arena, "%s%s%s%s%s%s", node->original == NO_NODE ? "" : "again: ", node->module,
                       *node->module ? " " : "", node_title(arena, node, ' '), *source ? ", " : "", source);
}

static void emit_phase(GraphEmission *graph, const PhaseRange *phase, Text *text) {
  MemoryArena *arena = graph->emission->arena;
  const CompiledGraph *compiled = phase->compiled;
  Text steps = {.arena = arena, .indent = 1};
  int64_t kernel = 0;
  for (int64_t i = phase->first_step; i < phase->end_step; i++) {
    const Step *step = &compiled->schedule->steps.items[i];
    if (!step->run) continue;
    text_line(&steps, "/* %s */", node_comment(arena, graph_node(compiled->graph, step->node)));
    graph->emission->target->emit_node(graph, step->node, &steps);
    text_line(&steps, "rp_done(context, %" PRId64 ");", kernel++);
  }
  const char *body = text_bytes(&steps);
  text_open(text, "static void %s(RpContext *context)", phase->name);
  if (strstr(body, "AT(")) text_line(text, "char *const arena = context->arena;");
  if (strstr(body, " control,") || strstr(body, " control)")) text_line(text, "RpControl *const control = rp_control(context);");
  if (!*body) text_line(text, "(void)context;");
  text_append(text, "%s", body);
  text_close(text);
  text_line(text, "%s", "");
}

void emission_steps(Emission *emission, const PhaseRange *phases, int count, Text *text) {
  const CompiledGraph *compiled = phases[0].compiled;
  if (!compiled) return;
  GraphEmission graph = {.emission = emission, .compiled = compiled};
  graph.checks = NEW_ARRAY(emission->arena, int, compiled->graph->nodes.count);
  for (int i = 0; i < count; i++)
    if (phases[i].compiled) emit_phase(&graph, &phases[i], text);
}

/* ---- phases ---- */

/* With several micro-steps to an update, the updates are a program of their own: all steps from the first update on. */
static int64_t find_update(const Module *module, const CompiledGraph *train) {
  const Schedule *schedule = train->schedule;
  int64_t update = schedule->steps.count;
  if (module->training.accumulate <= 1) return update;
  for (int64_t i = 0; i < schedule->steps.count; i++) {
    const Step *step = &schedule->steps.items[i];
    if (!step->run) continue;
    bool updates = graph_node(train->graph, step->node)->phase == PHASE_UPDATE;
    if (updates && update == schedule->steps.count) update = i;
    if (!updates && i > update) die("a node of the micro-step follows an update");
  }
  return update;
}

void find_phases(const Compilation *compilation, PhaseRange phases[3]) {
  const CompiledGraph *train = &compilation->train, *evaluation = &compilation->evaluation;
  memset(phases, 0, 3 * sizeof *phases);
  if (train->graph) {
    int64_t end = train->schedule->steps.count, update = find_update(compilation->module, train);
    phases[0] = (PhaseRange){"micro_step", train, 0, update};
    if (update < end) phases[1] = (PhaseRange){"update", train, update, end};
  }
  if (evaluation->graph) phases[2] = (PhaseRange){"evaluation", evaluation, 0, evaluation->schedule->steps.count};
}
