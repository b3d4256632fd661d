/* codegen/tables.c - the tables of an emitted program (runtime/program.h) and its main. */
#include <inttypes.h>

#include "codegen/emission.h"
#include "codegen/expression.h"
#include "passes/facts.h"

/* ---- fields ---- */

static const char *string_literal(MemoryArena *arena, const char *string) {
  Text text = {.arena = arena};
  text_string_literal(&text, string);
  return text.bytes;
}

static const char *double_literal(MemoryArena *arena, double value) { return c_real_literal(arena, F64, value); }

static const char *runtime_type(DataType dtype) {
  static const char *const names[DATA_TYPE_COUNT] = {"RP_F32", "RP_F64", "RP_BF16", "RP_F16",
                                                     "RP_I32", "RP_I64", "RP_U8",   "RP_BOOL"};
  return names[dtype];
}

static char *number_list(MemoryArena *arena, int count, const int64_t *numbers) {
  Text text = {.arena = arena};
  for (int i = 0; i < count; i++) text_append(&text, "%s%" PRId64, i ? ", " : "", numbers[i]);
  if (!count) text_append(&text, "0");
  return text.bytes;
}

/* An RpTensor. */
static char *tensor_literal(MemoryArena *arena, const char *name, const Type *type, int64_t offset) {
  return memory_format(arena, "{%s, %s, %d, {%s}, %" PRId64 "}", string_literal(arena, name), runtime_type(type->dtype),
                       type->rank, number_list(arena, type->rank, type->dims), offset);
}

/* Opens "static const TYPE NAME[] = {"; a table that stays empty is left out, see table_name. */
static void open_table(Text *text, const char *type, const char *name) {
  text_line(text, "static const %s %s[] = {", type, name);
  text->indent++;
}

static void close_table(Text *text) {
  text->indent--;
  text_line(text, "};\n");
}

static const char *table_name(const char *name, int64_t count) { return count ? name : "NULL"; }

/* ---- persistents, inputs, readers, checks ---- */

/* Offset of a storage in a graph's arena, -1 without the graph. A module's persistents come first in every table, its
 * inputs behind them. */
static int64_t storage_offset(const CompiledGraph *compiled, int64_t storage) {
  return compiled->graph ? compiled->map->offsets[storage] : -1;
}

static const CompiledGraph *main_graph(const Compilation *compilation) {
  return compilation->train.graph ? &compilation->train : &compilation->evaluation;
}

static void emit_persistents(const Emission *emission, Text *text) {
  static const char *const roles[] = {"RP_PARAMETER", "RP_STATE", "RP_OPTIMIZER", "RP_ACCUMULATOR"};
  static const char *const initials[] = {"RP_INIT_CONSTANT", "RP_INIT_UNIFORM", "RP_INIT_NORMAL",
                                         "RP_INIT_TRUNCATED_NORMAL"};
  const Module *module = emission->compilation->module;
  MemoryArena *arena = emission->arena;
  if (!module->persistents.count) return;
  open_table(text, "RpPersistent", "persistents");
  for (int64_t i = 0; i < module->persistents.count; i++) {
    const Persistent *p = &module->persistents.items[i];
    int64_t offset = storage_offset(main_graph(emission->compilation), i);
    text_line(text, "{%s, %s, {%s, %s, %s}, %s},", tensor_literal(arena, p->name, &p->type, offset), roles[p->role],
              initials[p->initial.kind], double_literal(arena, p->initial.value),
              double_literal(arena, p->initial.mean), p->trainable ? "true" : "false");
  }
  close_table(text);
}

static void emit_inputs(const Emission *emission, Text *text) {
  const Compilation *compilation = emission->compilation;
  const Module *module = compilation->module;
  if (!module->inputs.count) return;
  open_table(text, "RpInput", "inputs");
  for (int64_t i = 0; i < module->inputs.count; i++) {
    const ModelInput *input = &module->inputs.items[i];
    text_line(text, "{%s, %" PRId64 "},",
              tensor_literal(emission->arena, input->name, &input->type,
                             storage_offset(main_graph(compilation), module->persistents.count + i)),
              storage_offset(&compilation->evaluation, module->persistents.count + i));
  }
  close_table(text);
}

