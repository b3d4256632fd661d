/* frontend/driver/command_compile.c - `reprise compile`. */
#include <unistd.h>

#include "codegen/codegen.h"
#include "frontend/driver/commands.h"
#include "frontend/driver/picture_output.h"
#include "frontend/driver/produce.h"
#include "passes/checkpoint.h"

int write_text(const Options *options, const char *path, const char *text) {
  const char *error;
  if (file_write(options->arena, path, text, (int64_t)strlen(text), &error)) return EXIT_OK;
  fprintf(stderr, "reprise: %s\n", error);
  return EXIT_IO;
}

/* Microseconds per node by the roofline model of the device in `context`. */
static double *costs_by_model(void *context, const Graph *graph, const StorageTable *table, MemoryArena *arena) {
  return model_costs(graph, table, context, arena);
}

static void show_progress(void *context, const char *text) {
  (void)context;
  fprintf(stderr, "\r\033[Kplanning: %s", text);
  fflush(stderr);
}

PlanRequest plan_request_of(const Options *options) {
  PlanRequest request = {.strategy = options->strategy,
                         .planner = options->planner,
                         .seconds = options->solver_seconds,
                         .nodes = options->solver_nodes};
  if (isatty(STDERR_FILENO) && !options->quiet) request.progress = show_progress;
  return request;
}

Compilation *compile_for_target(const Options *options, Module *module, int *code) {
  CheckpointOptions checkpoint = {.request = plan_request_of(options), .plan_input = options->plan_input};
  PipelineOptions pipeline = {.alignment = target_c.alignment,
                              .budget = options->budget,
                              .dump_pass = options->dump_pass,
                              .checkpoint = &checkpoint,
                              .costs = costs_by_model};
  const char *io_error;
  const Device *device = find_device(options->arena, options->device ? options->device : "cpu", &io_error);
  *code = io_error ? EXIT_IO : EXIT_SOURCE_ERROR;
  if (io_error) fprintf(stderr, "reprise: %s\n", io_error);
  if (!device) return NULL;
  pipeline.context = (void *)(uintptr_t)device;
  Compilation *compilation = compile_module(module, &pipeline);
  if (checkpoint.request.progress) fputs("\r\033[K", stderr);
  if (!compilation) return NULL;
  *code = report_plan_faults(options, compilation);
  return *code == EXIT_OK ? compilation : NULL;
}

static char *emit_source(const Options *options, const Compilation *compilation) {
  int64_t length;
  const Checkpoint *checkpoint = compilation->checkpoint;
  CodegenOptions codegen = {0};
  if (checkpoint)
    codegen.plan_json = plan_text(options->arena, checkpoint->problem->plan_graph, checkpoint->answer.plan, false);
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

/* The plan and its pictures, of a model that is trained. */
static int write_plan_files(const Options *options, const Compilation *compilation) {
  if (!compilation->checkpoint) return EXIT_OK;
  PlanView view = view_of_compilation(compilation);
  const char *plan = options->plan_output ? plan_text(options->arena, view.graph, view.answer.plan, false) : NULL;
  int code = plan ? write_text(options, options->plan_output, plan) : EXIT_OK;
  if (code) return code;
  return write_pictures(options, &view);
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
  Compilation *compilation = compile_for_target(&options, module, &code);
  if (!compilation) return code;
  if ((code = write_plan_files(&options, compilation))) return code;
  if ((options.emissions & EMIT_IR) &&
      (code = write_emission(&options, EMIT_IR, ".ir", module_print(options.arena, compilation->module))))
    return code;
  if ((options.emissions & EMIT_GRAPH) &&
      (code = write_emission(&options, EMIT_GRAPH, ".graph.json",
                             plan_graph_text(options.arena, compilation->checkpoint->problem->plan_graph))))
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
