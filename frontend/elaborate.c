/* frontend/elaborate.c - files with their constants and imports; the model, expanded for training and for evaluation.
 */
#include "frontend/elaborate.h"

#include <inttypes.h>

#include "frontend/elaborate_state.h"
#include "frontend/parser.h"

static bool has_failed(const Elaborator *elaborator) { return diag_error_count() > elaborator->errors; }

/* ---- constants of a file ---- */

/* What -D or the arguments of an import put in the place of a dim or const. */
typedef struct Replacement {
  const char *name;
  Datum value;
  Location location;
  bool used;
} Replacement;
typedef ARRAY(Replacement) Replacements;

static Replacement *find_replacement(Replacements *replacements, const char *name) {
  for (int64_t i = 0; i < replacements->count; i++)
    if (string_equal(replacements->items[i].name, name)) return &replacements->items[i];
  return NULL;
}

static bool check_constant_name(const Scope *scope, const Setting *setting) {
  const Binding *binding = scope_find(scope, setting->name);
  if (!binding && !is_predeclared(setting->name) && !string_equal(setting->name, "_")) return true;
  diag_error(setting->name_location, binding ? "'%s' is declared twice" : "'%s' is predeclared and cannot be declared",
             setting->name);
  if (binding) diag_note(binding->location, "'%s' is declared here", setting->name);
  return false;
}

static Datum check_dim(Elaborator *elaborator, const char *name, Datum value, Location location) {
  if (value.kind == DATUM_ERROR || (value.kind == DATUM_INT && value.integer >= 1)) return value;
  diag_error(location, "the dim '%s' is an int from 1, found %s; a 'const' may be any constant", name,
             datum_text(elaborator->scratch, &value));
  return datum_error();
}

static void declare_constants(Elaborator *elaborator, FileScope *file, const Top *top, Replacements *replacements) {
  for (int64_t i = 0; i < top->settings.count; i++) {
    const Setting *setting = &top->settings.items[i];
    Replacement *replacement = find_replacement(replacements, setting->name);
    if (!check_constant_name(&file->constants, setting)) continue;
    Datum value = replacement ? replacement->value : evaluate(elaborator, setting->value);
    if (replacement) replacement->used = true;
    if (top->kind == TOP_DIM)
      value =
          check_dim(elaborator, setting->name, value, replacement ? replacement->location : setting->value->location);
    Binding binding = {.kind = BINDING_CONSTANT, .value = value, .persistent = -1, .location = setting->name_location};
    scope_set(elaborator, &file->constants, setting->name, binding);
  }
}

static void report_unused(Elaborator *elaborator, const FileScope *file, const Replacements *replacements) {
  for (int64_t i = 0; i < replacements->count; i++) {
    const Replacement *replacement = &replacements->items[i];
    if (replacement->used) continue;
    Suggestion suggestion = suggestion_start(replacement->name);
    for (int64_t k = 0; k < file->constants.names.count; k++)
      suggestion_consider(&suggestion, file->constants.names.keys[k]);
    diag_error(replacement->location, "'%s' has no dim or const '%s'%s", file->file->source->path, replacement->name,
               suggestion_list(elaborator, &suggestion));
  }
}

/* ---- modules and models of a file ---- */

static void check_formals(const Top *top) {
  bool optional = false;
  for (int64_t i = 0; i < top->formals.count; i++) {
    const Formal *formal = &top->formals.items[i];
    Location location = formal->path.location;
    bool is_none = formal->value && formal->value->kind == EXPR_PATH && formal->value->path.parts.count == 1 &&
                   formal->value->path.parts.items[0].word &&
                   string_equal(formal->value->path.parts.items[0].word, "none");
    if (optional && !formal->value) diag_error(location, "a formal without a default comes before those that have one");
    if (formal->type && formal->value && !is_none)
      diag_error(formal->value->location, "the only default of a tensor is 'none'");
    if (top->kind == TOP_MODEL && (!formal->type || formal->value))
      diag_error(location, "an input of a model has a type with known dims and no default");
    optional = optional || formal->value;
  }
}