static void emit_reader(const Emission *emission, const Reader *reader, Text *text) {
  static const char *const kinds[] = {"RP_READ_CONSTANT", "RP_READ_IDX",   "RP_READ_NPY",   "RP_READ_CSV",
                                      "RP_READ_BYTES",    "RP_READ_CHARS", "RP_READ_TOKENS"};
  MemoryArena *arena = emission->arena;
  const char *name = emission->compilation->module->inputs.items[reader->inputs.items[0]].name;
  text_line(text, "{%s, %s, %s, %" PRId64 ", {%s}, %" PRId64 ", %" PRId64 ", %s, %s, %" PRId64 "},",
            kinds[reader->kind], string_literal(arena, name),
            reader->path ? string_literal(arena, reader->path) : "NULL", reader->inputs.count,
            number_list(arena, (int)reader->inputs.count, reader->inputs.items), reader->first, reader->last,
            double_literal(arena, reader->value), reader->header ? "true" : "false", reader->vocabulary);
}

static void emit_readers(const Emission *emission, Text *text) {
  const Training *training = &emission->compilation->module->training;
  if (training->readers.count) {
    open_table(text, "RpReader", "readers");
    for (int64_t i = 0; i < training->readers.count; i++) emit_reader(emission, &training->readers.items[i], text);
    close_table(text);
  }
  if (training->test_readers.count) {
    open_table(text, "RpReader", "test_readers");
    for (int64_t i = 0; i < training->test_readers.count; i++)
      emit_reader(emission, &training->test_readers.items[i], text);
    close_table(text);
  }
}

static void emit_checks(const Emission *emission, Text *text) {
  if (!emission->checks.count) return;
  open_table(text, "RpCheck", "checks");
  for (int64_t i = 0; i < emission->checks.count; i++) {
    const Check *check = &emission->checks.items[i];
    text_line(text, "{%s, %s},", string_literal(emission->arena, check->message),
              string_literal(emission->arena, check->source));
  }
  close_table(text);
}

/* ---- kernels of a phase ---- */

typedef struct PhaseTables {
  const Emission *emission;
  const PhaseRange *phase;
  GraphEmission graph;
  int64_t *live_bytes; /* by step of the schedule */
  int64_t kernel_count, observable_count, scalar_count;
  Text kernels, freed, observables, scalars;
  int64_t freed_pairs;
} PhaseTables;

/* Bytes that die after the run at step i: storages that are freed before the next run, but not those whose bytes went
 * on to an output, and the workspace. Returns how many pairs. */
static int64_t emit_freed(PhaseTables *tables, int64_t i) {
  const CompiledGraph *compiled = tables->phase->compiled;
  const Step *steps = compiled->schedule->steps.items, *run = &steps[i];
  const Node *node = graph_node(compiled->graph, run->node);
  int64_t count = 0;
  for (int64_t next = i + 1; next < tables->phase->end_step && !steps[next].run; next++) {
    int storage = steps[next].storage;
    bool taken = false;
    for (int k = 0; k < run->into_count; k++) taken = taken || run->into_hosts[k] == storage;
    if (taken) continue;
    text_line(&tables->freed, "%" PRId64 ", %" PRId64 ",", compiled->map->offsets[storage],
              compiled->table->storages.items[storage].bytes);
    count++;
  }
  if (node->workspace) {
    text_line(&tables->freed, "%" PRId64 ", %" PRId64 ",", compiled->map->workspace_offsets[run->node],
              node->workspace);
    count++;
  }
  return count;
}

static void emit_kernel_row(PhaseTables *tables, int64_t i) {
  static const char *const phases[] = {"forward", "backward", "update"};
  MemoryArena *arena = tables->emission->arena;
  const CompiledGraph *compiled = tables->phase->compiled;
  const Node *node = graph_node(compiled->graph, compiled->schedule->steps.items[i].node);
  char *title = memory_format(arena, "%s%s%s", node->module, *node->module ? " " : "", node_title(arena, node, ' '));
  int64_t first = tables->freed_pairs, count = emit_freed(tables, i);
  tables->freed_pairs += count;
  const char *freed = count ? memory_format(arena, "%s_freed + %" PRId64, tables->phase->name, 2 * first) : "NULL";
  text_line(&tables->kernels, "{%s, %s, \"%s\", %s, %" PRId64 ", %s, %" PRId64 "},", string_literal(arena, title),
            string_literal(arena, source_text(arena, node->location)), phases[node->phase],
            node->original == NO_NODE ? "false" : "true", tables->live_bytes[i], freed, count);
  tables->kernel_count++;
}

