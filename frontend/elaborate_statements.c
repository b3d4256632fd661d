/* frontend/elaborate_statements.c - statements of modules and models, run in order. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

/* ---- assignment ---- */

static bool has_error(const DatumList *values) {
  for (int64_t i = 0; i < values->count; i++)
    if (values->items[i].kind == DATUM_ERROR) return true;
  return false;
}

static void pin(Elaborator *elaborator, const char *name, Datum value, Location location) {
  if (value.kind == DATUM_ERROR) return;
  Value *tensor = value.kind == DATUM_TENSOR ? graph_value(elaborator->graph, value.tensor) : NULL;
  if (tensor && tensor->kind == VALUE_RESULT)
    tensor->constraint = CONSTRAINT_KEEP;
  else
    diag_error(location, "'keep' pins a tensor that is computed; '%s' is %s", name,
               tensor ? "an input or a parameter, which is always there" : "a constant");
}

/* One name and an expression that gives one value: without the lists of the general case. */
static bool run_plain_assign(Elaborator *elaborator, const Statement *statement) {
  const Expr *expr = statement->values.items[0];
  const PathPartList *parts = &statement->paths.items[0].parts;
  bool plain = statement->paths.count == 1 && statement->values.count == 1 && parts->count == 1 && parts->items[0].word;
  if (!plain || statement->keep || expr->kind == EXPR_CALL || (expr->kind == EXPR_PATH && expr->path.parts.count > 1))
    return false;
  Datum value = evaluate(elaborator, expr);
  assign(elaborator, parts->items[0].word, value, statement->paths.items[0].location);
  return true;
}

static void run_assign(Elaborator *elaborator, const Statement *statement) {
  if (run_plain_assign(elaborator, statement)) return;
  NameList names = {0};
  DatumList values = {0};
  ARRAY(Location) locations = {0};
  evaluate_list(elaborator, &statement->values, &values);
  for (int64_t i = 0; i < statement->paths.count; i++) {
    if (!resolve_path(elaborator, &statement->paths.items[i], &names)) return;
    while (locations.count < names.count)
      array_push(elaborator->scratch, &locations, statement->paths.items[i].location);
  }
  bool wrong = has_error(&values);
  if (!wrong && names.count != values.count) {
    diag_error(statement->location, "%" PRId64 " name%s for %" PRId64 " value%s", names.count,
               names.count == 1 ? "" : "s", values.count, values.count == 1 ? "" : "s");
    wrong = true;
  }
  if (statement->keep && elaborator->recompute.source) {
    diag_error(statement->location, "'keep' inside of 'recompute' contradicts it");
    diag_note(elaborator->recompute, "the recompute block is here");
  }
  for (int64_t i = 0; i < names.count; i++) {
    Datum value = wrong && names.count != values.count ? datum_error() : values.items[i];
    assign(elaborator, names.items[i], value, locations.items[i]);
    if (statement->keep) pin(elaborator, names.items[i], value, locations.items[i]);
  }
}

static void run_shared(Elaborator *elaborator, const Statement *statement) {
  NameList names = {0};
  for (int64_t i = 0; i < statement->paths.count; i++) resolve_path(elaborator, &statement->paths.items[i], &names);
  for (int64_t i = 0; i < names.count; i++) {
    if (string_map_find(&elaborator->expansion->labels, names.items[i]))
      diag_error(statement->location, "'shared %s' comes before the uses of the label", names.items[i]);
    string_map_set(&elaborator->expansion->shared, names.items[i], 0);
  }
}

/* ---- blocks ---- */

static void run_recompute(Elaborator *elaborator, const Statement *statement) {
  Graph *graph = elaborator->graph;
  Location outer_location = elaborator->recompute;
  int32_t outer = graph->recompute_block;
  array_push(graph->module->arena, &graph->recompute_parents, outer);
  graph->recompute_block = ++graph->recompute_block_count;
  elaborator->recompute = statement->location;
  run_block(elaborator, &statement->block);
  elaborator->recompute = outer_location;
  graph->recompute_block = outer;
}

static void run_freeze(Elaborator *elaborator, const Statement *statement) {
  elaborator->freeze_depth++;
  run_block(elaborator, &statement->block);
  elaborator->freeze_depth--;
}

static void run_if(Elaborator *elaborator, const Statement *statement) {
  for (int64_t i = 0; i < statement->branches.count; i++) {
    const Branch *branch = &statement->branches.items[i];
    bool taken = true;
    if (branch->condition && !evaluate_bool(elaborator, branch->condition, "the condition of 'if'", &taken)) return;
    if (!taken) continue;
    run_block(elaborator, &branch->block);
    return;
  }
}

