/* codegen/loops.h - loop nests: shapes and strides, and the text that walks them.
 *
 * A nest has axes and operands; operand k moves by strides[k][axis] elements per step of an axis, 0 where it is
 * broadcast. Axes of one element are dropped and neighbours that every operand walks through as one are merged, so
 * that equal work is equal text whatever the rank of the tensors. The number of threads never enters: which loops are
 * parallel and how reductions are divided are functions of the shape. */
#ifndef REPRISE_CODEGEN_LOOPS_H
#define REPRISE_CODEGEN_LOOPS_H

#include "codegen/text.h"
#include "ir/ir.h"

enum {
  /* Elements from which a loop nest starts its threads: starting them costs about as much as copying this many. */
  PARALLEL_ELEMENTS = 16384,
  /* Iterations of the outer loops that are enough to keep threads busy. */
  PARALLEL_ITERATIONS = 16
};

typedef struct LoopNest {
  int rank;
  int64_t dims[MAX_RANK + 1];
  bool reduced[MAX_RANK + 1];
  int operand_count;
  int64_t (*strides)[MAX_RANK + 1];
} LoopNest;

/* A nest over a shape, all strides 0. */
LoopNest nest_create(MemoryArena *arena, const Type *shape, int operand_count);
/* Operand k reads a view broadcast to the shape, aligned at the right. */
void nest_set_view(LoopNest *nest, int operand, const ViewLayout *view);
/* Operand k is the flat row-major index. */
void nest_set_index(LoopNest *nest, int operand);
void nest_collapse(LoopNest *nest);
int64_t nest_elements(const LoopNest *nest);

/* Names of the loop variables, by axis: i, j, k, l, … */
const char *nest_variable(int axis);
/* "i * 768 + j" for an operand; names[axis] replace the variables, NULL leaves an axis out. */
char *nest_offset(MemoryArena *arena, const LoopNest *nest, int operand, const char *const *names);
bool nest_is_uniform(const LoopNest *nest, int operand);

/* "for (int64_t i = 0; i < 8; i++)" as an open block. */
void open_loop(Text *text, const char *variable, int64_t count);
/* The loops of a pointwise nest, with pragmas; close_loops(text, n) closes what they return. */
int open_nest(Text *text, const LoopNest *nest, bool vectorises);
void close_loops(Text *text, int count);

#endif