/* ---- observables and scalars of a phase ---- */

/* Named values lie densely (passes/kernels.c). Index of the phase's kernel that first makes the storage a value lies
 * in; -1 for what is there before the first; -2 when another phase makes it. */
static int64_t maker_step(const PhaseTables *tables, ValueId value) {
  const CompiledGraph *compiled = tables->phase->compiled;
  const Storage *storage = &compiled->table->storages.items[compiled->table->layouts[value].storage];
  NodeId maker = graph_value(compiled->graph, value)->producer;
  while (maker != NO_NODE && op_kind(graph_node(compiled->graph, maker)->op) == KIND_VIEW)
    maker = graph_value(compiled->graph, graph_node(compiled->graph, maker)->inputs[0])->producer;
  if (maker == NO_NODE && storage->persistent) return -1;
  int64_t kernel = 0;
  for (int64_t i = tables->phase->first_step; i < tables->phase->end_step; i++) {
    const Step *step = &compiled->schedule->steps.items[i];
    if (!step->run) continue;
    if (step->node == maker) return kernel;
    kernel++;
  }
  return -2;
}

static int64_t value_offset(const PhaseTables *tables, ValueId value) {
  if (value == NO_VALUE) return -1;
  return layout_offset(&tables->graph, value_layout(&tables->graph, value),
                       value_type(tables->phase->compiled->graph, value)->dtype);
}

static void emit_observable(PhaseTables *tables, const char *kind, const char *name, ValueId value, ValueId divisor) {
  const Graph *graph = tables->phase->compiled->graph;
  MemoryArena *arena = tables->emission->arena;
  int64_t step = maker_step(tables, value);
  if (step == -2) return;
  const Type *type = value_type(graph, value);
  text_line(&tables->observables, "{%s, %s, %" PRId64 ", %" PRId64 "},", kind,
            tensor_literal(arena, name, type, value_offset(tables, value)), step, value_offset(tables, divisor));
  tables->observable_count++;
}

static void emit_scalar(PhaseTables *tables, const GraphOutput *output) {
  const Type *type = value_type(tables->phase->compiled->graph, output->value);
  if (type->rank || type->dtype != F32) return;
  text_line(&tables->scalars, "{%s, %" PRId64 ", %" PRId64 "},", string_literal(tables->emission->arena, output->name),
            value_offset(tables, output->value), value_offset(tables, output->denominator));
  tables->scalar_count++;
}

/* The value of what `grad` asks for, beside its gradient: where it lies densely and is no output already. */
static void emit_requested(PhaseTables *tables, const GraphOutput *request) {
  const Graph *graph = tables->phase->compiled->graph;
  for (int64_t i = 0; i < graph->outputs.count; i++)
    if (string_equal(graph->outputs.items[i].name, request->name)) return;
  if (layout_is_dense(&value_layout(&tables->graph, request->value)->view))
    emit_observable(tables, "RP_OBSERVE_VALUE", request->name, request->value, NO_VALUE);
}

/* Gradients that accumulate are those that the update sees; everything else belongs to the phase that makes it. */
static void emit_observables(PhaseTables *tables, bool updates_apart) {
  const Graph *graph = tables->phase->compiled->graph;
  bool update = string_equal(tables->phase->name, "update");
  if (!update && graph->loss.value != NO_VALUE)
    emit_observable(tables, "RP_OBSERVE_LOSS", graph->loss.name, graph->loss.value, NO_VALUE);
  for (int64_t i = 0; i < graph->outputs.count && !update; i++)
    emit_observable(tables, "RP_OBSERVE_OUTPUT", graph->outputs.items[i].name, graph->outputs.items[i].value, NO_VALUE);
  for (int64_t i = 0; i < graph->gradient_requests.count && !update; i++)
    emit_requested(tables, &graph->gradient_requests.items[i]);
  for (int64_t i = 0; i < graph->gradients.count; i++) {
    const GraphGradient *gradient = &graph->gradients.items[i];
    bool accumulated = updates_apart && graph_value(graph, gradient->gradient)->kind == VALUE_PERSISTENT;
    if (accumulated != update) continue;
    emit_observable(tables, "RP_OBSERVE_GRADIENT", memory_format(tables->emission->arena, "grad.%s", gradient->name),
                    gradient->gradient, gradient->divisor);
  }
}

