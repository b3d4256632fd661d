/* ir/diagnostics.c - the collector of located messages and its printer. */
#include "ir/diagnostics.h"

enum { MOST_DIAGNOSTICS = 100, LONGEST_SHOWN_LINE = 200 };

static struct {
  MemoryArena *arena;
  ARRAY(Diagnostic) list;
  int errors;
  bool repeating; /* the last message was known already: its notes are, too */
} collector;

/* The same words on the same place: a file that is read twice, a module that is called twice. */
static bool is_known(const Diagnostic *diagnostic) {
  Location at = diagnostic->location;
  for (int64_t i = 0; i < collector.list.count; i++) {
    const Diagnostic *other = &collector.list.items[i];
    bool same_place =
        at.source && other->location.source && other->location.start == at.start &&
        (other->location.source == at.source || string_equal(other->location.source->path, at.source->path));
    if (same_place && other->severity == diagnostic->severity && string_equal(other->message, diagnostic->message))
      return true;
  }
  return false;
}

static void collect(Severity severity, Location location, const char *format, va_list arguments) {
  if (!collector.arena) collector.arena = memory_arena_create();
  if (severity == SEVERITY_ERROR) collector.errors++;
  if (collector.list.count >= MOST_DIAGNOSTICS) return;
  Diagnostic diagnostic = {severity, location, memory_format_list(collector.arena, format, arguments)};
  if (severity != SEVERITY_NOTE) collector.repeating = is_known(&diagnostic);
  if (!collector.repeating) array_push(collector.arena, &collector.list, diagnostic);
}

void diag_error(Location location, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  collect(SEVERITY_ERROR, location, format, arguments);
  va_end(arguments);
}

void diag_warning(Location location, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  collect(SEVERITY_WARNING, location, format, arguments);
  va_end(arguments);
}

void diag_note(Location location, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  collect(SEVERITY_NOTE, location, format, arguments);
  va_end(arguments);
}

int diag_error_count(void) { return collector.errors; }

const Diagnostic *diag_get(int64_t index) {
  return index >= 0 && index < collector.list.count ? &collector.list.items[index] : NULL;
}

void diag_reset(void) {
  memory_arena_destroy(collector.arena);
  memset(&collector, 0, sizeof collector);
}

void location_position(Location location, int *line, int *column) {
  *line = *column = 1;
  for (int32_t i = 0; i < location.start && i < location.source->length; i++) {
    if (location.source->text[i] == '\n')
      ++*line, *column = 1;
    else
      ++*column;
  }
}

Location location_join(Location from, Location to) {
  if (!from.source) return to;
  if (to.source != from.source || to.start < from.start) return from;
  from.length = to.start + to.length - from.start;
  return from;
}

char *location_text(MemoryArena *arena, Location location) {
  if (!location.source) return memory_string(arena, "");
  int line, column;
  location_position(location, &line, &column);
  return memory_format(arena, "%s:%d:%d", location.source->path, line, column);
}

/* The source line with the range underlined; tabs stay tabs in the margin so that the caret lines up. */
static void print_excerpt(FILE *file, Location location, bool colour) {
  const char *text = location.source->text;
  int64_t start = location.start < location.source->length ? location.start : location.source->length, end = start;
  while (start > 0 && text[start - 1] != '\n') start--;
  while (end < location.source->length && text[end] != '\n') end++;
  if (end - start > LONGEST_SHOWN_LINE) return;
  fprintf(file, "%.*s\n", (int)(end - start), text + start);
  for (int64_t i = start; i < location.start; i++)
    if (((unsigned char)text[i] & 0xC0) != 0x80) fputc(text[i] == '\t' ? '\t' : ' ', file);
  fputs(colour ? "\033[32m^" : "^", file);
  for (int64_t i = location.start + 1; i < location.start + location.length && i < end; i++)
    if (((unsigned char)text[i] & 0xC0) != 0x80) fputc('~', file);
  fputs(colour ? "\033[0m\n" : "\n", file);
}

void diag_print(FILE *file, bool colour) {
  static const char *const names[] = {"error", "warning", "note"};
  static const char *const colours[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
  for (int64_t i = 0; i < collector.list.count; i++) {
    const Diagnostic *diagnostic = &collector.list.items[i];
    if (diagnostic->location.source) {
      int line, column;
      location_position(diagnostic->location, &line, &column);
      fprintf(file, "%s:%d:%d: ", diagnostic->location.source->path, line, column);
    } else {
      fputs("reprise: ", file);
    }
    fprintf(file, "%s%s:%s %s\n", colour ? colours[diagnostic->severity] : "", names[diagnostic->severity],
            colour ? "\033[0m" : "", diagnostic->message);
    if (diagnostic->location.source) print_excerpt(file, diagnostic->location, colour);
  }
  if (collector.list.count >= MOST_DIAGNOSTICS) fputs("reprise: too many messages, the rest is not shown\n", file);
}
