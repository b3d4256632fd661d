/* ir/ops.h - what the op table says of an operator. The rows are in ir/ops.def. Included by ir/ir.h only. */
#ifndef REPRISE_IR_OPS_H
#define REPRISE_IR_OPS_H

enum { MAX_POINTWISE_INPUTS = 4, MAX_OP_INPUTS = 8, MAX_OP_ATTRIBUTES = 8, MAX_OP_OUTPUTS = 8 };

/* Operators, in the order of the table. 0 is none. */
typedef enum Op {
  OP_NONE,
#define POINTWISE(name, ...) OP_##name,
#define REDUCTION(name, ...) OP_##name,
#define VIEW(name, ...) OP_##name,
#define ASSEMBLY(name, ...) OP_##name,
#define CONTRACTION(name, ...) OP_##name,
#define KERNEL(name, ...) OP_##name,
#define COMPOSITE(name, ...) OP_##name,
#define OPTIMIZER(name, ...) OP_##name,
#include "ir/ops.def"
  OP_COUNT
} Op;

/* The loop kinds that passes, interpreter and code generators implement. */
typedef enum OpKind {
  KIND_NONE,
  KIND_POINTWISE,   /* one scalar expression per element; inputs broadcast */
  KIND_REDUCTION,   /* combines the elements along some axes */
  KIND_VIEW,        /* no code: another layout of the same bytes */
  KIND_ASSEMBLY,    /* copies each input into a slice of the output, zero where none covers it */
  KIND_CONTRACTION, /* batched matrix product */
  KIND_KERNEL,      /* hand-made: runtime/kernels/<name>.h */
  KIND_COMPOSITE,   /* expands into other operators when it is built: never in a graph */
  KIND_OPTIMIZER    /* expands into the update of one parameter: never in a graph */
} OpKind;

/* Properties. */
typedef enum OpProperty {
  OP_COMMUTES = 1,        /* x op y = y op x, bit for bit */
  OP_RANDOM = 2,          /* reads node->random_id, seed and micro-step; never merged with another */
  OP_READS_CONTROL = 4,   /* reads the control block: differs from step to step */
  OP_UNIFORM = 8,         /* a constant: every element is the same compile-time value */
  OP_ZERO_GRADIENT = 16,  /* the gradient of every input is zero on purpose (comparisons, stop) */
  OP_CHECKS_DATA = 32,    /* may report a fault of the data through the control block */
  OP_EFFECT = 64,         /* writes persistents: runs exactly once */
  OP_INDEXED = 128,       /* reads the flat index of the element in its own shape */
  OP_INTERNAL = 256       /* made by the compiler only: the language cannot call it */
} OpProperty;

/* Which operands a pointwise operator takes and what it makes of them. Operands of one operator have one dtype. */
typedef enum OperandRule {
  NUMBERS_TO_SAME,   /* any dtype but bool */
  REALS_TO_SAME,     /* floating dtypes */
  INTEGERS_TO_SAME,
  BOOLS_TO_SAME,
  ANY_TO_SAME,
  ANY_TO_BOOL,       /* comparisons */
  NUMBERS_TO_BOOL,
  ANY_TO_ATTRIBUTE,  /* the dtype is attribute `to` */
  BOOL_ANY_TO_SAME   /* operand 0 is bool, the others have one dtype: where */
} OperandRule;

typedef struct AttributeInfo {
  const char *name;
  AttributeKind kind;
  bool optional;        /* may be `none` */
  Attribute initial;    /* the default; given = false when it has none */
  bool required;        /* neither default nor optional */
  const char **choices; /* ATTRIBUTE_CHOICE: NULL-terminated */
} AttributeInfo;

typedef struct InputInfo {
  const char *name;
  bool optional, variadic;
} InputInfo;

struct Graph;
struct Node;
struct Type;
typedef struct GradientContext GradientContext;
typedef struct ViewLayout ViewLayout;
typedef struct Placement Placement;
typedef struct KernelArguments KernelArguments;

typedef struct OpInfo {
  const char *name;
  OpKind kind;
  unsigned properties;
  /* from the signature: "x, weight?, values..., axis:int=-1, eps:float=1e-5, mode:none|tanh=none, axis:ints?" */
  const char *signature;
  int input_count; /* declared ones; the last may be variadic */
  InputInfo inputs[MAX_OP_INPUTS];
  int attribute_count;
  AttributeInfo attributes[MAX_OP_ATTRIBUTES];
  int output_count; /* outputs of a node: 1 but for kernels */

  OperandRule operands;   /* pointwise, reduction */
  const char *expression; /* pointwise: of x0, x1, …; A0, A1, … (attributes); see the legend in ops.def */
  const char *initial, *combine, *finish; /* reduction: of a (so far), x (next), COUNT (elements combined) */

  /* Output types of a node; reports errors at graph->location and returns false. NULL: by kind. */
  bool (*infer)(struct Graph *graph, const struct Node *node, struct Type *outputs);
  /* View: the layout of the output from the layout of the input; false when it needs a copy first. */
  bool (*layout)(const struct Graph *graph, const struct Node *node, const ViewLayout *input, ViewLayout *output);
  /* Assembly: where input i goes. */
  void (*place)(const struct Graph *graph, const struct Node *node, int input, Placement *placement);
  /* Kernel: extents that its C function takes before its attributes. */
  void (*arguments)(const struct Graph *graph, const struct Node *node, KernelArguments *arguments);
  double flops_per_element; /* kernel: per element of input 0 */
  unsigned inplace;         /* kernel: bit 4*input + output set: the output may take that input's bytes */

  /* Builds the gradient of input i, or returns NO_VALUE for zero. NULL: no gradient is known. */
  int (*gradient)(GradientContext *context, int input);
  /* Composite: builds the expansion; returns output 0, or NO_VALUE after an error. */
  int (*expand)(struct Graph *graph, int input_count, const int32_t *inputs, const Attribute *attributes,
                int32_t *outputs);
  /* Optimizer: appends the update of one parameter (ir/optimizers.h). */
  void (*update)(struct Graph *graph, int parameter, int32_t gradient, int32_t scale, const Attribute *settings);
} OpInfo;

/* The row of an operator; its signature is parsed on first use. */
const OpInfo *op_info(Op op);
/* Operators by name; OP_NONE when there is none. */
Op op_find(const char *name);
/* Index of an attribute by name, or -1. */
int op_attribute_index(Op op, const char *name);
/* A constant that as operand `operand` leaves the other operand as it is, bit for bit (the sign of a zero matters for
 * reals); false when there is none. */
bool op_neutral(Op op, int operand, double *value);
static inline bool op_has(Op op, OpProperty property) { return (op_info(op)->properties & property) != 0; }
static inline OpKind op_kind(Op op) { return op_info(op)->kind; }

/* ---- what the rows' functions work on ---- */

/* Where the elements of a value lie relative to its storage, in elements. */
struct ViewLayout {
  int rank;
  int64_t offset;
  int64_t dims[8], strides[8];
};

/* The slice of the output that an assembly's input fills: along `axis`, elements start, start + step, … */
struct Placement {
  int axis;
  int64_t start, step;
};

enum { MAX_KERNEL_EXTENTS = 16 };
struct KernelArguments {
  int count;
  int64_t extents[MAX_KERNEL_EXTENTS];
};

#endif
