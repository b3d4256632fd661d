/* frontend/lexer.c - source text to tokens. */
#include "frontend/lexer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef struct Lexer {
  MemoryArena *arena;
  const Source *source;
  int32_t at;
  bool spaced, line_ended; /* what was skipped since the last token */
  int32_t line_end;        /* offset of the first line end skipped */
  ARRAY(Token) tokens;
  ARRAY(Location) comments;
  ARRAY(char) brackets; /* the open ones, innermost last */
} Lexer;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_word(char c) { return is_word_start(c) || is_digit(c); }

static char peek_char(const Lexer *lexer, int32_t ahead) {
  int64_t at = (int64_t)lexer->at + ahead;
  return at < lexer->source->length ? lexer->source->text[at] : '\0';
}

static Location range(const Lexer *lexer, int32_t start) { return (Location){lexer->source, start, lexer->at - start}; }

/* ---- encoding ---- */

/* Length of the well-formed UTF-8 sequence at text (RFC 3629), or 0. */
static int utf8_length(const unsigned char *text, int64_t left) {
  static const struct {
    unsigned char low, high, second_low, second_high;
    int length;
  } rows[] = {{0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
              {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
              {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (text[0] < rows[i].low || text[0] > rows[i].high) continue;
    if (rows[i].length == 1) return 1;
    if (left < rows[i].length || text[1] < rows[i].second_low || text[1] > rows[i].second_high) return 0;
    for (int k = 2; k < rows[i].length; k++)
      if ((text[k] & 0xC0) != 0x80) return 0;
    return rows[i].length;
  }
  return 0;
}

/* Reports the first byte that is not text; a file with one is not lexed. */
static bool check_encoding(const Source *source) {
  for (int64_t i = 0; i < source->length;) {
    int length = utf8_length((const unsigned char *)source->text + i, source->length - i);
    if (!length) {
      Location location = {source, (int32_t)i, 1};
      unsigned byte = (unsigned char)source->text[i];
      if (byte == 0)
        diag_error(location, "the file holds a NUL byte; expected UTF-8 text");
      else
        diag_error(location, "the byte 0x%02X is not UTF-8; save the file as UTF-8 text", byte);
      return false;
    }
    i += length;
  }
  return true;
}

/* ---- white space, comments, line ends ---- */

static void skip_comment(Lexer *lexer) {
  int32_t start = lexer->at, end;
  while (lexer->at < lexer->source->length && peek_char(lexer, 0) != '\n') lexer->at++;
  end = lexer->at;
  while (end > start && strchr(" \t\r", lexer->source->text[end - 1])) end--;
  Location location = {lexer->source, start, end - start};
  array_push(lexer->arena, &lexer->comments, location);
}

static void skip_space(Lexer *lexer) {
  lexer->spaced = lexer->line_ended = false;
  for (;; lexer->spaced = true) {
    char c = peek_char(lexer, 0);
    if (lexer->at >= lexer->source->length) return;
    if (c == '#') {
      skip_comment(lexer);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (c == '\n' && !lexer->line_ended) lexer->line_ended = true, lexer->line_end = lexer->at;
      lexer->at++;
    } else {
      return;
    }
  }
}

bool newline_separates(TokenKind before, TokenKind after) {
  bool ends = before == TOKEN_WORD || before == TOKEN_INT || before == TOKEN_FLOAT || before == TOKEN_STRING ||
              before == TOKEN_RIGHT_PAREN || before == TOKEN_RIGHT_BRACKET || before == TOKEN_RIGHT_BRACE ||
              before == TOKEN_AND || before == TOKEN_OR || before == TOKEN_NOT || before == TOKEN_ELSE;
  return ends && (after == TOKEN_RIGHT_BRACE || after == TOKEN_WORD || after == TOKEN_NOT);
}

static TokenKind last_kind(const Lexer *lexer) {
  return lexer->tokens.count ? lexer->tokens.items[lexer->tokens.count - 1].kind : TOKEN_NEWLINE;
}

static void push_newline(Lexer *lexer, int32_t start) {
  TokenKind last = last_kind(lexer);
  if (last == TOKEN_NEWLINE || last == TOKEN_LEFT_BRACE) return;
  Token token = {.kind = TOKEN_NEWLINE, .location = {lexer->source, start, 1}};
  array_push(lexer->arena, &lexer->tokens, token);
}

/* A closing brace also closes the ( and [ that were left open inside its block, so that one missing parenthesis does
 * not swallow the line ends of the rest of the file. */
static void track_bracket(Lexer *lexer, TokenKind kind) {
  char open = kind == TOKEN_RIGHT_PAREN ? '(' : kind == TOKEN_RIGHT_BRACKET ? '[' : kind == TOKEN_RIGHT_BRACE ? '{' : 0;
  if (kind == TOKEN_LEFT_PAREN) array_push(lexer->arena, &lexer->brackets, '(');
  if (kind == TOKEN_LEFT_BRACKET) array_push(lexer->arena, &lexer->brackets, '[');
  if (kind == TOKEN_LEFT_BRACE) array_push(lexer->arena, &lexer->brackets, '{');
  int64_t depth = lexer->brackets.count;
  if (open == '{')
    while (depth && lexer->brackets.items[depth - 1] != '{') depth--;
  if (open && depth && lexer->brackets.items[depth - 1] == open) lexer->brackets.count = depth - 1;
}

static void push_token(Lexer *lexer, Token token, int32_t start) {
  char innermost = lexer->brackets.count ? lexer->brackets.items[lexer->brackets.count - 1] : '{';
  if (lexer->line_ended && innermost == '{' && newline_separates(last_kind(lexer), token.kind))
    push_newline(lexer, lexer->line_end);
  token.touches = !lexer->spaced && lexer->tokens.count > 0;
  token.location = range(lexer, start);
  track_bracket(lexer, token.kind);
  array_push(lexer->arena, &lexer->tokens, token);
}

/* ---- words, numbers, strings, punctuation ---- */

static void lex_word(Lexer *lexer) {
  static const struct {
    const char *word;
    TokenKind kind;
  } reserved[] = {{"and", TOKEN_AND}, {"or", TOKEN_OR}, {"not", TOKEN_NOT}, {"else", TOKEN_ELSE}};
  int32_t start = lexer->at;
  while (is_word(peek_char(lexer, 0))) lexer->at++;
  Token token = {.kind = TOKEN_WORD};
  if (lexer->at - start > LONGEST_WORD)
    diag_error(range(lexer, start), "this word has %d letters; a word may have %d", lexer->at - start, LONGEST_WORD);
  token.text = memory_string_range(lexer->arena, lexer->source->text + start, lexer->at - start);
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (string_equal(token.text, reserved[i].word)) token.kind = reserved[i].kind;
  push_token(lexer, token, start);
}

static void skip_digits(Lexer *lexer) {
  while (is_digit(peek_char(lexer, 0))) lexer->at++;
}

/* Skips "e", an optional sign and digits when all of it is there. */
static bool skip_exponent(Lexer *lexer) {
  char sign = peek_char(lexer, 1);
  int32_t digits = sign == '+' || sign == '-' ? 2 : 1;
  if ((peek_char(lexer, 0) | 0x20) != 'e' || !is_digit(peek_char(lexer, digits))) return false;
  lexer->at += digits;
  skip_digits(lexer);
  return true;
}

static void convert_integer(Lexer *lexer, Token *token, int32_t start) {
  token->kind = TOKEN_INT;
  for (int32_t i = start; i < lexer->at; i++) {
    int64_t digit = lexer->source->text[i] - '0';
    if (checked_multiply(token->integer, 10, &token->integer) && checked_add(token->integer, digit, &token->integer))
      continue;
    diag_error(range(lexer, start), "the integer does not fit in 64 bits; the largest is 9223372036854775807");
    token->integer = 1;
    return;
  }
}

static void convert_float(Lexer *lexer, Token *token, int32_t start) {
  token->kind = TOKEN_FLOAT;
  char *text = memory_string_range(lexer->arena, lexer->source->text + start, lexer->at - start);
  token->number = strtod(text, NULL);
  if (isinf(token->number)) diag_error(range(lexer, start), "the number is too large for a 64-bit float");
}

static void lex_number(Lexer *lexer) {
  int32_t start = lexer->at;
  Token token = {0};
  skip_digits(lexer);
  bool fraction = peek_char(lexer, 0) == '.' && is_digit(peek_char(lexer, 1));
  if (fraction) {
    lexer->at++;
    skip_digits(lexer);
  }
  bool exponent = skip_exponent(lexer);
  if (is_word_start(peek_char(lexer, 0))) {
    while (is_word(peek_char(lexer, 0))) lexer->at++;
    diag_error(range(lexer, start),
               "'%.*s' is not a number; a word starts with a letter or '_', a number ends before it",
               (int)(lexer->at - start < 40 ? lexer->at - start : 40), lexer->source->text + start);
    token = (Token){.kind = TOKEN_INT, .integer = 1};
  } else if (fraction || exponent) {
    convert_float(lexer, &token, start);
  } else {
    convert_integer(lexer, &token, start);
  }
  push_token(lexer, token, start);
}

static void lex_string(Lexer *lexer) {
  int32_t start = lexer->at++;
  ARRAY(char) text = {0};
  for (;; lexer->at++) {
    char c = peek_char(lexer, 0);
    if (lexer->at >= lexer->source->length || c == '\n') {
      diag_error(range(lexer, start), "the string is not closed on its line; expected '\"'");
      break;
    }
    if (c == '"') {
      lexer->at++;
      break;
    }
    if (c == '\\') {
      char next = peek_char(lexer, 1);
      if (next != '"' && next != '\\') {
        diag_error((Location){lexer->source, lexer->at, 1}, "unknown escape in a string; there are \\\" and \\\\");
      } else {
        c = next;
        lexer->at++;
      }
    }
    array_push(lexer->arena, &text, c);
  }
  if (text.count > LONGEST_STRING)
    diag_error(range(lexer, start), "this string has %lld bytes; a string may have %d", (long long)text.count,
               LONGEST_STRING);
  array_push(lexer->arena, &text, '\0');
  push_token(lexer, (Token){.kind = TOKEN_STRING, .text = text.items}, start);
}

static const struct {
  const char *text;
  TokenKind kind;
} punctuation[] =
    {/* a longer one before its prefixes */
     {"...", TOKEN_ELLIPSIS}, {"..", TOKEN_RANGE},      {"//", TOKEN_FLOOR_SLASH},   {"==", TOKEN_EQUAL},
     {"!=", TOKEN_NOT_EQUAL}, {"<=", TOKEN_LESS_EQUAL}, {">=", TOKEN_GREATER_EQUAL}, {".", TOKEN_DOT},
     {"(", TOKEN_LEFT_PAREN}, {")", TOKEN_RIGHT_PAREN}, {"[", TOKEN_LEFT_BRACKET},   {"]", TOKEN_RIGHT_BRACKET},
     {"{", TOKEN_LEFT_BRACE}, {"}", TOKEN_RIGHT_BRACE}, {",", TOKEN_COMMA},          {":", TOKEN_COLON},
     {"=", TOKEN_ASSIGN},     {"<", TOKEN_LESS},        {">", TOKEN_GREATER},        {"+", TOKEN_PLUS},
     {"-", TOKEN_MINUS},      {"*", TOKEN_STAR},        {"/", TOKEN_SLASH},          {"%", TOKEN_PERCENT},
     {"@", TOKEN_AT},         {"^", TOKEN_CARET}};

static void lex_punctuation(Lexer *lexer) {
  int32_t start = lexer->at;
  const char *text = lexer->source->text + start;
  for (size_t i = 0; i < sizeof punctuation / sizeof *punctuation; i++) {
    if (!string_starts(text, punctuation[i].text)) continue;
    lexer->at += (int32_t)strlen(punctuation[i].text);
    push_token(lexer, (Token){.kind = punctuation[i].kind}, start);
    return;
  }
  lexer->at += utf8_length((const unsigned char *)text, lexer->source->length - start);
  const char *hint = *text == '&'    ? "; 'and' is written out"
                     : *text == '|'  ? "; 'or' is written out"
                     : *text == '!'  ? "; 'not' is written out"
                     : *text == '\'' ? "; strings stand in double quotes"
                                     : "";
  diag_error(range(lexer, start), "unexpected character '%.*s'%s", lexer->at - start, text, hint);
}

static bool word_may_start_with_digit(const Lexer *lexer) {
  if (lexer->spaced || !lexer->tokens.count) return false;
  const Token *last = &lexer->tokens.items[lexer->tokens.count - 1];
  return last->kind == TOKEN_RIGHT_BRACE || (last->kind == TOKEN_DOT && last->touches);
}

static void lex_token(Lexer *lexer) {
  char c = peek_char(lexer, 0);
  if (is_word_start(c) || (is_digit(c) && word_may_start_with_digit(lexer))) {
    lex_word(lexer);
  } else if (is_digit(c)) {
    lex_number(lexer);
  } else if (c == '"') {
    lex_string(lexer);
  } else if (c == ';') {
    push_newline(lexer, lexer->at++);
  } else {
    lex_punctuation(lexer);
  }
}

TokenList *lex(MemoryArena *arena, const Source *source) {
  Lexer lexer = {.arena = arena, .source = source};
  bool readable = true;
  if (source->length > LONGEST_SOURCE) {
    diag_error((Location){source, 0, 1}, "the file has %lld bytes; a source file may have %d",
               (long long)source->length, LONGEST_SOURCE);
    readable = false;
  }
  readable = readable && check_encoding(source);
  if (readable && string_starts(source->text, "\xEF\xBB\xBF")) lexer.at = 3; /* byte order mark */
  if (readable)
    for (skip_space(&lexer); lexer.at < source->length; skip_space(&lexer)) lex_token(&lexer);
  int32_t end = readable ? (int32_t)source->length : 0;
  if (lexer.line_ended && !lexer.brackets.count && lexer.tokens.count) push_newline(&lexer, lexer.line_end);
  Token token = {.kind = TOKEN_END, .location = {source, end, 0}};
  array_push(arena, &lexer.tokens, token);
  TokenList *list = NEW(arena, TokenList);
  *list = (TokenList){lexer.tokens.items, lexer.tokens.count, lexer.comments.items, lexer.comments.count};
  return list;
}

const char *token_description(MemoryArena *arena, const Token *token) {
  if (token->kind == TOKEN_END || token->kind == TOKEN_STOP) return "end of file";
  if (token->kind == TOKEN_NEWLINE)
    return token->location.source->text[token->location.start] == ';' ? "';'" : "end of line";
  if (token->kind == TOKEN_STRING) return "a string";
  int length = token->location.length < 40 ? token->location.length : 40;
  return memory_format(arena, "'%.*s'", length, token->location.source->text + token->location.start);
}
