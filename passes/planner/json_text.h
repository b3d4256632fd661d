/* passes/planner/json_text.h - JSON as text, appended piece by piece to a growing buffer in an arena.
 *
 * Numbers are written so that reading them back gives the same value; the same input gives the same bytes. */
#ifndef REPRISE_PASSES_PLANNER_JSON_TEXT_H
#define REPRISE_PASSES_PLANNER_JSON_TEXT_H

#include "ir/base.h"

typedef struct JsonText {
  MemoryArena *arena;
  ARRAY(char) buffer;
} JsonText;

void json_text_format(JsonText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A quoted, escaped string. */
void json_text_string(JsonText *text, const char *value);
/* The shortest of 15 to 17 significant digits that reads back as the same double. */
void json_text_number(JsonText *text, double value);
/* The text so far, NUL-terminated; valid until the next append. */
char *json_text_finish(JsonText *text);

#endif
