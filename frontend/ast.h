/* frontend/ast.h - the syntax tree: what a file says, rule by rule of the grammar in docs/language.md.
 *
 * Every node has the range of source it was read from and lives in the arena given to the parser. Parentheses are kept
 * as nodes. Heights are bounded (HIGHEST_EXPR), so that recursion over a tree needs a bounded stack. */
#ifndef REPRISE_FRONTEND_AST_H
#define REPRISE_FRONTEND_AST_H

#include "frontend/lexer.h"
#include "ir/base.h"
#include "ir/diagnostics.h"

enum { DEEPEST_NESTING = 200, HIGHEST_EXPR = 1000 };

typedef struct Expr Expr;
typedef struct Statement Statement;

/* path = ( WORD | hole ) { ~"." ( WORD | hole ) | ~hole | ~WORD } */
typedef struct PathPart {
  Location location;
  bool dotted;      /* a "." before it */
  const char *word; /* or NULL: */
  Expr *hole;
} PathPart;
typedef ARRAY(PathPart) PathPartList;
typedef struct Path {
  Location location;
  PathPartList parts;
} Path;
typedef ARRAY(Path) PathList;

typedef struct Argument {
  Location location;
  const char *name; /* NULL: positional */
  Location name_location;
  Expr *value;
} Argument;
typedef ARRAY(Argument) ArgumentList;

typedef enum SubscriptKind { SUBSCRIPT_ELLIPSIS, SUBSCRIPT_INDEX, SUBSCRIPT_SLICE } SubscriptKind;
typedef struct Subscript {
  SubscriptKind kind;
  Location location;
  Expr *start; /* the index, or a slice's start; all three may be NULL in a slice */
  Expr *stop, *step;
} Subscript;
typedef ARRAY(Subscript) SubscriptList;

typedef enum ExprKind {
  EXPR_ERROR, /* only after a reported error */
  EXPR_INT,
  EXPR_FLOAT,
  EXPR_STRING,
  EXPR_GROUP, /* ( operand ) */
  EXPR_LIST,
  EXPR_PATH,
  EXPR_CALL, /* [ label : ] callee ( arguments ) */
  EXPR_PREFIX,
  EXPR_BINARY,
  EXPR_INDEX /* operand [ subscripts ] */
} ExprKind;
typedef ARRAY(Expr *) ExprList;

struct Expr {
  ExprKind kind;
  int height; /* 1 for a leaf */
  Location location;
  union {
    int64_t integer;
    double number;
    const char *string;
    ExprList list;
    Path path;
    struct {
      Path label; /* without parts: no label */
      const char *callee;
      Location callee_location;
      ArgumentList arguments;
    } call;
    struct {
      TokenKind symbol;
      Location operator_location;
      Expr *left, *right; /* GROUP and PREFIX: right only */
    };
    struct {
      Expr *indexed;
      SubscriptList subscripts;
    };
  };
};

/* type = [ WORD ] "[" dim%% "]"; a dim is an expression, or NULL for "..." */
typedef struct TypeSyntax {
  Location location;
  const char *dtype; /* NULL: f32 */
  Location dtype_location;
  ExprList dims;
  ARRAY(Location) dim_locations;
} TypeSyntax;

typedef struct Setting {
  const char *name;
  Location name_location;
  Expr *value;
} Setting;
typedef ARRAY(Setting) SettingList;

typedef struct Formal {
  Path path;
  TypeSyntax *type; /* NULL: a constant */
  Expr *value;      /* the default, or NULL */
} Formal;
typedef ARRAY(Formal) FormalList;

typedef struct Block {
  Location location;
  ARRAY(Statement *) statements;
} Block;

/* ratio = expr [ "per" expr ]; named = [ WORD "=" ] ratio */
typedef struct Ratio {
  const char *name; /* of an output, or NULL */
  Location name_location;
  Expr *value;
  Expr *per; /* or NULL */
} Ratio;
typedef ARRAY(Ratio) RatioList;

typedef struct Word {
  const char *text;
  Location location;
} Word;
typedef ARRAY(Word) WordList;

/* One "if c { }" of a chain; the condition is NULL for the final else. */
typedef struct Branch {
  Expr *condition;
  Block block;
} Branch;

typedef enum StatementKind {
  STATEMENT_PARAM,
  STATEMENT_STATE,
  STATEMENT_UPDATE,
  STATEMENT_SHARED,
  STATEMENT_GRAD,
  STATEMENT_RECOMPUTE,
  STATEMENT_FREEZE,
  STATEMENT_IF,
  STATEMENT_FOR,
  STATEMENT_OUTPUT,
  STATEMENT_LOSS,
  STATEMENT_RETURN,
  STATEMENT_ASSIGN
} StatementKind;

struct Statement {
  StatementKind kind;
  Location location; /* of the whole statement */
  PathList paths;    /* PARAM, STATE, UPDATE: one; SHARED, GRAD; ASSIGN: the targets */
  TypeSyntax *type;  /* PARAM, STATE */
  Expr *value;       /* PARAM, STATE: initialiser; UPDATE; FOR: the list */
  Expr *condition;   /* PARAM: after "if", or NULL */
  ExprList values;   /* ASSIGN, RETURN */
  bool keep;         /* ASSIGN with "keep" */
  Block block;       /* RECOMPUTE, FREEZE, FOR */
  ARRAY(Branch) branches;
  WordList words;   /* FOR: loop variables */
  RatioList ratios; /* OUTPUT; LOSS: one */
};

/* rule = setting% "where" expr */
typedef struct Rule {
  SettingList settings;
  Expr *condition;
} Rule;

typedef enum ItemKind { ITEM_DATA, ITEM_TEST, ITEM_OPTIMIZER, ITEM_OTHER } ItemKind;
typedef struct Item {
  ItemKind kind;
  Location location;
  Word keyword;           /* the first word */
  WordList inputs;        /* DATA, TEST */
  Expr *value;            /* DATA, TEST: the reader; OPTIMIZER */
  ARRAY(Rule) rules;      /* OPTIMIZER */
  ArgumentList arguments; /* OTHER */
} Item;

typedef enum TopKind { TOP_IMPORT, TOP_DIM, TOP_CONST, TOP_MODULE, TOP_MODEL, TOP_TRAIN } TopKind;
typedef struct Top {
  TopKind kind;
  Location location;
  Word name;              /* MODULE, MODEL, TRAIN; IMPORT: the file */
  ArgumentList arguments; /* IMPORT */
  SettingList settings;   /* DIM, CONST */
  FormalList formals;     /* MODULE, MODEL */
  Block block;            /* MODULE, MODEL */
  ARRAY(Item) items;      /* TRAIN */
} Top;

typedef struct File {
  const Source *source;
  ARRAY(Top) tops;
  TokenList *tokens; /* with the roles that the parser found */
} File;

/* An indented S-expression of the whole tree, without locations: equal for files that mean the same. */
char *ast_dump(MemoryArena *arena, const File *file);

#endif
