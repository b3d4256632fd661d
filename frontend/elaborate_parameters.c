/* frontend/elaborate_parameters.c - parameters and states: paths, initialisers, freezing, updates. */
#include <inttypes.h>
#include <math.h>

#include "frontend/elaborate_state.h"

/* ---- initialisers ---- */

typedef enum InitialiserId {
  ZEROS,
  ONES,
  CONSTANT,
  UNIFORM,
  NORMAL,
  TRUNC_NORMAL,
  KAIMING_UNIFORM,
  KAIMING_NORMAL,
  XAVIER_UNIFORM,
  XAVIER_NORMAL
} InitialiserId;

enum { MOST_INITIALISER_PARAMETERS = 3 };

static const struct Initialiser {
  const char *name;
  int parameter_count;
  ParameterSpec parameters[MOST_INITIALISER_PARAMETERS];
} initialisers[] = {
    [ZEROS] = {"zeros", 0, {{0}}},
    [ONES] = {"ones", 0, {{0}}},
    [CONSTANT] = {"constant", 1, {{"value", PARAMETER_NUMBER, true}}},
    [UNIFORM] = {"uniform", 1, {{"bound", PARAMETER_NUMBER, true}}},
    [NORMAL] = {"normal", 2, {{"std", PARAMETER_NUMBER, true}, {"mean", PARAMETER_NUMBER, false}}},
    [TRUNC_NORMAL] = {"trunc_normal", 2, {{"std", PARAMETER_NUMBER, true}, {"mean", PARAMETER_NUMBER, false}}},
    [KAIMING_UNIFORM] = {"kaiming_uniform",
                         3,
                         {{"mode", PARAMETER_STRING, false},
                          {"a", PARAMETER_NUMBER, false},
                          {"fan", PARAMETER_INT, false}}},
    [KAIMING_NORMAL] = {"kaiming_normal",
                        3,
                        {{"mode", PARAMETER_STRING, false},
                         {"a", PARAMETER_NUMBER, false},
                         {"fan", PARAMETER_INT, false}}},
    [XAVIER_UNIFORM] = {"xavier_uniform", 2, {{"gain", PARAMETER_NUMBER, false}, {"fan", PARAMETER_INT, false}}},
    [XAVIER_NORMAL] = {"xavier_normal", 2, {{"gain", PARAMETER_NUMBER, false}, {"fan", PARAMETER_INT, false}}}};

enum { INITIALISER_COUNT = sizeof initialisers / sizeof *initialisers };

/* Fans of [out, in, k...]: in = in k..., out = out k... */
static bool compute_fans(const Type *type, double *fan_in, double *fan_out, const char *name, Location location) {
  if (type->rank < 2) {
    diag_error(location, "'%s' takes its fans from [out, in, ...]; give fan=... for a tensor of %d axes", name,
               type->rank);
    return false;
  }
  *fan_in = (double)type->dims[1];
  *fan_out = (double)type->dims[0];
  for (int i = 2; i < type->rank; i++) *fan_in *= (double)type->dims[i], *fan_out *= (double)type->dims[i];
  return true;
}

/* He et al. 2015: std = sqrt(2 / (1 + a^2)) / sqrt(fan), a: the slope of a leaky relu. */
static bool kaiming_std(const Type *type, const char *name, const Datum *values, Location location, double *std) {
  double fan_in = 0, fan_out = 0, a = values[1].kind == DATUM_NONE ? 0 : as_number(&values[1]);
  const char *mode = values[0].kind == DATUM_NONE ? "fan_in" : values[0].string;
  if (!string_equal(mode, "fan_in") && !string_equal(mode, "fan_out")) {
    diag_error(location, "the mode of '%s' is \"fan_in\" or \"fan_out\", found \"%s\"", name, mode);
    return false;
  }
  if (values[2].kind != DATUM_NONE)
    fan_in = fan_out = (double)values[2].integer;
  else if (!compute_fans(type, &fan_in, &fan_out, name, location))
    return false;
  *std = sqrt(2 / (1 + a * a)) / sqrt(string_equal(mode, "fan_in") ? fan_in : fan_out);
  return true;
}