static void emit_scalars(PhaseTables *tables) {
  const Graph *graph = tables->phase->compiled->graph;
  if (string_equal(tables->phase->name, "update")) return;
  if (graph->loss.value != NO_VALUE) emit_scalar(tables, &graph->loss);
  for (int64_t i = 0; i < graph->outputs.count; i++) emit_scalar(tables, &graph->outputs.items[i]);
}

/* Writes the tables of one phase and the text of its RpPhase to `row`. */
static void emit_table(Text *text, const PhaseRange *phase, const char *type, const char *name, const Text *rows) {
  if (!rows->length) return;
  open_table(text, type, memory_format(text->arena, "%s_%s", phase->name, name));
  text_append(text, "%s", text_bytes(rows));
  close_table(text);
}

static const char *phase_table(const PhaseTables *tables, const char *name, int64_t count) {
  return table_name(memory_format(tables->emission->arena, "%s_%s", tables->phase->name, name), count);
}

static char *emit_phase_tables(Emission *emission, const PhaseRange *phase, bool updates_apart, Text *text) {
  MemoryArena *arena = emission->arena;
  if (!phase->compiled) return memory_string(arena, "{NULL, NULL, 0, NULL, 0, NULL, 0}");
  const CompiledGraph *compiled = phase->compiled;
  PhaseTables tables = {.emission = emission, .phase = phase, .graph = {.emission = emission, .compiled = compiled}};
  Text rows = {.arena = arena, .indent = 1};
  tables.kernels = tables.freed = tables.observables = tables.scalars = rows;
  tables.live_bytes = NEW_ARRAY(arena, int64_t, compiled->schedule->steps.count);
  const char *fault = replay_schedule(compiled->graph, compiled->table, compiled->schedule, tables.live_bytes, arena);
  if (fault) die("schedule of %s: %s", phase->name, fault);
  for (int64_t i = phase->first_step; i < phase->end_step; i++)
    if (compiled->schedule->steps.items[i].run) emit_kernel_row(&tables, i);
  emit_observables(&tables, updates_apart);
  emit_scalars(&tables);
  emit_table(text, phase, "int64_t", "freed", &tables.freed);
  emit_table(text, phase, "RpKernel", "kernels", &tables.kernels);
  emit_table(text, phase, "RpObservable", "observables", &tables.observables);
  emit_table(text, phase, "RpScalar", "scalars", &tables.scalars);
  return memory_format(arena, "{%s, %s, %" PRId64 ", %s, %" PRId64 ", %s, %" PRId64 "}", phase->name,
                       phase_table(&tables, "kernels", tables.kernel_count), tables.kernel_count,
                       phase_table(&tables, "observables", tables.observable_count), tables.observable_count,
                       phase_table(&tables, "scalars", tables.scalar_count), tables.scalar_count);
}

/* ---- the program ---- */

/* The base rate that --lr replaces: attribute `lr` of the optimizer. */
static double learning_rate(const Training *training) {
  if (!training->has_optimizer) return 0;
  int index = op_attribute_index(training->optimizer, "lr");
  return index < 0 ? 0 : training->optimizer_settings[index].number;
}

static void emit_plan_json(const Emission *emission, Text *text) {
  const char *json = emission->options->plan_json ? emission->options->plan_json : "{}";
  text_line(text, "#pragma GCC diagnostic ignored \"-Woverlength-strings\"");
  text_line(text, "static const char plan_json[] =");
  for (const char *line = json; *line;) {
    size_t length = strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n');
    char *part = memory_string_range(emission->arena, line, (int64_t)length);
    text_line(text, "    %s", string_literal(emission->arena, part));
    line += length;
  }
  if (!*json) text_line(text, "    \"\"");
  text_line(text, "    ;\n");
}

