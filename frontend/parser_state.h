/* frontend/parser_state.h - what parser.c and parse_expression.c share.
 *
 * Recovery: after an error the parser is `recovering` and peek() shows TOKEN_STOP, which no rule accepts; every rule
 * then ends at once, and the loop over statements skips to the next one and resumes. */
#ifndef REPRISE_FRONTEND_PARSER_STATE_H
#define REPRISE_FRONTEND_PARSER_STATE_H

#include "frontend/ast.h"

typedef struct Parser {
  MemoryArena *arena;
  TokenList *tokens;
  int64_t at;
  int depth;      /* of nested expressions and blocks */
  int open_holes; /* { of holes not yet closed */
  bool recovering;
  bool in_brackets; /* the innermost open bracket is [ : a path takes no label */
} Parser;

const Token *peek(const Parser *parser);
const Token *peek_second(const Parser *parser);
/* The token before the next one. */
const Token *previous(const Parser *parser);
static inline bool at(const Parser *parser, TokenKind kind) { return peek(parser)->kind == kind; }
bool at_word(const Parser *parser, const char *word);
/* Takes the next token when it is of the kind, giving it a role. */
bool accept(Parser *parser, TokenKind kind, TokenRole role);
bool accept_word(Parser *parser, const char *word);
/* The same, an error otherwise: "expected WHAT, found …". */
bool expect(Parser *parser, TokenKind kind, TokenRole role, const char *what);
bool expect_word(Parser *parser, const char *word);
Word expect_name(Parser *parser, const char *what);
/* Reports at the next token and starts recovering; a no-op while recovering. */
void parse_error(Parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
void expected(Parser *parser, const char *what);
/* Bounded nesting: enter reports an error beyond DEEPEST_NESTING; each enter has its leave. */
void enter(Parser *parser);
void leave(Parser *parser);
/* From a start to the last token taken. */
Location range_from(const Parser *parser, Location start);

Expr *parse_expr(Parser *parser);
Path parse_path(Parser *parser);
TypeSyntax *parse_type(Parser *parser);
/* call = "(" arg%% ")" */
ArgumentList parse_call(Parser *parser);
/* arg = [ WORD "=" ] expr */
Argument parse_argument(Parser *parser);

#endif
