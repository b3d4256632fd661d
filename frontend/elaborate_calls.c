/* frontend/elaborate_calls.c - calls: arguments, binding of formals, expansion of modules in place. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

/* ---- arguments ---- */

static void push_argument(Elaborator *elaborator, CallArguments *arguments, const Argument *syntax, Datum value) {
  CallArgument argument = {syntax->name, syntax->name_location, value, syntax->value->location};
  array_push(elaborator->scratch, arguments, argument);
}

void evaluate_arguments(Elaborator *elaborator, const ArgumentList *list, CallArguments *arguments) {
  for (int64_t i = 0; i < list->count; i++) {
    const Argument *syntax = &list->items[i];
    if (!syntax->name && arguments->count && arguments->items[arguments->count - 1].name) {
      diag_error(syntax->location, "positional arguments come before named ones");
      push_argument(elaborator, arguments, syntax, datum_error());
    } else if (syntax->name || syntax->value->kind != EXPR_PATH) {
      push_argument(elaborator, arguments, syntax, evaluate(elaborator, syntax->value));
    } else {
      ExprList single = {(Expr **)&syntax->value, 1, 1};
      DatumList values = {0};
      evaluate_list(elaborator, &single, &values);
      for (int64_t k = 0; k < values.count; k++) push_argument(elaborator, arguments, syntax, values.items[k]);
    }
  }
}

bool evaluate_named_call(Elaborator *elaborator, const Expr *expr, const char *what, Word *name,
                         CallArguments *arguments) {
  if (expr->kind == EXPR_PATH && expr->path.parts.count == 1 && expr->path.parts.items[0].word) {
    *name = (Word){expr->path.parts.items[0].word, expr->location};
    return true;
  }
  if (expr->kind != EXPR_CALL || expr->call.label.parts.count) {
    diag_error(expr->location, "expected %s", what);
    return false;
  }
  *name = (Word){expr->call.callee, expr->call.callee_location};
  evaluate_arguments(elaborator, &expr->call.arguments, arguments);
  for (int64_t i = 0; i < arguments->count; i++)
    if (arguments->items[i].value.kind == DATUM_ERROR) return false;
  return true;
}

/* ---- small fixed parameter lists ---- */

static const char *parameter_text(ParameterKind kind) {
  static const char *const texts[] = {"an int", "a number", "a bool", "a string", "a list", "a tensor", "a value"};
  return texts[kind];
}

static bool parameter_accepts(ParameterKind kind, const Datum *value) {
  switch (kind) {
    case PARAMETER_INT:
      return value->kind == DATUM_INT;
    case PARAMETER_NUMBER:
      return is_number(value);
    case PARAMETER_BOOL:
      return value->kind == DATUM_BOOL;
    case PARAMETER_STRING:
      return value->kind == DATUM_STRING;
    case PARAMETER_LIST:
      return value->kind == DATUM_LIST;
    case PARAMETER_TENSOR:
      return value->kind == DATUM_TENSOR;
    case PARAMETER_ANY:
      return true;
  }
  return false;
}

static int find_parameter(Elaborator *elaborator, const char *callee, const CallArgument *argument, int64_t position,
                          const ParameterSpec *specs, int count) {
  if (!argument->name) {
    if (position < count) return (int)position;
    diag_error(argument->location, "'%s' takes at most %d argument%s", callee, count, count == 1 ? "" : "s");
    return -1;
  }
  Suggestion suggestion = suggestion_start(argument->name);
  for (int i = 0; i < count; i++) {
    if (string_equal(specs[i].name, argument->name)) return i;
    suggestion_consider(&suggestion, specs[i].name);
  }
  diag_error(argument->name_location, "'%s' has no argument '%s'%s", callee, argument->name,
             suggestion_list(elaborator, &suggestion));
  return -1;
}

