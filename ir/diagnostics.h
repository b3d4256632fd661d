/* ir/diagnostics.h - located errors, warnings and notes about the user's input, several per run.
 *
 * Diagnostics are collected in order and printed by diag_print() in the manner of clang: "file:line:column: error: …",
 * the source line, a caret range, then attached notes. One collector per process, emptied by diag_reset(). */
#ifndef REPRISE_IR_DIAGNOSTICS_H
#define REPRISE_IR_DIAGNOSTICS_H

#include "ir/base.h"

/* A text that locations point into. Lives as long as any location in it. */
typedef struct Source {
  const char *path; /* as the user named it */
  const char *text; /* NUL-terminated; length excludes the NUL */
  int64_t length;
} Source;

/* A range of bytes of a source; source == NULL means no location. */
typedef struct Location {
  const Source *source;
  int32_t start, length;
} Location;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

void diag_error(Location location, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_warning(Location location, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Belongs to the error or warning before it. */
void diag_note(Location location, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Number of errors so far; no pass runs on after one. */
int diag_error_count(void);
/* The collected diagnostic number i, for tests and tools; NULL past the end. */
typedef struct Diagnostic {
  Severity severity;
  Location location;
  const char *message;
} Diagnostic;
const Diagnostic *diag_get(int64_t index);

/* Prints everything collected. colour: ANSI escapes (the caller checks terminal and NO_COLOR). */
void diag_print(FILE *file, bool colour);
/* Forgets everything and frees it. */
void diag_reset(void);

/* 1-based line and column (in bytes) of a location's start. */
void location_position(Location location, int *line, int *column);
/* The smallest range that covers both. */
Location location_join(Location from, Location to);
/* "file:line:column", or "" without location. */
char *location_text(MemoryArena *arena, Location location);

#endif