static void add_callable(Elaborator *elaborator, FileScope *file, Callable *callable, Location location) {
  const char *name = callable->top->name.text;
  const int64_t *found = string_map_find(&file->callables, name);
  if (found) {
    diag_error(location, "'%s' is declared twice", name);
    diag_note(file->list.items[*found]->top->name.location, "the other one is here");
    return;
  }
  string_map_set(&file->callables, name, file->list.count);
  array_push(elaborator->scratch, &file->list, callable);
}

static void declare_callable(Elaborator *elaborator, FileScope *file, const Top *top) {
  Callable *callable = NEW(elaborator->scratch, Callable);
  *callable = (Callable){.top = top, .home = file};
  check_formals(top);
  add_callable(elaborator, file, callable, top->name.location);
}

/* ---- imports ---- */

static FileScope *load_file(Elaborator *elaborator, File *file, FileScope *importer, Replacements *replacements);

static bool imports_itself(const FileScope *importer, const char *path) {
  for (; importer; importer = importer->importer)
    if (string_equal(importer->file->source->path, path)) return true;
  return false;
}

static File *read_import(Elaborator *elaborator, FileScope *importer, const Top *top) {
  MemoryArena *arena = elaborator->arena;
  Source *source = NEW(arena, Source);
  const char *error = NULL;
  source->path = file_sibling(arena, importer->file->source->path, top->name.text);
  if (importer->depth >= DEEPEST_IMPORT || imports_itself(importer, source->path)) {
    diag_error(top->name.location, "'%s' imports itself", source->path);
    return NULL;
  }
  source->text = file_read(arena, source->path, &source->length, &error);
  if (source->text) {
    int errors = diag_error_count();
    File *file = parse_source(arena, source);
    return diag_error_count() == errors ? file : NULL;
  }
  diag_error(top->name.location, "%s", error);
  return NULL;
}

/* The arguments of an import, evaluated among the constants of the importing file. */
static bool import_replacements(Elaborator *elaborator, const Top *top, Replacements *replacements) {
  CallArguments arguments = {0};
  evaluate_arguments(elaborator, &top->arguments, &arguments);
  for (int64_t i = 0; i < arguments.count; i++) {
    const CallArgument *argument = &arguments.items[i];
    if (argument->value.kind == DATUM_ERROR) return false;
    if (!argument->name) {
      diag_error(argument->location, "an import takes NAME=value, which replaces a dim or const of the file");
      return false;
    }
    Replacement replacement = {argument->name, argument->value, argument->location, false};
    array_push(elaborator->scratch, replacements, replacement);
  }
  return true;
}

static void import_file(Elaborator *elaborator, FileScope *importer, const Top *top) {
  Replacements replacements = {0};
  if (!import_replacements(elaborator, top, &replacements)) return;
  File *file = read_import(elaborator, importer, top);
  if (!file) return;
  FileScope *imported = load_file(elaborator, file, importer, &replacements);
  for (int64_t i = 0; i < imported->list.count; i++)
    if (imported->list.items[i]->home == imported)
      add_callable(elaborator, importer, imported->list.items[i], top->name.location);
}

static FileScope *load_file(Elaborator *elaborator, File *file, FileScope *importer, Replacements *replacements) {
  FileScope *scope = NEW(elaborator->scratch, FileScope), *outer = elaborator->file;
  *scope = (FileScope){.file = file, .importer = importer, .depth = importer ? importer->depth + 1 : 0};
  scope->constants = scope_create(elaborator);
  scope->callables.arena = elaborator->scratch;
  elaborator->file = scope;
  for (int64_t i = 0; i < file->tops.count; i++) {
    const Top *top = &file->tops.items[i];
    switch (top->kind) {
      case TOP_IMPORT:
        import_file(elaborator, scope, top);
        break;
      case TOP_DIM:
      case TOP_CONST:
        declare_constants(elaborator, scope, top, replacements);
        break;
      case TOP_MODULE:
      case TOP_MODEL:
        declare_callable(elaborator, scope, top);
        break;
      case TOP_TRAIN:
        break;
    }
  }
  report_unused(elaborator, scope, replacements);
  elaborator->file = outer;
  return scope;
}

