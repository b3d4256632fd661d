/* IDX files (MNIST's format), plain or gzip: 00 00 type rank, big-endian u32 dims, then big-endian elements. */
#include <stdlib.h>
#include <string.h>

#include "runtime/reader.h"
#include "runtime/types.h"

typedef struct IdxState {
  RpFile file;
  int64_t data_offset;
} IdxState;

static const struct {
  unsigned char code;
  const char *name;
  int64_t size;
  int type; /* RpType, or -1: no such type in a model */
} idx_types[] = {{0x08, "u8", 1, RP_U8},   {0x09, "i8", 1, -1},      {0x0B, "i16", 2, -1},
                 {0x0C, "i32", 4, RP_I32}, {0x0D, "f32", 4, RP_F32}, {0x0E, "f64", 8, RP_F64}};

/* Row of idx_types, or -1. */
static int find_type(unsigned char code) {
  for (int i = 0; i < (int)(sizeof idx_types / sizeof *idx_types); i++) {
    if (idx_types[i].code == code) return i;
  }
  return -1;
}

/* Plain files are read by position, compressed ones from memory. */
static bool open_file(IdxState *state, const char *path, RpStatus *status) {
  unsigned char magic[2];
  if (!rp_file_open(&state->file, path, status)) return false;
  if (state->file.size < 2 || !rp_file_read(&state->file, 0, 2, magic, status)) return true;
  if (magic[0] != 0x1f || magic[1] != 0x8b) return true;
  rp_file_close(&state->file);
  return rp_file_load(&state->file, path, status);
}

static bool read_header(RpSource *source, IdxState *state, RpStatus *status) {
  unsigned char magic[4], bytes[4];
  int64_t dims[RP_MAX_RANK + 1] = {0}, size;
  if (!rp_file_read(&state->file, 0, 4, magic, status)) return false;
  int type = find_type(magic[2]), rank = magic[3];
  if (magic[0] || magic[1] || type < 0) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s' is not an IDX file: expected bytes 00 00 08|09|0b|0c|0d|0e at offset 0, "
                   "found %02x %02x %02x",
                   source->path, magic[0], magic[1], magic[2]);
  }
  if (rank < 1 || rank > RP_MAX_RANK + 1) {
    return rp_fail(status, RP_BAD_DATA, "'%s': expected 1 to %d axes at offset 3, found %d", source->path,
                   RP_MAX_RANK + 1, rank);
  }
  size = idx_types[type].size;
  for (int axis = 0; axis < rank; axis++) {
    if (!rp_file_read(&state->file, 4 + 4 * axis, 4, bytes, status)) return false;
    dims[axis] = (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    if (__builtin_mul_overflow(size, dims[axis], &size)) {
      return rp_fail(status, RP_BAD_DATA, "'%s': the sizes in its header overflow", source->path);
    }
  }
  state->data_offset = 4 + 4 * rank;
  if (state->file.size - state->data_offset != size) {
    return rp_fail(status, RP_BAD_DATA, "'%s': its header says %lld bytes of data after offset %lld, found %lld",
                   source->path, (long long)size, (long long)state->data_offset,
                   (long long)(state->file.size - state->data_offset));
  }
  return rp_source_check_array(source, idx_types[type].name, idx_types[type].type == (int)source->inputs[0]->type, rank,
                               dims, status);
}

static bool open_idx(RpSource *source, RpStatus *status) {
  IdxState *state = rp_allocate(1, sizeof *state, status);
  if (!state) return false;
  state->file.descriptor = -1;
  source->state = state;
  return open_file(state, source->path, status) && read_header(source, state, status);
}

static bool read_idx(RpSource *source, int64_t record, char *const *to, RpStatus *status) {
  IdxState *state = source->state;
  int64_t bytes = source->record_bytes[0], size = rp_type_size(source->inputs[0]->type);
  if (!rp_file_read(&state->file, state->data_offset + record * bytes, bytes, to[0], status)) return false;
  for (char *element = to[0]; size > 1 && element < to[0] + bytes; element += size) {
    for (int64_t i = 0; i < size / 2; i++) {
      char swapped = element[i];
      element[i] = element[size - 1 - i];
      element[size - 1 - i] = swapped;
    }
  }
  return true;
}

static void close_idx(RpSource *source) {
  IdxState *state = source->state;
  if (state) rp_file_close(&state->file);
  free(state);
}

const RpFormat rp_format_idx = {"idx", false, open_idx, read_idx, close_idx};
