/* ir/ir.h - the graph: typed SSA values, nodes in topological order, the module around them.
 *
 * One Module holds a model: its persistent tensors, inputs, how it is trained, and two graphs over them (training and
 * evaluation). A Graph is a list of nodes in a topological order; each node applies one operator of the op table
 * (ir/ops.def) to values and makes new ones. Everything lives in the module's MemoryArena. Passes ask the op table for
 * properties and never name an operator. */
#ifndef REPRISE_IR_IR_H
#define REPRISE_IR_IR_H

#include "ir/base.h"
#include "ir/diagnostics.h"

enum { MAX_RANK = 8, NO_VALUE = -1, NO_NODE = -1 };

/* ---- types ---- */

/* The same values in the same order as RpType in runtime/program.h. */
typedef enum DataType { F32, F64, BF16, F16, I32, I64, U8, BOOL, DATA_TYPE_COUNT } DataType;

/* How scalar expressions compute on a data type. */
typedef enum ScalarClass { CLASS_REAL, CLASS_INTEGER, CLASS_BOOL } ScalarClass;

typedef struct Type {
  DataType dtype;
  int rank; /* 0: scalar */
  int64_t dims[MAX_RANK];
} Type;

const char *dtype_name(DataType dtype); /* "f32" … as in the language */
bool dtype_from_name(const char *name, DataType *dtype);
int64_t dtype_bytes(DataType dtype);
ScalarClass dtype_class(DataType dtype);
Type type_scalar(DataType dtype);
Type type_make(DataType dtype, int rank, const int64_t *dims);
bool type_equal(const Type *a, const Type *b);
bool shape_equal(const Type *a, const Type *b);
/* Number of elements and of bytes; types in a graph never overflow (type_check_size at the border). */
int64_t type_elements(const Type *type);
int64_t type_bytes(const Type *type);
/* False when elements or bytes overflow int64. */
bool type_check_size(const Type *type);
/* "f32[8, 1024]" */
char *type_text(MemoryArena *arena, const Type *type);

/* ---- attributes: constants of a node, in the order of the operator's signature ---- */

typedef enum AttributeKind {
  ATTRIBUTE_INT,
  ATTRIBUTE_FLOAT,
  ATTRIBUTE_NUMBER, /* an int or a float constant: integer and number are both set */
  ATTRIBUTE_BOOL,
  ATTRIBUTE_CHOICE, /* one of the words of the signature, by index */
  ATTRIBUTE_DTYPE,
  ATTRIBUTE_INTS,
  ATTRIBUTE_FLOATS
} AttributeKind;

typedef struct Attribute {
  AttributeKind kind;
  bool given;       /* false: `none` (an optional attribute left out, without a default) */
  int64_t integer;  /* int, bool (0/1), choice (index), dtype */
  double number;    /* float, number */
  int count;        /* ints, floats: how many */
  int64_t list[MAX_RANK];
  double numbers[MAX_RANK];
} Attribute;

Attribute attribute_int(int64_t value);
Attribute attribute_float(double value);
Attribute attribute_number(double value, int64_t integer);
Attribute attribute_bool(bool value);
Attribute attribute_choice(int64_t index);
Attribute attribute_dtype(DataType dtype);
Attribute attribute_ints(int count, const int64_t *values);
Attribute attribute_floats(int count, const double *values);
Attribute attribute_none(AttributeKind kind);

/* ---- operators; the enum is generated from the op table ---- */

#include "ir/ops.h"

/* ---- values ---- */

typedef int32_t ValueId;
typedef int32_t NodeId;
typedef ARRAY(int32_t) ValueIds;

typedef enum ValueKind {
  VALUE_RESULT,     /* made by a node */
  VALUE_INPUT,      /* module->inputs[index] */
  VALUE_PERSISTENT  /* module->persistents[index], as it was before the step */
} ValueKind;

/* What the source says about keeping a value for the backward pass. */
typedef enum Constraint { CONSTRAINT_NONE, CONSTRAINT_KEEP, CONSTRAINT_RECOMPUTE } Constraint;

