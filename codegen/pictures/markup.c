/* codegen/pictures/markup.c - names of users inside XML, HTML and DOT. */
#include "codegen/pictures/picture.h"
#include "codegen/text.h"

/* Length in bytes of the UTF-8 sequence at `at`, 0 when it is broken, overlong or a surrogate. */
static int sequence_length(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  int length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
  if (at[0] < 0xC2 || at[0] > 0xF4) return 0;
  for (int i = 1; i < length; i++)
    if ((at[i] & 0xC0) != 0x80) return 0;
  if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F)) return 0;
  if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F)) return 0;
  return length;
}

static const char *reference_of(unsigned char byte) {
  switch (byte) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return NULL;
  }
}

char *escape_markup(MemoryArena *arena, const char *string) {
  Text text = {.arena = arena};
  const unsigned char *at = (const unsigned char *)string;
  while (*at) {
    int length = sequence_length(at);
    const char *reference = reference_of(*at);
    bool control = (*at < ' ' && *at != '\n') || *at == 127;
    if (reference)
      text_append(&text, "%s", reference);
    else if (!length || control)
      text_append(&text, "\xEF\xBF\xBD");
    else
      text_append(&text, "%.*s", length, (const char *)at);
    at += length ? length : 1;
  }
  return memory_string(arena, text_bytes(&text));
}

static const unsigned char *next_point(const unsigned char *at) {
  int length = sequence_length(at);
  return at + (length ? length : 1);
}

int text_width(const char *text) {
  int width = 0;
  for (const unsigned char *at = (const unsigned char *)text; *at; at = next_point(at)) width++;
  return width;
}

char *shorten_text(MemoryArena *arena, const char *text, int most) {
  int width = text_width(text), head = (most - 1) / 2, tail = most - 1 - head;
  if (width <= most) return memory_string(arena, text);
  const unsigned char *start = (const unsigned char *)text, *cut = start, *rest = start;
  for (int i = 0; i < head; i++) cut = next_point(cut);
  for (int i = 0; i < width - tail; i++) rest = next_point(rest);
  return memory_format(arena, "%.*s\xE2\x80\xA6%s", (int)(cut - start), text, (const char *)rest);
}
