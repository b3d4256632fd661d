/* frontend/elaborate_shapes.c - types with named dims: their evaluation, unification, and messages about them. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

/* ---- what the source calls an axis ---- */

const DimName *dim_names(const Elaborator *elaborator, ValueId value) {
  return value < elaborator->dim_names.count ? elaborator->dim_names.items[value] : NULL;
}

void set_dim_names(Elaborator *elaborator, ValueId value, const DimName *names) {
  while (elaborator->dim_names.count <= value) array_push(elaborator->scratch, &elaborator->dim_names, NULL);
  DimName *copy = NEW_ARRAY(elaborator->scratch, DimName, MAX_RANK);
  memcpy(copy, names, MAX_RANK * sizeof *copy);
  elaborator->dim_names.items[value] = copy;
}

void inherit_dim_names(Elaborator *elaborator, ValueId result, int count, const ValueId *operands) {
  const Type *type = value_type(elaborator->graph, result);
  DimName names[MAX_RANK] = {0};
  bool any = false;
  if (dim_names(elaborator, result)) return;
  for (int k = 0; k < count; k++) {
    const DimName *known = operands[k] == NO_VALUE ? NULL : dim_names(elaborator, operands[k]);
    if (!known) continue;
    const Type *operand = value_type(elaborator->graph, operands[k]);
    for (int i = 1; i <= type->rank && i <= operand->rank; i++) {
      int to = type->rank - i, from = operand->rank - i;
      if (names[to].text || type->dims[to] != operand->dims[from] || !known[from].text) continue;
      names[to] = known[from];
      any = true;
    }
  }
  if (any) set_dim_names(elaborator, result, names);
}

/* The one name that axes of this size have among the operands; no text: none, or several. */
static DimName name_by_size(const Elaborator *elaborator, int64_t size, int count, const ValueId *operands) {
  DimName found = {0};
  for (int k = 0; k < count; k++) {
    const DimName *names = operands[k] == NO_VALUE ? NULL : dim_names(elaborator, operands[k]);
    const Type *type = names ? value_type(elaborator->graph, operands[k]) : NULL;
    for (int i = 0; type && i < type->rank; i++) {
      if (type->dims[i] != size || !names[i].text) continue;
      if (found.text && !string_equal(found.text, names[i].text)) return (DimName){0};
      found = names[i];
    }
  }
  return found;
}

void guess_dim_names(Elaborator *elaborator, ValueId result, int count, const ValueId *operands) {
  const Type *type = value_type(elaborator->graph, result);
  DimName names[MAX_RANK] = {0};
  bool any = false;
  if (dim_names(elaborator, result)) return;
  for (int i = 0; i < type->rank; i++) {
    if (type->dims[i] > 1) names[i] = name_by_size(elaborator, type->dims[i], count, operands);
    any = any || names[i].text;
  }
  if (any) set_dim_names(elaborator, result, names);
}

static char *names_text(Elaborator *elaborator, const Type *type, const DimName *names) {
  MemoryArena *arena = elaborator->scratch;
  char *named = memory_string(arena, "["), *sizes = memory_string(arena, "(");
  bool any = false;
  for (int i = 0; i < type->rank; i++) {
    bool known = names && names[i].text;
    any = any || known;
    named = known ? memory_format(arena, "%s%s%s", named, i ? ", " : "", names[i].text)
                  : memory_format(arena, "%s%s%" PRId64, named, i ? ", " : "", type->dims[i]);
    sizes = memory_format(arena, "%s%s%" PRId64, sizes, i ? "," : "", type->dims[i]);
  }
  return any ? memory_format(arena, "%s] %s)", named, sizes) : memory_format(arena, "%s]", named);
}

char *shape_text(Elaborator *elaborator, ValueId value) {
  return names_text(elaborator, value_type(elaborator->graph, value), dim_names(elaborator, value));
}

/* Shows where the word that names an axis gets its size. */
static void note_dim(Elaborator *elaborator, ValueId value, int axis) {
  const DimName *names = dim_names(elaborator, value);
  if (!names || !names[axis].declared.source) return;
  diag_note(names[axis].declared, "%s is %" PRId64 " here", names[axis].text,
            value_type(elaborator->graph, value)->dims[axis]);
}

/* ---- broadcasting ---- */