/* ---- -D ---- */

static void read_definition(Elaborator *elaborator, const Definition *definition, Replacements *replacements) {
  Source *source = NEW(elaborator->arena, Source);
  source->path = memory_format(elaborator->arena, "-D %s", definition->name);
  source->text = memory_format(elaborator->arena, "const %s = %s\n", definition->name, definition->value);
  source->length = (int64_t)strlen(source->text);
  int errors = diag_error_count();
  File *file = parse_source(elaborator->arena, source);
  if (diag_error_count() > errors) return;
  const Top *top = file->tops.count == 1 ? &file->tops.items[0] : NULL;
  if (!top || top->kind != TOP_CONST || top->settings.count != 1) {
    diag_error((Location){source, 0, (int32_t)source->length - 1}, "expected -D NAME=VALUE with one constant");
    return;
  }
  const Setting *setting = &top->settings.items[0];
  if (find_replacement(replacements, setting->name)) {
    diag_error(setting->name_location, "-D gives '%s' twice", setting->name);
    return;
  }
  Replacement replacement = {setting->name, evaluate(elaborator, setting->value), setting->value->location, false};
  array_push(elaborator->scratch, replacements, replacement);
}

/* ---- the model ---- */

static const Top *find_train(const File *file) {
  const Top *train = NULL;
  for (int64_t i = 0; i < file->tops.count; i++) {
    const Top *top = &file->tops.items[i];
    if (top->kind != TOP_TRAIN) continue;
    if (train) {
      diag_error(top->location, "a file has one train block");
      diag_note(train->location, "the other one is here");
    }
    train = train ? train : top;
  }
  return train;
}

static Callable *find_trained_model(Elaborator *elaborator, FileScope *file, const Top *train) {
  const int64_t *found = string_map_find(&file->callables, train->name.text);
  Callable *callable = found ? file->list.items[*found] : NULL;
  Suggestion suggestion = suggestion_start(train->name.text);
  if (callable && callable->top->kind == TOP_MODEL) return callable;
  for (int64_t i = 0; i < file->list.count; i++)
    if (file->list.items[i]->top->kind == TOP_MODEL)
      suggestion_consider(&suggestion, file->list.items[i]->top->name.text);
  diag_error(train->name.location, "there is no model '%s'%s", train->name.text,
             suggestion_list(elaborator, &suggestion));
  return NULL;
}

/* The model of the train block; without one the last of the file's own, else the last imported. */
static Callable *find_model(Elaborator *elaborator, FileScope *file, const Top *train) {
  Callable *own = NULL, *imported = NULL;
  if (train) return find_trained_model(elaborator, file, train);
  for (int64_t i = 0; i < file->list.count; i++) {
    Callable *callable = file->list.items[i];
    if (callable->top->kind != TOP_MODEL) continue;
    if (callable->home == file)
      own = callable;
    else
      imported = callable;
  }
  if (!own && !imported)
    diag_error((Location){file->file->source, 0, 0},
               "the file has no model; expected 'model NAME(input: [...]) { ... }'");
  return own ? own : imported;
}

/* Declares the inputs at the first expansion and binds them at both. */
static void bind_inputs(Elaborator *elaborator, const Top *top) {
  int next = 0;
  for (int64_t i = 0; i < top->formals.count; i++) {
    const Formal *formal = &top->formals.items[i];
    NameList names = {0};
    Type type;
    DimName dims[MAX_RANK];
    bool sound =
        resolve_path(elaborator, &formal->path, &names) && evaluate_type(elaborator, formal->type, &type, dims);
    for (int64_t k = 0; k < names.count; k++) {
      Datum value = datum_error();
      if (sound && !elaborator->graph->evaluation)
        module_add_input(elaborator->module,
                         (ModelInput){memory_string(elaborator->arena, names.items[k]), type, formal->path.location});
      if (sound) {
        ValueId input = graph_input(elaborator->graph, next++);
        set_dim_names(elaborator, input, dims);
        value = datum_tensor(input);
      }
      if (!check_rebindable(elaborator, names.items[k], BINDING_VARIABLE, formal->path.location)) continue;
      scope_set(
          elaborator, &elaborator->expansion->scope, names.items[k],
          (Binding){.kind = BINDING_VARIABLE, .value = value, .persistent = -1, .location = formal->path.location});
    }
  }
}