static void emit_memory_fields(const Emission *emission, Text *text) {
  const Compilation *compilation = emission->compilation;
  const CompiledGraph *compiled = main_graph(compilation);
  const int64_t *bytes = compiled->schedule->anatomy.bytes;
  text_line(text, ".arena_bytes = %" PRId64 ",", compilation->arena_bytes);
  text_line(text, ".alignment = %" PRId64 ",", compilation->alignment);
  text_line(text, ".budget = %" PRId64 ",", compilation->budget);
  text_line(text, ".live_peak = %" PRId64 ",", compiled->schedule->live_peak);
  text_line(text, ".persistent_bytes = %" PRId64 ",", compiled->map->persistent_bytes);
  text_line(text, ".anatomy = {.weights = %" PRId64 ",", bytes[STORAGE_WEIGHT]);
  text_line(text, "            .gradients = %" PRId64 ",", bytes[STORAGE_GRADIENT]);
  text_line(text, "            .optimizer_state = %" PRId64 ",", bytes[STORAGE_OPTIMIZER]);
  text_line(text, "            .activations = %" PRId64 ",", bytes[STORAGE_ACTIVATION]);
  text_line(text, "            .temporaries = %" PRId64 ",", bytes[STORAGE_TEMPORARY]);
  text_line(text, "            .workspace = %" PRId64 ",", bytes[STORAGE_WORKSPACE]);
  text_line(text, "            .inputs = %" PRId64 "},", bytes[STORAGE_INPUT]);
  text_line(text, ".control_offset = %" PRId64 ",", compiled->map->control_offset);
}

static void emit_training_fields(const Emission *emission, Text *text) {
  static const char *const schedules[] = {"RP_SCHEDULE_CONSTANT", "RP_SCHEDULE_COSINE", "RP_SCHEDULE_LINEAR",
                                          "RP_SCHEDULE_STEP"};
  const Training *training = &emission->compilation->module->training;
  MemoryArena *arena = emission->arena;
  text_line(text, ".learning_rate = %s,", double_literal(arena, learning_rate(training)));
  text_line(text, ".schedule = {%s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s},", schedules[training->schedule],
            training->warmup, training->schedule_steps, training->every, double_literal(arena, training->final),
            double_literal(arena, training->factor));
  text_line(text, ".accumulate = %" PRId64 ",", training->accumulate);
  text_line(text, ".steps = %" PRId64 ",", training->steps);
  text_line(text, ".epochs = %" PRId64 ",", training->epochs);
  text_line(text, ".seed = UINT64_C(%" PRIu64 "),", training->seed);
  text_line(text, ".shuffle = %s,", training->shuffle ? "true" : "false");
}

static void emit_table_field(Text *text, const char *field, const char *count_field, int64_t count) {
  text_line(text, ".%s = %s,", field, table_name(field, count));
  text_line(text, ".%s = %" PRId64 ",", count_field, count);
}

void emit_tables(Emission *emission, const PhaseRange phases[3], Text *text) {
  const Module *module = emission->compilation->module;
  MemoryArena *arena = emission->arena;
  emit_persistents(emission, text);
  emit_inputs(emission, text);
  emit_readers(emission, text);
  emit_checks(emission, text);
  char *rows[3];
  for (int i = 0; i < 3; i++) rows[i] = emit_phase_tables(emission, &phases[i], phases[1].compiled, text);
  emit_plan_json(emission, text);
  const char *slash = strrchr(module->path, '/');
  text_line(text, "static const RpProgram program = {");
  text->indent++;
  text_line(text, ".version = RP_PROGRAM_VERSION,");
  text_line(text, ".model = %s,", string_literal(arena, module->name));
  text_line(text, ".target = %s,", string_literal(arena, emission->target->name));
  text_line(text, ".source = %s,", string_literal(arena, slash ? slash + 1 : module->path));
  emit_memory_fields(emission, text);
  emit_table_field(text, "persistents", "persistent_count", module->persistents.count);
  emit_table_field(text, "inputs", "input_count", module->inputs.count);
  emit_table_field(text, "readers", "reader_count", module->training.readers.count);
  emit_table_field(text, "test_readers", "test_reader_count", module->training.test_readers.count);
  emit_table_field(text, "checks", "check_count", emission->checks.count);
  text_line(text, ".micro_step = %s,", rows[0]);
  text_line(text, ".update = %s,", rows[1]);
  text_line(text, ".evaluation = %s,", rows[2]);
  emit_training_fields(emission, text);
  text_line(text, ".plan_json = plan_json,");
  if (emission->cuda) text_line(text, ".device = &device_program,");
  text->indent--;
  text_line(text, "};\n");
  text_line(text, "int main(int argc, char **argv) { return rp_main(&program, argc, argv); }");
}
