/* frontend/parser.c - files, statements, train blocks; recovery from errors. */
#include "frontend/parser.h"

#include "frontend/parser_state.h"

/* ---- tokens ---- */

static const Token stop_token = {.kind = TOKEN_STOP};

const Token *peek(const Parser *parser) {
  return parser->recovering ? &stop_token : &parser->tokens->items[parser->at];
}

const Token *peek_second(const Parser *parser) {
  return parser->recovering || at(parser, TOKEN_END) ? &stop_token : &parser->tokens->items[parser->at + 1];
}

const Token *previous(const Parser *parser) { return &parser->tokens->items[parser->at ? parser->at - 1 : 0]; }

bool at_word(const Parser *parser, const char *word) {
  return at(parser, TOKEN_WORD) && string_equal(peek(parser)->text, word);
}

bool accept(Parser *parser, TokenKind kind, TokenRole role) {
  if (!at(parser, kind)) return false;
  parser->tokens->items[parser->at].role = role;
  if (kind != TOKEN_END) parser->at++;
  return true;
}

bool accept_word(Parser *parser, const char *word) {
  return at_word(parser, word) && accept(parser, TOKEN_WORD, ROLE_PLAIN);
}

void parse_error(Parser *parser, const char *format, ...) {
  if (parser->recovering) return;
  va_list arguments;
  va_start(arguments, format);
  diag_error(peek(parser)->location, "%s", memory_format_list(parser->arena, format, arguments));
  va_end(arguments);
  parser->recovering = true;
}

void expected(Parser *parser, const char *what) {
  parse_error(parser, "expected %s, found %s", what, token_description(parser->arena, peek(parser)));
}

bool expect(Parser *parser, TokenKind kind, TokenRole role, const char *what) {
  if (accept(parser, kind, role)) return true;
  expected(parser, what);
  return false;
}

bool expect_word(Parser *parser, const char *word) {
  if (accept_word(parser, word)) return true;
  expected(parser, memory_format(parser->arena, "'%s'", word));
  return false;
}

Word expect_name(Parser *parser, const char *what) {
  Word word = {"", peek(parser)->location};
  const Token *token = peek(parser);
  if (expect(parser, TOKEN_WORD, ROLE_PLAIN, what)) word.text = token->text;
  return word;
}

void enter(Parser *parser) {
  if (++parser->depth > DEEPEST_NESTING) parse_error(parser, "nested more than %d deep", DEEPEST_NESTING);
}

void leave(Parser *parser) { parser->depth--; }

Location range_from(const Parser *parser, Location start) {
  return start.source && parser->at ? location_join(start, previous(parser)->location) : start;
}

/* ---- ends of statements, recovery ---- */

/* Skips to the end of the statement or line at the nesting where the error was met. */
static void synchronise(Parser *parser) {
  int64_t depth = parser->open_holes;
  parser->recovering = parser->in_brackets = false;
  parser->open_holes = 0;
  for (; !at(parser, TOKEN_END); parser->at++) {
    if (at(parser, TOKEN_LEFT_BRACE)) depth++;
    if (at(parser, TOKEN_RIGHT_BRACE) && depth-- == 0) return;
    if (at(parser, TOKEN_NEWLINE) && depth == 0) {
      parser->at++;
      return;
    }
  }
}

/* NL, or what supplies one. */
static void end_statement(Parser *parser) {
  bool supplied = at(parser, TOKEN_RIGHT_BRACE) || at(parser, TOKEN_END);
  if (!supplied && !accept(parser, TOKEN_NEWLINE, ROLE_PLAIN)) expected(parser, "the end of the line or ';'");
  if (parser->recovering) synchronise(parser);
}

static void close_block(Parser *parser, Location open) {
  if (accept(parser, TOKEN_RIGHT_BRACE, ROLE_BLOCK_CLOSE) || parser->recovering) return;
  expected(parser, "'}'");
  diag_note(open, "to match this '{'");
}