static Graph *expand_model(Elaborator *elaborator, Callable *model, bool evaluation) {
  Graph *graph = graph_create(elaborator->module, evaluation);
  Expansion *expansion = expansion_create(elaborator, model, "", model->top->name.location);
  begin_graph(elaborator, graph);
  elaborator->expansion = expansion;
  elaborator->file = model->home;
  bind_inputs(elaborator, model->top);
  run_expansion(elaborator, expansion);
  if (!evaluation && !has_failed(elaborator)) store_states(elaborator);
  elaborator->expansion = NULL;
  elaborator->graph = NULL;
  return graph;
}

/* A parameter that is only read where it is frozen is never trained. */
static void mark_trainable(Elaborator *elaborator) {
  for (int64_t i = 0; i < elaborator->module->persistents.count; i++) {
    Persistent *persistent = &elaborator->module->persistents.items[i];
    const PersistentFacts *facts = &elaborator->facts.items[i];
    if (persistent->role == ROLE_PARAMETER && !facts->read && !facts->read_frozen)
      diag_warning(persistent->location, "the parameter '%s' is never used", persistent->name);
    persistent->trainable =
        persistent->role == ROLE_PARAMETER && !facts->frozen && (facts->read || !facts->read_frozen);
  }
}

static void elaborate_model(Elaborator *elaborator, FileScope *file) {
  const Top *train = find_train(file->file);
  Callable *model = find_model(elaborator, file, train);
  if (!model) return;
  elaborator->module = module_create(elaborator->arena, model->top->name.text, file->file->source->path);
  elaborator->file = file;
  if (train) read_freeze_globs(elaborator, train);
  elaborator->module->train = expand_model(elaborator, model, false);
  if (has_failed(elaborator)) return;
  if (elaborator->module->train->loss.value == NO_VALUE && train) {
    diag_error(model->top->name.location, "the model '%s' has no loss to train", model->top->name.text);
    return;
  }
  mark_trainable(elaborator);
  elaborator->module->evaluation = expand_model(elaborator, model, true);
  elaborator->file = file;
  if (train && !has_failed(elaborator)) elaborate_train(elaborator, train);
}

Module *elaborate_file(MemoryArena *arena, File *file, const Definition *definitions, int definition_count) {
  Elaborator elaborator = {.arena = arena, .scratch = memory_arena_create()};
  Replacements replacements = {0};
  int errors = elaborator.errors = diag_error_count();
  elaborator.persistents.arena = elaborator.scratch;
  for (int i = 0; i < definition_count; i++) read_definition(&elaborator, &definitions[i], &replacements);
  FileScope *scope = diag_error_count() == errors ? load_file(&elaborator, file, NULL, &replacements) : NULL;
  if (diag_error_count() == errors) elaborate_model(&elaborator, scope);
  memory_arena_destroy(elaborator.scratch);
  return diag_error_count() == errors ? elaborator.module : NULL;
}

Module *elaborate_path(MemoryArena *arena, const char *path, const Definition *definitions, int definition_count,
                       const char **io_error) {
  Source *source = NEW(arena, Source);
  *io_error = NULL;
  source->path = memory_string(arena, string_equal(path, "-") ? "<stdin>" : path);
  source->text = file_read(arena, path, &source->length, io_error);
  if (!source->text) return NULL;
  int errors = diag_error_count();
  File *file = parse_source(arena, source);
  return diag_error_count() == errors ? elaborate_file(arena, file, definitions, definition_count) : NULL;
}