/* Binds the loop variables to one item of the list. */
static bool bind_loop(Elaborator *elaborator, const Statement *statement, Datum item) {
  int64_t count = statement->words.count;
  if (count > 1 && (item.kind != DATUM_LIST || item.count != count)) {
    diag_error(statement->value->location,
               "%" PRId64 " loop variables take items that are lists of %" PRId64 ", found %s", count, count,
               datum_text(elaborator->scratch, &item));
    return false;
  }
  for (int64_t i = 0; i < count; i++) {
    const Word *word = &statement->words.items[i];
    if (string_equal(word->text, "_")) continue;
    if (!check_rebindable(elaborator, word->text, BINDING_LOOP, word->location)) return false;
    Binding binding = {.kind = BINDING_LOOP,
                       .value = count > 1 ? list_item(&item, i) : item,
                       .persistent = -1,
                       .location = word->location};
    scope_set(elaborator, &elaborator->expansion->scope, word->text, binding);
  }
  return true;
}

/* Counts a statement or iteration; false when the model expands to too many. */
static bool count_step(Elaborator *elaborator, Location location) {
  if (elaborator->exhausted) return false;
  if (++elaborator->steps <= MOST_STEPS) return true;
  diag_error(location, "the model expands to more than %d statements", MOST_STEPS);
  elaborator->exhausted = true;
  return false;
}

static void run_for(Elaborator *elaborator, const Statement *statement) {
  Datum list = evaluate(elaborator, statement->value);
  int errors = diag_error_count();
  if (list.kind == DATUM_ERROR) return;
  if (list.kind != DATUM_LIST) {
    diag_error(statement->value->location, "'for' runs over a list such as 0..n, found %s",
               datum_text(elaborator->scratch, &list));
    return;
  }
  for (int64_t i = 0; i < list.count && !elaborator->expansion->returned && diag_error_count() == errors; i++) {
    if (!count_step(elaborator, statement->location)) return;
    if (bind_loop(elaborator, statement, list_item(&list, i))) run_block(elaborator, &statement->block);
  }
}

static void run_return(Elaborator *elaborator, const Statement *statement) {
  Expansion *expansion = elaborator->expansion;
  if (expansion->callable->top->kind == TOP_MODEL) {
    diag_error(statement->location, "a model does not return; it has 'output' and 'loss'");
    return;
  }
  evaluate_list(elaborator, &statement->values, &expansion->results);
  expansion->returned = true;
}

/* ---- what only models have ---- */

static bool check_in_model(Elaborator *elaborator, const Statement *statement, const char *what) {
  if (elaborator->expansion->callable->top->kind == TOP_MODEL) return true;
  diag_error(statement->location, "'%s' belongs into a model; a module returns values", what);
  return false;
}

/* An f32 scalar of the graph, from a tensor or a number. */
static bool evaluate_scalar(Elaborator *elaborator, const Expr *expr, const char *what, ValueId *value) {
  Datum datum = evaluate(elaborator, expr);
  if (is_number(&datum)) datum = convert(elaborator, datum, F32, expr->location);
  if (datum.kind == DATUM_ERROR) return false;
  Type scalar = type_scalar(F32);
  if (datum.kind == DATUM_TENSOR && type_equal(value_type(elaborator->graph, datum.tensor), &scalar)) {
    *value = datum.tensor;
    return true;
  }
  diag_error(expr->location, "%s is an f32 scalar, found %s", what,
             datum.kind == DATUM_TENSOR ? type_text(elaborator->scratch, value_type(elaborator->graph, datum.tensor))
                                        : datum_text(elaborator->scratch, &datum));
  return false;
}

static void run_loss(Elaborator *elaborator, const Statement *statement) {
  const Ratio *ratio = &statement->ratios.items[0];
  Graph *graph = elaborator->graph;
  GraphOutput loss = {.name = "loss", .value = NO_VALUE, .denominator = NO_VALUE, .location = statement->location};
  if (!check_in_model(elaborator, statement, "loss")) return;
  if (graph->loss.value != NO_VALUE) {
    diag_error(statement->location, "a model has one loss; add the terms");
    diag_note(graph->loss.location, "the other one is here");
    return;
  }
  if (!evaluate_scalar(elaborator, ratio->value, "the loss", &loss.value)) return;
  if (ratio->per && !evaluate_scalar(elaborator, ratio->per, "what the loss is counted per", &loss.denominator)) return;
  graph->loss = loss;
}

static void add_output(Elaborator *elaborator, const char *name, ValueId value, ValueId denominator,
                       Location location) {
  Graph *graph = elaborator->graph;
  for (int64_t i = 0; i < graph->outputs.count; i++) {
    if (!string_equal(graph->outputs.items[i].name, name)) continue;
    diag_error(location, "there is an output '%s' already", name);
    diag_note(graph->outputs.items[i].location, "it is declared here");
    return;
  }
  GraphOutput output = {memory_string(elaborator->arena, name), value, denominator, location};
  array_push(elaborator->arena, &graph->outputs, output);
}