typedef struct Value {
  Type type;
  ValueKind kind;
  NodeId producer; /* VALUE_RESULT: index into graph->nodes, kept current by graph_index() */
  int output;      /* VALUE_RESULT: which output of the producer */
  int index;       /* otherwise: which input or persistent of the module */
  Constraint constraint;
  int32_t recompute_block; /* innermost `recompute { }` the value is made in, 0: none (1-based, per graph) */
  const char *name;        /* in the source, or NULL */
  Location location;
} Value;

/* ---- nodes ---- */

typedef enum Phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE } Phase;

/* One scalar instruction of a fused body. */
typedef struct Instruction {
  Op op; /* a pointwise operator */
  DataType dtype;
  const Attribute *attributes;
  uint64_t random_id;
  int operand_count;
  /* operand >= 0: result of that earlier instruction; < 0: ~operand is the index of a node input */
  int operands[MAX_POINTWISE_INPUTS];
} Instruction;

/* What a fused node computes for each element of its iteration shape. A pointwise node without a body is the body of
 * its own single instruction (node_body). Results are in the order outputs, then writes. For a reduction with a body, the
 * one result is what is reduced. */
typedef struct Body {
  int instruction_count, result_count;
  Instruction *instructions;
  int *results; /* indices of instructions */
} Body;

typedef struct Node {
  Op op;
  Phase phase;
  int input_count, output_count, write_count;
  ValueId *inputs;  /* NO_VALUE: an optional input left out */
  ValueId *outputs; /* values */
  /* Persistent values the node overwrites, each also among the inputs. A pointwise node computes outputs first, then writes,
   * one expression each. */
  ValueId *writes;
  Attribute *attributes; /* op_info(op)->attribute_count of them */
  uint64_t random_id;    /* operators with OP_RANDOM: hash of module path and ordinal, never shared */
  Body *body;            /* fused nodes */
  Type iteration;        /* fused nodes: shape of the loop nest (before a reduction); dtype unused */
  int64_t workspace;     /* bytes, chosen by the kernels pass */
  NodeId original;       /* the node this one is a clone of, or NO_NODE */
  const char *module;    /* module path "h.0.attn", "" at the top */
  Location location;
} Node;

/* ---- graphs ---- */

/* A value that people may ask for: --dump-grads, logs, results. */
typedef struct GraphOutput {
  const char *name;
  ValueId value;
  ValueId denominator; /* NO_VALUE unless written `a per b` */
  Location location;
} GraphOutput;

/* Gradient of a parameter, input or local value, once grad ran. */
typedef struct GraphGradient {
  const char *name; /* of what it is the gradient */
  ValueId of, gradient;
  ValueId divisor; /* scalar that the gradient is still to be divided by (accumulated `loss a per b`), or NO_VALUE */
} GraphGradient;

typedef struct Module Module;
typedef struct Graph Graph;

struct Graph {
  Module *module;
  bool evaluation;
  ARRAY(Value) values;
  ARRAY(Node) nodes;
  GraphOutput loss;                     /* value NO_VALUE: none */
  ARRAY(GraphOutput) outputs;           /* scalar ones are logged */
  ARRAY(GraphOutput) gradient_requests; /* `grad x, u` */
  ARRAY(GraphGradient) gradients;
  /* where new nodes go: set by the frontend and by grad around what they build */
  Phase phase;
  const char *module_path;
  Location location;
  int32_t recompute_block, recompute_block_count;
  StringMap random_ordinals; /* module path -> random operators built there so far */
  ValueIds input_values, persistent_values; /* value id + 1 by index, 0: not asked for yet */
  ARRAY(int64_t) recompute_parents; /* block b (1-based) lies directly in block recompute_parents.items[b - 1] */
};

/* ---- the module ---- */

typedef enum PersistentRole { ROLE_PARAMETER, ROLE_STATE, ROLE_OPTIMIZER, ROLE_ACCUMULATOR } PersistentRole;
typedef enum InitialKind { INITIAL_CONSTANT, INITIAL_UNIFORM, INITIAL_NORMAL, INITIAL_TRUNCATED_NORMAL } InitialKind;

typedef struct Initial {
  InitialKind kind;
  double value; /* constant; half-width of uniform; standard deviation */
  double mean;
} Initial;

/* Settings of the optimizer for one parameter, after all rules: the attributes of the optimizer's op. */
typedef struct Persistent {
  const char *name; /* full path, as in weights files */
  Type type;
  PersistentRole role;
  Initial initial;
  bool trainable;               /* parameters: gets a gradient and an update */
  Attribute *optimizer_settings; /* trainable parameters of a module with training.optimizer */
  Location location;
} Persistent;