/* The axis from the right, from 1, at which two shapes disagree; 0: they broadcast. */
static int find_mismatch(const Type *a, const Type *b) {
  for (int i = 1; i <= a->rank && i <= b->rank; i++) {
    int64_t left = a->dims[a->rank - i], right = b->dims[b->rank - i];
    if (left != right && left != 1 && right != 1) return i;
  }
  return 0;
}

static void report_mismatch(Elaborator *elaborator, const char *what, ValueId a, ValueId b, int a_axis, int b_axis,
                            Location location) {
  diag_error(location, "dimension mismatch in %s: %s vs %s", what, shape_text(elaborator, a),
             shape_text(elaborator, b));
  note_dim(elaborator, a, a_axis);
  note_dim(elaborator, b, b_axis);
}

bool check_broadcast(Elaborator *elaborator, const char *what, int count, const ValueId *values, Location location) {
  for (int i = 0; i < count; i++) {
    for (int k = i + 1; k < count; k++) {
      if (values[i] == NO_VALUE || values[k] == NO_VALUE) continue;
      const Type *a = value_type(elaborator->graph, values[i]), *b = value_type(elaborator->graph, values[k]);
      int axis = find_mismatch(a, b);
      if (!axis) continue;
      report_mismatch(elaborator, what, values[i], values[k], a->rank - axis, b->rank - axis, location);
      return false;
    }
  }
  return true;
}

bool check_contraction(Elaborator *elaborator, ValueId left, ValueId right, Location location) {
  const Type *a = value_type(elaborator->graph, left), *b = value_type(elaborator->graph, right);
  int b_axis = b->rank == 1 ? 0 : b->rank - 2;
  if (a->rank < 1 || b->rank < 1) return true; /* the operator says so */
  if (a->dims[a->rank - 1] == b->dims[b_axis]) return true;
  report_mismatch(elaborator, "'@'", left, right, a->rank - 1, b_axis, location);
  return false;
}

/* ---- types whose dims are known ---- */

static const char *expr_text(Elaborator *elaborator, const Expr *expr) {
  return memory_string_range(elaborator->scratch, expr->location.source->text + expr->location.start,
                             expr->location.length);
}

/* The word of a dim that is one, else NULL. */
static const char *dim_word(const Expr *expr) {
  return expr->kind == EXPR_PATH && expr->path.parts.count == 1 ? expr->path.parts.items[0].word : NULL;
}

static DimName name_dim(Elaborator *elaborator, const Expr *expr) {
  const char *word = dim_word(expr);
  const Binding *binding = word ? find_binding(elaborator, word) : NULL;
  if (expr->kind == EXPR_INT) return (DimName){0};
  return (DimName){expr_text(elaborator, expr), binding ? binding->location : (Location){0}};
}

static bool evaluate_dtype(Elaborator *elaborator, const TypeSyntax *syntax, DataType *dtype) {
  *dtype = F32;
  if (!syntax->dtype || dtype_from_name(syntax->dtype, dtype)) return true;
  Suggestion suggestion = suggestion_start(syntax->dtype);
  for (int i = 0; i < DATA_TYPE_COUNT; i++) suggestion_consider(&suggestion, dtype_name((DataType)i));
  diag_error(syntax->dtype_location, "unknown data type '%s'%s", syntax->dtype,
             suggestion_list(elaborator, &suggestion));
  return false;
}

static bool check_rank(const TypeSyntax *syntax) {
  if (syntax->dims.count <= MAX_RANK) return true;
  diag_error(syntax->location, "a tensor has at most %d axes, found %" PRId64, MAX_RANK, syntax->dims.count);
  return false;
}

bool evaluate_type(Elaborator *elaborator, const TypeSyntax *syntax, Type *type, DimName *names) {
  bool sound = check_rank(syntax);
  *type = (Type){0};
  memset(names, 0, MAX_RANK * sizeof *names);
  sound = evaluate_dtype(elaborator, syntax, &type->dtype) && sound;
  for (int64_t i = 0; i < syntax->dims.count && i < MAX_RANK; i++) {
    const Expr *expr = syntax->dims.items[i];
    int64_t *dim = &type->dims[type->rank++];
    if (!expr) {
      diag_error(syntax->dim_locations.items[i], "'...' is for the formals of a module; every dim is known here");
      sound = false;
    } else if (!evaluate_int(elaborator, expr, "a dim", dim)) {
      sound = false;
    } else if (*dim < 1) {
      diag_error(expr->location, "a dim is at least 1, found %" PRId64, *dim);
      sound = false;
    } else {
      names[i] = name_dim(elaborator, expr);
    }
  }
  if (!sound || type_check_size(type)) return sound;
  diag_error(syntax->location, "the tensor has more bytes than a 64-bit size can count");
  return false;
}

