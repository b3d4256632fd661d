/* frontend/driver/command_compile.c - `reprise compile`. */
#include <unistd.h>

#include "codegen/codegen.h"
#include "frontend/driver/commands.h"
#include "frontend/driver/measured_costs.h"
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

/* Microseconds per node by the profile in `context`, which knows every kernel. */
static double *costs_by_profile(void *context, const Graph *graph, const StorageTable *table, MemoryArena *arena) {
  int64_t missing;
  return profile_costs(context, graph, table, &missing, arena);
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

/* Whose costs a plan is made with when nobody says. */
static const char *default_device(const Options *options) {
  static const struct {
    int architecture;
    const char *name;
  } devices[] = {{80, "a100"}, {86, "rtx3060-12g"}, {89, "rtx4090"}};
  if (options->target != &target_cuda) return "cpu";
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (devices[i].architecture == options->cuda.architectures[options->cuda.count - 1]) return devices[i].name;
  return "h100";
}

Compilation *compile_within_budget(const Options *options, Module *module, int *code) {
  CheckpointOptions checkpoint = {.request = plan_request_of(options), .plan_input = options->plan_input};
  PipelineOptions pipeline = {.alignment = options->target->alignment,
                              .budget = options->budget,
                              .dump_pass = options->dump_pass,
                              .checkpoint = &checkpoint,
                              .costs = costs_by_model};
  if (options->target == &target_cuda) {
    pipeline.workspace = cuda_workspace;
    pipeline.workspace_context = &options->cuda;
  }
  const char *io_error;
  Profile *profile = options->profile ? complete_profile(options, code) : NULL;
  if (options->profile && !profile) return NULL;
  const Device *device =
      find_device(options->arena, options->device ? options->device : default_device(options), &io_error);
  *code = io_error ? EXIT_IO : EXIT_SOURCE_ERROR;
  if (io_error) fprintf(stderr, "reprise: %s\n", io_error);
  if (!device) return NULL;
  pipeline.context = (void *)(uintptr_t)device;
  if (profile) pipeline.costs = costs_by_profile, pipeline.context = profile;
  Compilation *compilation = compile_module(module, &pipeline);
  if (checkpoint.request.progress) fputs("\r\033[K", stderr);
  if (compilation) *code = EXIT_OK;
  return compilation;
}

Compilation *compile_for_target(const Options *options, Module *module, int *code) {
  Compilation *compilation = compile_within_budget(options, module, code);
  if (!compilation) return NULL;
  *code = report_plan_faults(options, compilation);
  return *code == EXIT_OK ? compilation : NULL;
}

int produce_sources(const Options *options, const Compilation *compilation, bool images, Produced *produced) {
  CodegenOptions codegen = {.cuda = &options->cuda};
  *produced = (Produced){0};
  if (compilation->checkpoint) {
    PlanView view = view_of_compilation(compilation);
    codegen.plan_json = view_plan_text(options->arena, &view, false);
  }
  if (options->target == &target_cuda) return produce_cuda(options, compilation, &codegen, images, produced);
  produced->host = emit_c_program(compilation, &codegen, options->arena, &produced->length);
  return produced->host ? EXIT_OK : EXIT_SOURCE_ERROR;
}

static int link_program(const Options *options, const Produced *produced, const char *output) {
  LinkOptions link = {.compiler = options->compiler, .flags = options->compiler_flags};
  ExitCode code;
  const char *error;
  if (link_executable(produced->host, produced->length, output, &link, options->arena, &code, &error)) return EXIT_OK;
  fprintf(stderr, "reprise: %s\n", error);
  return code;
}

int produce_executable(const Options *options, const Compilation *compilation, const char *output) {
  Produced produced;
  int code = produce_sources(options, compilation, true, &produced);
  return code ? code : link_program(options, &produced, output);
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
static int write_plan_files(const Options *options, const Compilation *compilation, const Produced *produced) {
  if (!compilation->checkpoint) return EXIT_OK;
  Planning planning = planning_of_compilation(options, compilation);
  if (produced->cuda && produced->images.count) planning.produced = produced;
  PlanView view = view_of_compilation(compilation);
  const char *plan = options->plan_output ? view_plan_text(options->arena, &view, false) : NULL;
  int code = plan ? write_text(options, options->plan_output, plan) : EXIT_OK;
  if (code) return code;
  return write_pictures(&planning, &view, NULL);
}

/* Sources, as far as what is asked for is made of them. */
static int make_sources(const Options *options, const Compilation *compilation, Produced *produced) {
  enum { IMAGES = EMIT_EXECUTABLE | EMIT_C | EMIT_PTX | EMIT_KERNELS, SOURCES = IMAGES | EMIT_CUDA };
  bool cuda_report = options->target == &target_cuda && options->emissions & EMIT_REPORT;
  *produced = (Produced){0};
  if (!(options->emissions & SOURCES) && !cuda_report) return EXIT_OK;
  return produce_sources(options, compilation, options->emissions & IMAGES || cuda_report, produced);
}

/* Sources and executable. */
static int write_program(const Options *options, const Compilation *compilation, const Produced *produced) {
  int code = write_emission(options, EMIT_C, ".c", produced->host);
  if (code) return code;
  if (produced->cuda && (code = write_emission(options, EMIT_CUDA, ".cu", produced->cuda->source))) return code;
  if (produced->cuda && (code = write_emission(options, EMIT_PTX, ".ptx", produced->images.ptx.bytes))) return code;
  if (produced->cuda &&
      (code = write_emission(options, EMIT_KERNELS, ".kernels.json", cuda_kernels_json(options, produced))))
    return code;
  if (!(options->emissions & EMIT_EXECUTABLE)) return EXIT_OK;
  char *output = output_name(options, EMIT_EXECUTABLE, "");
  code = link_program(options, produced, output);
  if (code) return code;
  print_result(options, compilation, output);
  if (produced->cuda && options->verbose && !options->quiet) print_cuda_kernels(produced);
  return EXIT_OK;
}

/* Said here and not by `check` or `plan`, for which such a model is complete. */
static void warn_without_train_block(const Options *options, const Module *module) {
  if (module->training.present || !(options->emissions & EMIT_EXECUTABLE)) return;
  fprintf(stderr, "reprise: warning: no train block for '%s': the program will have no data to read and no optimizer\n",
          module->name);
}

static bool to_standard_output(const char *path) { return path && string_equal(path, "-"); }

/* Standard output takes one text. Returns EXIT_OK, or EXIT_USAGE after its message. */
static int check_outputs(const Options *options) {
  int code = check_picture_options(options);
  if (code || !to_standard_output(options->output)) return code;
  bool one = !(options->emissions & (options->emissions - 1)) && options->emissions != EMIT_EXECUTABLE;
  bool others = pictures_take_output(options) || to_standard_output(options->plan_output);
  if (!one)
    fprintf(stderr,
            "reprise compile: '-o -' goes with --emit of one text (c, cu, ptx, kernels, ir, graph or report)\n");
  else if (others && options->emissions != EMIT_REPORT)
    fprintf(stderr, "reprise compile: only one result can go to standard output\n(see 'reprise compile --help')\n");
  return one && (!others || options->emissions == EMIT_REPORT) ? EXIT_OK : EXIT_USAGE;
}

static int write_graphs(const Options *options, const Compilation *compilation) {
  int code = EXIT_OK;
  if (options->emissions & EMIT_IR)
    code = write_emission(options, EMIT_IR, ".ir", module_print(options->arena, compilation->module));
  if (code == EXIT_OK && options->emissions & EMIT_GRAPH)
    code = write_emission(options, EMIT_GRAPH, ".graph.json",
                          plan_graph_text(options->arena, compilation->checkpoint->problem->plan_graph));
  return code;
}

int compile_command(const Options *given) {
  Options options = *given;
  Produced produced;
  if (!options.emissions && !options.dump_pass) options.emissions = EMIT_EXECUTABLE;
  if (options.emissions & EMIT_REPORT && !options.report_output)
    options.report_output = output_name(&options, EMIT_REPORT, ".html");
  int code = check_outputs(&options);
  if (code) return code;
  Module *module = load_module(&options, &code);
  if (!module) return code;
  Compilation *compilation = compile_for_target(&options, module, &code);
  if (!compilation) return code;
  warn_without_train_block(&options, module);
  if ((code = make_sources(&options, compilation, &produced))) return code;
  if ((code = write_plan_files(&options, compilation, &produced))) return code;
  if ((code = write_graphs(&options, compilation))) return code;
  return write_program(&options, compilation, &produced);
}