bool bind_parameters(Elaborator *elaborator, const char *callee, const CallArguments *arguments,
                     const ParameterSpec *specs, int count, Datum *values, Location location) {
  uint64_t given = 0;
  for (int i = 0; i < count; i++) values[i] = datum_none();
  for (int64_t i = 0; i < arguments->count; i++) {
    const CallArgument *argument = &arguments->items[i];
    int index = find_parameter(elaborator, callee, argument, i, specs, count);
    if (index < 0) return false;
    if (given >> index & 1) {
      diag_error(argument->location, "the argument '%s' of '%s' is given twice", specs[index].name, callee);
      return false;
    }
    if (!parameter_accepts(specs[index].kind, &argument->value)) {
      diag_error(argument->location, "'%s' of '%s' is %s, found %s", specs[index].name, callee,
                 parameter_text(specs[index].kind), datum_text(elaborator->scratch, &argument->value));
      return false;
    }
    values[index] = argument->value;
    given |= UINT64_C(1) << index;
  }
  for (int i = 0; i < count; i++) {
    if (!specs[i].required || given >> i & 1) continue;
    diag_error(location, "'%s' lacks its argument '%s'", callee, specs[i].name);
    return false;
  }
  return true;
}

/* ---- formals ---- */

typedef struct FormalSlot {
  const char *name;
  const Formal *formal;
  const CallArgument *argument; /* NULL: the default */
} FormalSlot;
typedef ARRAY(FormalSlot) FormalSlots;

static bool list_formals(Elaborator *elaborator, const Top *top, FormalSlots *slots) {
  for (int64_t i = 0; i < top->formals.count; i++) {
    NameList names = {0};
    if (!resolve_path(elaborator, &top->formals.items[i].path, &names)) return false;
    for (int64_t k = 0; k < names.count; k++) {
      FormalSlot slot = {names.items[k], &top->formals.items[i], NULL};
      array_push(elaborator->scratch, slots, slot);
    }
  }
  return true;
}

static FormalSlot *find_slot(Elaborator *elaborator, const Top *top, FormalSlots *slots, const CallArgument *argument,
                             int64_t position) {
  if (!argument->name) {
    if (position < slots->count) return &slots->items[position];
    diag_error(argument->location, "'%s' takes at most %" PRId64 " argument%s", top->name.text, slots->count,
               slots->count == 1 ? "" : "s");
    diag_note(top->name.location, "'%s' is declared here", top->name.text);
    return NULL;
  }
  Suggestion suggestion = suggestion_start(argument->name);
  for (int64_t i = 0; i < slots->count; i++) {
    if (string_equal(slots->items[i].name, argument->name)) return &slots->items[i];
    suggestion_consider(&suggestion, slots->items[i].name);
  }
  diag_error(argument->name_location, "'%s' has no argument '%s'%s", top->name.text, argument->name,
             suggestion_text(elaborator, &suggestion));
  diag_note(top->name.location, "'%s' is declared here", top->name.text);
  return NULL;
}

static bool place_arguments(Elaborator *elaborator, const Top *top, FormalSlots *slots, const CallArguments *arguments,
                            Location call) {
  for (int64_t i = 0; i < arguments->count; i++) {
    FormalSlot *slot = find_slot(elaborator, top, slots, &arguments->items[i], i);
    if (!slot) return false;
    if (slot->argument) {
      diag_error(arguments->items[i].location, "the argument '%s' of '%s' is given twice", slot->name, top->name.text);
      return false;
    }
    slot->argument = &arguments->items[i];
  }
  for (int64_t i = 0; i < slots->count; i++) {
    if (slots->items[i].argument || slots->items[i].formal->value) continue;
    diag_error(call, "'%s' lacks its argument '%s'", top->name.text, slots->items[i].name);
    diag_note(slots->items[i].formal->path.location, "'%s' is declared here", slots->items[i].name);
    return false;
  }
  return true;
}

static void bind_formal(Elaborator *elaborator, const FormalSlot *slot, Datum value) {
  scope_set(
      elaborator, &elaborator->expansion->scope, slot->name,
      (Binding){.kind = BINDING_VARIABLE, .value = value, .persistent = -1, .location = slot->formal->path.location});
}

