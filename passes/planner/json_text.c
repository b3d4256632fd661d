/* passes/planner/json_text.c - JSON as text. */
#include "passes/planner/json_text.h"

#include <stdlib.h>

static void append(JsonText *text, const char *bytes, int64_t length) {
  for (int64_t i = 0; i < length; i++) array_push(text->arena, &text->buffer, bytes[i]);
}

void json_text_format(JsonText *text, const char *format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  ASSERT(length >= 0 && (size_t)length < sizeof line);
  append(text, line, length);
}

void json_text_string(JsonText *text, const char *value) {
  append(text, "\"", 1);
  for (const char *c = value; *c; c++) {
    if (*c == '"' || *c == '\\')
      json_text_format(text, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      json_text_format(text, "\\u%04x", (unsigned)*c);
    else
      append(text, c, 1);
  }
  append(text, "\"", 1);
}

void json_text_number(JsonText *text, double value) {
  char digits[40];
  for (int precision = 15; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  append(text, digits, (int64_t)strlen(digits));
}

char *json_text_finish(JsonText *text) {
  array_push(text->arena, &text->buffer, '\0');
  text->buffer.count--;
  return text->buffer.items;
}