static void output_ratio(Elaborator *elaborator, const Ratio *ratio) {
  ValueId value, denominator;
  if (!evaluate_scalar(elaborator, ratio->value, "an output with 'per'", &value)) return;
  if (!evaluate_scalar(elaborator, ratio->per, "what an output is counted per", &denominator)) return;
  if (!ratio->name)
    diag_error(ratio->value->location, "give the output a name: 'output name = a per b'");
  else
    add_output(elaborator, ratio->name, value, denominator, ratio->name_location);
}

static void output_values(Elaborator *elaborator, const Ratio *ratio) {
  NameList names = {0};
  DatumList values = {0};
  ExprList single = {(Expr **)&ratio->value, 1, 1};
  Location location = ratio->name ? ratio->name_location : ratio->value->location;
  evaluate_list(elaborator, &single, &values);
  if (ratio->name) array_push(elaborator->scratch, &names, ratio->name);
  if (!ratio->name && ratio->value->kind == EXPR_PATH) resolve_path(elaborator, &ratio->value->path, &names);
  if (has_error(&values)) return;
  if (names.count != values.count) {
    diag_error(location, "an output is a name or has one: 'output name = ...'");
    return;
  }
  for (int64_t i = 0; i < values.count; i++) {
    if (values.items[i].kind == DATUM_TENSOR)
      add_output(elaborator, names.items[i], values.items[i].tensor, NO_VALUE, location);
    else
      diag_error(ratio->value->location, "an output is a tensor, found %s",
                 datum_text(elaborator->scratch, &values.items[i]));
  }
}

static void run_output(Elaborator *elaborator, const Statement *statement) {
  if (!check_in_model(elaborator, statement, "output")) return;
  for (int64_t i = 0; i < statement->ratios.count; i++) {
    if (statement->ratios.items[i].per)
      output_ratio(elaborator, &statement->ratios.items[i]);
    else
      output_values(elaborator, &statement->ratios.items[i]);
  }
}

static bool can_have_gradient(Elaborator *elaborator, const char *name, Datum value, Location location) {
  if (value.kind == DATUM_ERROR) return false;
  const Value *tensor = value.kind == DATUM_TENSOR ? graph_value(elaborator->graph, value.tensor) : NULL;
  if (tensor && dtype_class(tensor->type.dtype) == CLASS_REAL) return true;
  diag_error(location, "'grad' takes floating-point tensors; '%s' is %s", name,
             tensor ? type_text(elaborator->scratch, &tensor->type) : datum_text(elaborator->scratch, &value));
  return false;
}

static void run_grad(Elaborator *elaborator, const Statement *statement) {
  if (!check_in_model(elaborator, statement, "grad")) return;
  for (int64_t i = 0; i < statement->paths.count; i++) {
    NameList names = {0};
    Location location = statement->paths.items[i].location;
    resolve_path(elaborator, &statement->paths.items[i], &names);
    for (int64_t k = 0; k < names.count; k++) {
      Datum value = lookup(elaborator, names.items[k], location);
      if (!can_have_gradient(elaborator, names.items[k], value, location)) continue;
      GraphOutput request = {memory_string(elaborator->arena, names.items[k]), value.tensor, NO_VALUE, location};
      array_push(elaborator->arena, &elaborator->graph->gradient_requests, request);
    }
  }
}

/* ---- */

static void run_statement(Elaborator *elaborator, const Statement *statement) {
  elaborator->graph->location = statement->location;
  switch (statement->kind) {
    case STATEMENT_PARAM:
      declare_parameter(elaborator, statement);
      break;
    case STATEMENT_STATE:
      declare_state(elaborator, statement);
      break;
    case STATEMENT_UPDATE:
      update_state(elaborator, statement);
      break;
    case STATEMENT_SHARED:
      run_shared(elaborator, statement);
      break;
    case STATEMENT_GRAD:
      run_grad(elaborator, statement);
      break;
    case STATEMENT_RECOMPUTE:
      run_recompute(elaborator, statement);
      break;
    case STATEMENT_FREEZE:
      run_freeze(elaborator, statement);
      break;
    case STATEMENT_IF:
      run_if(elaborator, statement);
      break;
    case STATEMENT_FOR:
      run_for(elaborator, statement);
      break;
    case STATEMENT_OUTPUT:
      run_output(elaborator, statement);
      break;
    case STATEMENT_LOSS:
      run_loss(elaborator, statement);
      break;
    case STATEMENT_RETURN:
      run_return(elaborator, statement);
      break;
    case STATEMENT_ASSIGN:
      run_assign(elaborator, statement);
      break;
  }
}

void run_block(Elaborator *elaborator, const Block *block) {
  for (int64_t i = 0; i < block->statements.count && !elaborator->expansion->returned; i++) {
    if (!count_step(elaborator, block->statements.items[i]->location)) return;
    run_statement(elaborator, block->statements.items[i]);
  }
}
