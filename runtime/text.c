/* Texts: raw bytes, bytes renumbered, and llm.c token files (glob); the files that match are one text, in order of
 * their names. */
#include <stdlib.h>
#include <string.h>

#include "runtime/reader.h"
#include "runtime/types.h"

enum { TOKEN_HEADER_INTS = 256, TOKEN_HEADER_BYTES = 1024, SCAN_CHUNK = 1 << 16 };

typedef struct TextPart {
  RpFile file;
  int64_t first, count; /* elements of the text */
  int64_t data_offset;
  int width; /* bytes of one element */
} TextPart;

typedef struct TextState {
  TextPart *parts;
  int64_t part_count;
  int64_t *window;     /* T + 1 elements, widened */
  unsigned char *raw;  /* as stored, up to 4 (T + 1) bytes */
  int16_t number[256]; /* chars: of a byte, or -1 */
  int distinct;
} TextState;

static bool check_inputs(RpSource *source, RpStatus *status) {
  const RpTensor *first = source->inputs[0], *second = source->inputs[1];
  if (source->reader->input_count != 2 || first->rank != 2 || second->rank != 2 || first->type != second->type ||
      first->dims[0] != second->dims[0] || first->dims[1] != second->dims[1]) {
    return rp_fail(status, RP_BAD_DATA,
                   "a text feeds two inputs of the same type and shape [B, T]: the text and the "
                   "text one position later; '%s' is declared otherwise",
                   source->reader->name);
  }
  bool narrow = source->reader->kind != RP_READ_TOKENS;
  if (first->type != RP_I32 && first->type != RP_I64 && !(narrow && first->type == RP_U8)) {
    return rp_fail(status, RP_BAD_DATA, "input '%s' is %s, expected i32%s for %s", source->reader->name,
                   rp_type_name(first->type), narrow ? ", i64 or u8" : " or i64", source->format->name);
  }
  source->window = first->dims[1];
  return true;
}

/* llm.c's header: 256 x i32 {20240520, 1, count}, then u16; {20240801, 7, count}, then u32. */
static bool read_token_header(TextPart *part, RpStatus *status) {
  int32_t header[TOKEN_HEADER_INTS];
  const char *path = part->file.path;
  if (!rp_file_read(&part->file, 0, TOKEN_HEADER_BYTES, header, status)) return false;
  bool narrow = header[0] == 20240520 && header[1] == 1, wide = header[0] == 20240801 && header[1] == 7;
  if (!narrow && !wide) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s' is not a token file of llm.c: expected {20240520, 1} or {20240801, 7} at "
                   "offset 0, found {%d, %d}",
                   path, header[0], header[1]);
  }
  part->width = narrow ? 2 : 4;
  part->data_offset = TOKEN_HEADER_BYTES;
  part->count = header[2];
  if (part->count < 0 || part->file.size - TOKEN_HEADER_BYTES != part->count * part->width) {
    return rp_fail(
        status, RP_BAD_DATA, "'%s': its header says %lld tokens of %d bytes after offset %d, found %lld bytes", path,
        (long long)part->count, part->width, TOKEN_HEADER_BYTES, (long long)(part->file.size - TOKEN_HEADER_BYTES));
  }
  return true;
}

static bool open_part(RpSource *source, TextPart *part, const char *path, RpStatus *status) {
  if (!rp_file_open(&part->file, path, status)) return false;
  part->first = source->available;
  part->count = part->file.size;
  part->width = 1;
  if (source->reader->kind == RP_READ_TOKENS && !read_token_header(part, status)) return false;
  source->available += part->count;
  return true;
}

static bool open_parts(RpSource *source, TextState *state, RpStatus *status) {
  char **paths;
  int64_t count;
  if (!rp_glob(source->path, &paths, &count, status)) return false;
  state->parts = rp_allocate(count, sizeof *state->parts, status);
  bool opened = state->parts != NULL;
  for (int64_t i = 0; opened && i < count; i++) {
    state->parts[i].file.descriptor = -1;
    state->part_count = i + 1;
    opened = open_part(source, &state->parts[i], paths[i], status);
  }
  rp_paths_free(paths, count);
  return opened;
}

