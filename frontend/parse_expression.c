/* frontend/parse_expression.c - expressions (Pratt), paths, calls, subscripts, types. */
#include "frontend/parser_state.h"

/* Binding powers, loosest first. */
typedef enum Power {
  POWER_NONE,
  POWER_RANGE,
  POWER_OR,
  POWER_AND,
  POWER_NOT,
  POWER_COMPARE,
  POWER_SUM,
  POWER_PRODUCT,
  POWER_NEGATE,
  POWER_POWER
} Power;

typedef struct Infix {
  TokenKind kind;
  Power power;
  TokenRole role;
} Infix;

static const Infix infixes[] = {{TOKEN_RANGE, POWER_RANGE, ROLE_TIGHT},
                                {TOKEN_OR, POWER_OR, ROLE_LOOSE},
                                {TOKEN_AND, POWER_AND, ROLE_LOOSE},
                                {TOKEN_EQUAL, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_NOT_EQUAL, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_LESS, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_LESS_EQUAL, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_GREATER, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_GREATER_EQUAL, POWER_COMPARE, ROLE_LOOSE},
                                {TOKEN_PLUS, POWER_SUM, ROLE_LOOSE},
                                {TOKEN_MINUS, POWER_SUM, ROLE_LOOSE},
                                {TOKEN_STAR, POWER_PRODUCT, ROLE_TIGHT},
                                {TOKEN_SLASH, POWER_PRODUCT, ROLE_TIGHT},
                                {TOKEN_FLOOR_SLASH, POWER_PRODUCT, ROLE_TIGHT},
                                {TOKEN_PERCENT, POWER_PRODUCT, ROLE_LOOSE},
                                {TOKEN_AT, POWER_PRODUCT, ROLE_LOOSE},
                                {TOKEN_CARET, POWER_POWER, ROLE_TIGHT}};

static const Infix *find_infix(TokenKind kind) {
  for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++)
    if (infixes[i].kind == kind) return &infixes[i];
  return NULL;
}

static Expr *new_expr(Parser *parser, ExprKind kind, Location location) {
  Expr *expr = NEW(parser->arena, Expr);
  *expr = (Expr){.kind = kind, .height = 1, .location = location};
  return expr;
}

/* Makes the expression at least one higher than a part of it. */
static void raise_over(Parser *parser, Expr *expr, const Expr *part) {
  if (!part || part->height < expr->height) return;
  expr->height = part->height + 1;
  if (expr->height > HIGHEST_EXPR)
    parse_error(parser, "the expression has more than %d levels; give parts of it names", HIGHEST_EXPR);
}

static void raise_over_path(Parser *parser, Expr *expr, const Path *path) {
  for (int64_t i = 0; i < path->parts.count; i++) raise_over(parser, expr, path->parts.items[i].hole);
}

/* ---- paths ---- */

enum { LONGEST_PATH = 256 }; /* parts */

/* hole = "{" expr "}" */
static Expr *parse_hole(Parser *parser) {
  bool outer = parser->in_brackets;
  parser->in_brackets = false;
  accept(parser, TOKEN_LEFT_BRACE, ROLE_HOLE_OPEN);
  parser->open_holes++;
  Expr *expr = parse_expr(parser);
  if (!at(parser, TOKEN_RIGHT_BRACE) && !parser->recovering)
    parse_error(parser,
                "expected '}' to close the hole, found %s ('{' that touches a name opens a hole; a block needs a "
                "blank before it)",
                token_description(parser->arena, peek(parser)));
  if (accept(parser, TOKEN_RIGHT_BRACE, ROLE_HOLE_CLOSE)) parser->open_holes--;
  parser->in_brackets = outer;
  return expr;
}

static bool parse_part(Parser *parser, Path *path, bool dotted) {
  PathPart part = {.dotted = dotted, .location = peek(parser)->location};
  if (at(parser, TOKEN_WORD)) {
    part.word = peek(parser)->text;
    accept(parser, TOKEN_WORD, ROLE_PLAIN);
  } else if (at(parser, TOKEN_LEFT_BRACE)) {
    part.hole = parse_hole(parser);
    part.location = range_from(parser, part.location);
  } else {
    expected(parser, dotted ? "a word or a hole '{...}' after '.'" : "a name");
    return false;
  }
  array_push(parser->arena, &path->parts, part);
  return true;
}

