/* frontend/elaborate_state.h - what the files elaborate_*.c share: scopes, expansions, the elaborator.
 *
 * Evaluation never stops at an error: it is reported where it arises and leaves DATUM_ERROR, of which everything made
 * is silently another. A module whose body had an error is not expanded again, so that an error inside a loop is shown
 * once. */
#ifndef REPRISE_FRONTEND_ELABORATE_STATE_H
#define REPRISE_FRONTEND_ELABORATE_STATE_H

#include "frontend/ast.h"
#include "frontend/constants.h"
#include "frontend/elaborate.h"
#include "ir/build.h"
#include "ir/ir.h"

enum {
  MOST_STEPS = 5000000,      /* statements and iterations that one model may expand to */
  MOST_NAMES = 1 << 16,      /* that one path may stand for */
  DEEPEST_EVALUATION = 1500, /* expressions inside calls inside expressions */
  DEEPEST_IMPORT = 32
};

/* ---- scopes ---- */

typedef enum BindingKind {
  BINDING_VARIABLE, /* assigned; formals too */
  BINDING_WEIGHT,   /* a parameter, or none where its condition is false */
  BINDING_STATE,    /* its value is the current one of the state */
  BINDING_SHAPE,    /* bound by matching a type */
  BINDING_LOOP,
  BINDING_CONSTANT /* dim or const of the file */
} BindingKind;

typedef struct Binding {
  BindingKind kind;
  Datum value;
  int persistent; /* WEIGHT, STATE: index in the module, or -1 */
  Location location;
} Binding;

typedef struct Scope {
  StringMap names; /* to indices of bindings */
  ARRAY(Binding) bindings;
} Scope;

typedef ARRAY(const char *) NameList;

/* ---- files, modules, calls ---- */

typedef struct FileScope FileScope;

typedef struct Callable {
  const Top *top; /* a module or a model */
  FileScope *home;
  bool active; /* being expanded: a call of it now is a recursion */
  bool broken; /* an expansion of it had an error */
} Callable;

struct FileScope {
  File *file;
  Scope constants;
  StringMap callables; /* names of modules and models, to indices of list */
  ARRAY(Callable *) list;
  FileScope *importer; /* or NULL */
  int depth;           /* of imports */
};

/* One call of a module, or the model itself. */
typedef struct Expansion Expansion;
struct Expansion {
  Expansion *caller;
  Callable *callable;
  const char *path; /* "" or "h.0.attn" */
  Location call;    /* in the caller's body */
  Scope scope;
  StringMap labels; /* used ones */
  StringMap shared; /* those declared with `shared`; 1 once used */
  bool reuses;      /* a later use of a shared label: parameters and states exist already */
  bool returned;
  DatumList results;
};

/* An evaluated argument of a call. */
typedef struct CallArgument {
  const char *name; /* NULL: positional */
  Location name_location;
  Datum value;
  Location location;
} CallArgument;
typedef ARRAY(CallArgument) CallArguments;

/* ---- parameters and states ---- */

typedef struct PersistentFacts {
  bool seen;              /* declared in the current graph */
  bool read, read_frozen; /* outside and inside of freeze */
  bool frozen;            /* by a glob of the train block */
  ValueId current;        /* STATE: its value now in the current graph */
  Location update;        /* of the last one; no source: none */
} PersistentFacts;

/* How the source calls an axis, for messages. */
typedef struct DimName {
  const char *text;  /* NULL: unknown */
  Location declared; /* of a single word; source NULL otherwise */
} DimName;

typedef struct FreezeGlob {
  const char *pattern; /* without "!" */
  bool admits;         /* "!pattern" */
  bool matched;
  Location location;
} FreezeGlob;

/* A match(glob) in a rule, found by its place. */
typedef struct RuleGlob {
  const char *pattern;
  Location location;
} RuleGlob;

/* While the rules of an optimizer are evaluated. */
typedef struct RuleContext {
  const Persistent *parameter;
  Scope scope; /* rank, size, the settings */
  ARRAY(RuleGlob) globs;
} RuleContext;

typedef struct Elaborator {
  MemoryArena *arena;   /* of the module */
  MemoryArena *scratch; /* destroyed at the end */
  Module *module;
  Graph *graph;         /* being built; NULL while constants are computed */
  FileScope *file;      /* whose constants and modules are visible now */
  Expansion *expansion; /* or NULL */
  RuleContext *rule;    /* or NULL */
  int freeze_depth;
  Location recompute;    /* of the innermost block, source NULL: none */
  StringMap persistents; /* full path to index */
  ARRAY(PersistentFacts) facts;
  ARRAY(DimName *) dim_names; /* per value of the graph */
  ARRAY(FreezeGlob) globs;
  int errors; /* reported before this elaborator began */
  int depth;
  int64_t steps;
  bool exhausted; /* one of the two limits was reported */
} Elaborator;

