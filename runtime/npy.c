/* NumPy .npy files, versions 1 to 3: "\x93NUMPY", version, header length (u16, or u32 from version 2), a Python dict
 * with descr, fortran_order and shape, then the elements in C order. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reader.h"
#include "runtime/types.h"

enum { MAX_HEADER = 1 << 20 };

typedef struct NpyState {
  RpFile file;
  int64_t data_offset;
} NpyState;

typedef struct NpyHeader {
  char descr[16];
  bool fortran_order;
  int rank;
  int64_t dims[RP_MAX_RANK + 1];
  unsigned seen; /* bits 0, 1, 2: descr, fortran_order, shape */
} NpyHeader;

static const struct {
  const char *descr;
  RpType type;
} npy_types[] = {{"<f4", RP_F32}, {"<f8", RP_F64}, {"<f2", RP_F16}, {"<i4", RP_I32},
                 {"<i8", RP_I64}, {"|u1", RP_U8},  {"|b1", RP_BOOL}};

static const char *skip_space(const char *at) {
  while (isspace((unsigned char)*at)) at++;
  return at;
}

/* 'text' or "text" at `at`, copied to `to`; returns what follows, or NULL. */
static const char *parse_string(const char *at, char *to, size_t size) {
  char quote = *at;
  if (quote != '\'' && quote != '"') return NULL;
  size_t length = 0;
  for (at++; *at && *at != quote; at++) {
    if (length + 1 >= size) return NULL;
    to[length++] = *at;
  }
  to[length] = '\0';
  return *at ? at + 1 : NULL;
}

/* "(3, 4)", "(3,)", "()" */
static const char *parse_shape(const char *at, NpyHeader *header) {
  if (*at != '(') return NULL;
  at = skip_space(at + 1);
  while (*at != ')') {
    if (!isdigit((unsigned char)*at) || header->rank > RP_MAX_RANK) return NULL;
    char *end;
    unsigned long long dim = strtoull(at, &end, 10);
    if (dim > INT64_MAX) return NULL;
    header->dims[header->rank++] = (int64_t)dim;
    at = skip_space(end);
    if (*at == ',') {
      at = skip_space(at + 1);
    } else if (*at != ')') {
      return NULL;
    }
  }
  return at + 1;
}

static const char *parse_bool(const char *at, bool *value) {
  *value = strncmp(at, "True", 4) == 0;
  if (*value) return at + 4;
  return strncmp(at, "False", 5) == 0 ? at + 5 : NULL;
}

/* One "'key': value" of the dict; unknown and repeated keys are refused, as NumPy does. */
static const char *parse_pair(const char *at, NpyHeader *header) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[16];
  at = parse_string(at, key, sizeof key);
  if (!at) return NULL;
  at = skip_space(at);
  if (*at != ':') return NULL;
  at = skip_space(at + 1);
  unsigned which = 0;
  while (which < 3 && strcmp(key, keys[which]) != 0) which++;
  if (which == 3 || (header->seen & 1u << which)) return NULL;
  header->seen |= 1u << which;
  if (which == 0) return parse_string(at, header->descr, sizeof header->descr);
  if (which == 1) return parse_bool(at, &header->fortran_order);
  return parse_shape(at, header);
}

static bool parse_dict(const char *at, NpyHeader *header) {
  at = skip_space(at);
  if (*at != '{') return false;
  at = skip_space(at + 1);
  while (*at != '}') {
    at = parse_pair(at, header);
    if (!at) return false;
    at = skip_space(at);
    if (*at == ',') {
      at = skip_space(at + 1);
    } else if (*at != '}') {
      return false;
    }
  }
  return header->seen == 7 && !*skip_space(at + 1);
}

/* Reads magic and lengths; sets data_offset and gives the dict's text (caller frees), or NULL. */
static char *read_dict(RpSource *source, NpyState *state, RpStatus *status) {
  unsigned char head[12];
  if (!rp_file_read(&state->file, 0, 10, head, status)) return NULL;
  if (memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3) {
    rp_fail(status, RP_BAD_DATA, "'%s' is not a .npy file of version 1, 2 or 3", source->path);
    return NULL;
  }
  int64_t prefix = head[6] == 1 ? 10 : 12, length = head[8] | head[9] << 8;
  if (prefix == 12) {
    if (!rp_file_read(&state->file, 10, 2, head + 10, status)) return NULL;
    length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
  }
  if (length > MAX_HEADER) {
    rp_fail(status, RP_BAD_DATA, "'%s': a header of %lld bytes at offset %lld, expected at most %d", source->path,
            (long long)length, (long long)prefix, MAX_HEADER);
    return NULL;
  }
  char *text = rp_allocate(length + 1, 1, status);
  if (text && !rp_file_read(&state->file, prefix, length, text, status)) {
    free(text);
    return NULL;
  }
  state->data_offset = prefix + length;
  return text;
}

static bool check_header(RpSource *source, NpyState *state, const NpyHeader *header, RpStatus *status) {
  int type = -1;
  for (int i = 0; i < (int)(sizeof npy_types / sizeof *npy_types); i++) {
    if (strcmp(npy_types[i].descr, header->descr) == 0) type = i;
  }
  if (header->fortran_order && header->rank > 1) {
    return rp_fail(status, RP_BAD_DATA, "'%s' is in Fortran order: save numpy.ascontiguousarray(x)", source->path);
  }
  if (type < 0 && *header->descr == '>') {
    return rp_fail(status, RP_BAD_DATA, "'%s' is big-endian (dtype %s): save x.astype(x.dtype.newbyteorder('<'))",
                   source->path, header->descr);
  }
  bool matches = type >= 0 && npy_types[type].type == source->inputs[0]->type;
  char found[48] = "dtype ";
  strncat(found, header->descr, sizeof found - sizeof "dtype ");
  if (!rp_source_check_array(source, type >= 0 ? rp_type_name(npy_types[type].type) : found, matches, header->rank,
                             header->dims, status)) {
    return false;
  }
  int64_t size;
  if (__builtin_mul_overflow(header->dims[0], source->record_bytes[0], &size) ||
      state->file.size - state->data_offset != size) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': its header says %lld records of %lld bytes after offset %lld, found "
                   "%lld bytes",
                   source->path, (long long)header->dims[0], (long long)source->record_bytes[0],
                   (long long)state->data_offset, (long long)(state->file.size - state->data_offset));
  }
  return true;
}

static bool open_npy(RpSource *source, RpStatus *status) {
  NpyState *state = rp_allocate(1, sizeof *state, status);
  if (!state) return false;
  state->file.descriptor = -1;
  source->state = state;
  if (!rp_file_open(&state->file, source->path, status)) return false;
  char *text = read_dict(source, state, status);
  if (!text) return false;
  NpyHeader header = {0};
  bool parsed = parse_dict(text, &header);
  free(text);
  if (!parsed) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': expected a header like {'descr': '<f4', 'fortran_order': False, "
                   "'shape': (3, 4)} with at most %d axes (objects and records are not read)",
                   source->path, RP_MAX_RANK + 1);
  }
  return check_header(source, state, &header, status);
}

static bool read_npy(RpSource *source, int64_t record, char *const *to, RpStatus *status) {
  NpyState *state = source->state;
  int64_t bytes = source->record_bytes[0];
  return rp_file_read(&state->file, state->data_offset + record * bytes, bytes, to[0], status);
}

static void close_npy(RpSource *source) {
  NpyState *state = source->state;
  if (state) rp_file_close(&state->file);
  free(state);
}

const RpFormat rp_format_npy = {"npy", false, open_npy, read_npy, close_npy};
