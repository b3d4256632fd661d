/* passes/packing/buffer_table.c - strict reading and plain writing of buffer tables. */
#include "passes/packing/buffer_table.h"

#include <inttypes.h>

#include "ir/diagnostics.h"

enum { FIELD_ID, FIELD_LOWER, FIELD_UPPER, FIELD_SIZE, FIELD_OFFSET, MOST_FIELDS };

static const char *const field_names[MOST_FIELDS] = {"id", "lower", "upper", "size", "offset"};

typedef struct Field {
  int64_t start, length;
} Field;

typedef struct TableReader {
  MemoryArena *arena;
  const Source *source;
  int64_t position;
  Field line;
  Field fields[MOST_FIELDS];
  int field_count; /* of the current line; may exceed MOST_FIELDS */
  int columns;     /* of the header */
} TableReader;

static Location field_location(const TableReader *reader, Field field) {
  return (Location){reader->source, (int32_t)field.start, (int32_t)(field.length ? field.length : 1)};
}

static const char *field_text(const TableReader *reader, Field field) {
  return memory_string_range(reader->arena, reader->source->text + field.start, field.length);
}

static void split_fields(TableReader *reader) {
  const char *text = reader->source->text;
  int64_t start = reader->line.start, end = start + reader->line.length;
  reader->field_count = 0;
  for (int64_t i = start; i <= end; i++) {
    if (i < end && text[i] != ',') continue;
    if (reader->field_count < MOST_FIELDS) reader->fields[reader->field_count] = (Field){start, i - start};
    reader->field_count++;
    start = i + 1;
  }
}

/* Moves to the next line that is not blank and splits it; false at the end of the text. */
static bool next_line(TableReader *reader) {
  const char *text = reader->source->text;
  while (reader->position < reader->source->length) {
    int64_t start = reader->position, end = start;
    while (end < reader->source->length && text[end] != '\n') end++;
    reader->position = end + 1;
    if (end > start && text[end - 1] == '\r') end--;
    reader->line = (Field){start, end - start};
    if (end == start) continue;
    split_fields(reader);
    return true;
  }
  return false;
}

static bool read_header(TableReader *reader) {
  bool found = next_line(reader);
  bool right = found && (reader->field_count == FIELD_OFFSET || reader->field_count == MOST_FIELDS);
  for (int i = 0; right && i < reader->field_count; i++)
    right = string_equal(field_text(reader, reader->fields[i]), field_names[i]);
  reader->columns = reader->field_count;
  if (right) return true;
  diag_error(field_location(reader, reader->line), "expected the header 'id,lower,upper,size', found %s",
             found ? memory_format(reader->arena, "'%s'", field_text(reader, reader->line)) : "an empty file");
  return false;
}

/* Reads an optional minus and digits that fit int64. */
static bool read_number(const TableReader *reader, int index, int64_t *number) {
  Field field = reader->fields[index];
  const char *digits = reader->source->text + field.start, *end = digits + field.length;
  bool negative = digits < end && *digits == '-';
  int64_t value = 0;
  if (negative) digits++;
  bool valid = digits < end;
  for (; valid && digits < end; digits++)
    valid = *digits >= '0' && *digits <= '9' && checked_multiply(value, 10, &value) &&
            checked_add(value, *digits - '0', &value);
  if (!valid) {
    diag_error(field_location(reader, field), "expected a whole number below 2^63 for '%s', found '%s'",
               field_names[index], field_text(reader, field));
    return false;
  }
  *number = negative ? -value : value;
  return true;
}

/* Reads the current line; false after an error. */
static bool read_buffer(TableReader *reader, const StringMap *ids, PackingBuffer *buffer) {
  if (reader->field_count != reader->columns) {
    diag_error(field_location(reader, reader->line), "expected %d fields as in the header, found %d", reader->columns,
               reader->field_count);
    return false;
  }
  buffer->id = field_text(reader, reader->fields[FIELD_ID]);
  if (!read_number(reader, FIELD_LOWER, &buffer->lower) || !read_number(reader, FIELD_UPPER, &buffer->upper) ||
      !read_number(reader, FIELD_SIZE, &buffer->size))
    return false;
  Location id = field_location(reader, reader->fields[FIELD_ID]);
  if (!*buffer->id) diag_error(id, "expected an id, found an empty field");
  if ((int64_t)strlen(buffer->id) != reader->fields[FIELD_ID].length)
    diag_error(id, "expected text, found a NUL byte in the id");
  if (string_map_find(ids, buffer->id))
    diag_error(id, "buffer '%s' is given twice, the first time as buffer number %" PRId64 "; every id must be unique",
               buffer->id, *string_map_find(ids, buffer->id) + 1);
  if (buffer->lower >= buffer->upper)
    diag_error(field_location(reader, reader->fields[FIELD_UPPER]),
               "buffer '%s' must end after it begins: expected upper > %" PRId64 ", found %" PRId64, buffer->id,
               buffer->lower, buffer->upper);
  if (buffer->size < 0)
    diag_error(field_location(reader, reader->fields[FIELD_SIZE]), "buffer '%s': expected a size >= 0, found %" PRId64,
               buffer->id, buffer->size);
  return true;
}

BufferTable parse_buffer_table(MemoryArena *arena, const char *path, const char *text, int64_t length) {
  Source *source = NEW(arena, Source);
  *source = (Source){path, text, length};
  TableReader reader = {.arena = arena, .source = source};
  BufferTable table = {0};
  StringMap ids = {.arena = arena};
  if (length > INT32_MAX) {
    diag_error((Location){source, 0, 1}, "the table is larger than 2 GiB");
    return table;
  }
  if (!read_header(&reader)) return table;
  while (next_line(&reader)) {
    PackingBuffer buffer = {0};
    if (!read_buffer(&reader, &ids, &buffer)) continue;
    string_map_set(&ids, buffer.id, table.count);
    array_push(arena, &table, buffer);
  }
  return table;
}

char *format_buffer_table(MemoryArena *arena, const PackingBuffer *buffers, int64_t count, int64_t *length) {
  static const char header[] = "id,lower,upper,size,offset\n";
  enum { LONGEST_NUMBERS = 4 * 21 + 1 };
  int64_t most = (int64_t)sizeof header;
  for (int64_t i = 0; i < count; i++) most += (int64_t)strlen(buffers[i].id) + LONGEST_NUMBERS;
  char *text = memory_alloc(arena, most);
  int64_t used = (int64_t)sizeof header - 1;
  memcpy(text, header, sizeof header);
  for (int64_t i = 0; i < count; i++) {
    const PackingBuffer *b = &buffers[i];
    used += snprintf(text + used, (size_t)(most - used), "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", b->id,
                     b->lower, b->upper, b->size, b->offset);
  }
  *length = used;
  return text;
}