typedef struct ModelInput {
  const char *name;
  Type type;
  Location location;
} ModelInput;

typedef enum ReaderKind { READER_CONSTANT, READER_IDX, READER_NPY, READER_CSV, READER_BYTES, READER_CHARS, READER_TOKENS } ReaderKind;
typedef struct Reader {
  ReaderKind kind;
  const char *path;
  ARRAY(int64_t) inputs; /* indices into module->inputs, the first names it */
  int64_t first, last;   /* records; last -1: to the end */
  double value;
  bool header;
  int64_t vocabulary;
  Location location;
} Reader;

typedef enum ScheduleKind { SCHEDULE_CONSTANT, SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_STEP } ScheduleKind;

typedef struct Training {
  bool present; /* the file has a train block for the model */
  bool has_optimizer;
  Op optimizer;               /* an operator with OP_OPTIMIZER */
  Attribute *optimizer_settings; /* the base settings, before rules */
  ARRAY(Reader) readers;
  ARRAY(Reader) test_readers;
  ScheduleKind schedule;
  int64_t warmup, schedule_steps, every;
  double final, factor;
  double clip; /* 0: none */
  int64_t accumulate, steps, epochs;
  uint64_t seed;
  bool shuffle;
} Training;

struct Module {
  MemoryArena *arena;
  const char *name, *path; /* model name; model file */
  ARRAY(Persistent) persistents;
  ARRAY(ModelInput) inputs;
  Training training;
  Graph *train, *evaluation; /* evaluation may be NULL only in graphs made by hand */
};

Module *module_create(MemoryArena *arena, const char *name, const char *path);
Graph *graph_create(Module *module, bool evaluation);
int module_add_persistent(Module *module, Persistent persistent); /* returns its index */
int module_add_input(Module *module, ModelInput input);
/* The graph's value for an input or a persistent; always the same one. */
ValueId graph_input(Graph *graph, int index);
ValueId graph_persistent(Graph *graph, int index);

/* ---- building; see ir/build.h for the calls by operator ---- */

/* Applies an operator: checks arity, data types and shapes by the op table (errors are located at `location` of the graph
 * and give NO_VALUE), converts scalar constants, and appends the node. Composite operators expand into others.
 * inputs[i] may be NO_VALUE where the signature marks it optional. attributes: attribute_count of them in signature
 * order, or NULL for all defaults. Returns output 0; all outputs are copied to outputs (may be NULL). */
ValueId graph_apply(Graph *graph, Op op, int input_count, const ValueId *inputs, const Attribute *attributes,
                    ValueId *outputs);
/* Appends a ready node made by a pass (no inference); sets producers of its outputs. Returns its id. */
NodeId graph_append(Graph *graph, Node node);
/* A fresh result value for a node that a pass is making. */
ValueId graph_new_value(Graph *graph, Type type, const char *name, Location location);
/* Recomputes value->producer/output after nodes were reordered, removed or inserted. */
void graph_index(Graph *graph);

/* ---- asking ---- */

static inline Value *graph_value(const Graph *graph, ValueId id) { return &graph->values.items[id]; }
static inline const Type *value_type(const Graph *graph, ValueId id) { return &graph->values.items[id].type; }
static inline Node *graph_node(const Graph *graph, NodeId id) { return &graph->nodes.items[id]; }
/* The body of a pointwise node; makes the single-instruction one where node->body is NULL. */
Body node_body(MemoryArena *arena, const Graph *graph, const Node *node);
/* Attribute by name; dies when the operator has none such. */
const Attribute *node_attribute(const Node *node, const char *name);
/* Uses of each value: counts[value id] inputs of nodes. */
int *graph_count_uses(MemoryArena *arena, const Graph *graph);

/* ---- ir/verify.c: structure, types, order, phases, effects, clones. Returns NULL or what is wrong (in the arena). ---- */
const char *graph_verify(MemoryArena *arena, const Graph *graph);

/* ---- ir/text.c: the text form, which parses back to an equal module ---- */
char *module_print(MemoryArena *arena, const Module *module);
/* Returns NULL after diag_error for malformed text. */
Module *module_parse(MemoryArena *arena, const Source *source);

#endif