Path parse_path(Parser *parser) {
  Path path = {.location = peek(parser)->location};
  bool going = parse_part(parser, &path, false);
  while (going && peek(parser)->touches) {
    if (path.parts.count == LONGEST_PATH)
      parse_error(parser, "this path has more than %d words; give the value a shorter name", LONGEST_PATH);
    if (accept(parser, TOKEN_DOT, ROLE_TIGHT))
      going = parse_part(parser, &path, true);
    else if (at(parser, TOKEN_LEFT_BRACE) || at(parser, TOKEN_WORD))
      going = parse_part(parser, &path, false);
    else
      break;
  }
  path.location = range_from(parser, path.location);
  return path;
}

/* ---- calls ---- */

Argument parse_argument(Parser *parser) {
  Argument argument = {.location = peek(parser)->location};
  if (at(parser, TOKEN_WORD) && peek_second(parser)->kind == TOKEN_ASSIGN) {
    argument.name = peek(parser)->text;
    argument.name_location = peek(parser)->location;
    accept(parser, TOKEN_WORD, ROLE_PLAIN);
    accept(parser, TOKEN_ASSIGN, ROLE_TIGHT);
  }
  argument.value = parse_expr(parser);
  argument.location = range_from(parser, argument.location);
  return argument;
}

/* Ends a bracketed list; names the bracket that was opened. */
static void expect_close(Parser *parser, TokenKind kind, const char *close, Location open) {
  if (accept(parser, kind, ROLE_PLAIN) || parser->recovering) return;
  const char *found = token_description(parser->arena, peek(parser));
  parse_error(parser, "expected ',' or '%s', found %s", close, found);
  diag_note(open, "to match this '%s'", *close == ')' ? "(" : "[");
}