/* Renumbers the distinct bytes of the whole text 0.. in byte order. */
static bool number_bytes(RpSource *source, TextState *state, RpStatus *status) {
  static const bool absent[256];
  bool present[256];
  unsigned char chunk[SCAN_CHUNK];
  memcpy(present, absent, sizeof present);
  for (int64_t p = 0; p < state->part_count; p++) {
    const TextPart *part = &state->parts[p];
    for (int64_t at = 0; at < part->count; at += SCAN_CHUNK) {
      int64_t bytes = part->count - at < SCAN_CHUNK ? part->count - at : SCAN_CHUNK;
      if (!rp_file_read(&part->file, at, bytes, chunk, status)) return false;
      for (int64_t i = 0; i < bytes; i++) present[chunk[i]] = true;
    }
  }
  for (int byte = 0; byte < 256; byte++) state->number[byte] = present[byte] ? (int16_t)state->distinct++ : -1;
  if (source->reader->vocabulary > 0 && state->distinct > source->reader->vocabulary) {
    return rp_fail(status, RP_BAD_DATA, "'%s' has %d distinct bytes, the model has room for %lld", source->path,
                   state->distinct, (long long)source->reader->vocabulary);
  }
  return true;
}

static bool open_text(RpSource *source, RpStatus *status) {
  TextState *state = rp_allocate(1, sizeof *state, status);
  if (!state) return false;
  source->state = state;
  if (!check_inputs(source, status) || !open_parts(source, state, status)) return false;
  state->window = rp_allocate(source->window + 1, sizeof *state->window, status);
  state->raw = rp_allocate(source->window + 1, 4, status);
  if (!state->window || !state->raw) return false;
  if (source->reader->kind != RP_READ_CHARS) return true;
  if (!source->vocabulary_of) return number_bytes(source, state, status);
  const TextState *other = source->vocabulary_of->state;
  memcpy(state->number, other->number, sizeof state->number);
  state->distinct = other->distinct;
  return true;
}

/* Widens elements [from, from + count) of one part to `to`. */
static bool read_part(RpSource *source, const TextPart *part, int64_t from, int64_t count, int64_t *to,
                      RpStatus *status) {
  TextState *state = source->state;
  if (!rp_file_read(&part->file, part->data_offset + from * part->width, count * part->width, state->raw, status)) {
    return false;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t narrow;
    uint32_t wide;
    if (part->width == 1) {
      to[i] = source->reader->kind == RP_READ_CHARS ? state->number[state->raw[i]] : state->raw[i];
    } else if (part->width == 2) {
      memcpy(&narrow, state->raw + 2 * i, 2);
      to[i] = narrow;
    } else {
      memcpy(&wide, state->raw + 4 * i, 4);
      to[i] = wide;
    }
    if (to[i] < 0 || (source->inputs[0]->type == RP_I32 && to[i] > INT32_MAX)) {
      return rp_fail(status, RP_BAD_DATA,
                     "'%s': element %lld (%s) is not in the vocabulary of the training text or does "
                     "not fit %s",
                     part->file.path, (long long)(from + i),
                     source->reader->kind == RP_READ_CHARS ? "a byte" : "a token",
                     rp_type_name(source->inputs[0]->type));
    }
  }
  return true;
}

static void narrow_window(RpType type, const int64_t *from, int64_t count, char *to) {
  for (int64_t i = 0; i < count; i++) {
    if (type == RP_I64) {
      ((int64_t *)(void *)to)[i] = from[i];
    } else if (type == RP_I32) {
      ((int32_t *)(void *)to)[i] = (int32_t)from[i];
    } else {
      ((uint8_t *)to)[i] = (uint8_t)from[i];
    }
  }
}

static bool read_text(RpSource *source, int64_t start, char *const *to, RpStatus *status) {
  TextState *state = source->state;
  int64_t filled = 0, needed = source->window + 1;
  for (int64_t p = 0; p < state->part_count && filled < needed; p++) {
    const TextPart *part = &state->parts[p];
    int64_t from = start + filled - part->first;
    if (from >= part->count) continue;
    int64_t count = part->count - from < needed - filled ? part->count - from : needed - filled;
    if (!read_part(source, part, from, count, state->window + filled, status)) return false;
    filled += count;
  }
  narrow_window(source->inputs[0]->type, state->window, source->window, to[0]);
  narrow_window(source->inputs[1]->type, state->window + 1, source->window, to[1]);
  return true;
}

static void close_text(RpSource *source) {
  TextState *state = source->state;
  if (!state) return;
  for (int64_t p = 0; p < state->part_count; p++) rp_file_close(&state->parts[p].file);
  free(state->parts);
  free(state->window);
  free(state->raw);
  free(state);
}

const RpFormat rp_format_bytes = {"bytes", true, open_text, read_text, close_text};
const RpFormat rp_format_chars = {"chars", true, open_text, read_text, close_text};
const RpFormat rp_format_tokens = {"tokens", true, open_text, read_text, close_text};
