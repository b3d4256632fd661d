/* ir/text_reader.c - words, numbers, strings and places of the text form. */
#include "ir/text_reader.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Blank files of places may not take more than this together. */
static const int64_t most_place_bytes = INT64_C(1) << 26;

void text_fail(TextReader *reader, const char *format, ...) {
  if (reader->failed) return;
  reader->failed = true;
  va_list arguments;
  va_start(arguments, format);
  const char *text = memory_format_list(reader->arena, format, arguments);
  va_end(arguments);
  diag_error((Location){reader->source, (int32_t)reader->at, 1}, "%s", text);
}

static const char *here(const TextReader *reader) { return reader->source->text + reader->at; }

static bool is_word_character(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void skip_blanks(TextReader *reader) {
  while (reader->at < reader->source->length && isspace((unsigned char)*here(reader))) reader->at++;
}

int64_t text_position(TextReader *reader) {
  skip_blanks(reader);
  return reader->at;
}

bool text_at_end(TextReader *reader) {
  skip_blanks(reader);
  return reader->failed || reader->at >= reader->source->length;
}

bool text_accept(TextReader *reader, const char *token) {
  if (reader->failed) return false;
  skip_blanks(reader);
  size_t length = strlen(token);
  if (strncmp(here(reader), token, length) != 0) return false;
  if (is_word_character(token[length - 1]) && is_word_character(here(reader)[length])) return false;
  reader->at += (int64_t)length;
  return true;
}

bool text_at_word(TextReader *reader, const char *token) {
  int64_t start = reader->at;
  bool found = text_accept(reader, token);
  if (found) reader->at = start;
  return found;
}

void text_expect(TextReader *reader, const char *token) {
  if (!text_accept(reader, token)) text_fail(reader, "expected '%s'", token);
}

bool text_at_character(TextReader *reader, char character) {
  skip_blanks(reader);
  return !reader->failed && *here(reader) == character;
}

bool text_take(TextReader *reader, char character) {
  if (!text_at_character(reader, character)) return false;
  reader->at++;
  return true;
}

bool text_at_digit(TextReader *reader) {
  skip_blanks(reader);
  return !reader->failed && isdigit((unsigned char)*here(reader));
}

const char *text_word(TextReader *reader) {
  skip_blanks(reader);
  int64_t length = 0;
  while (is_word_character(here(reader)[length])) length++;
  if (!length) text_fail(reader, "expected a word");
  if (reader->failed) return "";
  const char *word = memory_string_range(reader->arena, here(reader), length);
  reader->at += length;
  return word;
}

int text_choice(TextReader *reader, const char *const *words, const char *what) {
  int64_t start = text_position(reader);
  const char *word = text_word(reader);
  for (int i = 0; words[i]; i++)
    if (string_equal(words[i], word)) return i;
  if (!reader->failed) reader->at = start;
  text_fail(reader, "expected %s, found '%s'", what, word);
  return 0;
}

/* ---- strings ---- */

static int hex_digit(char c) {
  static const char digits[] = "0123456789abcdef";
  const char *found = c ? strchr(digits, c) : NULL;
  return found ? (int)(found - digits) : -1;
}

/* What follows a backslash; -1 when it is no escape. */
static int read_escape(TextReader *reader) {
  char c = *here(reader);
  if (c == '"' || c == '\\') {
    reader->at++;
    return c;
  }
  int high = c == 'x' ? hex_digit(here(reader)[1]) : -1, low = high >= 0 ? hex_digit(here(reader)[2]) : -1;
  if (low < 0 || high + low == 0) return -1;
  reader->at += 3;
  return 16 * high + low;
}

const char *text_string(TextReader *reader) {
  ARRAY(char) text = {0};
  text_expect(reader, "\"");
  while (!reader->failed && *here(reader) != '"') {
    if (!*here(reader) || *here(reader) == '\n') {
      text_fail(reader, "the string has no closing '\"'");
      return "";
    }
    int c = (unsigned char)*here(reader);
    reader->at++;
    if (c == '\\') c = read_escape(reader);
    if (c < 0) text_fail(reader, "expected '\\\"', '\\\\' or '\\x' and two digits");
    array_push(reader->arena, &text, (char)c);
  }
  if (reader->failed) return "";
  reader->at++;
  array_push(reader->arena, &text, '\0');
  return text.items;
}

/* ---- numbers ---- */

int64_t text_integer(TextReader *reader, int64_t lowest, int64_t highest) {
  skip_blanks(reader);
  if (reader->failed) return 0;
  char *end;
  errno = 0;
  long long value = strtoll(here(reader), &end, 10);
  if (end == here(reader) || errno || value < lowest || value > highest) {
    text_fail(reader, "expected an integer from %" PRId64 " to %" PRId64, lowest, highest);
    return 0;
  }
  reader->at = end - reader->source->text;
  return value;
}

uint64_t text_unsigned(TextReader *reader) {
  bool digit = text_at_digit(reader);
  if (!digit) text_fail(reader, "expected a number from 0 to %" PRIu64, UINT64_MAX);
  if (reader->failed) return 0;
  char *end;
  errno = 0;
  unsigned long long value = strtoull(here(reader), &end, 10);
  if (errno) text_fail(reader, "expected a number from 0 to %" PRIu64, UINT64_MAX);
  reader->at = end - reader->source->text;
  return value;
}

double text_number(TextReader *reader) {
  skip_blanks(reader);
  if (reader->failed) return 0;
  char *end;
  double value = strtod(here(reader), &end);
  if (end == here(reader)) text_fail(reader, "expected a number");
  reader->at = end - reader->source->text;
  return value;
}

int text_integers(TextReader *reader, int most, int64_t *values) {
  int count = 0;
  text_expect(reader, "[");
  if (text_accept(reader, "]")) return 0;
  do {
    int64_t value = text_integer(reader, INT64_MIN, INT64_MAX);
    if (count == most) text_fail(reader, "expected at most %d numbers", most);
    if (reader->failed) return 0;
    values[count++] = value;
  } while (text_accept(reader, ","));
  text_expect(reader, "]");
  return count;
}

int text_numbers(TextReader *reader, int most, double *values) {
  int count = 0;
  text_expect(reader, "[");
  if (text_accept(reader, "]")) return 0;
  do {
    double value = text_number(reader);
    if (count == most) text_fail(reader, "expected at most %d numbers", most);
    if (reader->failed) return 0;
    values[count++] = value;
  } while (text_accept(reader, ","));
  text_expect(reader, "]");
  return count;
}

/* ---- places ---- */

static int64_t find_file(TextReader *reader, const char *path) {
  reader->file_indices.arena = reader->arena;
  int64_t *found = string_map_find(&reader->file_indices, path);
  if (found) return *found;
  Source *file = NEW(reader->arena, Source);
  file->path = path;
  array_push(reader->arena, &reader->files, file);
  string_map_set(&reader->file_indices, path, reader->files.count - 1);
  return reader->files.count - 1;
}

/* Cuts ":number" off the end of a text; 0 when there is none. */
static int64_t cut_number(char *text) {
  char *colon = strrchr(text, ':'), *end;
  if (!colon || !isdigit((unsigned char)colon[1])) return 0;
  errno = 0;
  long long value = strtoll(colon + 1, &end, 10);
  *colon = '\0';
  return *end || errno ? 0 : value;
}

Location text_location(TextReader *reader) {
  if (!text_accept(reader, "at")) return (Location){0};
  char *text = memory_string(reader->arena, text_string(reader));
  int64_t column = cut_number(text), line = column > 0 ? cut_number(text) : 0;
  if (line <= 0 || line > most_place_bytes || column > most_place_bytes)
    text_fail(reader, "expected a place as \"file:line:column\"");
  if (reader->failed) return (Location){0};
  Place place = {find_file(reader, text), line, column};
  array_push(reader->arena, &reader->places, place);
  return (Location){reader->files.items[place.file], (int32_t)(reader->places.count - 1), 1};
}

/* Line starts of one file: each line is as long as its largest column. */
static void make_file(TextReader *reader, int64_t index, int64_t *left) {
  int64_t lines = 0, bytes = 0;
  Source *file = reader->files.items[index];
  for (int64_t i = 0; i < reader->places.count; i++)
    if (reader->places.items[i].file == index && reader->places.items[i].line > lines)
      lines = reader->places.items[i].line;
  *left -= lines;
  if (*left < 0) return;
  int64_t *widths = NEW_ARRAY(reader->arena, int64_t, lines);
  for (int64_t i = 0; i < reader->places.count; i++) {
    Place place = reader->places.items[i];
    if (place.file == index && place.column > widths[place.line - 1]) widths[place.line - 1] = place.column;
  }
  for (int64_t i = 0; i < lines && bytes <= *left; i++) bytes += widths[i] + 1;
  *left -= bytes;
  if (*left < 0) return;
  char *text = NEW_ARRAY(reader->arena, char, bytes + 1);
  memset(text, ' ', (size_t)bytes);
  int64_t start = 0;
  for (int64_t i = 0; i < lines; i++) {
    int64_t next = start + widths[i] + 1;
    text[next - 1] = '\n';
    widths[i] = start;
    start = next;
  }
  for (int64_t i = 0; i < reader->places.count; i++) {
    Place *place = &reader->places.items[i];
    if (place->file == index) place->column += widths[place->line - 1] - 1; /* now the offset in the text */
  }
  file->text = text;
  file->length = bytes;
}

void text_make_files(TextReader *reader) {
  int64_t left = most_place_bytes;
  for (int64_t i = 0; i < reader->files.count && left >= 0; i++) make_file(reader, i, &left);
  if (left < 0) text_fail(reader, "the places in this text lie too far apart");
}

void text_resolve(const TextReader *reader, Location *location) {
  if (location->source) location->start = (int32_t)reader->places.items[location->start].column;
}
