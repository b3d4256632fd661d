/* CSV files: a row is a record, its columns are dealt to the inputs in order. Numbers only, commas between them. Read
 * whole when opened, kept in the inputs' own types. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reader.h"
#include "runtime/types.h"

typedef struct CsvState {
  char *rows; /* available rows of row_bytes, inputs one after another */
  int64_t row_bytes, capacity;
} CsvState;

typedef struct CsvCursor {
  const RpSource *source;
  char *at;     /* NUL-terminated contents */
  int64_t line; /* from 1 */
} CsvCursor;

static int64_t columns_of(const RpSource *source, int input) {
  return source->record_bytes[input] / rp_type_size(source->inputs[input]->type);
}

/* Parses the field [text, end) as `type` into `to`; false when it is no number of that type. */
static bool parse_field(const char *text, const char *end, RpType type, char *to) {
  char *stop;
  union {
    int64_t integer;
    double real;
  } cell;
  while (text < end && isspace((unsigned char)*text)) text++;
  while (end > text && isspace((unsigned char)end[-1])) end--;
  errno = 0;
  if (text == end) return false;
  if (rp_type_is_integer(type)) {
    long long value = strtoll(text, &stop, 10);
    long long least = type == RP_I32 ? INT32_MIN : type == RP_I64 ? INT64_MIN : 0;
    long long most = type == RP_I32 ? INT32_MAX : type == RP_I64 ? INT64_MAX : type == RP_U8 ? 255 : 1;
    if (stop != end || errno || value < least || value > most) return false;
    cell.integer = value;
    if (type != RP_I64) rp_store(type, &cell, 0, (double)value);
  } else {
    double value = type == RP_F32 ? (double)strtof(text, &stop) : strtod(text, &stop);
    if (stop != end || !isfinite(value)) return false;
    rp_store(type, &cell, 0, value);
  }
  memcpy(to, &cell, (size_t)rp_type_size(type)); /* rows of mixed types are not aligned */
  return true;
}

/* What a message shows of a field: printable, not long. */
static void show_field(const char *text, const char *end, char *shown, size_t size) {
  size_t length = 0;
  for (; text < end && length + 1 < size; text++) shown[length++] = isprint((unsigned char)*text) ? *text : '?';
  shown[length] = '\0';
}

static int64_t count_columns(const char *text, const char *end) {
  int64_t columns = 1;
  for (; text < end; text++) columns += *text == ',';
  return columns;
}

static int64_t expected_columns(const RpSource *source) {
  int64_t columns = 0;
  for (int input = 0; input < source->reader->input_count; input++) columns += columns_of(source, input);
  return columns;
}

static bool fail_columns(const CsvCursor *cursor, const char *end, RpStatus *status) {
  return rp_fail(status, RP_BAD_DATA, "%s:%lld: expected %lld columns, found %lld", cursor->source->path,
                 (long long)cursor->line, (long long)expected_columns(cursor->source),
                 (long long)count_columns(cursor->at, end));
}

static bool fail_field(const CsvCursor *cursor, int64_t column, int input, const char *text, const char *end,
                       RpStatus *status) {
  char shown[41];
  show_field(text, end, shown, sizeof shown);
  return rp_fail(status, RP_BAD_DATA, "%s:%lld: column %lld: input '%s' expects %s, found '%s'", cursor->source->path,
                 (long long)cursor->line, (long long)column, cursor->source->inputs[input]->name,
                 rp_type_name(cursor->source->inputs[input]->type), shown);
}

/* Parses the line [cursor->at, end) into `row`. */
static bool parse_row(CsvCursor *cursor, char *end, char *row, RpStatus *status) {
  const RpSource *source = cursor->source;
  int64_t column = 0;
  char *text = cursor->at;
  for (int input = 0; input < source->reader->input_count; input++) {
    RpType type = source->inputs[input]->type;
    for (int64_t i = 0; i < columns_of(source, input); i++, column++) {
      if (text > end) return fail_columns(cursor, end, status);
      char *comma = memchr(text, ',', (size_t)(end - text));
      char *stop = comma ? comma : end;
      if (!parse_field(text, stop, type, row)) return fail_field(cursor, column + 1, input, text, stop, status);
      row += rp_type_size(type);
      text = stop + 1;
    }
  }
  return text > end || fail_columns(cursor, end, status);
}

static bool reserve_row(CsvState *state, int64_t rows, RpStatus *status) {
  if (rows < state->capacity) return true;
  int64_t capacity = state->capacity ? 2 * state->capacity : 1024;
  char *grown = realloc(state->rows, (size_t)(capacity * state->row_bytes));
  if (!grown) return rp_fail(status, RP_IO, "out of memory for %lld rows", (long long)capacity);
  state->rows = grown;
  state->capacity = capacity;
  return true;
}

/* `contents` ends in a NUL after its last byte; blank lines are skipped. */
static bool parse_rows(RpSource *source, CsvState *state, char *contents, int64_t size, RpStatus *status) {
  CsvCursor cursor = {source, contents, 1};
  for (char *last = contents + size; cursor.at < last; cursor.line++) {
    char *newline = memchr(cursor.at, '\n', (size_t)(last - cursor.at));
    char *end = newline ? newline : last, *text = cursor.at;
    while (text < end && isspace((unsigned char)*text)) text++;
    if (text < end && !(source->reader->header && cursor.line == 1)) {
      if (!reserve_row(state, source->available, status) ||
          !parse_row(&cursor, end, state->rows + source->available * state->row_bytes, status)) {
        return false;
      }
      source->available++;
    }
    cursor.at = end + 1;
  }
  return true;
}

static bool open_csv(RpSource *source, RpStatus *status) {
  CsvState *state = rp_allocate(1, sizeof *state, status);
  if (!state) return false;
  source->state = state;
  for (int i = 0; i < source->reader->input_count; i++) state->row_bytes += source->record_bytes[i];
  RpFile file;
  if (!rp_file_load(&file, source->path, status)) return false;
  unsigned char *contents = realloc(file.contents, (size_t)file.size + 1);
  bool parsed = false;
  if (contents) {
    contents[file.size] = '\0'; /* stops strtod at the end of the last field */
    file.contents = contents;
    parsed = parse_rows(source, state, (char *)contents, file.size, status);
  } else {
    rp_fail(status, RP_IO, "out of memory while reading '%s'", source->path);
  }
  rp_file_close(&file);
  return parsed;
}

static bool read_csv(RpSource *source, int64_t record, char *const *to, RpStatus *status) {
  (void)status;
  const CsvState *state = source->state;
  const char *row = state->rows + record * state->row_bytes;
  for (int i = 0; i < source->reader->input_count; i++) {
    memcpy(to[i], row, (size_t)source->record_bytes[i]);
    row += source->record_bytes[i];
  }
  return true;
}

static void close_csv(RpSource *source) {
  CsvState *state = source->state;
  if (state) free(state->rows);
  free(state);
}

const RpFormat rp_format_csv = {"csv", false, open_csv, read_csv, close_csv};
