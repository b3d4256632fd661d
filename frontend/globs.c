/* frontend/globs.c - globs over parameter paths: '*' matches within a segment, '**' across segments. */
#include "frontend/elaborate_state.h"

/* reach[i]: the pattern so far matches text[0..i). One pass over the text for each part of the pattern. */
bool glob_match(MemoryArena *scratch, const char *pattern, const char *text) {
  int64_t length = (int64_t)strlen(text);
  bool *reach = NEW_ARRAY(scratch, bool, length + 1), result;
  reach[0] = true;
  while (*pattern) {
    bool across = string_starts(pattern, "**"), within = !across && *pattern == '*';
    if (across || within) {
      for (int64_t i = 1; i <= length; i++) reach[i] = reach[i] || (reach[i - 1] && (across || text[i - 1] != '.'));
    } else {
      for (int64_t i = length; i >= 1; i--) reach[i] = reach[i - 1] && text[i - 1] == *pattern;
      reach[0] = false;
    }
    pattern += across ? 2 : 1;
  }
  result = reach[length];
  return result;
}
