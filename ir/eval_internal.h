/* ir/eval_internal.h - what the files of the interpreter share. */
#ifndef REPRISE_IR_EVAL_INTERNAL_H
#define REPRISE_IR_EVAL_INTERNAL_H

#include "ir/eval.h"

enum { EVAL_LANES = 256 };

/* The same scalar of up to EVAL_LANES consecutive elements: reals as doubles, everything else as integers. */
typedef union EvalLanes {
  double real[EVAL_LANES];
  int64_t integer[EVAL_LANES];
} EvalLanes;

struct EvalPlan {
  Body *bodies;         /* by node: of pointwise nodes and fused reductions */
  EvalLanes *registers; /* one per instruction, then one per node input, of the largest body */
};

/* Walks the elements of a shape in row-major order and keeps the offset that strides give. */
typedef struct EvalCursor {
  Type shape;
  int64_t strides[MAX_RANK], position[MAX_RANK];
  int64_t offset;
} EvalCursor;

EvalCursor eval_cursor(const Type *shape, const int64_t *strides, int64_t offset, int64_t first_element);
void eval_cursor_next(EvalCursor *cursor);
/* Row-major strides of a shape. */
void eval_strides(const Type *shape, int64_t *strides);
/* Strides that read a tensor of type `from` broadcast to `shape`. */
void eval_broadcast_strides(const Type *from, const Type *shape, int64_t *strides);

/* A real of this data type as the precision keeps it; an integer wrapped to its width. */
double eval_round(EvalPrecision precision, DataType dtype, double value);
int64_t eval_wrap(DataType dtype, int64_t value);

/* Shape of the loop nest of a pointwise node or a reduction. */
Type eval_iteration(const Graph *graph, const Node *node);
/* Computes the body of a node for elements [start, start + count) of its iteration shape into plan->registers. */
void eval_body(Evaluation *evaluation, NodeId node, const Type *iteration, int64_t start, int count);
/* Copies lanes into a tensor from element `start` on. */
void eval_store(EvalTensor *tensor, int64_t start, int count, const EvalLanes *lanes);

/* The kinds of nodes. Results still have to be rounded to their data type, except those of pointwise nodes. */
void eval_pointwise(Evaluation *evaluation, NodeId node);
void eval_reduction(Evaluation *evaluation, NodeId node);
void eval_view(Evaluation *evaluation, const Node *node);
void eval_assembly(Evaluation *evaluation, const Node *node);
void eval_contraction(Evaluation *evaluation, const Node *node);
/* Returns NULL, or what is wrong with the data. */
const char *eval_kernel(Evaluation *evaluation, const Node *node);

#endif