/* ---- unification of a formal's type with a tensor ---- */

/* "[B, T, ...]" as written. */
static const char *type_syntax_text(Elaborator *elaborator, const TypeSyntax *syntax) {
  return memory_string_range(elaborator->scratch, syntax->location.source->text + syntax->location.start,
                             syntax->location.length);
}

static void report_type(Elaborator *elaborator, const TypeSyntax *syntax, ValueId value, const char *formal,
                        Location location) {
  const Type *type = value_type(elaborator->graph, value);
  const char *dtype = type->dtype == F32 ? "" : dtype_name(type->dtype);
  diag_error(location, "'%s' is declared as %s, found %s%s", formal, type_syntax_text(elaborator, syntax), dtype,
             shape_text(elaborator, value));
}

/* Matches one axis: binds a new word, or compares. */
static bool match_dim(Elaborator *elaborator, const TypeSyntax *syntax, const Expr *expr, ValueId value, int axis,
                      const char *formal, Location location) {
  int64_t size = value_type(elaborator->graph, value)->dims[axis], wanted;
  const char *word = dim_word(expr);
  if (word && string_equal(word, "_")) return true;
  if (word && !find_binding(elaborator, word) && !is_predeclared(word)) {
    scope_set(elaborator, &elaborator->expansion->scope, word,
              (Binding){.kind = BINDING_SHAPE, .value = datum_int(size), .persistent = -1, .location = expr->location});
    return true;
  }
  if (!evaluate_int(elaborator, expr, "a dim", &wanted)) return false;
  if (wanted == size) return true;
  report_type(elaborator, syntax, value, formal, location);
  DimName name = name_dim(elaborator, expr);
  if (name.declared.source) diag_note(name.declared, "%s is %" PRId64 " here", name.text, wanted);
  note_dim(elaborator, value, axis);
  return false;
}

/* Names for axes that have none yet, from the words of the formal. */
static void adopt_dim_names(Elaborator *elaborator, const TypeSyntax *syntax, ValueId value, const int *axes) {
  const DimName *known = dim_names(elaborator, value);
  DimName names[MAX_RANK] = {0};
  bool any = false;
  if (known) memcpy(names, known, sizeof names);
  for (int64_t i = 0; i < syntax->dims.count; i++) {
    const Expr *expr = syntax->dims.items[i];
    if (!expr || names[axes[i]].text || !dim_word(expr) || string_equal(dim_word(expr), "_")) continue;
    names[axes[i]] = name_dim(elaborator, expr);
    any = true;
  }
  if (any) set_dim_names(elaborator, value, names);
}

bool match_type(Elaborator *elaborator, const TypeSyntax *syntax, ValueId value, const char *formal,
                Location location) {
  Type type = *value_type(elaborator->graph, value);
  int axes[MAX_RANK] = {0}, ellipses = 0, axis = 0;
  DataType dtype;
  if (!check_rank(syntax) || !evaluate_dtype(elaborator, syntax, &dtype)) return false;
  for (int64_t i = 0; i < syntax->dims.count; i++) ellipses += !syntax->dims.items[i];
  int named = (int)syntax->dims.count - ellipses;
  if (ellipses > 1) {
    diag_error(syntax->location, "a type has at most one '...'");
    return false;
  }
  if (type.dtype != dtype || (ellipses ? type.rank < named : type.rank != named)) {
    report_type(elaborator, syntax, value, formal, location);
    if (type.dtype != dtype) diag_note(location, "%s(...) converts", dtype_name(dtype));
    return false;
  }
  for (int64_t i = 0; i < syntax->dims.count; i++) {
    axes[i] = axis;
    axis += syntax->dims.items[i] ? 1 : type.rank - named;
    if (!syntax->dims.items[i]) axes[i] = 0; /* stands for several */
    if (syntax->dims.items[i] &&
        !match_dim(elaborator, syntax, syntax->dims.items[i], value, axes[i], formal, location))
      return false;
  }
  adopt_dim_names(elaborator, syntax, value, axes);
  return true;
}
