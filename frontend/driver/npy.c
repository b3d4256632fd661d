/* frontend/driver/npy.c - .npy files: magic, version, header dictionary padded to 64 bytes, data in row-major order. */
#include "frontend/driver/npy.h"

static const char *const descriptors[DATA_TYPE_COUNT] = {
    [F32] = "<f4", [F64] = "<f8", [I32] = "<i4", [I64] = "<i8", [U8] = "|u1", [BOOL] = "|b1"};

static void store_element(unsigned char *to, DataType dtype, const EvalTensor *tensor, int64_t i) {
  switch (dtype) {
    case F32:
      memcpy(to, &(float){(float)tensor->real[i]}, sizeof(float));
      break;
    case F64:
      memcpy(to, &tensor->real[i], sizeof(double));
      break;
    case I32:
      memcpy(to, &(int32_t){(int32_t)tensor->integer[i]}, sizeof(int32_t));
      break;
    case I64:
      memcpy(to, &tensor->integer[i], sizeof(int64_t));
      break;
    case U8:
    case BOOL:
      *to = (unsigned char)tensor->integer[i];
      break;
    default:
      die("no .npy form of %s", dtype_name(dtype));
  }
}

static char *header_text(MemoryArena *arena, const Type *type, int64_t count) {
  char *shape = memory_format(arena, "%lld,", (long long)(count * type->dims[0]));
  for (int i = 1; i < type->rank; i++) shape = memory_format(arena, "%s %lld,", shape, (long long)type->dims[i]);
  char *dictionary =
      memory_format(arena, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descriptors[type->dtype], shape);
  int padding = 64 - (int)((strlen(dictionary) + 11) % 64);
  return memory_format(arena, "%s%*s\n", dictionary, padding, "");
}

bool write_npy(MemoryArena *arena, const char *path, const EvalTensor *tensors, int64_t count, const char **error) {
  const Type *type = &tensors[0].type;
  ASSERT(type->rank >= 1 && descriptors[type->dtype]);
  char *header = header_text(arena, type, count);
  int64_t header_bytes = (int64_t)strlen(header), elements = type_elements(type), width = dtype_bytes(type->dtype);
  int64_t total = add_sizes(10 + header_bytes, multiply_sizes(multiply_sizes(elements, count), width));
  unsigned char *bytes = memory_alloc(arena, total), *at = bytes + 10 + header_bytes;
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (unsigned char)(header_bytes & 255);
  bytes[9] = (unsigned char)(header_bytes >> 8);
  memcpy(bytes + 10, header, (size_t)header_bytes);
  for (int64_t t = 0; t < count; t++)
    for (int64_t i = 0; i < elements; i++, at += width) store_element(at, type->dtype, &tensors[t], i);
  return file_write(arena, path, bytes, total, error);
}
