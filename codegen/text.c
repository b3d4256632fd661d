/* codegen/text.c - growing program text. */
#include "codegen/text.h"

static void append_bytes(Text *text, const char *bytes, int64_t length) {
  while (text->length + length + 1 > text->capacity)
    text->bytes = array_grow(text->arena, text->bytes, &text->capacity, 1);
  memcpy(text->bytes + text->length, bytes, (size_t)length);
  text->length += length;
  text->bytes[text->length] = '\0';
}

static void append_list(Text *text, const char *format, va_list arguments) {
  char small[512];
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(small, sizeof small, format, arguments);
  if (length < (int)sizeof small) {
    append_bytes(text, small, length);
  } else {
    append_bytes(text, memory_format_list(text->arena, format, again), length);
  }
  va_end(again);
}

static void append_indent(Text *text) {
  for (int level = 0; level < text->indent; level++) append_bytes(text, "  ", 2);
}

void text_append(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append_list(text, format, arguments);
  va_end(arguments);
}

void text_line(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (format[0] != '#') append_indent(text);
  append_list(text, format, arguments);
  append_bytes(text, "\n", 1);
  va_end(arguments);
}

/* Length of the part of a line that fits `width` columns and ends in a comma, or all of it. */
static int64_t fitting_part(const char *line, int64_t width) {
  int64_t length = (int64_t)strlen(line), part = 0;
  if (length <= width) return length;
  for (int64_t i = 0; i + 1 < length && (i < width || !part); i++)
    if (line[i] == ',' && line[i + 1] == ' ') part = i + 1;
  return part ? part : length;
}

void text_wrapped(Text *text, const char *line) {
  enum { COLUMNS = 120 };
  const char *parenthesis = strchr(line, '(');
  int64_t margin = 2 * text->indent, hang = parenthesis ? margin + (parenthesis - line) + 1 : margin;
  append_indent(text);
  for (bool first = true; *line; first = false) {
    if (!first) text_append(text, "%*s", (int)hang, "");
    int64_t part = fitting_part(line, COLUMNS - (first ? margin : hang));
    text_append(text, "%.*s\n", (int)part, line);
    line += part + (line[part] == ' ');
  }
}

void text_open(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append_indent(text);
  append_list(text, format, arguments);
  append_bytes(text, " {\n", 3);
  text->indent++;
  va_end(arguments);
}

void text_close(Text *text) {
  text->indent--;
  text_line(text, "}");
}

void text_string_literal(Text *text, const char *string) {
  append_bytes(text, "\"", 1);
  for (const unsigned char *at = (const unsigned char *)string; *at; at++) {
    if (*at == '"' || *at == '\\')
      text_append(text, "\\%c", *at);
    else if (*at == '\n')
      text_append(text, "\\n");
    else if (*at < ' ' || *at == 127 || (*at == '?' && at[1] == '?')) /* no trigraphs */
      text_append(text, "\\%03o", *at);
    else
      append_bytes(text, (const char *)at, 1);
  }
  append_bytes(text, "\"", 1);
}

const char *text_bytes(const Text *text) { return text->bytes ? text->bytes : ""; }