/* Glorot & Bengio 2010: std = gain sqrt(2 / (fan_in + fan_out)); fan= stands for both fans. */
static bool xavier_std(const Type *type, const char *name, const Datum *values, Location location, double *std) {
  double fan_in = 0, fan_out = 0, gain = values[0].kind == DATUM_NONE ? 1 : as_number(&values[0]);
  if (values[1].kind != DATUM_NONE)
    fan_in = fan_out = (double)values[1].integer;
  else if (!compute_fans(type, &fan_in, &fan_out, name, location))
    return false;
  *std = gain * sqrt(2 / (fan_in + fan_out));
  return true;
}

/* A uniform distribution of that deviation has the half-width sqrt(3) std. */
static bool set_initial(InitialiserId id, const Type *type, const Datum *values, Location location, Initial *initial) {
  const char *name = initialisers[id].name;
  double first = is_number(&values[0]) ? as_number(&values[0]) : 0,
         second = is_number(&values[1]) ? as_number(&values[1]) : 0;
  double std = 0;
  if ((id == KAIMING_UNIFORM || id == KAIMING_NORMAL) && !kaiming_std(type, name, values, location, &std)) return false;
  if ((id == XAVIER_UNIFORM || id == XAVIER_NORMAL) && !xavier_std(type, name, values, location, &std)) return false;
  switch (id) {
    case ZEROS:
      *initial = (Initial){INITIAL_CONSTANT, 0, 0};
      break;
    case ONES:
      *initial = (Initial){INITIAL_CONSTANT, 1, 0};
      break;
    case CONSTANT:
      *initial = (Initial){INITIAL_CONSTANT, first, 0};
      break;
    case UNIFORM:
      *initial = (Initial){INITIAL_UNIFORM, first, 0};
      break;
    case NORMAL:
      *initial = (Initial){INITIAL_NORMAL, first, second};
      break;
    case TRUNC_NORMAL:
      *initial = (Initial){INITIAL_TRUNCATED_NORMAL, first, second};
      break;
    case KAIMING_UNIFORM:
    case XAVIER_UNIFORM:
      *initial = (Initial){INITIAL_UNIFORM, sqrt(3.0) * std, 0};
      break;
    case KAIMING_NORMAL:
    case XAVIER_NORMAL:
      *initial = (Initial){INITIAL_NORMAL, std, 0};
      break;
  }
  if (initial->kind == INITIAL_CONSTANT || (isfinite(initial->value) && initial->value >= 0)) return true;
  diag_error(location, "the width of '%s' is a number from 0, found %.15g", name, initial->value);
  return false;
}

/* Integers start as one whole number. */
static bool check_initial_dtype(const Initial *initial, DataType dtype, Location location) {
  if (dtype_class(dtype) == CLASS_REAL) return true;
  bool whole = initial->kind == INITIAL_CONSTANT && floor(initial->value) == initial->value;
  if (!whole)
    diag_error(location, "a tensor of %s starts as one whole number: zeros, ones or constant(n)", dtype_name(dtype));
  return whole;
}

static bool evaluate_initial(Elaborator *elaborator, const Expr *expr, const Type *type, Initial *initial) {
  Word name;
  CallArguments arguments = {0};
  Suggestion suggestion;
  if (!evaluate_named_call(elaborator, expr, "an initialiser such as zeros or normal(0.02)", &name, &arguments))
    return false;
  suggestion = suggestion_start(name.text);
  for (int id = 0; id < INITIALISER_COUNT; id++) {
    Datum values[MOST_INITIALISER_PARAMETERS] = {{0}};
    suggestion_consider(&suggestion, initialisers[id].name);
    if (!string_equal(name.text, initialisers[id].name)) continue;
    return bind_parameters(elaborator, name.text, &arguments, initialisers[id].parameters,
                           initialisers[id].parameter_count, values, expr->location) &&
           set_initial((InitialiserId)id, type, values, expr->location, initial) &&
           check_initial_dtype(initial, type->dtype, expr->location);
  }
  diag_error(name.location, "unknown initialiser '%s'%s", name.text, suggestion_list(elaborator, &suggestion));
  return false;
}

/* ---- declaration ---- */

static bool frozen_by_globs(Elaborator *elaborator, const char *path) {
  bool frozen = false;
  for (int64_t i = 0; i < elaborator->globs.count; i++) {
    FreezeGlob *glob = &elaborator->globs.items[i];
    if (!glob_match(elaborator->scratch, glob->pattern, path)) continue;
    glob->matched = true;
    frozen = !glob->admits;
  }
  return frozen;
}

