#include <stdlib.h>
#include <string.h>

#include "runtime/safetensors.h"
#include "runtime/types.h"

static const struct {
  const char *name;
  int64_t size;
  int type; /* RpType, or -1 */
} file_types[] = {{"F32", 4, RP_F32}, {"F16", 2, RP_F16}, {"BF16", 2, RP_BF16}, {"F64", 8, RP_F64}, {"I64", 8, RP_I64},
                  {"I32", 4, RP_I32}, {"U8", 1, RP_U8},   {"BOOL", 1, RP_BOOL}, {"I8", 1, -1},      {"I16", 2, -1},
                  {"U16", 2, -1},     {"U32", 4, -1},     {"U64", 8, -1},       {"F8_E4M3", 1, -1}, {"F8_E5M2", 1, -1}};
enum { FILE_TYPE_COUNT = sizeof file_types / sizeof *file_types };

static int find_type(const char *name) {
  for (int i = 0; name && i < FILE_TYPE_COUNT; i++) {
    if (strcmp(file_types[i].name, name) == 0) return i;
  }
  return -1;
}

static uint64_t little_endian(const unsigned char *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

/* Reads the header's JSON into tensors->header; duplicates of any key are refused by the parser. */
static bool read_header(RpTensorFile *tensors, RpStatus *status) {
  const RpFile *file = &tensors->file;
  unsigned char prefix[8];
  if (file->size < 8) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s' is not a safetensors file: expected 8 bytes of header length, the file "
                   "has %lld",
                   file->path, (long long)file->size);
  }
  if (!rp_file_read(file, 0, 8, prefix, status)) return false;
  uint64_t length = little_endian(prefix);
  if (length > RP_SAFETENSORS_MAX_HEADER || (int64_t)length > file->size - 8) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s' is not a safetensors file: a header of %llu bytes, expected at most %lld (the file "
                   "after its first 8 bytes, and never more than %d)",
                   file->path, (unsigned long long)length, (long long)(file->size - 8), RP_SAFETENSORS_MAX_HEADER);
  }
  char *text = rp_allocate((long long)length + 1, 1, status);
  if (!text) return false;
  bool read = rp_file_read(file, 8, (int64_t)length, text, status);
  if (read && text[0] != '{') {
    read = rp_fail(status, RP_BAD_DATA, "'%s': expected the header to start with '{' at offset 8", file->path);
  }
  json_error_t error = {0};
  if (read) tensors->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  free(text);
  if (!read) return false;
  tensors->data_offset = 8 + (int64_t)length;
  if (!tensors->header) {
    return rp_fail(status, RP_BAD_DATA, "'%s': the header is not valid: %s at its byte %d", file->path, error.text,
                   error.position);
  }
  return true;
}

static bool check_metadata(const RpTensorFile *tensors, RpStatus *status) {
  json_t *metadata = json_object_get(tensors->header, "__metadata__"), *value;
  const char *key;
  if (metadata && !json_is_object(metadata)) {
    return rp_fail(status, RP_BAD_DATA, "'%s': __metadata__ is not an object", tensors->file.path);
  }
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value)) {
      return rp_fail(status, RP_BAD_DATA, "'%s': __metadata__ \"%.100s\" is not a string", tensors->file.path, key);
    }
  }
  return true;
}

/* Reads the shape and its number of elements; -1 when it is malformed or overflows. */
static int64_t parse_shape(const json_t *shape, RpTensorEntry *entry) {
  int64_t elements = 1;
  if (!json_is_array(shape) || json_array_size(shape) > RP_MAX_RANK) return -1;
  entry->rank = (int)json_array_size(shape);
  for (int axis = 0; axis < entry->rank; axis++) {
    const json_t *dim = json_array_get(shape, (size_t)axis);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0) return -1;
    entry->dims[axis] = json_integer_value(dim);
    if (__builtin_mul_overflow(elements, entry->dims[axis], &elements)) return -1;
  }
  return elements;
}

static bool parse_offsets(const json_t *offsets, RpTensorEntry *entry) {
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end)) {
    return false;
  }
  entry->begin = json_integer_value(begin);
  entry->end = json_integer_value(end);
  return entry->begin >= 0 && entry->end >= entry->begin;
}

static bool parse_entry(const RpTensorFile *tensors, const char *name, const json_t *value, RpTensorEntry *entry,
                        RpStatus *status) {
  const char *path = tensors->file.path;
  char shape[160];
  int64_t bytes;
  int type = find_type(json_string_value(json_object_get(value, "dtype")));
  *entry = (RpTensorEntry){.name = name};
  if (json_object_size(value) != 3 || type < 0) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': tensor '%.200s': expected a known dtype, shape and data_offsets, and "
                   "nothing else",
                   path, name);
  }
  entry->type = file_types[type].type;
  entry->type_name = file_types[type].name;
  int64_t elements = parse_shape(json_object_get(value, "shape"), entry);
  if (elements < 0 || __builtin_mul_overflow(elements, file_types[type].size, &bytes)) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': tensor '%.200s': expected a shape of at most %d sizes, 0 or more, whose "
                   "product fits 64 bits",
                   path, name, RP_MAX_RANK);
  }
  if (!parse_offsets(json_object_get(value, "data_offsets"), entry)) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': tensor '%.200s': expected data_offsets [begin, end] with 0 <= begin <= "
                   "end",
                   path, name);
  }
  if (entry->end - entry->begin != bytes) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': tensor '%.200s' %s %s takes %lld bytes, its data_offsets [%lld, %lld] "
                   "cover %lld",
                   path, name, entry->type_name, rp_shape_text(entry->rank, entry->dims, shape, sizeof shape),
                   (long long)bytes, (long long)entry->begin, (long long)entry->end,
                   (long long)(entry->end - entry->begin));
  }
  return true;
}