ArgumentList parse_call(Parser *parser) {
  ArgumentList arguments = {0};
  bool outer = parser->in_brackets;
  Location open = peek(parser)->location;
  parser->in_brackets = false;
  expect(parser, TOKEN_LEFT_PAREN, ROLE_CALL, "'('");
  do {
    if (at(parser, TOKEN_RIGHT_PAREN)) break;
    Argument argument = parse_argument(parser);
    array_push(parser->arena, &arguments, argument);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  expect_close(parser, TOKEN_RIGHT_PAREN, ")", open);
  parser->in_brackets = outer;
  return arguments;
}

static Expr *parse_callable(Parser *parser, Expr *expr, Path label, Word callee) {
  expr->kind = EXPR_CALL;
  expr->call.label = label;
  expr->call.callee = callee.text;
  expr->call.callee_location = callee.location;
  expr->call.arguments = parse_call(parser);
  raise_over_path(parser, expr, &label);
  for (int64_t i = 0; i < expr->call.arguments.count; i++)
    raise_over(parser, expr, expr->call.arguments.items[i].value);
  return expr;
}

/* path [ ":" WORD call | call ] */
static Expr *parse_path_or_call(Parser *parser) {
  Expr *expr = new_expr(parser, EXPR_PATH, peek(parser)->location);
  Path path = parse_path(parser);
  if (at(parser, TOKEN_LEFT_PAREN)) {
    if (path.parts.count != 1 || !path.parts.items[0].word)
      parse_error(parser, "only a single word can be called; write 'label:Module(...)' to call under a label");
    else
      return parse_callable(parser, expr, (Path){0}, (Word){path.parts.items[0].word, path.location});
  } else if (!parser->in_brackets && accept(parser, TOKEN_COLON, ROLE_TIGHT)) {
    return parse_callable(parser, expr, path, expect_name(parser, "the name of a module after ':'"));
  }
  expr->path = path;
  raise_over_path(parser, expr, &path);
  return expr;
}

/* ---- operands ---- */

static Expr *parse_group(Parser *parser) {
  Location open = peek(parser)->location;
  Expr *expr = new_expr(parser, EXPR_GROUP, open);
  bool outer = parser->in_brackets;
  parser->in_brackets = false;
  accept(parser, TOKEN_LEFT_PAREN, ROLE_PLAIN);
  expr->right = parse_expr(parser);
  raise_over(parser, expr, expr->right);
  if (!accept(parser, TOKEN_RIGHT_PAREN, ROLE_PLAIN) && !parser->recovering) {
    expected(parser, "')'");
    diag_note(open, "to match this '('");
  }
  parser->in_brackets = outer;
  return expr;
}

static Expr *parse_list(Parser *parser) {
  Location open = peek(parser)->location;
  Expr *expr = new_expr(parser, EXPR_LIST, open);
  bool outer = parser->in_brackets;
  parser->in_brackets = true;
  accept(parser, TOKEN_LEFT_BRACKET, ROLE_PLAIN);
  do {
    if (at(parser, TOKEN_RIGHT_BRACKET)) break;
    Expr *item = parse_expr(parser);
    raise_over(parser, expr, item);
    array_push(parser->arena, &expr->list, item);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  expect_close(parser, TOKEN_RIGHT_BRACKET, "]", open);
  parser->in_brackets = outer;
  return expr;
}

static Expr *parse_operand(Parser *parser) {
  const Token *token = peek(parser);
  Expr *expr = new_expr(parser, EXPR_ERROR, token->location);
  if (accept(parser, TOKEN_INT, ROLE_PLAIN)) {
    expr->kind = EXPR_INT;
    expr->integer = token->integer;
  } else if (accept(parser, TOKEN_FLOAT, ROLE_PLAIN)) {
    expr->kind = EXPR_FLOAT;
    expr->number = token->number;
  } else if (accept(parser, TOKEN_STRING, ROLE_PLAIN)) {
    expr->kind = EXPR_STRING;
    expr->string = token->text;
  } else if (at(parser, TOKEN_LEFT_PAREN)) {
    expr = parse_group(parser);
  } else if (at(parser, TOKEN_LEFT_BRACKET)) {
    expr = parse_list(parser);
  } else if (at(parser, TOKEN_WORD) || at(parser, TOKEN_LEFT_BRACE)) {
    expr = parse_path_or_call(parser);
  } else if (at(parser, TOKEN_STAR) && previous(parser)->kind == TOKEN_STAR) {
    parse_error(parser, "expected an expression, found '*' (the power of x is x^2)");
  } else if (at(parser, TOKEN_DOT)) {
    parse_error(parser, "expected an expression, found '.' (a number has digits on both sides of its point)");
  } else {
    expected(parser, "an expression");
  }
  expr->location = range_from(parser, expr->location);
  return expr;
}

/* ---- subscripts ---- */

static bool at_subscript_end(const Parser *parser) {
  return at(parser, TOKEN_COMMA) || at(parser, TOKEN_COLON) || at(parser, TOKEN_RIGHT_BRACKET);
}

/* sub = "..." | expr [ slice ] | slice; slice = ":" [ expr ] [ ":" [ expr ] ] */
static Subscript parse_subscript(Parser *parser) {
  Subscript subscript = {.kind = SUBSCRIPT_INDEX, .location = peek(parser)->location};
  if (accept(parser, TOKEN_ELLIPSIS, ROLE_PLAIN)) {
    subscript.kind = SUBSCRIPT_ELLIPSIS;
    return subscript;
  }
  if (!at(parser, TOKEN_COLON)) subscript.start = parse_expr(parser);
  if (accept(parser, TOKEN_COLON, ROLE_TIGHT)) {
    subscript.kind = SUBSCRIPT_SLICE;
    if (!at_subscript_end(parser)) subscript.stop = parse_expr(parser);
    if (accept(parser, TOKEN_COLON, ROLE_TIGHT) && !at_subscript_end(parser)) subscript.step = parse_expr(parser);
  }
  subscript.location = range_from(parser, subscript.location);
  return subscript;
}

/* operand { "[" sub% "]" } */
static Expr *parse_postfix(Parser *parser) {
  Expr *expr = parse_operand(parser);
  while (at(parser, TOKEN_LEFT_BRACKET)) {
    Expr *index = new_expr(parser, EXPR_INDEX, expr->location);
    Location open = peek(parser)->location;
    bool outer = parser->in_brackets;
    parser->in_brackets = true;
    index->indexed = expr;
    raise_over(parser, index, expr);
    accept(parser, TOKEN_LEFT_BRACKET, ROLE_CALL);
    do {
      Subscript subscript = parse_subscript(parser);
      raise_over(parser, index, subscript.start);
      raise_over(parser, index, subscript.stop);
      raise_over(parser, index, subscript.step);
      array_push(parser->arena, &index->subscripts, subscript);
    } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
    expect_close(parser, TOKEN_RIGHT_BRACKET, "]", open);
    parser->in_brackets = outer;
    index->location = range_from(parser, index->location);
    expr = index;
  }
  return expr;
}

/* ---- operators ---- */

static Expr *parse_power(Parser *parser, Power least);

static Expr *parse_prefix(Parser *parser) {
  const Token *token = peek(parser);
  if (token->kind != TOKEN_MINUS && token->kind != TOKEN_NOT) return parse_postfix(parser);
  Expr *expr = new_expr(parser, EXPR_PREFIX, token->location);
  expr->symbol = token->kind;
  expr->operator_location = token->location;
  accept(parser, token->kind, token->kind == TOKEN_MINUS ? ROLE_PREFIX : ROLE_PLAIN);
  expr->right = parse_power(parser, token->kind == TOKEN_MINUS ? POWER_NEGATE : POWER_NOT);
  raise_over(parser, expr, expr->right);
  expr->location = range_from(parser, expr->location);
  return expr;
}

static void check_chain(Parser *parser, const Infix *infix) {
  const Infix *next = find_infix(peek(parser)->kind);
  if (!next || next->power != infix->power) return;
  if (infix->power == POWER_COMPARE) parse_error(parser, "comparisons do not chain; write 'a < b and b < c'");
  if (infix->power == POWER_RANGE) parse_error(parser, "'..' does not chain; a range is 'first..end'");
}

/* An expression of operators that bind at least as tightly as `least`. */
static Expr *parse_power(Parser *parser, Power least) {
  enter(parser);
  Expr *left = parse_prefix(parser);
  for (;;) {
    const Infix *infix = find_infix(peek(parser)->kind);
    if (!infix || infix->power < least) break;
    Expr *expr = new_expr(parser, EXPR_BINARY, left->location);
    expr->symbol = infix->kind;
    expr->operator_location = peek(parser)->location;
    expr->left = left;
    accept(parser, infix->kind, infix->role);
    expr->right = parse_power(parser, infix->power == POWER_POWER ? infix->power : infix->power + 1);
    raise_over(parser, expr, left);
    raise_over(parser, expr, expr->right);
    expr->location = range_from(parser, expr->location);
    left = expr;
    check_chain(parser, infix);
  }
  leave(parser);
  return left;
}

Expr *parse_expr(Parser *parser) { return parse_power(parser, POWER_NONE); }

/* ---- types ---- */

TypeSyntax *parse_type(Parser *parser) {
  TypeSyntax *type = NEW(parser->arena, TypeSyntax);
  type->location = peek(parser)->location;
  if (at(parser, TOKEN_WORD)) {
    type->dtype = peek(parser)->text;
    type->dtype_location = peek(parser)->location;
    accept(parser, TOKEN_WORD, ROLE_PLAIN);
  }
  bool outer = parser->in_brackets;
  Location open = peek(parser)->location;
  parser->in_brackets = true;
  expect(parser, TOKEN_LEFT_BRACKET, type->dtype ? ROLE_CALL : ROLE_PLAIN, "a type such as 'f32[B, T]' or '[]'");
  do {
    if (at(parser, TOKEN_RIGHT_BRACKET)) break;
    Location start = peek(parser)->location;
    Expr *dim = accept(parser, TOKEN_ELLIPSIS, ROLE_PLAIN) ? NULL : parse_expr(parser);
    array_push(parser->arena, &type->dims, dim);
    array_push(parser->arena, &type->dim_locations, range_from(parser, start));
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  expect_close(parser, TOKEN_RIGHT_BRACKET, "]", open);
  parser->in_brackets = outer;
  type->location = range_from(parser, type->location);
  return type;
}
