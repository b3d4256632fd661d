/* frontend/elaborate_index.c - x[...] on lists and tensors. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

/* An index or bound counted from either end. */
static bool normalize(int64_t *index, int64_t size, bool bound, const char *what, Location location) {
  int64_t from_start = *index < 0 ? *index + size : *index;
  if (from_start >= 0 && (bound ? from_start <= size : from_start < size)) {
    *index = from_start;
    return true;
  }
  diag_error(location, "%s %" PRId64 " is outside of an axis of %" PRId64 " elements", what, *index, size);
  return false;
}

/* start:stop:step of an axis or list, all counted from the start. */
static bool evaluate_slice(Elaborator *elaborator, const Subscript *subscript, int64_t size, int64_t bounds[3]) {
  int64_t defaults[] = {0, size, 1};
  const Expr *exprs[] = {subscript->start, subscript->stop, subscript->step};
  static const char *const names[] = {"the start of the slice", "the end of the slice", "the step of a slice"};
  for (int i = 0; i < 3; i++) {
    bounds[i] = defaults[i];
    if (!exprs[i]) continue;
    if (!evaluate_int(elaborator, exprs[i], names[i], &bounds[i])) return false;
    if (i < 2 && !normalize(&bounds[i], size, true, names[i], exprs[i]->location)) return false;
  }
  if (bounds[2] < 1) {
    diag_error(exprs[2]->location, "the step of a slice is at least 1, found %" PRId64, bounds[2]);
    return false;
  }
  return true;
}

/* ---- lists ---- */

static Datum slice_list(Elaborator *elaborator, const Datum *list, const Subscript *subscript) {
  int64_t bounds[3];
  if (!evaluate_slice(elaborator, subscript, list->count, bounds)) return datum_error();
  DatumList items = {0};
  for (int64_t i = bounds[0]; i < bounds[1]; i += bounds[2])
    array_push(elaborator->scratch, &items, list_item(list, i));
  return datum_list(items.items, items.count);
}

static Datum index_list(Elaborator *elaborator, const Datum *list, const Expr *expr) {
  const Subscript *subscript = &expr->subscripts.items[0];
  if (expr->subscripts.count != 1 || subscript->kind == SUBSCRIPT_ELLIPSIS) {
    diag_error(expr->location, "a list takes one index or slice");
    return datum_error();
  }
  if (subscript->kind == SUBSCRIPT_SLICE) return slice_list(elaborator, list, subscript);
  int64_t index;
  if (!evaluate_int(elaborator, subscript->start, "the index of a list", &index)) return datum_error();
  if (index >= -list->count && index < list->count) return list_item(list, index < 0 ? index + list->count : index);
  diag_error(subscript->location, "index %" PRId64 " is outside of a list of %" PRId64, index, list->count);
  return datum_error();
}

/* ---- tensors ---- */

/* Applies one subscript to an axis; returns how many axes are left of it (0 for an index), or -1 after an error. */
static int index_axis(Elaborator *elaborator, const Subscript *subscript, int axis, ValueId *value) {
  int64_t size = value_type(elaborator->graph, *value)->dims[axis], bounds[3], index;
  elaborator->graph->location = subscript->location;
  if (subscript->kind == SUBSCRIPT_SLICE) {
    if (!evaluate_slice(elaborator, subscript, size, bounds)) return -1;
    if (bounds[0] >= bounds[1]) {
      diag_error(subscript->location, "the slice %" PRId64 ":%" PRId64 " is empty", bounds[0], bounds[1]);
      return -1;
    }
    elaborator->graph->location = subscript->location;
    if (bounds[0] > 0 || bounds[1] < size || bounds[2] > 1)
      *value = build_slice(elaborator->graph, *value, axis, bounds[0], bounds[1], bounds[2]);
    return *value == NO_VALUE ? -1 : 1;
  }
  if (!evaluate_int(elaborator, subscript->start, "the index of a tensor", &index) ||
      !normalize(&index, size, false, "index", subscript->location))
    return -1;
  elaborator->graph->location = subscript->location;
  *value = build_index(elaborator->graph, *value, axis, index);
  return *value == NO_VALUE ? -1 : 0;
}

/* Names of the axes that stay whole. */
static void keep_dim_names(Elaborator *elaborator, ValueId from, ValueId to, const int *origin) {
  const DimName *names = dim_names(elaborator, from);
  const Type *before = value_type(elaborator->graph, from), *after = value_type(elaborator->graph, to);
  DimName kept[MAX_RANK] = {0};
  if (!names || from == to) return;
  for (int i = 0; i < after->rank; i++)
    if (after->dims[i] == before->dims[origin[i]]) kept[i] = names[origin[i]];
  set_dim_names(elaborator, to, kept);
}

static Datum index_tensor(Elaborator *elaborator, Datum tensor, const Expr *expr) {
  int rank = value_type(elaborator->graph, tensor.tensor)->rank, given = 0, axis = 0, ellipses = 0;
  int origin[MAX_RANK + 1], from = 0;
  ValueId value = tensor.tensor;
  for (int64_t i = 0; i < expr->subscripts.count; i++) {
    given += expr->subscripts.items[i].kind != SUBSCRIPT_ELLIPSIS;
    ellipses += expr->subscripts.items[i].kind == SUBSCRIPT_ELLIPSIS;
  }
  if (given > rank || ellipses > 1) {
    diag_error(expr->location,
               ellipses > 1 ? "one '...' may stand for the axes left out" : "%d subscripts for a tensor of %d axes, %s",
               given, rank, shape_text(elaborator, tensor.tensor));
    return datum_error();
  }
  for (int64_t i = 0; i < expr->subscripts.count; i++) {
    const Subscript *subscript = &expr->subscripts.items[i];
    int left = subscript->kind == SUBSCRIPT_ELLIPSIS ? rank - given : index_axis(elaborator, subscript, axis, &value);
    if (left < 0) return datum_error();
    for (int k = 0; k < left; k++) origin[axis + k] = from + k;
    axis += left;
    from += subscript->kind == SUBSCRIPT_ELLIPSIS ? left : 1;
  }
  while (from < rank) origin[axis++] = from++;
  keep_dim_names(elaborator, tensor.tensor, value, origin);
  return datum_tensor(value);
}

Datum evaluate_index(Elaborator *elaborator, const Expr *expr) {
  Datum indexed = evaluate(elaborator, expr->indexed);
  if (indexed.kind == DATUM_LIST) return index_list(elaborator, &indexed, expr);
  if (indexed.kind == DATUM_TENSOR) return index_tensor(elaborator, indexed, expr);
  if (indexed.kind != DATUM_ERROR)
    diag_error(expr->location, "[ ] indexes a tensor or a list, found %s", datum_text(elaborator->scratch, &indexed));
  return datum_error();
}