/* ---- elaborate_names.c ---- */

Binding *scope_find(const Scope *scope, const char *name);
Binding *scope_set(Elaborator *elaborator, Scope *scope, const char *name, Binding binding);
Scope scope_create(Elaborator *elaborator);
/* The binding that a name has here, or NULL; predeclared words have none. */
const Binding *find_binding(const Elaborator *elaborator, const char *name);
bool is_predeclared(const char *name);
/* The value of a name; reports an unknown one. */
Datum lookup(Elaborator *elaborator, const char *name, Location location);
/* The names that a path stands for, appended; false after an error. */
bool resolve_path(Elaborator *elaborator, const Path *path, NameList *names);
/* The one name of a path, or NULL after an error. */
const char *resolve_name(Elaborator *elaborator, const Path *path);
/* "=": rebinds unless the name is a weight, shape-bound, loop, constant or predeclared word. */
void assign(Elaborator *elaborator, const char *name, Datum value, Location location);
/* False, after an error, when "=", a formal or a loop must not bind the name. */
bool check_rebindable(Elaborator *elaborator, const char *name, BindingKind kind, Location location);
/* path + "." + name */
const char *join_path(MemoryArena *arena, const char *path, const char *name);

enum { MOST_LISTED_NAMES = 12 };
/* Did-you-mean: the nearest of the names considered. */
typedef struct Suggestion {
  const char *wanted, *best;
  int distance, count;
  const char *names[MOST_LISTED_NAMES]; /* the first of those considered */
} Suggestion;
Suggestion suggestion_start(const char *wanted);
void suggestion_consider(Suggestion *suggestion, const char *name);
/* "; did you mean 'x'?" or "". */
const char *suggestion_text(Elaborator *elaborator, const Suggestion *suggestion);
/* The same for a short list of names: all of them where none is near, "; expected one of x, y". */
const char *suggestion_list(Elaborator *elaborator, const Suggestion *suggestion);

/* ---- elaborate_expressions.c ---- */

Datum evaluate(Elaborator *elaborator, const Expr *expr);
/* Values of a list in which calls and paths may stand for several. */
void evaluate_list(Elaborator *elaborator, const ExprList *exprs, DatumList *values);
/* Constants of one kind; false after an error that says what was expected. */
bool evaluate_int(Elaborator *elaborator, const Expr *expr, const char *what, int64_t *value);
bool evaluate_bool(Elaborator *elaborator, const Expr *expr, const char *what, bool *value);
/* A bound on the depth of recursion; false after an error. Each true one has its leave_evaluation. */
bool enter_evaluation(Elaborator *elaborator, Location location);
void leave_evaluation(Elaborator *elaborator);

/* ---- elaborate_index.c ---- */

Datum evaluate_index(Elaborator *elaborator, const Expr *expr);

/* ---- elaborate_operators.c ---- */

/* One operator on tensors and constants, at least one of them a tensor. */
Datum apply_binary(Elaborator *elaborator, TokenKind symbol, Datum left, Datum right, Location location);
Datum apply_prefix(Elaborator *elaborator, TokenKind symbol, Datum operand, Location location);
/* Calls an operator of the table with evaluated arguments. */
Datum apply_operator(Elaborator *elaborator, Op op, const CallArguments *arguments, Location location);
/* Operators that only gradients, composites and updates make; the language has no name for them. */
bool is_compiler_operator(Op op);
/* Attributes of an operator from arguments that name them; used for operators and optimizers. */
bool set_attribute(Elaborator *elaborator, Op op, int index, const Datum *value, Location location,
                   Attribute *attribute);
/* A constant as a tensor [] of a dtype; NO_VALUE after an error. */
ValueId constant_tensor(Elaborator *elaborator, const Datum *value, DataType dtype, Location location);
/* As a tensor of a dtype: casts, or makes a tensor of a constant. */
Datum convert(Elaborator *elaborator, Datum value, DataType dtype, Location location);
/* The same, but a constant stays one. */
Datum convert_value(Elaborator *elaborator, Datum value, DataType dtype, Location location);

/* ---- elaborate_builtins.c: what is callable beside modules and the op table ---- */

bool builtin_exists(const char *name);
void call_builtin(Elaborator *elaborator, const char *name, const CallArguments *arguments, Location location,
                  DatumList *results);
