/* tests/frontend/support.h - sources from text and files for the tests of the frontend. */
#ifndef REPRISE_TESTS_FRONTEND_SUPPORT_H
#define REPRISE_TESTS_FRONTEND_SUPPORT_H

#include "ir/base.h"
#include "ir/diagnostics.h"

static inline Source *source_from(MemoryArena *arena, const char *path, const char *text) {
  Source *source = NEW(arena, Source);
  *source = (Source){memory_string(arena, path), memory_string(arena, text), (int64_t)strlen(text)};
  return source;
}

/* NULL when the file cannot be read. */
static inline Source *source_read(MemoryArena *arena, const char *path) {
  Source *source = NEW(arena, Source);
  const char *error;
  source->path = memory_string(arena, path);
  source->text = file_read(arena, path, &source->length, &error);
  return source->text ? source : NULL;
}

/* "line:column: message" of a collected diagnostic. */
static inline char *diagnostic_text(MemoryArena *arena, int64_t index) {
  const Diagnostic *diagnostic = diag_get(index);
  if (!diagnostic) return memory_string(arena, "(none)");
  int line = 0, column = 0;
  if (diagnostic->location.source) location_position(diagnostic->location, &line, &column);
  return memory_format(arena, "%d:%d: %s", line, column, diagnostic->message);
}

#endif
