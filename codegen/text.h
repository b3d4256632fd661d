/* codegen/text.h - program text as it is written: lines, indentation, blocks. */
#ifndef REPRISE_CODEGEN_TEXT_H
#define REPRISE_CODEGEN_TEXT_H

#include "ir/base.h"

/* Zero-initialise with an arena. bytes is NUL-terminated, NULL while empty. */
typedef struct Text {
  MemoryArena *arena;
  char *bytes;
  int64_t length, capacity;
  int indent; /* levels of two blanks */
} Text;

void text_append(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An indented line; directives of the preprocessor start at the margin. */
void text_line(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An indented line, broken behind commas where it is longer than 120 columns; what follows is aligned with what stands
 * behind the first parenthesis. */
void text_wrapped(Text *text, const char *line);
/* An indented line that ends in " {", and the closing brace. */
void text_open(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_close(Text *text);
/* A string literal of C: quotes, escapes. */
void text_string_literal(Text *text, const char *string);
/* The text so far, "" when empty. */
const char *text_bytes(const Text *text);

#endif