static int add_persistent(Elaborator *elaborator, Persistent persistent) {
  const char *what = persistent.role == ROLE_STATE ? "state" : "parameter";
  if (elaborator->graph->evaluation || elaborator->expansion->reuses) {
    diag_error(persistent.location,
               elaborator->graph->evaluation ? "evaluation adds the %s '%s'; it has those of training"
                                             : "a later use of a shared label adds the %s '%s'",
               what, persistent.name);
    return -1;
  }
  int index = module_add_persistent(elaborator->module, persistent);
  PersistentFacts facts = {.seen = true, .frozen = frozen_by_globs(elaborator, persistent.name), .current = NO_VALUE};
  array_push(elaborator->scratch, &elaborator->facts, facts);
  string_map_set(&elaborator->persistents, persistent.name, index);
  return index;
}

/* The persistent of a path: a new one, or the same one where a shared label or the evaluation graph comes back to it.
 */
static int find_or_add_persistent(Elaborator *elaborator, Persistent persistent) {
  const int64_t *found = string_map_find(&elaborator->persistents, persistent.name);
  if (!found) return add_persistent(elaborator, persistent);
  int index = (int)*found;
  const Persistent *first = &elaborator->module->persistents.items[index];
  PersistentFacts *facts = &elaborator->facts.items[index];
  if (facts->seen && !elaborator->expansion->reuses) {
    diag_error(persistent.location, "the path '%s' is already taken; label the call, or declare its label 'shared'",
               persistent.name);
    diag_note(first->location, "'%s' is declared here", persistent.name);
    return -1;
  }
  if (!type_equal(&first->type, &persistent.type) || first->role != persistent.role) {
    diag_error(persistent.location, "'%s' is %s here and %s where it was declared", persistent.name,
               type_text(elaborator->scratch, &persistent.type), type_text(elaborator->scratch, &first->type));
    diag_note(first->location, "'%s' is declared here", persistent.name);
    return -1;
  }
  facts->seen = true;
  return index;
}

static bool check_new_name(Elaborator *elaborator, const char *name, Location location) {
  const Binding *binding = scope_find(&elaborator->expansion->scope, name);
  if (!binding && !is_predeclared(name)) return true;
  if (binding && binding->kind == BINDING_WEIGHT && elaborator->expansion->reuses) return true;
  diag_error(location, "'%s' already has a meaning here", name);
  if (binding) diag_note(binding->location, "'%s' is declared here", name);
  return false;
}

static void bind_persistent(Elaborator *elaborator, const char *name, BindingKind kind, int index, Location location) {
  Binding binding = {.kind = kind, .persistent = index, .value = datum_none(), .location = location};
  scope_set(elaborator, &elaborator->expansion->scope, name, binding);
}

static void bind_error(Elaborator *elaborator, const char *name, Location location) {
  Binding binding = {.kind = BINDING_VARIABLE, .persistent = -1, .value = datum_error(), .location = location};
  scope_set(elaborator, &elaborator->expansion->scope, name, binding);
}

static int declare(Elaborator *elaborator, const Statement *statement, const char *name, PersistentRole role) {
  Type type;
  DimName names[MAX_RANK];
  Initial initial = {0};
  bool sound = evaluate_type(elaborator, statement->type, &type, names);
  sound = evaluate_initial(elaborator, statement->value, &type, &initial) && sound;
  if (!sound || !check_new_name(elaborator, name, statement->paths.items[0].location)) return -1;
  if (role == ROLE_PARAMETER && dtype_class(type.dtype) != CLASS_REAL) {
    diag_error(statement->type->location, "a parameter is a floating-point tensor; a 'state' may be of %s",
               dtype_name(type.dtype));
    return -1;
  }
  const char *path = join_path(elaborator->arena, elaborator->expansion->path, name);
  int index = find_or_add_persistent(elaborator, (Persistent){.name = path,
                                                              .type = type,
                                                              .role = role,
                                                              .initial = initial,
                                                              .location = statement->paths.items[0].location});
  if (index < 0) return -1;
  ValueId value = graph_persistent(elaborator->graph, index);
  set_dim_names(elaborator, value, names);
  if (elaborator->facts.items[index].current == NO_VALUE) elaborator->facts.items[index].current = value;
  return index;
}