/* where(c, a, b) with a constant c evaluates only the branch it takes. */
void call_where(Elaborator *elaborator, const Expr *call, DatumList *results);
void suggest_builtins(Suggestion *suggestion);
/* An axis counted from either end; false after an error. */
bool normalize_axis(int64_t *axis, int rank, Location location);

/* ---- elaborate_calls.c ---- */

/* Every value that a call gives. */
void evaluate_call(Elaborator *elaborator, const Expr *call, DatumList *results);
void evaluate_arguments(Elaborator *elaborator, const ArgumentList *list, CallArguments *arguments);
/* The same for the callee and arguments of an initialiser, reader, optimizer or schedule: 'name' or 'name(...)'. */
bool evaluate_named_call(Elaborator *elaborator, const Expr *expr, const char *what, Word *name,
                         CallArguments *arguments);
Expansion *expansion_create(Elaborator *elaborator, Callable *callable, const char *path, Location call);
/* Runs the body of a module or model in the expansion, which becomes the current one meanwhile. */
void run_expansion(Elaborator *elaborator, Expansion *expansion);

/* What a callable outside of modules and the op table takes: builtins, initialisers, readers, schedules. */
typedef enum ParameterKind {
  PARAMETER_INT,
  PARAMETER_NUMBER,
  PARAMETER_BOOL,
  PARAMETER_STRING,
  PARAMETER_LIST,
  PARAMETER_TENSOR,
  PARAMETER_ANY
} ParameterKind;
typedef struct ParameterSpec {
  const char *name;
  ParameterKind kind;
  bool required;
} ParameterSpec;
/* values[i] of specs[i]; DATUM_NONE where left out. False after an error. */
bool bind_parameters(Elaborator *elaborator, const char *callee, const CallArguments *arguments,
                     const ParameterSpec *specs, int count, Datum *values, Location location);

/* ---- elaborate_shapes.c ---- */

/* A type whose dims must all be known, and how the source calls them (names[MAX_RANK]). */
bool evaluate_type(Elaborator *elaborator, const TypeSyntax *syntax, Type *type, DimName *names);
/* Matches a tensor against a formal's type, binding new words. */
bool match_type(Elaborator *elaborator, const TypeSyntax *syntax, ValueId value, const char *formal, Location location);
const DimName *dim_names(const Elaborator *elaborator, ValueId value); /* or NULL */
void set_dim_names(Elaborator *elaborator, ValueId value, const DimName *names);
/* Gives axes of a result the names of the operand axes that they come from, aligned at the right. */
void inherit_dim_names(Elaborator *elaborator, ValueId result, int count, const ValueId *operands);
/* The same where it is not known which axis comes from which: by size, where one name alone has it. For messages only.
 */
void guess_dim_names(Elaborator *elaborator, ValueId result, int count, const ValueId *operands);
/* "[B, T, 4] (8,1024,4)", or "[8, 4]" where no axis has a name. */
char *shape_text(Elaborator *elaborator, ValueId value);
/* False after "dimension mismatch in …" when the tensors do not broadcast. */
bool check_broadcast(Elaborator *elaborator, const char *what, int count, const ValueId *values, Location location);
bool check_contraction(Elaborator *elaborator, ValueId left, ValueId right, Location location);

/* ---- elaborate_parameters.c ---- */

void declare_parameter(Elaborator *elaborator, const Statement *statement);
void declare_state(Elaborator *elaborator, const Statement *statement);
void update_state(Elaborator *elaborator, const Statement *statement);
/* The value of a weight or state binding, here. */
Datum read_persistent(Elaborator *elaborator, const Binding *binding);
/* Appends the one assignment of each updated state. */
void store_states(Elaborator *elaborator);
void begin_graph(Elaborator *elaborator, Graph *graph);

/* ---- elaborate_statements.c ---- */

void run_block(Elaborator *elaborator, const Block *block);

/* ---- elaborate_train.c ---- */

/* Takes over the freeze globs, before the model is expanded. */
void read_freeze_globs(Elaborator *elaborator, const Top *train);
/* Everything else of a train block, after the model was expanded. */
void elaborate_train(Elaborator *elaborator, const Top *train);
/* Items `data`, `test` and `optimizer`. */
void read_data(Elaborator *elaborator, const Item *item);
/* Each input has a `data` reader; where one has no `test`, the program says so if it needs it. */
void check_readers(Elaborator *elaborator, Location location);
void read_optimizer(Elaborator *elaborator, const Item *item);
/* match(glob) in a rule: for its parameter; remembered, since a glob must match some parameter. */
bool match_rule_glob(Elaborator *elaborator, const char *pattern, Location location);
/* Path globs: '*' within a segment, '**' across. */
bool glob_match(MemoryArena *scratch, const char *pattern, const char *text);

#endif