static bool bind_constant_formal(Elaborator *elaborator, const FormalSlot *slot) {
  Datum value = slot->argument ? slot->argument->value : evaluate(elaborator, slot->formal->value);
  if (value.kind == DATUM_TENSOR) {
    diag_error(slot->argument ? slot->argument->location : slot->formal->value->location,
               "'%s' takes a constant, found a tensor; a formal with a type takes one: '%s: [...]'", slot->name,
               slot->name);
    diag_note(slot->formal->path.location, "'%s' is declared here", slot->name);
    return false;
  }
  bind_formal(elaborator, slot, value);
  return value.kind != DATUM_ERROR;
}

static bool bind_tensor_formal(Elaborator *elaborator, const FormalSlot *slot) {
  const CallArgument *argument = slot->argument;
  if (!argument || (argument->value.kind == DATUM_NONE && slot->formal->value)) {
    bind_formal(elaborator, slot, datum_none());
    return true;
  }
  if (argument->value.kind == DATUM_TENSOR) {
    bind_formal(elaborator, slot, argument->value);
    return match_type(elaborator, slot->formal->type, argument->value.tensor, slot->name, argument->location);
  }
  diag_error(argument->location, "'%s' takes a tensor, found %s", slot->name,
             datum_text(elaborator->scratch, &argument->value));
  diag_note(slot->formal->path.location, "'%s' is declared here", slot->name);
  return false;
}

/* Constants first, in order, then the shapes from left to right. */
static bool bind_formals(Elaborator *elaborator, const Top *top, const CallArguments *arguments, Location call) {
  FormalSlots slots = {0};
  if (!list_formals(elaborator, top, &slots) || !place_arguments(elaborator, top, &slots, arguments, call))
    return false;
  for (int64_t i = 0; i < slots.count; i++)
    if (!slots.items[i].formal->type && !bind_constant_formal(elaborator, &slots.items[i])) return false;
  for (int64_t i = 0; i < slots.count; i++)
    if (slots.items[i].formal->type && !bind_tensor_formal(elaborator, &slots.items[i])) return false;
  return true;
}

/* ---- expansion ---- */

Expansion *expansion_create(Elaborator *elaborator, Callable *callable, const char *path, Location call) {
  Expansion *expansion = NEW(elaborator->scratch, Expansion);
  *expansion = (Expansion){.caller = elaborator->expansion, .callable = callable, .path = path, .call = call};
  expansion->scope = scope_create(elaborator);
  expansion->labels.arena = expansion->shared.arena = elaborator->scratch;
  return expansion;
}

void run_expansion(Elaborator *elaborator, Expansion *expansion) {
  expansion->callable->active = true;
  run_block(elaborator, &expansion->callable->top->block);
  expansion->callable->active = false;
}

/* Takes a label into use; false after an error. */
static bool use_label(Elaborator *elaborator, const char *label, Location location, bool *reuses) {
  Expansion *caller = elaborator->expansion;
  int64_t *shared = string_map_find(&caller->shared, label);
  *reuses = caller->reuses;
  if (shared) {
    *reuses = *reuses || *shared;
    *shared = 1;
    return true;
  }
  if (string_map_find(&caller->labels, label)) {
    diag_error(location, "the label '%s' is used twice; 'shared %s' before its uses makes them share their parameters",
               label, label);
    return false;
  }
  string_map_set(&caller->labels, label, 1);
  return true;
}

static bool check_callable(const Callable *callable, const Expr *call) {
  const Top *top = callable->top;
  if (top->kind == TOP_MODEL) {
    diag_error(call->call.callee_location, "'%s' is a model; only modules can be called", top->name.text);
    return false;
  }
  if (callable->active) {
    diag_error(call->call.callee_location, "'%s' calls itself; modules cannot be recursive", top->name.text);
    diag_note(top->name.location, "'%s' is declared here", top->name.text);
    return false;
  }
  return true;
}

