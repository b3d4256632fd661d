/* frontend/lexer.h - source text to tokens (docs/language.md, "Lexical structure").
 *
 * The whole text is lexed at once. Line ends that separate statements become TOKEN_NEWLINE, all others are white space.
 * Comments are kept beside the tokens for `reprise fmt`. */
#ifndef REPRISE_FRONTEND_LEXER_H
#define REPRISE_FRONTEND_LEXER_H

#include "ir/base.h"
#include "ir/diagnostics.h"

typedef enum TokenKind {
  TOKEN_END, /* end of file */
  TOKEN_NEWLINE,
  TOKEN_WORD,
  TOKEN_INT,
  TOKEN_FLOAT,
  TOKEN_STRING,
  TOKEN_LEFT_PAREN,
  TOKEN_RIGHT_PAREN,
  TOKEN_LEFT_BRACKET,
  TOKEN_RIGHT_BRACKET,
  TOKEN_LEFT_BRACE,
  TOKEN_RIGHT_BRACE,
  TOKEN_COMMA,
  TOKEN_COLON,
  TOKEN_DOT,
  TOKEN_RANGE,    /* .. */
  TOKEN_ELLIPSIS, /* ... */
  TOKEN_ASSIGN,
  TOKEN_EQUAL,
  TOKEN_NOT_EQUAL,
  TOKEN_LESS,
  TOKEN_LESS_EQUAL,
  TOKEN_GREATER,
  TOKEN_GREATER_EQUAL,
  TOKEN_PLUS,
  TOKEN_MINUS,
  TOKEN_STAR,
  TOKEN_SLASH,
  TOKEN_FLOOR_SLASH, /* // */
  TOKEN_PERCENT,
  TOKEN_AT,
  TOKEN_CARET,
  TOKEN_AND, /* the reserved words */
  TOKEN_OR,
  TOKEN_NOT,
  TOKEN_ELSE,
  TOKEN_STOP /* what a parser in recovery sees; never lexed */
} TokenKind;

/* What the parser found a token to be; decides its spacing in the canonical form (frontend/format.c). */
typedef enum TokenRole {
  ROLE_PLAIN,
  ROLE_PREFIX,    /* - before an operand */
  ROLE_TIGHT,     /* touches both neighbours: label and slice colons, '=' of an argument, * / ^ .. */
  ROLE_LOOSE,     /* a blank on both sides */
  ROLE_AFTER,     /* a blank after only: the colon before a type */
  ROLE_CALL,      /* ( of a call or [ of a subscript: touches what is before it */
  ROLE_HOLE_OPEN, /* { and } of a hole */
  ROLE_HOLE_CLOSE,
  ROLE_BLOCK_OPEN, /* { and } of a block */
  ROLE_BLOCK_CLOSE
} TokenRole;

typedef struct Token {
  TokenKind kind;
  TokenRole role;
  bool touches; /* no white space between it and the token before */
  Location location;
  union {
    const char *text; /* WORD, STRING (unescaped), reserved words */
    int64_t integer;
    double number;
  };
} Token;

typedef struct TokenList {
  Token *items; /* the last one is TOKEN_END */
  int64_t count;
  Location *comments; /* from '#' to the end of its line, without trailing blanks; in order */
  int64_t comment_count;
} TokenList;

enum { LONGEST_SOURCE = 1 << 26, LONGEST_WORD = 255, LONGEST_STRING = 4095 };

/* Lexes a source; what is not a token is reported with diag_error and left out. Results live in the arena. */
TokenList *lex(MemoryArena *arena, const Source *source);

/* Whether a line end between two neighbouring tokens outside ( ) and [ ] separates statements. */
bool newline_separates(TokenKind before, TokenKind after);

/* "'x'", "a number", "end of line": how messages name a token. */
const char *token_description(MemoryArena *arena, const Token *token);

#endif
