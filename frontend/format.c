/* frontend/format.c - tokens with the roles that the parser found, laid out in the canonical form. */
#include "frontend/format.h"

enum { INDENT = 2, CONTINUATION = 4 };

typedef struct Formatter {
  MemoryArena *arena;
  const File *file;
  ARRAY(char) text;
  const bool *broken;   /* per token: a block brace whose block takes several lines */
  int64_t comment;      /* the next one */
  int blocks;           /* open blocks that take several lines */
  int narrow;           /* open holes and [ : + and - are tight in them */
  ARRAY(char) brackets; /* open ( [ and holes: 1 for a narrow one */
} Formatter;

static void put(Formatter *formatter, const char *text, int64_t length) {
  for (int64_t i = 0; i < length; i++) array_push(formatter->arena, &formatter->text, text[i]);
}

static void put_source(Formatter *formatter, Location location) {
  put(formatter, location.source->text + location.start, location.length);
}

static int64_t count_line_ends(const Formatter *formatter, int64_t start, int64_t end) {
  int64_t count = 0;
  for (int64_t i = start; i < end; i++) count += formatter->file->source->text[i] == '\n';
  return count;
}

static int64_t end_of(Location location) { return (int64_t)location.start + location.length; }

/* ---- which blocks take several lines ---- */

/* Marks both braces of each block that the author wrote on more than one line. */
static bool *find_broken_blocks(Formatter *formatter) {
  const TokenList *tokens = formatter->file->tokens;
  bool *broken = NEW_ARRAY(formatter->arena, bool, tokens->count);
  ARRAY(int64_t) open = {0};
  for (int64_t i = 0; i < tokens->count; i++) {
    if (tokens->items[i].role == ROLE_BLOCK_OPEN) array_push(formatter->arena, &open, i);
    if (tokens->items[i].role != ROLE_BLOCK_CLOSE) continue;
    int64_t first = open.items[--open.count];
    int64_t start = tokens->items[first].location.start, end = tokens->items[i].location.start;
    broken[first] = broken[i] = count_line_ends(formatter, start, end) > 0;
  }
  return broken;
}

/* ---- blanks inside a line ---- */

static bool is_word_like(TokenKind kind) {
  return kind == TOKEN_WORD || kind == TOKEN_INT || kind == TOKEN_FLOAT || kind == TOKEN_STRING || kind == TOKEN_AND ||
         kind == TOKEN_OR || kind == TOKEN_NOT || kind == TOKEN_ELSE;
}

static bool is_loose(const Formatter *formatter, const Token *token) {
  bool sum = token->kind == TOKEN_PLUS || token->kind == TOKEN_MINUS;
  return token->role == ROLE_LOOSE && !(sum && formatter->narrow);
}

/* Whether a blank stands between two tokens of one line. */
static bool needs_blank(const Formatter *formatter, const Token *before, const Token *after) {
  bool tight_before = before->role == ROLE_TIGHT || before->role == ROLE_PREFIX || before->role == ROLE_HOLE_OPEN;
  if (before->role == ROLE_BLOCK_OPEN || after->role == ROLE_BLOCK_OPEN || after->role == ROLE_BLOCK_CLOSE) return true;
  if (is_loose(formatter, before) || is_loose(formatter, after)) return true;
  bool closing = after->kind == TOKEN_RIGHT_PAREN || after->kind == TOKEN_RIGHT_BRACKET;
  if (before->kind == TOKEN_COMMA) return !closing;
  if (tight_before || after->role == ROLE_TIGHT || after->role == ROLE_CALL || after->role == ROLE_HOLE_CLOSE)
    return false;
  if (before->role == ROLE_LOOSE || after->role == ROLE_LOOSE) return false; /* + and - in a narrow bracket */
  if (before->kind == TOKEN_LEFT_PAREN || before->kind == TOKEN_LEFT_BRACKET) return false;
  if (after->kind == TOKEN_RIGHT_PAREN || after->kind == TOKEN_RIGHT_BRACKET || after->kind == TOKEN_COMMA)
    return false;
  if (after->role == ROLE_AFTER) return false;
  if (after->touches && (before->role == ROLE_HOLE_CLOSE || after->role == ROLE_HOLE_OPEN)) return false;
  return before->role == ROLE_AFTER || is_word_like(before->kind) || is_word_like(after->kind) ||
         before->role == ROLE_HOLE_CLOSE || after->role == ROLE_HOLE_OPEN || after->role == ROLE_PREFIX ||
         before->kind == TOKEN_RIGHT_PAREN || before->kind == TOKEN_RIGHT_BRACKET;
}

/* ---- lines ---- */

static void break_line(Formatter *formatter, bool blank_line, int indent) {
  put(formatter, "\n\n", blank_line ? 2 : 1);
  for (int i = 0; i < indent; i++) put(formatter, " ", 1);
}

/* Puts the comments that end before an offset; returns whether there was one. `at` is where the text put last ended,
 * and is moved behind the last comment. */
