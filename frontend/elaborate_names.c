/* frontend/elaborate_names.c - scopes, paths with holes, rebinding, did-you-mean. */
#include <inttypes.h>
#include <math.h>

#include "frontend/elaborate_state.h"

/* ---- scopes ---- */

Scope scope_create(Elaborator *elaborator) { return (Scope){.names = {.arena = elaborator->scratch}}; }

Binding *scope_find(const Scope *scope, const char *name) {
  const int64_t *index = string_map_find(&scope->names, name);
  return index ? &scope->bindings.items[*index] : NULL;
}

Binding *scope_set(Elaborator *elaborator, Scope *scope, const char *name, Binding binding) {
  Binding *found = scope_find(scope, name);
  if (found) {
    *found = binding;
    return found;
  }
  string_map_set(&scope->names, name, scope->bindings.count);
  array_push(elaborator->scratch, &scope->bindings, binding);
  return &scope->bindings.items[scope->bindings.count - 1];
}

const Binding *find_binding(const Elaborator *elaborator, const char *name) {
  const Binding *found = elaborator->rule ? scope_find(&elaborator->rule->scope, name) : NULL;
  if (!found && elaborator->expansion) found = scope_find(&elaborator->expansion->scope, name);
  if (!found && elaborator->file) found = scope_find(&elaborator->file->constants, name);
  return found;
}

/* ---- predeclared words ---- */

static const char *const predeclared[] = {"true", "false", "none", "eval", "pi"};

bool is_predeclared(const char *name) {
  for (size_t i = 0; i < sizeof predeclared / sizeof *predeclared; i++)
    if (string_equal(predeclared[i], name)) return true;
  return false;
}

static bool predeclared_value(const Elaborator *elaborator, const char *name, Datum *value) {
  if (!is_predeclared(name)) return false;
  switch (*name) {
    case 't':
      *value = datum_bool(true);
      break;
    case 'f':
      *value = datum_bool(false);
      break;
    case 'n':
      *value = datum_none();
      break;
    case 'e':
      *value = datum_bool(elaborator->graph && elaborator->graph->evaluation);
      break;
    default:
      *value = datum_float(3.14159265358979323846);
      break;
  }
  return true;
}

/* ---- did-you-mean ---- */

Suggestion suggestion_start(const char *wanted) {
  int length = (int)strlen(wanted), limit = length <= 2 ? 1 : length <= 5 ? 2 : 3;
  return (Suggestion){.wanted = wanted, .distance = limit + 1};
}

void suggestion_consider(Suggestion *suggestion, const char *name) {
  int distance = string_distance(suggestion->wanted, name, suggestion->distance - 1);
  if (suggestion->count < MOST_LISTED_NAMES) suggestion->names[suggestion->count] = name;
  suggestion->count++;
  if (distance >= suggestion->distance || distance >= (int)strlen(suggestion->wanted)) return;
  suggestion->best = name;
  suggestion->distance = distance;
}

const char *suggestion_text(Elaborator *elaborator, const Suggestion *suggestion) {
  return suggestion->best ? memory_format(elaborator->scratch, "; did you mean '%s'?", suggestion->best) : "";
}

const char *suggestion_list(Elaborator *elaborator, const Suggestion *suggestion) {
  if (suggestion->best || suggestion->count < 1 || suggestion->count > MOST_LISTED_NAMES)
    return suggestion_text(elaborator, suggestion);
  char *text = memory_string(elaborator->scratch, suggestion->count > 1 ? "; expected one of" : "; expected");
  for (int i = 0; i < suggestion->count; i++)
    text = memory_format(elaborator->scratch, "%s%s %s", text, i ? "," : "", suggestion->names[i]);
  return text;
}

static void consider_scope(Suggestion *suggestion, const Scope *scope) {
  for (int64_t i = 0; i < scope->names.count; i++) suggestion_consider(suggestion, scope->names.keys[i]);
}

static void report_unknown(Elaborator *elaborator, const char *name, Location location) {
  Suggestion suggestion = suggestion_start(name);
  if (elaborator->rule) consider_scope(&suggestion, &elaborator->rule->scope);
  if (elaborator->expansion) consider_scope(&suggestion, &elaborator->expansion->scope);
  if (elaborator->file) consider_scope(&suggestion, &elaborator->file->constants);
  for (size_t i = 0; i < sizeof predeclared / sizeof *predeclared; i++)
    if (string_distance(name, predeclared[i], 1) == 1) suggestion_consider(&suggestion, predeclared[i]);
  diag_error(location, "unknown name '%s'%s", name, suggestion_text(elaborator, &suggestion));
}

Datum lookup(Elaborator *elaborator, const char *name, Location location) {
  Datum value = datum_error();
  const Binding *binding = find_binding(elaborator, name);
  if (binding)
    return binding->kind == BINDING_WEIGHT || binding->kind == BINDING_STATE ? read_persistent(elaborator, binding)
                                                                             : binding->value;
  if (predeclared_value(elaborator, name, &value)) return value;
  if (string_equal(name, "_"))
    diag_error(location, "'_' discards what it is given and has no value");
  else
    report_unknown(elaborator, name, location);
  return value;
}