static int compare_entries(const void *a, const void *b) {
  const RpTensorEntry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* In order of their data, every tensor starts where the one before it ends; the last ends with the file. */
static bool check_contiguous(const RpTensorFile *tensors, RpStatus *status) {
  int64_t data = tensors->file.size - tensors->data_offset, at = 0;
  for (int64_t i = 0; i < tensors->count; i++) {
    const RpTensorEntry *entry = &tensors->entries[i];
    if (entry->begin != at) {
      return rp_fail(status, RP_BAD_DATA, "'%s': tensor '%.200s' starts at data offset %lld, expected %lld: %s",
                     tensors->file.path, entry->name, (long long)entry->begin, (long long)at,
                     entry->begin < at ? "it overlaps the one before it" : "there is a hole before it");
    }
    if (entry->end > data) {
      return rp_fail(status, RP_BAD_DATA,
                     "'%s': tensor '%.200s' ends at data offset %lld, the file has %lld bytes of "
                     "data",
                     tensors->file.path, entry->name, (long long)entry->end, (long long)data);
    }
    at = entry->end;
  }
  if (at != data) {
    return rp_fail(status, RP_BAD_DATA, "'%s': the tensors end at data offset %lld, the file has %lld bytes of data",
                   tensors->file.path, (long long)at, (long long)data);
  }
  return true;
}

static bool parse_header(RpTensorFile *tensors, RpStatus *status) {
  if (!read_header(tensors, status) || !check_metadata(tensors, status)) return false;
  tensors->entries = rp_allocate((long long)json_object_size(tensors->header), sizeof *tensors->entries, status);
  if (!tensors->entries) return false;
  const char *name;
  json_t *value;
  json_object_foreach(tensors->header, name, value) {
    if (strcmp(name, "__metadata__") == 0) continue;
    if (!parse_entry(tensors, name, value, &tensors->entries[tensors->count], status)) return false;
    tensors->count++;
  }
  qsort(tensors->entries, (size_t)tensors->count, sizeof *tensors->entries, compare_entries);
  return check_contiguous(tensors, status);
}

bool rp_tensors_open(RpTensorFile *tensors, const char *path, RpStatus *status) {
  *tensors = (RpTensorFile){.file.descriptor = -1};
  if (!rp_file_open(&tensors->file, path, status)) return false;
  if (parse_header(tensors, status)) return true;
  rp_tensors_close(tensors);
  return false;
}

bool rp_tensors_open_memory(RpTensorFile *tensors, const char *name, const void *bytes, int64_t size,
                            RpStatus *status) {
  *tensors = (RpTensorFile){.file = {.descriptor = -1, .path = strdup(name), .size = size}};
  tensors->file.contents = rp_allocate(size, 1, status);
  bool opened = tensors->file.path && tensors->file.contents;
  if (opened && size > 0) memcpy(tensors->file.contents, bytes, (size_t)size);
  if (opened && parse_header(tensors, status)) return true;
  rp_tensors_close(tensors);
  return false;
}

void rp_tensors_close(RpTensorFile *tensors) {
  rp_file_close(&tensors->file);
  json_decref(tensors->header);
  free(tensors->entries);
  *tensors = (RpTensorFile){.file.descriptor = -1};
}

const char *rp_tensors_metadata(const RpTensorFile *tensors, const char *key) {
  return json_string_value(json_object_get(json_object_get(tensors->header, "__metadata__"), key));
}

bool rp_tensors_readable(const RpTensorEntry *entry, RpType type) {
  return entry->type == (int)type || (type == RP_F32 && (entry->type == RP_F16 || entry->type == RP_BF16));
}

bool rp_tensors_read(const RpTensorFile *tensors, const RpTensorEntry *entry, RpType type, int64_t first, int64_t count,
                     void *to, RpStatus *status) {
  enum { CHUNK = 4096 };
  int64_t size = rp_type_size((RpType)entry->type), offset = tensors->data_offset + entry->begin + first * size;
  if (entry->type == (int)type) return rp_file_read(&tensors->file, offset, count * size, to, status);
  uint16_t chunk[CHUNK];
  float *floats = to;
  for (int64_t at = 0; at < count; at += CHUNK) {
    int64_t part = count - at < CHUNK ? count - at : CHUNK;
    if (!rp_file_read(&tensors->file, offset + 2 * at, 2 * part, chunk, status)) return false;
    for (int64_t i = 0; i < part; i++) {
      floats[at + i] = entry->type == RP_F16 ? rp_half_to_float(chunk[i]) : rp_bfloat_to_float(chunk[i]);
    }
  }
  return true;
}
