/* frontend/ast_dump.c - the syntax tree as an S-expression, for tests. */
#include <inttypes.h>

#include "frontend/ast.h"
#include "frontend/constants.h"

typedef struct Dump {
  MemoryArena *arena;
  ARRAY(char) text;
  int indent;
} Dump;

static void put(Dump *dump, const char *text) {
  for (; *text; text++) array_push(dump->arena, &dump->text, *text);
}

/* Starts a line of its own. */
static void put_line(Dump *dump) {
  array_push(dump->arena, &dump->text, '\n');
  for (int i = 0; i < dump->indent; i++) put(dump, "  ");
}

static void put_string(Dump *dump, const char *text) {
  put(dump, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') put(dump, "\\");
    array_push(dump->arena, &dump->text, *text);
  }
  put(dump, "\"");
}

static void dump_expr(Dump *dump, const Expr *expr);

static void dump_path(Dump *dump, const Path *path) {
  for (int64_t i = 0; i < path->parts.count; i++) {
    const PathPart *part = &path->parts.items[i];
    if (part->dotted) put(dump, ".");
    if (part->word) {
      put(dump, part->word);
    } else {
      put(dump, "{");
      dump_expr(dump, part->hole);
      put(dump, "}");
    }
  }
}

static void dump_arguments(Dump *dump, const ArgumentList *arguments) {
  for (int64_t i = 0; i < arguments->count; i++) {
    put(dump, " ");
    if (arguments->items[i].name) put(dump, memory_format(dump->arena, "%s=", arguments->items[i].name));
    dump_expr(dump, arguments->items[i].value);
  }
}

static void dump_subscripts(Dump *dump, const SubscriptList *subscripts) {
  for (int64_t i = 0; i < subscripts->count; i++) {
    const Subscript *subscript = &subscripts->items[i];
    put(dump, " ");
    if (subscript->kind == SUBSCRIPT_ELLIPSIS) put(dump, "...");
    if (subscript->kind == SUBSCRIPT_INDEX) dump_expr(dump, subscript->start);
    if (subscript->kind != SUBSCRIPT_SLICE) continue;
    put(dump, "(slice ");
    const Expr *bounds[] = {subscript->start, subscript->stop, subscript->step};
    for (int k = 0; k < 3; k++) {
      if (k) put(dump, " ");
      if (bounds[k])
        dump_expr(dump, bounds[k]);
      else
        put(dump, "_");
    }
    put(dump, ")");
  }
}

static void dump_call(Dump *dump, const Expr *expr) {
  put(dump, "(call ");
  if (expr->call.label.parts.count) {
    dump_path(dump, &expr->call.label);
    put(dump, ":");
  }
  put(dump, expr->call.callee);
  dump_arguments(dump, &expr->call.arguments);
  put(dump, ")");
}

static void dump_operation(Dump *dump, const Expr *expr) {
  put(dump, "(");
  if (expr->kind == EXPR_GROUP)
    put(dump, "group");
  else
    put(dump, operator_text(expr->symbol));
  put(dump, " ");
  if (expr->kind == EXPR_BINARY) {
    dump_expr(dump, expr->left);
    put(dump, " ");
  }
  dump_expr(dump, expr->right);
  put(dump, ")");
}

static void dump_expr(Dump *dump, const Expr *expr) {
  switch (expr->kind) {
    case EXPR_ERROR:
      put(dump, "(error)");
      break;
    case EXPR_INT:
      put(dump, memory_format(dump->arena, "%" PRId64, expr->integer));
      break;
    case EXPR_FLOAT:
      put(dump, memory_format(dump->arena, "(float %.17g)", expr->number));
      break;
    case EXPR_STRING:
      put_string(dump, expr->string);
      break;
    case EXPR_GROUP:
    case EXPR_PREFIX:
    case EXPR_BINARY:
      dump_operation(dump, expr);
      break;
    case EXPR_LIST:
      put(dump, "(list");
      for (int64_t i = 0; i < expr->list.count; i++) {
        put(dump, " ");
        dump_expr(dump, expr->list.items[i]);
      }
      put(dump, ")");
      break;
    case EXPR_PATH:
      dump_path(dump, &expr->path);
      break;
    case EXPR_CALL:
      dump_call(dump, expr);
      break;
    case EXPR_INDEX:
      put(dump, "(index ");
      dump_expr(dump, expr->indexed);
      dump_subscripts(dump, &expr->subscripts);
      put(dump, ")");
      break;
  }
}

static void dump_type(Dump *dump, const TypeSyntax *type) {
  put(dump, memory_format(dump->arena, " (type %s", type->dtype ? type->dtype : "f32"));
  for (int64_t i = 0; i < type->dims.count; i++) {
    put(dump, " ");
    if (type->dims.items[i])
      dump_expr(dump, type->dims.items[i]);
    else
      put(dump, "...");
  }
  put(dump, ")");
}

static void dump_statement(Dump *dump, const Statement *statement);

static void dump_block(Dump *dump, const Block *block) {
  dump->indent++;
  for (int64_t i = 0; i < block->statements.count; i++) {
    put_line(dump);
    dump_statement(dump, block->statements.items[i]);
  }
  dump->indent--;
}