/* ---- paths ---- */

static bool is_word_text(const char *text) {
  if (!*text) return false;
  for (; *text; text++)
    if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9') ||
          *text == '_'))
      return false;
  return true;
}

/* What a hole adds to a name. */
static const char *hole_text(Elaborator *elaborator, const Datum *value, Location location) {
  if (value->kind == DATUM_INT && value->integer >= 0)
    return memory_format(elaborator->scratch, "%" PRId64, value->integer);
  if (value->kind == DATUM_STRING && is_word_text(value->string)) return value->string;
  if (value->kind != DATUM_ERROR)
    diag_error(location, "a hole takes an int from 0, a string that is a word, or a list of these; found %s",
               datum_text(elaborator->scratch, value));
  return NULL;
}

/* Extends every name by one hole; a list multiplies them, once per path. */
static bool extend_by_hole(Elaborator *elaborator, const PathPart *part, NameList *names, bool *listed) {
  Datum value = evaluate(elaborator, part->hole);
  Location location = part->hole->location;
  int64_t count = value.kind == DATUM_LIST ? value.count : 1;
  NameList longer = {0};
  if (value.kind == DATUM_LIST && *listed) {
    diag_error(location, "a path has one hole with a list");
    return false;
  }
  if (count > MOST_NAMES) {
    diag_error(location, "the path stands for %" PRId64 " names; the most is %d", count, MOST_NAMES);
    return false;
  }
  *listed = *listed || value.kind == DATUM_LIST;
  for (int64_t i = 0; i < names->count; i++) {
    for (int64_t k = 0; k < count; k++) {
      Datum item = value.kind == DATUM_LIST ? list_item(&value, k) : value;
      const char *text = hole_text(elaborator, &item, location);
      if (!text) return false;
      array_push(elaborator->scratch, &longer,
                 memory_format(elaborator->scratch, "%s%s%s", names->items[i], part->dotted ? "." : "", text));
    }
  }
  *names = longer;
  return true;
}

bool resolve_path(Elaborator *elaborator, const Path *path, NameList *names) {
  NameList found = {0};
  bool listed = false;
  if (path->parts.count == 1 && path->parts.items[0].word) {
    array_push(elaborator->scratch, names, path->parts.items[0].word);
    return true;
  }
  array_push(elaborator->scratch, &found, "");
  for (int64_t i = 0; i < path->parts.count && found.count; i++) {
    const PathPart *part = &path->parts.items[i];
    if (part->hole && !extend_by_hole(elaborator, part, &found, &listed)) return false;
    for (int64_t k = 0; k < found.count && !part->hole; k++)
      found.items[k] =
          memory_format(elaborator->scratch, "%s%s%s", found.items[k], part->dotted ? "." : "", part->word);
  }
  for (int64_t i = 0; i < found.count; i++) array_push(elaborator->scratch, names, found.items[i]);
  return true;
}

const char *resolve_name(Elaborator *elaborator, const Path *path) {
  NameList names = {0};
  if (!resolve_path(elaborator, path, &names)) return NULL;
  if (names.count == 1) return names.items[0];
  diag_error(path->location, "this path stands for %" PRId64 " names; one is expected here", names.count);
  return NULL;
}

const char *join_path(MemoryArena *arena, const char *path, const char *name) {
  return *path && *name ? memory_format(arena, "%s.%s", path, name) : memory_string(arena, *path ? path : name);
}

/* ---- rebinding ---- */

static const char *binding_text(BindingKind kind) {
  static const char *const texts[] = {"a variable",      "a parameter",           "a state", "a dimension of a formal",
                                      "a loop variable", "a constant of the file"};
  return texts[kind];
}

bool check_rebindable(Elaborator *elaborator, const char *name, BindingKind kind, Location location) {
  if (is_predeclared(name)) {
    diag_error(location, "'%s' is predeclared and cannot be bound", name);
    return false;
  }
  const Binding *binding = find_binding(elaborator, name);
  if (!binding || binding->kind == BINDING_VARIABLE || (binding->kind == BINDING_LOOP && kind == BINDING_LOOP))
    return true;
  const char *advice = binding->kind == BINDING_STATE ? "; 'update' changes a state" : "; choose another name";
  diag_error(location, "'%s' is %s and cannot be bound again%s", name, binding_text(binding->kind), advice);
  diag_note(binding->location, "'%s' is declared here", name);
  return false;
}

/* Names a result after the first variable it is assigned to. */
static void name_value(Elaborator *elaborator, const char *name, Datum value) {
  if (value.kind != DATUM_TENSOR) return;
  Value *tensor = graph_value(elaborator->graph, value.tensor);
  if (!tensor->name && tensor->kind == VALUE_RESULT)
    tensor->name = join_path(elaborator->arena, elaborator->expansion->path, name);
}

void assign(Elaborator *elaborator, const char *name, Datum value, Location location) {
  if (string_equal(name, "_") || !check_rebindable(elaborator, name, BINDING_VARIABLE, location)) return;
  name_value(elaborator, name, value);
  scope_set(elaborator, &elaborator->expansion->scope, name,
            (Binding){.kind = BINDING_VARIABLE, .value = value, .persistent = -1, .location = location});
}