static Statement *parse_statement(Parser *parser);

/* block = "{" { stmt NL } "}" */
static Block parse_block(Parser *parser) {
  Block block = {.location = peek(parser)->location};
  bool after_hole = parser->at && previous(parser)->role == ROLE_HOLE_CLOSE;
  enter(parser);
  if (!accept(parser, TOKEN_LEFT_BRACE, ROLE_BLOCK_OPEN))
    expected(parser, after_hole ? "a block '{' (a '{' that touches a name opens a hole; put a blank before a block)"
                                : "a block '{'");
  while (!at(parser, TOKEN_RIGHT_BRACE) && !at(parser, TOKEN_END) && !parser->recovering) {
    Statement *statement = parse_statement(parser);
    array_push(parser->arena, &block.statements, statement);
    end_statement(parser);
  }
  leave(parser);
  close_block(parser, block.location);
  block.location = range_from(parser, block.location);
  return block;
}

/* ---- lists ---- */

static WordList parse_words(Parser *parser, const char *what) {
  WordList words = {0};
  do {
    Word word = expect_name(parser, what);
    array_push(parser->arena, &words, word);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  return words;
}

static PathList parse_paths(Parser *parser) {
  PathList paths = {0};
  do {
    Path path = parse_path(parser);
    array_push(parser->arena, &paths, path);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  return paths;
}

static ExprList parse_exprs(Parser *parser) {
  ExprList list = {0};
  do {
    Expr *expr = parse_expr(parser);
    array_push(parser->arena, &list, expr);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  return list;
}

/* setting = WORD "=" expr */
static SettingList parse_settings(Parser *parser) {
  SettingList settings = {0};
  do {
    Word name = expect_name(parser, "a name");
    expect(parser, TOKEN_ASSIGN, ROLE_LOOSE, "'='");
    Setting setting = {name.text, name.location, parse_expr(parser)};
    array_push(parser->arena, &settings, setting);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  return settings;
}

/* ratio = expr [ "per" expr ] */
static Ratio parse_ratio(Parser *parser) {
  Ratio ratio = {.value = parse_expr(parser)};
  if (accept_word(parser, "per")) ratio.per = parse_expr(parser);
  return ratio;
}

/* named = [ WORD "=" ] ratio */
static Ratio parse_named(Parser *parser) {
  Word name = {0};
  if (at(parser, TOKEN_WORD) && peek_second(parser)->kind == TOKEN_ASSIGN) {
    name = expect_name(parser, "a name");
    accept(parser, TOKEN_ASSIGN, ROLE_LOOSE);
  }
  Ratio ratio = parse_ratio(parser);
  ratio.name = name.text;
  ratio.name_location = name.location;
  return ratio;
}

/* ---- statements; the keyword is already taken ---- */

static void parse_param(Parser *parser, Statement *statement) {
  Path path = parse_path(parser);
  array_push(parser->arena, &statement->paths, path);
  expect(parser, TOKEN_COLON, ROLE_AFTER, "':' and a type");
  statement->type = parse_type(parser);
  expect(parser, TOKEN_ASSIGN, ROLE_LOOSE, "'=' and an initialiser");
  statement->value = parse_expr(parser);
  if (statement->kind == STATEMENT_PARAM && accept_word(parser, "if")) statement->condition = parse_expr(parser);
}

static void parse_update(Parser *parser, Statement *statement) {
  Path path = parse_path(parser);
  array_push(parser->arena, &statement->paths, path);
  expect(parser, TOKEN_ASSIGN, ROLE_LOOSE, "'='");
  statement->value = parse_expr(parser);
}

static void parse_path_list(Parser *parser, Statement *statement) { statement->paths = parse_paths(parser); }

/* "; did you mean 'param'?" for a word that is nearly a keyword, or "". */
static const char *keyword_hint(Parser *parser, const char *word, const char *const *keywords, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (string_distance(word, keywords[i], 2) <= (strlen(keywords[i]) > 4 ? 2 : 1))
      return memory_format(parser->arena, "; did you mean '%s'?", keywords[i]);
  return "";
}

static const char *statement_hint(Parser *parser, const Token *first) {
  static const char *const keywords[] = {"param",  "state", "update", "shared", "grad", "keep",  "recompute",
                                         "freeze", "if",    "for",    "output", "loss", "return"};
  bool called = at(parser, TOKEN_WORD) || at(parser, TOKEN_LEFT_BRACE);
  return called && first->kind == TOKEN_WORD
             ? keyword_hint(parser, first->text, keywords, sizeof keywords / sizeof *keywords)
             : "";
}

/* assign = path% "=" expr% */
static void parse_assign(Parser *parser, Statement *statement) {
  const Token *first = peek(parser);
  statement->paths = parse_paths(parser);
  if (at(parser, TOKEN_LEFT_PAREN)) parse_error(parser, "a call is not a statement; expected 'name = ...'");
  if (!accept(parser, TOKEN_ASSIGN, ROLE_LOOSE) && !parser->recovering)
    parse_error(parser, "expected '=' (a statement starts with a keyword or is 'name = ...'), found %s%s",
                token_description(parser->arena, peek(parser)), statement_hint(parser, first));
  statement->values = parse_exprs(parser);
}

static void parse_keep(Parser *parser, Statement *statement) {
  statement->keep = true;
  parse_assign(parser, statement);
}

static void parse_segment(Parser *parser, Statement *statement) { statement->block = parse_block(parser); }

/* cond = "if" expr block [ "else" ( cond | block ) ] */
static void parse_cond(Parser *parser, Statement *statement) {
  bool more = true;
  while (more) {
    Branch branch = {.condition = parse_expr(parser)};
    branch.block = parse_block(parser);
    array_push(parser->arena, &statement->branches, branch);
    more = false;
    if (!accept(parser, TOKEN_ELSE, ROLE_LOOSE)) continue;
    if (accept_word(parser, "if")) {
      more = true;
    } else {
      Branch last = {.block = parse_block(parser)};
      array_push(parser->arena, &statement->branches, last);
    }
  }
}

static void parse_for(Parser *parser, Statement *statement) {
  statement->words = parse_words(parser, "a loop variable");
  expect_word(parser, "in");
  statement->value = parse_expr(parser);
  statement->block = parse_block(parser);
}

static void parse_output(Parser *parser, Statement *statement) {
  do {
    Ratio ratio = parse_named(parser);
    array_push(parser->arena, &statement->ratios, ratio);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
}

static void parse_loss(Parser *parser, Statement *statement) {
  Ratio ratio = parse_ratio(parser);
  array_push(parser->arena, &statement->ratios, ratio);
}

static void parse_return(Parser *parser, Statement *statement) { statement->values = parse_exprs(parser); }

static const struct StatementRule {
  const char *keyword;
  StatementKind kind;
  void (*parse)(Parser *parser, Statement *statement);
} statement_rules[] = {{"param", STATEMENT_PARAM, parse_param},
                       {"state", STATEMENT_STATE, parse_param},
                       {"update", STATEMENT_UPDATE, parse_update},
                       {"shared", STATEMENT_SHARED, parse_path_list},
                       {"grad", STATEMENT_GRAD, parse_path_list},
                       {"keep", STATEMENT_ASSIGN, parse_keep},
                       {"recompute", STATEMENT_RECOMPUTE, parse_segment},
                       {"freeze", STATEMENT_FREEZE, parse_segment},
                       {"if", STATEMENT_IF, parse_cond},
                       {"for", STATEMENT_FOR, parse_for},
                       {"output", STATEMENT_OUTPUT, parse_output},
                       {"loss", STATEMENT_LOSS, parse_loss},
                       {"return", STATEMENT_RETURN, parse_return}};

/* A word followed by '=', ',' or a touching '.' starts an assignment, keyword or not. */
static const struct StatementRule *find_statement_rule(const Parser *parser) {
  const Token *second = peek_second(parser);
  bool assigns =
      second->kind == TOKEN_ASSIGN || second->kind == TOKEN_COMMA || (second->kind == TOKEN_DOT && second->touches);
  if (!at(parser, TOKEN_WORD) || assigns) return NULL;
  for (size_t i = 0; i < sizeof statement_rules / sizeof *statement_rules; i++)
    if (at_word(parser, statement_rules[i].keyword)) return &statement_rules[i];
  return NULL;
}

static Statement *parse_statement(Parser *parser) {
  Statement *statement = NEW(parser->arena, Statement);
  const struct StatementRule *rule = find_statement_rule(parser);
  statement->location = peek(parser)->location;
  statement->kind = rule ? rule->kind : STATEMENT_ASSIGN;
  if (rule) {
    accept(parser, TOKEN_WORD, ROLE_PLAIN);
    rule->parse(parser, statement);
  } else if (at(parser, TOKEN_WORD) || at(parser, TOKEN_LEFT_BRACE)) {
    parse_assign(parser, statement);
  } else {
    expected(parser, "a statement");
  }
  statement->location = range_from(parser, statement->location);
  return statement;
}

/* ---- the train block ---- */

/* rule = setting% "where" expr */
static void parse_rules(Parser *parser, Item *item) {
  Location open = peek(parser)->location;
  if (!accept(parser, TOKEN_LEFT_BRACE, ROLE_BLOCK_OPEN)) return;
  while (!at(parser, TOKEN_RIGHT_BRACE) && !at(parser, TOKEN_END) && !parser->recovering) {
    Rule rule = {.settings = parse_settings(parser)};
    expect_word(parser, "where");
    rule.condition = parse_expr(parser);
    array_push(parser->arena, &item->rules, rule);
    end_statement(parser);
  }
  close_block(parser, open);
}

static bool at_item_end(const Parser *parser) {
  return at(parser, TOKEN_NEWLINE) || at(parser, TOKEN_RIGHT_BRACE) || at(parser, TOKEN_END);
}

static void parse_item_arguments(Parser *parser, Item *item) {
  if (at_item_end(parser)) expected(parser, memory_format(parser->arena, "a value after '%s'", item->keyword.text));
  do {
    Argument argument = parse_argument(parser);
    array_push(parser->arena, &item->arguments, argument);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
}

static void parse_item(Parser *parser, Item *item) {
  item->location = peek(parser)->location;
  item->keyword = expect_name(parser, "'data', 'test', 'optimizer' or another item of a train block");
  const char *keyword = item->keyword.text;
  if (string_equal(keyword, "data") || string_equal(keyword, "test")) {
    item->kind = *keyword == 'd' ? ITEM_DATA : ITEM_TEST;
    item->inputs = parse_words(parser, "the name of an input");
    expect(parser, TOKEN_ASSIGN, ROLE_LOOSE, "'=' and a reader");
    item->value = parse_expr(parser);
  } else if (string_equal(keyword, "optimizer")) {
    item->kind = ITEM_OPTIMIZER;
    item->value = parse_expr(parser);
    parse_rules(parser, item);
  } else {
    item->kind = ITEM_OTHER;
    parse_item_arguments(parser, item);
  }
  item->location = range_from(parser, item->location);
}

static void parse_train(Parser *parser, Top *top) {
  top->name = expect_name(parser, "the name of a model after 'train'");
  Location open = peek(parser)->location;
  expect(parser, TOKEN_LEFT_BRACE, ROLE_BLOCK_OPEN, "'{'");
  while (!at(parser, TOKEN_RIGHT_BRACE) && !at(parser, TOKEN_END) && !parser->recovering) {
    Item item = {0};
    parse_item(parser, &item);
    array_push(parser->arena, &top->items, item);
    end_statement(parser);
  }
  close_block(parser, open);
}

/* ---- the top level ---- */

static void parse_import(Parser *parser, Top *top) {
  const Token *token = peek(parser);
  top->name.location = token->location;
  if (expect(parser, TOKEN_STRING, ROLE_PLAIN, "the name of a file in quotes")) top->name.text = token->text;
  if (at(parser, TOKEN_LEFT_PAREN)) top->arguments = parse_call(parser);
}

static void parse_setting_list(Parser *parser, Top *top) { top->settings = parse_settings(parser); }

/* formal = path [ ":" type ] [ "=" expr ] */
static Formal parse_formal(Parser *parser) {
  Formal formal = {.path = parse_path(parser)};
  if (accept(parser, TOKEN_COLON, ROLE_AFTER)) formal.type = parse_type(parser);
  if (accept(parser, TOKEN_ASSIGN, ROLE_LOOSE)) formal.value = parse_expr(parser);
  return formal;
}

/* WORD "(" formal%% ")" block */
static void parse_module(Parser *parser, Top *top) {
  top->name = expect_name(parser, top->kind == TOP_MODEL ? "the name of the model" : "the name of the module");
  Location open = peek(parser)->location;
  expect(parser, TOKEN_LEFT_PAREN, ROLE_CALL, "'('");
  do {
    if (at(parser, TOKEN_RIGHT_PAREN)) break;
    Formal formal = parse_formal(parser);
    array_push(parser->arena, &top->formals, formal);
  } while (accept(parser, TOKEN_COMMA, ROLE_PLAIN));
  if (!accept(parser, TOKEN_RIGHT_PAREN, ROLE_PLAIN) && !parser->recovering) {
    expected(parser, "',' or ')'");
    diag_note(open, "to match this '('");
  }
  top->block = parse_block(parser);
}

static const struct TopRule {
  const char *keyword;
  TopKind kind;
  void (*parse)(Parser *parser, Top *top);
} top_rules[] = {{"import", TOP_IMPORT, parse_import},     {"dim", TOP_DIM, parse_setting_list},
                 {"const", TOP_CONST, parse_setting_list}, {"module", TOP_MODULE, parse_module},
                 {"model", TOP_MODEL, parse_module},       {"train", TOP_TRAIN, parse_train}};

static void parse_top(Parser *parser, File *file) {
  static const char *const keywords[] = {"import", "dim", "const", "module", "model", "train"};
  for (size_t i = 0; i < sizeof top_rules / sizeof *top_rules; i++) {
    Top top = {.kind = top_rules[i].kind, .location = peek(parser)->location};
    if (!accept_word(parser, top_rules[i].keyword)) continue;
    top_rules[i].parse(parser, &top);
    top.location = range_from(parser, top.location);
    array_push(parser->arena, &file->tops, top);
    return;
  }
  if (parser->recovering) return;
  parse_error(parser, "expected 'import', 'dim', 'const', 'module', 'model' or 'train', found %s%s",
              token_description(parser->arena, peek(parser)),
              at(parser, TOKEN_WORD)
                  ? keyword_hint(parser, peek(parser)->text, keywords, sizeof keywords / sizeof *keywords)
                  : "");
}

/* file = { top NL } */
File *parse_source(MemoryArena *arena, const Source *source) {
  File *file = NEW(arena, File);
  file->source = source;
  file->tokens = lex(arena, source);
  Parser parser = {.arena = arena, .tokens = file->tokens};
  while (!at(&parser, TOKEN_END)) {
    parse_top(&parser, file);
    end_statement(&parser);
    if (at(&parser, TOKEN_RIGHT_BRACE)) {
      parse_error(&parser, "this '}' closes nothing");
      parser.at++;
      synchronise(&parser);
    }
  }
  return file;
}