static bool put_comments(Formatter *formatter, int64_t *at, int64_t end, int indent, bool opens) {
  const TokenList *tokens = formatter->file->tokens;
  bool any = false;
  for (; formatter->comment < tokens->comment_count && tokens->comments[formatter->comment].start < end; any = true) {
    Location comment = tokens->comments[formatter->comment++];
    int64_t lines = count_line_ends(formatter, *at, comment.start);
    if (formatter->text.count) {
      if (lines == 0)
        put(formatter, "  ", 2);
      else
        break_line(formatter, lines > 1 && !(opens && !any), indent);
    }
    put_source(formatter, comment);
    *at = end_of(comment);
  }
  return any;
}

/* The line end may go from the source, because the next token cannot be taken for a continuation. */
static bool is_boundary(const Token *before, const Token *newline, const Token *after) {
  return newline && newline_separates(before->kind, after->kind);
}

/* Whether the author's line end between two tokens is kept. */
static bool keeps_break(const Token *before, const Token *after) {
  bool before_block = after->role == ROLE_BLOCK_OPEN;
  bool before_else = after->kind == TOKEN_ELSE && before->role == ROLE_BLOCK_CLOSE;
  return !before_block && !before_else;
}

/* Puts what stands between two neighbouring tokens; newline is the TOKEN_NEWLINE between them, or NULL. */
static void put_gap(Formatter *formatter, const Token *before, const Token *newline, const Token *after, bool broken) {
  bool opens = before->role == ROLE_BLOCK_OPEN, closes = after->role == ROLE_BLOCK_CLOSE;
  bool statement = newline || opens || closes || after->kind == TOKEN_ELSE;
  bool bracket = after->kind == TOKEN_RIGHT_PAREN || after->kind == TOKEN_RIGHT_BRACKET;
  int indent = formatter->blocks * INDENT, inner = indent + (statement || bracket ? 0 : CONTINUATION);
  int64_t at = end_of(before->location), start = after->location.start;
  bool lost = newline && !is_boundary(before, newline, after); /* only ';' separates these two */
  if (lost) put(formatter, ";", 1);
  int comment_indent = closes && broken ? indent + INDENT : statement ? indent : indent + CONTINUATION;
  bool commented = put_comments(formatter, &at, start, comment_indent, opens);
  int64_t lines = count_line_ends(formatter, at, start);
  if (commented || (broken && (opens || closes)) || (lines > 0 && keeps_break(before, after)))
    break_line(formatter, lines > 1 && statement && !opens && !closes, inner);
  else if (newline && !closes)
    put(formatter, lost ? " " : "; ", lost ? 1 : 2);
  else if (needs_blank(formatter, before, after))
    put(formatter, " ", 1);
}

/* ---- the walk ---- */

static void track_brackets(Formatter *formatter, const Token *token) {
  bool narrow = token->role == ROLE_HOLE_OPEN || token->kind == TOKEN_LEFT_BRACKET;
  if (narrow || token->kind == TOKEN_LEFT_PAREN) {
    array_push(formatter->arena, &formatter->brackets, (char)narrow);
    formatter->narrow += narrow;
  } else if (token->role == ROLE_HOLE_CLOSE || token->kind == TOKEN_RIGHT_PAREN || token->kind == TOKEN_RIGHT_BRACKET) {
    formatter->narrow -= formatter->brackets.items[--formatter->brackets.count];
  }
}

static void put_first_gap(Formatter *formatter, const Token *first) {
  int64_t at = 0;
  if (put_comments(formatter, &at, first->location.start, 0, true))
    break_line(formatter, count_line_ends(formatter, at, first->location.start) > 1 && first->kind != TOKEN_END, 0);
}

/* Comments after the last token; the file ends with one line end. */
static void put_end(Formatter *formatter, const Token *last, const Token *end) {
  int64_t at = end_of(last->location);
  put_comments(formatter, &at, (int64_t)end->location.start + 1, 0, false);
  put(formatter, "\n", 1);
}

char *format_file(MemoryArena *arena, const File *file) {
  Formatter formatter = {.arena = arena, .file = file};
  const TokenList *tokens = file->tokens;
  formatter.broken = find_broken_blocks(&formatter);
  const Token *before = NULL, *newline = NULL;
  for (int64_t i = 0; i < tokens->count; i++) {
    const Token *token = &tokens->items[i];
    bool broken_open = before && before->role == ROLE_BLOCK_OPEN && formatter.broken[before - tokens->items];
    bool broken_close = token->role == ROLE_BLOCK_CLOSE && formatter.broken[i];
    if (token->kind == TOKEN_NEWLINE) {
      newline = token;
      continue;
    }
    formatter.blocks -= broken_close;
    if (!before)
      put_first_gap(&formatter, token);
    else if (token->kind == TOKEN_END)
      put_end(&formatter, before, token);
    else
      put_gap(&formatter, before, newline, token, broken_open || broken_close);
    put_source(&formatter, token->location);
    formatter.blocks += token->role == ROLE_BLOCK_OPEN && formatter.broken[i];
    track_brackets(&formatter, token);
    before = token;
    newline = NULL;
  }
  array_push(arena, &formatter.text, '\0');
  return formatter.text.items;
}