/* Switches to the callee's file and scope, binds, runs, and switches back; false after an error. */
static bool expand(Elaborator *elaborator, Expansion *expansion, const CallArguments *arguments) {
  Callable *callable = expansion->callable;
  FileScope *file = elaborator->file;
  Graph *graph = elaborator->graph;
  const char *module_path = graph->module_path;
  elaborator->expansion = expansion;
  elaborator->file = callable->home;
  graph->module_path = expansion->path;
  bool bound = bind_formals(elaborator, callable->top, arguments, expansion->call);
  if (bound) {
    int errors = diag_error_count();
    run_expansion(elaborator, expansion);
    callable->broken = diag_error_count() > errors;
    if (callable->broken)
      diag_note(expansion->call, "in this call of '%s'%s%s", callable->top->name.text,
                *expansion->path ? ", path " : "", expansion->path);
  }
  graph->module_path = module_path;
  elaborator->file = file;
  elaborator->expansion = expansion->caller;
  return bound && !callable->broken;
}

static void call_module(Elaborator *elaborator, Callable *callable, const Expr *call, DatumList *results) {
  CallArguments arguments = {0};
  const char *path = elaborator->expansion->path, *label;
  bool reuses = elaborator->expansion->reuses, sound = check_callable(callable, call);
  if (!sound) return;
  evaluate_arguments(elaborator, &call->call.arguments, &arguments);
  if (call->call.label.parts.count) {
    label = resolve_name(elaborator, &call->call.label);
    sound = label && use_label(elaborator, label, call->call.label.location, &reuses);
    if (sound) path = join_path(elaborator->arena, path, label);
  }
  for (int64_t i = 0; i < arguments.count; i++) sound = sound && arguments.items[i].value.kind != DATUM_ERROR;
  if (!sound || callable->broken) return;
  Expansion *expansion = expansion_create(elaborator, callable, path, call->location);
  expansion->reuses = reuses;
  if (!expand(elaborator, expansion, &arguments)) return;
  for (int64_t i = 0; i < expansion->results.count; i++)
    array_push(elaborator->scratch, results, expansion->results.items[i]);
  if (!expansion->returned && !elaborator->exhausted)
    diag_error(call->location, "'%s' returns nothing", callable->top->name.text);
}

/* ---- every call ---- */

static Callable *find_callable(const Elaborator *elaborator, const char *name) {
  const int64_t *index = elaborator->file ? string_map_find(&elaborator->file->callables, name) : NULL;
  return index ? elaborator->file->list.items[*index] : NULL;
}

static void report_unknown_callee(Elaborator *elaborator, const Expr *call) {
  Suggestion suggestion = suggestion_start(call->call.callee);
  if (elaborator->file)
    for (int64_t i = 0; i < elaborator->file->callables.count; i++)
      suggestion_consider(&suggestion, elaborator->file->callables.keys[i]);
  suggest_builtins(&suggestion);
  diag_error(call->call.callee_location, "unknown module or operator '%s'%s", call->call.callee,
             suggestion_text(elaborator, &suggestion));
}

static void call_by_kind(Elaborator *elaborator, const Expr *call, DatumList *results) {
  const char *name = call->call.callee;
  Callable *callable = find_callable(elaborator, name);
  Op op = callable ? OP_NONE : op_find(name);
  CallArguments arguments = {0};
  if (callable && elaborator->expansion) {
    call_module(elaborator, callable, call, results);
  } else if (callable) {
    diag_error(call->location, "a module can be called in modules and models only");
  } else if (op == OP_NONE && !builtin_exists(name)) {
    report_unknown_callee(elaborator, call);
    evaluate_arguments(elaborator, &call->call.arguments, &arguments); /* for the errors in them */
  } else if (call->call.label.parts.count) {
    diag_error(call->call.label.location, "'%s' is an operator; only a module takes a label", name);
  } else if (string_equal(name, "where")) {
    call_where(elaborator, call, results);
  } else {
    evaluate_arguments(elaborator, &call->call.arguments, &arguments);
    if (builtin_exists(name))
      call_builtin(elaborator, name, &arguments, call->location, results);
    else
      array_push(elaborator->scratch, results, apply_operator(elaborator, op, &arguments, call->location));
  }
}

void evaluate_call(Elaborator *elaborator, const Expr *call, DatumList *results) {
  int64_t before = results->count;
  if (enter_evaluation(elaborator, call->location)) {
    call_by_kind(elaborator, call, results);
    leave_evaluation(elaborator);
  }
  if (results->count == before) array_push(elaborator->scratch, results, datum_error());
}
