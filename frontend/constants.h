/* frontend/constants.h - compile-time values of the language and arithmetic on them (docs/language.md, "Constants").
 *
 * Integers are checked 64-bit and stay integers: '/' must be exact, '//' and '%' floor. A float operand or a negative
 * exponent gives a float. Lists are immutable; ranges are lists that take no memory. */
#ifndef REPRISE_FRONTEND_CONSTANTS_H
#define REPRISE_FRONTEND_CONSTANTS_H

#include "frontend/lexer.h"
#include "ir/ir.h"

typedef enum DatumKind {
  DATUM_ERROR, /* what an error left behind: anything made of it is silently another */
  DATUM_NONE,
  DATUM_BOOL,
  DATUM_INT,
  DATUM_FLOAT,
  DATUM_STRING,
  DATUM_LIST,
  DATUM_TENSOR
} DatumKind;

typedef struct Datum Datum;
struct Datum {
  DatumKind kind;
  ValueId tensor; /* TENSOR */
  union {
    int64_t integer; /* INT, BOOL; LIST without items: the first of a range */
    double number;
    const char *string;
  };
  const Datum *items; /* LIST; NULL: count integers from `integer` on */
  int64_t count;
};
typedef ARRAY(Datum) DatumList;

static inline Datum datum_error(void) { return (Datum){.kind = DATUM_ERROR}; }
static inline Datum datum_none(void) { return (Datum){.kind = DATUM_NONE}; }
static inline Datum datum_bool(bool value) { return (Datum){.kind = DATUM_BOOL, .integer = value}; }
static inline Datum datum_int(int64_t value) { return (Datum){.kind = DATUM_INT, .integer = value}; }
static inline Datum datum_float(double value) { return (Datum){.kind = DATUM_FLOAT, .number = value}; }
static inline Datum datum_string(const char *text) { return (Datum){.kind = DATUM_STRING, .string = text}; }
static inline Datum datum_tensor(ValueId value) {
  return value == NO_VALUE ? datum_error() : (Datum){.kind = DATUM_TENSOR, .tensor = value};
}
Datum datum_list(const Datum *items, int64_t count);

static inline bool is_number(const Datum *datum) { return datum->kind == DATUM_INT || datum->kind == DATUM_FLOAT; }
static inline double as_number(const Datum *datum) {
  return datum->kind == DATUM_INT ? (double)datum->integer : datum->number;
}
/* Item i of a list, 0 <= i < count. */
Datum list_item(const Datum *list, int64_t index);
bool datum_equal(const Datum *a, const Datum *b);
/* "an int", "a list", … and the value itself as the language writes it. */
const char *datum_kind_text(const Datum *datum);
char *datum_text(MemoryArena *arena, const Datum *datum);

/* Operators on constants (no tensors, no errors among them). Faults are reported at the location and give an error. */
Datum constant_prefix(MemoryArena *arena, TokenKind symbol, Datum operand, Location location);
Datum constant_binary(MemoryArena *arena, TokenKind symbol, Datum left, Datum right, Location location);
/* The scalar functions that also run at compile time: sqrt, exp, maximum … Returns false when there is none of the
 * name. */
bool constant_function_exists(const char *name);
Datum constant_function(MemoryArena *arena, const char *name, const Datum *arguments, int64_t count, Location location);
/* How the language writes an operator. */
const char *operator_text(TokenKind symbol);

#endif