void declare_parameter(Elaborator *elaborator, const Statement *statement) {
  Location location = statement->paths.items[0].location;
  const char *name = resolve_name(elaborator, &statement->paths.items[0]);
  bool wanted = true;
  if (!name) return;
  if (statement->condition &&
      !evaluate_bool(elaborator, statement->condition, "the condition of a parameter", &wanted)) {
    bind_error(elaborator, name, location);
    return;
  }
  int index = wanted ? declare(elaborator, statement, name, ROLE_PARAMETER) : -1;
  if (wanted && index < 0)
    bind_error(elaborator, name, location);
  else
    bind_persistent(elaborator, name, BINDING_WEIGHT, index, location);
}

void declare_state(Elaborator *elaborator, const Statement *statement) {
  Location location = statement->paths.items[0].location;
  const char *name = resolve_name(elaborator, &statement->paths.items[0]);
  int index = name ? declare(elaborator, statement, name, ROLE_STATE) : -1;
  if (index >= 0)
    bind_persistent(elaborator, name, BINDING_STATE, index, location);
  else if (name)
    bind_error(elaborator, name, location);
}

/* ---- use ---- */

Datum read_persistent(Elaborator *elaborator, const Binding *binding) {
  if (binding->persistent < 0) return datum_none();
  PersistentFacts *facts = &elaborator->facts.items[binding->persistent];
  if (binding->kind == BINDING_STATE) return datum_tensor(facts->current);
  ValueId value = graph_persistent(elaborator->graph, binding->persistent), frozen;
  if (!elaborator->freeze_depth) {
    facts->read = true;
    return datum_tensor(value);
  }
  facts->read_frozen = true;
  frozen = BUILD(elaborator->graph, stop, value);
  inherit_dim_names(elaborator, frozen, 1, &value);
  return datum_tensor(frozen);
}

void update_state(Elaborator *elaborator, const Statement *statement) {
  Location location = statement->paths.items[0].location;
  const char *name = resolve_name(elaborator, &statement->paths.items[0]);
  const Binding *binding = name ? find_binding(elaborator, name) : NULL;
  if (name && (!binding || binding->kind != BINDING_STATE)) {
    if (!binding || binding->value.kind != DATUM_ERROR)
      diag_error(location, "'%s' is not a state; declare it: state %s: [...] = zeros", name, name);
    return;
  }
  int index = binding ? binding->persistent : -1;
  if (index < 0 || elaborator->graph->evaluation || elaborator->freeze_depth || elaborator->facts.items[index].frozen)
    return;
  Datum value = evaluate(elaborator, statement->value);
  if (value.kind == DATUM_ERROR) return;
  Type type = elaborator->module->persistents.items[index].type;
  if (value.kind != DATUM_TENSOR) value = convert(elaborator, value, type.dtype, statement->value->location);
  if (value.kind == DATUM_ERROR) return;
  elaborator->graph->location = statement->location;
  if (!value_type(elaborator->graph, value.tensor)->rank && type.rank)
    value = datum_tensor(build_expand(elaborator->graph, value.tensor, type.rank, type.dims));
  if (!type_equal(&type, value_type(elaborator->graph, value.tensor))) {
    diag_error(statement->value->location, "the state '%s' is %s, its new value is %s", name,
               type_text(elaborator->scratch, &type),
               type_text(elaborator->scratch, value_type(elaborator->graph, value.tensor)));
    return;
  }
  PersistentFacts *facts = &elaborator->facts.items[index];
  facts->current = BUILD(elaborator->graph, stop, value.tensor);
  facts->update = statement->location;
}

void store_states(Elaborator *elaborator) {
  for (int64_t i = 0; i < elaborator->facts.count; i++) {
    const PersistentFacts *facts = &elaborator->facts.items[i];
    if (!facts->update.source) continue;
    elaborator->graph->location = facts->update;
    build_assign(elaborator->graph, graph_persistent(elaborator->graph, (int)i), facts->current);
  }
}

void begin_graph(Elaborator *elaborator, Graph *graph) {
  elaborator->graph = graph;
  elaborator->dim_names.count = 0;
  elaborator->steps = 0;
  for (int64_t i = 0; i < elaborator->facts.count; i++) {
    PersistentFacts *facts = &elaborator->facts.items[i];
    facts->seen = false;
    facts->current = NO_VALUE;
    facts->update = (Location){0};
  }
}
