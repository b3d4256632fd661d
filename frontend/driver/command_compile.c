/* frontend/driver/command_compile.c - `reprise compile`. */
#include "codegen/codegen.h"
#include "frontend/driver/commands.h"
#include "frontend/driver/produce.h"
#include "passes/cost.h"
#include "passes/rematerialize.h"

int write_text(const Options *options, const char *path, const char *text) {
  const char *error;
  if (file_write(options->arena, path, text, (int64_t)strlen(text), &error)) return EXIT_OK;
  fprintf(stderr, "reprise: %s\n", error);
  return EXIT_IO;
}

Compilation *compile_for_target(const Options *options, Module *module) {
  PipelineOptions pipeline = {
      .alignment = target_c.alignment, .budget = options->budget, .dump_pass = options->dump_pass};
  return compile_module(module, &pipeline);
}

static char *emit_source(const Options *options, const Compilation *compilation) {
  int64_t length;
  CodegenOptions codegen = {0};
  return emit_c_program(compilation, &codegen, options->arena, &length);
}

int produce_executable(const Options *options, const Compilation *compilation, const char *output) {
  LinkOptions link = {.compiler = options->compiler, .flags = options->compiler_flags};
  ExitCode code;
  const char *error;
  char *source = emit_source(options, compilation);
  if (!source) return EXIT_SOURCE_ERROR;
  if (link_executable(source, (int64_t)strlen(source), output, &link, options->arena, &code, &error)) return EXIT_OK;
  fprintf(stderr, "reprise: %s\n", error);
  return code;
}

/* The planner's graph file of the training graph, with costs by the model of this target's device. */
static char *emit_graph(const Options *options, const Compilation *compilation) {
  const char *io_error;
  const Device *device = find_device(options->arena, "cpu", &io_error);
  const CompiledGraph *train = &compilation->train;
  double *costs = model_costs(train->graph, train->table, device, options->arena);
  PlanningProblem *problem = state_problem(train->graph, train->table, train->schedule, costs, options->arena);
  return plan_graph_text(options->arena, problem->plan_graph);
}

/* Name of one emitted file: what -o says when it is the only one, else the base name with the extension. */
static char *output_name(const Options *options, unsigned emission, const char *extension) {
  bool only = options->emissions == emission;
  const char *input = options->files.items[0], *base = options->output;
  if (base && (only || emission == EMIT_EXECUTABLE)) return memory_string(options->arena, base);
  if (base) return memory_format(options->arena, "%s%s", base, extension);
  const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input;
  if (string_equal(input, "-")) name = "model";
  int stem = (int)(string_ends(name, ".rp") ? strlen(name) - 3 : strlen(name));
  return memory_format(options->arena, "%.*s%s", stem, name, extension);
}

static int write_emission(const Options *options, unsigned emission, const char *extension, const char *text) {
  if (!(options->emissions & emission)) return EXIT_OK;
  return text ? write_text(options, output_name(options, emission, extension), text) : EXIT_SOURCE_ERROR;
}

static int check_budget(const Options *options, const Compilation *compilation) {
  if (options->budget < 0 || compilation->arena_bytes <= options->budget) return EXIT_OK;
  fprintf(stderr, "reprise: the budget of %s is too small: this plan needs %s\n",
          format_bytes_exact(options->arena, options->budget),
          format_bytes_exact(options->arena, compilation->arena_bytes));
  return EXIT_BUDGET_INFEASIBLE;
}

static void print_result(const Options *options, const Compilation *compilation, const char *output) {
  const CompiledGraph *train = &compilation->train;
  if (options->quiet || string_equal(output, "-")) return;
  printf("%s: arena %s", output, format_bytes(options->arena, compilation->arena_bytes));
  if (train->graph) printf(", live peak %s", format_bytes(options->arena, train->schedule->live_peak));
  putchar('\n');
  if (!options->verbose || !train->graph) return;
  for (int class = 0; class < STORAGE_CLASS_COUNT; class ++)
    if (train->schedule->anatomy.bytes[class])
      printf("  %-16s %s\n", storage_class_name((StorageClass) class),
             format_bytes_exact(options->arena, train->schedule->anatomy.bytes[class]));
}

int compile_command(const Options *given) {
  Options options = *given;
  int code;
  if (!options.emissions && !options.dump_pass) options.emissions = EMIT_EXECUTABLE;
  if (options.output && string_equal(options.output, "-") &&
      (options.emissions & (options.emissions - 1) || options.emissions == EMIT_EXECUTABLE)) {
    fprintf(stderr, "reprise compile: '-o -' goes with --emit of one text (c, ir or graph)\n");
    return EXIT_USAGE;
  }
  Module *module = load_module(&options, &code);
  if (!module) return code;
  Compilation *compilation = compile_for_target(&options, module);
  if (!compilation) return EXIT_SOURCE_ERROR;
  if ((code = check_budget(&options, compilation)) != EXIT_OK) return code;
  if ((options.emissions & EMIT_IR) &&
      (code = write_emission(&options, EMIT_IR, ".ir", module_print(options.arena, module))))
    return code;
  if ((options.emissions & EMIT_GRAPH) &&
      (code = write_emission(&options, EMIT_GRAPH, ".graph.json", emit_graph(&options, compilation))))
    return code;
  if ((options.emissions & EMIT_C) &&
      (code = write_emission(&options, EMIT_C, ".c", emit_source(&options, compilation))))
    return code;
  if (!(options.emissions & EMIT_EXECUTABLE)) return EXIT_OK;
  char *output = output_name(&options, EMIT_EXECUTABLE, "");
  code = produce_executable(&options, compilation, output);
  if (code == EXIT_OK) print_result(&options, compilation, output);
  return code;
}
