/* frontend/elaborate_expressions.c - expressions: constants are computed, tensors built. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

bool enter_evaluation(Elaborator *elaborator, Location location) {
  if (elaborator->exhausted) return false;
  if (++elaborator->depth <= DEEPEST_EVALUATION) return true;
  elaborator->depth--;
  elaborator->exhausted = true;
  diag_error(location, "expressions and calls are nested more than %d deep", DEEPEST_EVALUATION);
  return false;
}

void leave_evaluation(Elaborator *elaborator) { elaborator->depth--; }

static Datum only_value(const DatumList *values, Location location, const char *what) {
  if (values->count == 1) return values->items[0];
  for (int64_t i = 0; i < values->count; i++)
    if (values->items[i].kind == DATUM_ERROR) return datum_error();
  diag_error(location,
             "%s gives %" PRId64 " values; inside an expression one is expected (name them first: 'a, b = ...')", what,
             values->count);
  return datum_error();
}

static Datum evaluate_path(Elaborator *elaborator, const Expr *expr) {
  if (expr->path.parts.count == 1 && expr->path.parts.items[0].word)
    return lookup(elaborator, expr->path.parts.items[0].word, expr->location);
  const char *name = resolve_name(elaborator, &expr->path);
  return name ? lookup(elaborator, name, expr->location) : datum_error();
}

static Datum evaluate_one_call(Elaborator *elaborator, const Expr *expr) {
  DatumList results = {0};
  evaluate_call(elaborator, expr, &results);
  return only_value(&results, expr->location, memory_format(elaborator->scratch, "'%s'", expr->call.callee));
}

static Datum evaluate_list_literal(Elaborator *elaborator, const Expr *expr) {
  DatumList items = {0};
  bool wrong = false;
  for (int64_t i = 0; i < expr->list.count; i++) {
    const Expr *item = expr->list.items[i];
    Datum value = evaluate(elaborator, item);
    if (value.kind == DATUM_TENSOR)
      diag_error(item->location, "a list holds constants; name tensors 'x.{i}' and write 'x.{0..n}' for all of them");
    wrong = wrong || value.kind == DATUM_TENSOR || value.kind == DATUM_ERROR;
    array_push(elaborator->scratch, &items, value);
  }
  return wrong ? datum_error() : datum_list(items.items, items.count);
}

/* `and` and `or` on constants evaluate their right side only when it matters. */
static bool decided(TokenKind symbol, const Datum *left) {
  return left->kind == DATUM_BOOL && ((symbol == TOKEN_AND && !left->integer) || (symbol == TOKEN_OR && left->integer));
}

static Datum evaluate_binary(Elaborator *elaborator, const Expr *expr) {
  Datum left = evaluate(elaborator, expr->left);
  if (decided(expr->symbol, &left)) return left;
  Datum right = evaluate(elaborator, expr->right);
  if (left.kind == DATUM_ERROR || right.kind == DATUM_ERROR) return datum_error();
  bool equality = expr->symbol == TOKEN_EQUAL || expr->symbol == TOKEN_NOT_EQUAL;
  bool none = left.kind == DATUM_NONE || right.kind == DATUM_NONE;
  bool constants = left.kind != DATUM_TENSOR && right.kind != DATUM_TENSOR;
  if (constants || (equality && none))
    return constant_binary(elaborator->scratch, expr->symbol, left, right, expr->location);
  return apply_binary(elaborator, expr->symbol, left, right, expr->location);
}

static Datum evaluate_prefix(Elaborator *elaborator, const Expr *expr) {
  Datum operand = evaluate(elaborator, expr->right);
  if (operand.kind == DATUM_ERROR) return operand;
  if (operand.kind == DATUM_TENSOR) return apply_prefix(elaborator, expr->symbol, operand, expr->location);
  return constant_prefix(elaborator->scratch, expr->symbol, operand, expr->location);
}

static Datum evaluate_kind(Elaborator *elaborator, const Expr *expr) {
  switch (expr->kind) {
    case EXPR_INT:
      return datum_int(expr->integer);
    case EXPR_FLOAT:
      return datum_float(expr->number);
    case EXPR_STRING:
      return datum_string(expr->string);
    case EXPR_GROUP:
      return evaluate(elaborator, expr->right);
    case EXPR_LIST:
      return evaluate_list_literal(elaborator, expr);
    case EXPR_PATH:
      return evaluate_path(elaborator, expr);
    case EXPR_CALL:
      return evaluate_one_call(elaborator, expr);
    case EXPR_PREFIX:
      return evaluate_prefix(elaborator, expr);
    case EXPR_BINARY:
      return evaluate_binary(elaborator, expr);
    case EXPR_INDEX:
      return evaluate_index(elaborator, expr);
    case EXPR_ERROR:
      break;
  }
  return datum_error();
}

Datum evaluate(Elaborator *elaborator, const Expr *expr) {
  if (!enter_evaluation(elaborator, expr->location)) return datum_error();
  Datum value = evaluate_kind(elaborator, expr);
  leave_evaluation(elaborator);
  return value;
}

static void evaluate_path_list(Elaborator *elaborator, const Expr *expr, DatumList *values) {
  NameList names = {0};
  if (!resolve_path(elaborator, &expr->path, &names)) array_push(elaborator->scratch, values, datum_error());
  for (int64_t i = 0; i < names.count; i++)
    array_push(elaborator->scratch, values, lookup(elaborator, names.items[i], expr->location));
}

void evaluate_list(Elaborator *elaborator, const ExprList *exprs, DatumList *values) {
  for (int64_t i = 0; i < exprs->count; i++) {
    const Expr *expr = exprs->items[i];
    if (expr->kind == EXPR_PATH) {
      evaluate_path_list(elaborator, expr, values);
    } else if (expr->kind == EXPR_CALL) {
      evaluate_call(elaborator, expr, values);
    } else {
      Datum value = evaluate(elaborator, expr);
      array_push(elaborator->scratch, values, value);
    }
  }
}

bool evaluate_int(Elaborator *elaborator, const Expr *expr, const char *what, int64_t *value) {
  Datum datum = evaluate(elaborator, expr);
  *value = datum.integer;
  if (datum.kind == DATUM_INT) return true;
  if (datum.kind != DATUM_ERROR)
    diag_error(expr->location, "%s is an int, found %s", what, datum_text(elaborator->scratch, &datum));
  return false;
}

bool evaluate_bool(Elaborator *elaborator, const Expr *expr, const char *what, bool *value) {
  Datum datum = evaluate(elaborator, expr);
  *value = datum.integer;
  if (datum.kind == DATUM_BOOL) return true;
  if (datum.kind == DATUM_TENSOR)
    diag_error(expr->location, "%s is a constant bool, found a tensor; where(condition, a, b) chooses by element",
               what);
  else if (datum.kind != DATUM_ERROR)
    diag_error(expr->location, "%s is a constant bool, found %s", what, datum_text(elaborator->scratch, &datum));
  return false;
}
