/* frontend/driver/options.c - options of all commands in one table; each command names those it takes. */
#include "frontend/driver/options.h"

#include <errno.h>
#include <stdlib.h>

#include "frontend/driver/free_memory.h"

typedef struct OptionInfo {
  const char *name; /* long name without dashes */
  const char *short_form;
  const char *value; /* how help calls its value; NULL: takes none */
  const char *help;
  const char *(*set)(Options *options, const char *value); /* returns what is wrong, or NULL */
} OptionInfo;

static const char *set_output(Options *options, const char *value) {
  options->output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_emissions(Options *options, const char *value) {
  static const struct {
    const char *name;
    OutputKind emission;
  } kinds[] = {{"exe", EMIT_EXECUTABLE}, {"c", EMIT_C},     {"ir", EMIT_IR},           {"graph", EMIT_GRAPH},
               {"cu", EMIT_CUDA},        {"ptx", EMIT_PTX}, {"kernels", EMIT_KERNELS}, {"report", EMIT_REPORT}};
  char *rest, *list = memory_string(options->arena, value);
  for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    unsigned found = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
      if (string_equal(word, kinds[i].name)) found = kinds[i].emission;
    if (!found) return "expected a list of exe, c, cu, ptx, kernels, ir, graph, report";
    options->emissions |= found;
  }
  return options->emissions ? NULL : "expected a list of exe, c, cu, ptx, kernels, ir, graph, report";
}

static const char *set_target(Options *options, const char *value) {
  options->target = target_find(value);
  return options->target ? NULL : "expected cpu or cuda";
}

static const char *set_architectures(Options *options, const char *value) {
  options->cuda_option = "--arch";
  return cuda_parse_architectures(value, &options->cuda) ? NULL : "expected architectures such as sm_90 or sm_80,sm_90";
}

static const char *set_tf32(Options *options, const char *value) {
  (void)value;
  options->cuda.tf32 = true;
  options->cuda_option = "--tf32";
  return NULL;
}

static const char *set_budget(Options *options, const char *value) {
  const char *error;
  options->budget_is_free_memory = string_equal(value, "auto");
  if (options->budget_is_free_memory) return NULL;
  return parse_size(value, &options->budget, &error) ? NULL : error;
}

static const char *set_definition(Options *options, const char *value) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) return "expected NAME=VALUE";
  Definition definition = {memory_string_range(options->arena, value, equals - value), equals + 1};
  array_push(options->arena, &options->definitions, definition);
  return NULL;
}

static const char *set_dump(Options *options, const char *value) {
  static const char *const passes[] = {"frontend", "simplify", "grad", "fuse", "kernels", "checkpoint"};
  options->dump_pass = value;
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
    if (string_equal(value, passes[i])) return NULL;
  return "expected one of frontend, simplify, grad, fuse, kernels, checkpoint";
}

static const char *set_count(const char *value, int64_t *count) {
  char *end;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (value[0] < '0' || value[0] > '9' || *end || errno || number < 1) return "expected a whole number of at least 1";
  *count = number;
  return NULL;
}

static const char *set_elements(Options *options, const char *value) { return set_count(value, &options->elements); }
static const char *set_steps(Options *options, const char *value) { return set_count(value, &options->steps); }

static const char *set_compiler(Options *options, const char *value) {
  options->compiler = value;
  return *value ? NULL : "expected a command";
}

static const char *set_compiler_flags(Options *options, const char *value) {
  options->compiler_flags = value;
  return NULL;
}

static const char *set_strategy(Options *options, const char *value) {
  if (plan_strategy_parse(value, &options->strategy)) return NULL;
  return "expected one of ilp, none, blocks, sqrt, selective, greedy";
}

static const char *set_cost(Options *options, const char *value) {
  if (string_equal(value, "model")) return NULL;
  if (!string_equal(value, "profile")) return "expected model or profile";
  if (!options->profile) options->profile = "reprise.profile.json";
  return NULL;
}

