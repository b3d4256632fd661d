/* ir/types.c - data types, tensor types, attributes. */
#include "ir/ir.h"

static const struct {
  const char *name;
  int bytes;
  ScalarClass class;
} data_types[DATA_TYPE_COUNT] = {
    [F32] = {"f32", 4, CLASS_REAL},  [F64] = {"f64", 8, CLASS_REAL},    [BF16] = {"bf16", 2, CLASS_REAL},
    [F16] = {"f16", 2, CLASS_REAL},  [I32] = {"i32", 4, CLASS_INTEGER}, [I64] = {"i64", 8, CLASS_INTEGER},
    [U8] = {"u8", 1, CLASS_INTEGER}, [BOOL] = {"bool", 1, CLASS_BOOL},
};

const char *dtype_name(DataType dtype) { return data_types[dtype].name; }
int64_t dtype_bytes(DataType dtype) { return data_types[dtype].bytes; }
ScalarClass dtype_class(DataType dtype) { return data_types[dtype].class; }

bool dtype_from_name(const char *name, DataType *dtype) {
  for (int i = 0; i < DATA_TYPE_COUNT; i++)
    if (string_equal(data_types[i].name, name)) {
      *dtype = (DataType)i;
      return true;
    }
  return false;
}

Type type_scalar(DataType dtype) { return (Type){.dtype = dtype}; }

Type type_make(DataType dtype, int rank, const int64_t *dims) {
  ASSERT(rank >= 0 && rank <= MAX_RANK);
  Type type = {.dtype = dtype, .rank = rank};
  for (int i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}

bool shape_equal(const Type *a, const Type *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

bool type_equal(const Type *a, const Type *b) { return a->dtype == b->dtype && shape_equal(a, b); }

int64_t type_elements(const Type *type) {
  int64_t elements = 1;
  for (int i = 0; i < type->rank; i++) elements = multiply_sizes(elements, type->dims[i]);
  return elements;
}

int64_t type_bytes(const Type *type) { return multiply_sizes(type_elements(type), dtype_bytes(type->dtype)); }

bool type_check_size(const Type *type) {
  int64_t bytes = dtype_bytes(type->dtype);
  for (int i = 0; i < type->rank; i++)
    if (!checked_multiply(bytes, type->dims[i], &bytes)) return false;
  return checked_align(bytes, 4096, &bytes);
}

char *type_text(MemoryArena *arena, const Type *type) {
  char *text = memory_format(arena, "%s[", dtype_name(type->dtype));
  for (int i = 0; i < type->rank; i++)
    text = memory_format(arena, "%s%s%lld", text, i ? ", " : "", (long long)type->dims[i]);
  return memory_format(arena, "%s]", text);
}

/* ---- attributes ---- */

Attribute attribute_int(int64_t value) { return (Attribute){.kind = ATTRIBUTE_INT, .given = true, .integer = value}; }
Attribute attribute_float(double value) { return (Attribute){.kind = ATTRIBUTE_FLOAT, .given = true, .number = value}; }
Attribute attribute_bool(bool value) { return (Attribute){.kind = ATTRIBUTE_BOOL, .given = true, .integer = value}; }
Attribute attribute_choice(int64_t index) {
  return (Attribute){.kind = ATTRIBUTE_CHOICE, .given = true, .integer = index};
}
Attribute attribute_dtype(DataType dtype) {
  return (Attribute){.kind = ATTRIBUTE_DTYPE, .given = true, .integer = dtype};
}
Attribute attribute_number(double value, int64_t integer) {
  return (Attribute){.kind = ATTRIBUTE_NUMBER, .given = true, .number = value, .integer = integer};
}
Attribute attribute_none(AttributeKind kind) { return (Attribute){.kind = kind}; }

Attribute attribute_ints(int count, const int64_t *values) {
  Attribute attribute = {.kind = ATTRIBUTE_INTS, .given = true, .count = count};
  ASSERT(count <= MAX_RANK);
  for (int i = 0; i < count; i++) attribute.list[i] = values[i];
  return attribute;
}

Attribute attribute_floats(int count, const double *values) {
  Attribute attribute = {.kind = ATTRIBUTE_FLOATS, .given = true, .count = count};
  ASSERT(count <= MAX_RANK);
  for (int i = 0; i < count; i++) attribute.numbers[i] = values[i];
  return attribute;
}