static void dump_ratio(Dump *dump, const Ratio *ratio) {
  put(dump, " ");
  if (ratio->name) put(dump, memory_format(dump->arena, "%s=", ratio->name));
  if (ratio->per) put(dump, "(per ");
  dump_expr(dump, ratio->value);
  if (!ratio->per) return;
  put(dump, " ");
  dump_expr(dump, ratio->per);
  put(dump, ")");
}

static void dump_branches(Dump *dump, const Statement *statement) {
  for (int64_t i = 0; i < statement->branches.count; i++) {
    const Branch *branch = &statement->branches.items[i];
    dump->indent++;
    put_line(dump);
    put(dump, branch->condition ? "(then " : "(else");
    if (branch->condition) dump_expr(dump, branch->condition);
    dump_block(dump, &branch->block);
    put(dump, ")");
    dump->indent--;
  }
}

static void dump_statement(Dump *dump, const Statement *statement) {
  static const char *const names[] = {"param", "state", "update", "shared", "grad",   "recompute", "freeze",
                                      "if",    "for",   "output", "loss",   "return", "assign"};
  put(dump, "(");
  put(dump, statement->keep ? "keep" : names[statement->kind]);
  for (int64_t i = 0; i < statement->words.count; i++)
    put(dump, memory_format(dump->arena, " %s", statement->words.items[i].text));
  for (int64_t i = 0; i < statement->paths.count; i++) {
    put(dump, " ");
    dump_path(dump, &statement->paths.items[i]);
  }
  if (statement->type) dump_type(dump, statement->type);
  const Expr *parts[] = {statement->value, statement->condition};
  for (int k = 0; k < 2; k++) {
    if (!parts[k]) continue;
    put(dump, k ? " if " : " = ");
    dump_expr(dump, parts[k]);
  }
  for (int64_t i = 0; i < statement->values.count; i++) {
    put(dump, i || statement->kind == STATEMENT_RETURN ? " " : " = ");
    dump_expr(dump, statement->values.items[i]);
  }
  for (int64_t i = 0; i < statement->ratios.count; i++) dump_ratio(dump, &statement->ratios.items[i]);
  dump_branches(dump, statement);
  dump_block(dump, &statement->block);
  put(dump, ")");
}

static void dump_settings(Dump *dump, const SettingList *settings) {
  for (int64_t i = 0; i < settings->count; i++) {
    put(dump, memory_format(dump->arena, " %s=", settings->items[i].name));
    dump_expr(dump, settings->items[i].value);
  }
}

static void dump_item(Dump *dump, const Item *item) {
  put(dump, memory_format(dump->arena, "(%s", item->keyword.text));
  for (int64_t i = 0; i < item->inputs.count; i++)
    put(dump, memory_format(dump->arena, " %s", item->inputs.items[i].text));
  if (item->value) {
    put(dump, " ");
    dump_expr(dump, item->value);
  }
  dump_arguments(dump, &item->arguments);
  dump->indent++;
  for (int64_t i = 0; i < item->rules.count; i++) {
    put_line(dump);
    put(dump, "(rule");
    dump_settings(dump, &item->rules.items[i].settings);
    put(dump, " where ");
    dump_expr(dump, item->rules.items[i].condition);
    put(dump, ")");
  }
  dump->indent--;
  put(dump, ")");
}

static void dump_formals(Dump *dump, const FormalList *formals) {
  put(dump, " (");
  for (int64_t i = 0; i < formals->count; i++) {
    const Formal *formal = &formals->items[i];
    put(dump, i ? " (" : "(");
    dump_path(dump, &formal->path);
    if (formal->type) dump_type(dump, formal->type);
    if (formal->value) {
      put(dump, " = ");
      dump_expr(dump, formal->value);
    }
    put(dump, ")");
  }
  put(dump, ")");
}

static void dump_top(Dump *dump, const Top *top) {
  static const char *const names[] = {"import", "dim", "const", "module", "model", "train"};
  put(dump, memory_format(dump->arena, "(%s", names[top->kind]));
  if (top->kind == TOP_IMPORT) {
    put(dump, " ");
    put_string(dump, top->name.text);
  } else if (top->name.text) {
    put(dump, memory_format(dump->arena, " %s", top->name.text));
  }
  dump_arguments(dump, &top->arguments);
  dump_settings(dump, &top->settings);
  if (top->kind == TOP_MODULE || top->kind == TOP_MODEL) dump_formals(dump, &top->formals);
  dump_block(dump, &top->block);
  dump->indent++;
  for (int64_t i = 0; i < top->items.count; i++) {
    put_line(dump);
    dump_item(dump, &top->items.items[i]);
  }
  dump->indent--;
  put(dump, ")\n");
}

char *ast_dump(MemoryArena *arena, const File *file) {
  Dump dump = {.arena = arena};
  for (int64_t i = 0; i < file->tops.count; i++) dump_top(&dump, &file->tops.items[i]);
  array_push(arena, &dump.text, '\0');
  return dump.text.items;
}
