/* passes/fold.h - compile-time evaluation of nodes whose inputs are uniform constants. */
#ifndef REPRISE_PASSES_FOLD_H
#define REPRISE_PASSES_FOLD_H

#include "ir/ir.h"

/* The value of a uniform constant: number for reals, integer otherwise. */
typedef struct Constant {
  double number;
  int64_t integer;
} Constant;

/* The constant of a value for which value_is_uniform() holds. */
Constant constant_of(const Graph *graph, ValueId value);
/* Computes a pointwise node, or a view, of uniform constants. Inputs must be current. False when it cannot be folded:
 * an input is no constant, the operator reads more than its operands, or the result is not finite. */
bool fold_constant(const Graph *graph, const Node *node, MemoryArena *scratch, Constant *result);
/* A node with this constant, of the value's type and name, appended to the graph. */
ValueId build_folded(Graph *graph, ValueId like, Constant constant);

#endif