static const char *set_profile(Options *options, const char *value) {
  options->profile = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_planner(Options *options, const char *value) {
  options->planner = value;
  return *value ? NULL : "expected a command";
}

static const char *set_device(Options *options, const char *value) {
  options->device = value;
  return *value ? NULL : "expected the name or the description of a device";
}

static const char *set_solver_seconds(Options *options, const char *value) {
  char *end;
  options->solver_seconds = strtod(value, &end);
  bool good =
      value[0] >= '0' && value[0] <= '9' && !*end && options->solver_seconds > 0 && options->solver_seconds < 1e9;
  return good ? NULL : "expected a positive number of seconds";
}

static const char *set_solver_nodes(Options *options, const char *value) {
  return set_count(value, &options->solver_nodes);
}

static const char *set_plan_output(Options *options, const char *value) {
  options->plan_output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_plan_input(Options *options, const char *value) {
  options->plan_input = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_csv_output(Options *options, const char *value) {
  options->csv_output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_dot_output(Options *options, const char *value) {
  options->dot_output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_dot_detail(Options *options, const char *value) {
  static const char *const names[] = {[DETAIL_FULL] = "full", [DETAIL_BLOCK] = "block", [DETAIL_MODULE] = "module"};
  for (int detail = DETAIL_FULL; detail <= DETAIL_MODULE; detail++)
    if (string_equal(value, names[detail])) return options->dot_detail = (Detail)detail, NULL;
  return "expected full, block or module";
}

static const char *set_svg_output(Options *options, const char *value) {
  options->svg_output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_report_output(Options *options, const char *value) {
  options->report_output = value;
  return *value ? NULL : "expected a file name";
}

static const char *set_points(Options *options, const char *value) {
  const char *fault = set_count(value, &options->points);
  return fault ? fault : options->points > 1000 ? "expected at most 1000" : NULL;
}

static const char *set_check(Options *options, const char *value) {
  (void)value;
  options->check = true;
  return NULL;
}

static const char *set_measure(Options *options, const char *value) {
  (void)value;
  options->measure = true;
  return NULL;
}

static const char *set_json(Options *options, const char *value) {
  (void)value;
  options->json = true;
  return NULL;
}

static const char *set_quiet(Options *options, const char *value) {
  (void)value;
  options->quiet = true;
  return NULL;
}

static const char *set_verbose(Options *options, const char *value) {
  (void)value;
  options->verbose = true;
  return NULL;
}

static const OptionInfo option_table[] = {
    {"output", "-o", "FILE", "where the result goes; - is standard output (--emit of one text)", set_output},
    {"define", "-D", "NAME=VALUE", "replaces a dim or const of the model file", set_definition},
    {"emit", NULL, "LIST", "what to write: exe (default), c, cu, ptx, kernels, ir, graph, report; several with commas",
     set_emissions},
    {"target", NULL, "NAME", "cpu (default) or cuda", set_target},
    {"arch", NULL, "LIST", "cuda: compile for these (default: sm_80,sm_86,sm_89,sm_90), PTX for later ones",
     set_architectures},
    {"tf32", NULL, NULL, "cuda: matrix products may round their operands to 10 bits of mantissa", set_tf32},
    {"memory-budget", NULL, "SIZE",
     "most bytes that the arena may take: 8GiB, 64MB, or auto, what is free on this machine", set_budget},
    {"strategy", NULL, "NAME", "ilp (default), none, blocks, sqrt, selective or greedy", set_strategy},
    {"device", NULL, "NAME", "whose costs to plan with: cpu, h100, h200, a100, rtx4090, ..., or a description file",
     set_device},
    {"cost", NULL, "KIND", "model (default), or profile: kernels are timed once, in the model's own program", set_cost},
    {"profile", NULL, "FILE", "the file of times (implies --cost=profile; default reprise.profile.json)", set_profile},
    {"planner", NULL, "COMMAND", "the planner program (default: reprise-planner)", set_planner},
    {"solver-nodes", NULL, "N", "branch-and-bound nodes of each integer program", set_solver_nodes},
    {"solver-time", NULL, "SECONDS", "a last resort: plans then depend on the machine's speed", set_solver_seconds},
    {"plan-out", NULL, "FILE", "write the plan", set_plan_output},
    {"plan-in", NULL, "FILE", "a plan of this graph to start from", set_plan_input},
    {"csv", NULL, "FILE", "write the curve as CSV", set_csv_output},
    {"dot", NULL, "FILE", "write the graph with its decisions for Graphviz", set_dot_output},
    {"dot-detail", NULL, "LEVEL", "full, block (equal blocks once) or module (default: by size)", set_dot_detail},
    {"svg", NULL, "FILE", "write the memory timeline (sweep: the curves) as SVG", set_svg_output},
    {"report", NULL, "FILE", "write one HTML page: anatomy, timeline, curve, graph, source, kernels, storages",
     set_report_output},
    {"points", NULL, "N", "budgets (default: 8 of a sweep, 5 in a report, 3 that verify compares)", set_points},
    {"dump", NULL, "PASS", "print the graphs after frontend, simplify, grad, fuse, kernels or checkpoint", set_dump},
    {"cc", NULL, "COMMAND", "the C compiler (default: $CC, else cc, or clang where reprise was built by it)",
     set_compiler},
    {"cflags", NULL, "FLAGS", "flags in place of -O3 -march=native", set_compiler_flags},
    {"elements", NULL, "N", "elements of each gradient that are compared (default 8)", set_elements},
    {"steps", NULL, "N", "training steps that are compared (default 3)", set_steps},
    {"check", NULL, NULL, "change nothing; exit 1 when a file is not in canonical form", set_check},
    {"measure", NULL, NULL, "measure this machine: matrix product, streaming, an empty kernel", set_measure},
    {"json", NULL, NULL, "print the result as JSON", set_json},
    {"quiet", "-q", NULL, "print nothing but errors", set_quiet},
    {"verbose", "-v", NULL, "print what is done", set_verbose},
};
enum { OPTION_COUNT = sizeof option_table / sizeof *option_table };

static bool takes(const Command *command, const char *name) {
  size_t length = strlen(name);
  for (const char *at = command->options; (at = strstr(at, name)); at += length)
    if ((at == command->options || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

/* The option of a word "--name", "--name=value", "-x" or "-xVALUE"; *value is what is attached, or NULL. */
static const OptionInfo *find_option(const Command *command, const char *word, const char **value) {
  *value = NULL;
  for (int i = 0; i < OPTION_COUNT; i++) {
    const OptionInfo *info = &option_table[i];
    size_t length = strlen(info->name);
    if (!takes(command, info->name)) continue;
    if (string_starts(word, "--") && strncmp(word + 2, info->name, length) == 0 &&
        (!word[2 + length] || word[2 + length] == '=')) {
      *value = word[2 + length] ? word + 3 + length : NULL;
      return info;
    }
    if (info->short_form && word[1] != '-' && string_starts(word, info->short_form) && (!word[2] || info->value)) {
      *value = word[2] ? word + 2 : NULL;
      return info;
    }
  }
  return NULL;
}

static int usage_error(const Command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int usage_error(const Command *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "reprise %s: ", command->name);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n(see 'reprise %s --help')\n", command->name);
  va_end(arguments);
  return EXIT_USAGE;
}

static int unknown_option(const Options *options, const Command *command, const char *word) {
  char *name = memory_string(options->arena, word + strspn(word, "-"));
  name[strcspn(name, "=")] = '\0';
  const char *close = NULL;
  int best = strlen(name) < 3 ? (int)strlen(name) : 3;
  for (int i = 0; i < OPTION_COUNT; i++) {
    int distance = string_distance(name, option_table[i].name, best - 1);
    if (takes(command, option_table[i].name) && distance < best) best = distance, close = option_table[i].name;
  }
  for (int i = 0; i < OPTION_COUNT && !close && strlen(name) > 2; i++)
    if (takes(command, option_table[i].name) && strstr(option_table[i].name, name)) close = option_table[i].name;
  if (close) return usage_error(command, "unknown option '%s'; did you mean '--%s'?", word, close);
  return usage_error(command, "unknown option '%s'", word);
}

static int resolve_budget(Options *options) {
  const char *error;
  if (!find_free_memory(options->target, options->arena, &options->budget, &error)) {
    fprintf(stderr, "reprise: --memory-budget=auto: %s\n", error);
    return EXIT_DEVICE;
  }
  if (!options->quiet) fprintf(stderr, "note: the budget is %s\n", format_bytes_exact(options->arena, options->budget));
  return EXIT_OK;
}

int parse_options(const Command *command, int count, char **words, Options *options) {
  bool only_files = false;
  options->command = command->name;
  options->budget = -1;
  options->target = &target_c;
  options->cuda = cuda_default_options();
  for (int i = 0; i < count; i++) {
    const char *word = words[i], *value;
    if (only_files || word[0] != '-' || !word[1]) {
      array_push(options->arena, &options->files, word);
      continue;
    }
    if (string_equal(word, "--")) {
      only_files = true;
      continue;
    }
    const OptionInfo *info = find_option(command, word, &value);
    if (!info) return unknown_option(options, command, word);
    if (!info->value && value) return usage_error(command, "option '--%s' takes no value", info->name);
    if (info->value && !value) {
      if (i + 1 == count) return usage_error(command, "option '%s' lacks its value %s", word, info->value);
      value = words[++i];
    }
    const char *fault = info->set(options, value);
    if (fault) return usage_error(command, "option '--%s': %s, found '%s'", info->name, fault, value);
  }
  if (options->emissions & (EMIT_CUDA | EMIT_PTX | EMIT_KERNELS)) options->cuda_option = "--emit of cu, ptx or kernels";
  if (options->cuda_option && options->target != &target_cuda)
    return usage_error(command, "%s goes with --target=cuda", options->cuda_option);
  if (options->plan_input && options->strategy != PLAN_STRATEGY_ILP)
    return usage_error(command, "--plan-in is where --strategy=ilp starts from; '%s' makes a plan of its own",
                       plan_strategy_name(options->strategy));
  if (options->files.count < command->files_least || options->files.count > command->files_most)
    return usage_error(command, "expected %s, found %lld file%s", command->arguments, (long long)options->files.count,
                       options->files.count == 1 ? "" : "s");
  return options->budget_is_free_memory ? resolve_budget(options) : EXIT_OK;
}

bool can_read(const Options *options, const char *path) {
  const char *error;
  bool good = file_can_read(options->arena, path, &error);
  if (!good) fprintf(stderr, "reprise: %s\n", error);
  return good;
}

/* A line of text from a column on, broken between words at a page's width. */
static void print_wrapped(FILE *file, const char *text, int column) {
  enum { PAGE_WIDTH = 100 };
  for (int at = column; *text;) {
    int length = (int)strcspn(text, " ");
    if (at > column && at + 1 + length > PAGE_WIDTH) fprintf(file, "\n%*s", at = column, "");
    at += fprintf(file, at > column ? " %.*s" : "%.*s", length, text);
    text += length + strspn(text + length, " ");
  }
  fputc('\n', file);
}

void print_command_help(FILE *file, const Command *command) {
  fprintf(file, "usage: reprise %s %s\n\n", command->name, command->arguments);
  print_wrapped(file, command->summary, 0);
  fputs("\noptions:\n", file);
  for (int i = 0; i < OPTION_COUNT; i++) {
    const OptionInfo *info = &option_table[i];
    char form[64];
    if (!takes(command, info->name)) continue;
    if (info->short_form)
      snprintf(form, sizeof form, "%s%s%s, --%s", info->short_form, info->value ? " " : "",
               info->value ? info->value : "", info->name);
    else
      snprintf(form, sizeof form, "--%s%s%s", info->name, info->value ? "=" : "", info->value ? info->value : "");
    fprintf(file, "  %-28s ", form);
    print_wrapped(file, info->help, 31);
  }
  fprintf(file, "  %-28s %s\n", "--help", "this text");
}
