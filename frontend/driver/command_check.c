/* frontend/driver/command_check.c - `reprise check` and `reprise fmt`. */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "frontend/driver/commands.h"
#include "frontend/format.h"
#include "frontend/parser.h"

void print_diagnostics(void) {
  diag_print(stderr, isatty(STDERR_FILENO) && !getenv("NO_COLOR"));
  diag_reset();
}

Module *load_module(const Options *options, int *exit_code) {
  const char *io_error;
  Module *module = elaborate_path(options->arena, options->files.items[0], options->definitions.items,
                                  (int)options->definitions.count, &io_error);
  *exit_code = module ? EXIT_OK : EXIT_SOURCE_ERROR;
  if (io_error) {
    fprintf(stderr, "reprise: %s\n", io_error);
    *exit_code = EXIT_IO;
  }
  return module;
}

char *format_count(MemoryArena *arena, int64_t count) {
  char *text = format_bytes_exact(arena, count);
  text[strlen(text) - 2] = '\0'; /* without the unit " B" */
  return text;
}

/* ---- check ---- */

typedef struct Summary {
  int64_t parameters, trainable, states; /* elements */
  int64_t parameter_tensors, parameter_bytes;
} Summary;

static Summary summarize(const Module *module) {
  Summary summary = {0};
  for (int64_t i = 0; i < module->persistents.count; i++) {
    const Persistent *persistent = &module->persistents.items[i];
    int64_t elements = type_elements(&persistent->type);
    if (persistent->role == ROLE_STATE) summary.states += elements;
    if (persistent->role != ROLE_PARAMETER) continue;
    summary.parameters += elements;
    summary.parameter_tensors++;
    summary.parameter_bytes += type_bytes(&persistent->type);
    if (persistent->trainable) summary.trainable += elements;
  }
  return summary;
}

static void print_summary(MemoryArena *arena, const Module *module, const Summary *summary) {
  printf("%s: model %s\n", module->path, module->name);
  printf("  parameters  %s in %lld tensors (%s)\n", format_count(arena, summary->parameters),
         (long long)summary->parameter_tensors, format_bytes(arena, summary->parameter_bytes));
  if (summary->trainable != summary->parameters) printf("  trainable   %s\n", format_count(arena, summary->trainable));
  if (summary->states) printf("  state       %s\n", format_count(arena, summary->states));
  for (int64_t i = 0; i < module->inputs.count; i++)
    printf("  %-11s %s: %s\n", i ? "" : "inputs", module->inputs.items[i].name,
           type_text(arena, &module->inputs.items[i].type));
  for (int64_t i = 0; i < module->train->outputs.count; i++) {
    const GraphOutput *output = &module->train->outputs.items[i];
    printf("  %-11s %s: %s\n", i ? "" : "outputs", output->name,
           type_text(arena, value_type(module->train, output->value)));
  }
  printf("  nodes       %s forward\n", format_count(arena, module->train->nodes.count));
  if (module->training.present)
    printf("  training    %s\n",
           module->training.has_optimizer ? op_info(module->training.optimizer)->name : "without optimizer");
  else
    puts("  training    none: the file has no train block for this model");
}

static int print_summary_json(MemoryArena *arena, const Module *module, const Summary *summary) {
  json_t *inputs = json_array(), *parameters = json_array();
  for (int64_t i = 0; i < module->inputs.count; i++)
    json_array_append_new(inputs, json_pack("{s:s, s:s}", "name", module->inputs.items[i].name, "type",
                                            type_text(arena, &module->inputs.items[i].type)));
  for (int64_t i = 0; i < module->persistents.count; i++) {
    const Persistent *persistent = &module->persistents.items[i];
    json_array_append_new(
        parameters,
        json_pack("{s:s, s:s, s:s, s:b}", "name", persistent->name, "type", type_text(arena, &persistent->type), "role",
                  persistent->role == ROLE_STATE ? "state" : "parameter", "trainable", persistent->trainable));
  }
  json_t *root =
      json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "model", module->name, "file", module->path, "parameters",
                (json_int_t)summary->parameters, "trainable", (json_int_t)summary->trainable, "nodes",
                (json_int_t)module->train->nodes.count, "inputs", inputs, "persistents", parameters);
  char *text = json_dumps(root, JSON_INDENT(2));
  json_decref(root);
  if (!text) die_out_of_memory(0);
  puts(text);
  free(text);
  return EXIT_OK;
}

int check_command(const Options *options) {
  int code;
  Module *module = load_module(options, &code);
  if (!module) return code;
  Summary summary = summarize(module);
  if (options->json) return print_summary_json(options->arena, module, &summary);
  if (!options->quiet) print_summary(options->arena, module, &summary);
  return EXIT_OK;
}

/* ---- fmt ---- */

static int rewrite_file(const Options *options, const char *path) {
  const char *error;
  Source *source = NEW(options->arena, Source);
  source->path = string_equal(path, "-") ? "<stdin>" : path;
  source->text = file_read(options->arena, path, &source->length, &error);
  if (!source->text) {
    fprintf(stderr, "reprise: %s\n", error);
    return EXIT_IO;
  }
  int errors = diag_error_count();
  File *file = parse_source(options->arena, source);
  if (diag_error_count() > errors) return EXIT_SOURCE_ERROR;
  char *text = format_file(options->arena, file);
  bool same = string_equal(text, source->text), standard = string_equal(path, "-");
  if (options->check) {
    if (!same && !options->quiet) printf("%s: not in canonical form\n", source->path);
    return same ? EXIT_OK : EXIT_SOURCE_ERROR;
  }
  if (same && !standard) return EXIT_OK;
  if (!file_write(options->arena, path, text, (int64_t)strlen(text), &error)) {
    fprintf(stderr, "reprise: %s\n", error);
    return EXIT_IO;
  }
  if (!standard && !options->quiet) printf("%s: rewritten\n", path);
  return EXIT_OK;
}

int format_command(const Options *options) {
  int worst = EXIT_OK;
  for (int64_t i = 0; i < options->files.count; i++) {
    int code = rewrite_file(options, options->files.items[i]);
    if (code > worst) worst = code;
  }
  return worst;
}
