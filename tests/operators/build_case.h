/* tests/operators/build_case.h - from a case to a graph with the gradients of its loss. */
#ifndef REPRISE_TESTS_OPERATORS_BUILD_CASE_H
#define REPRISE_TESTS_OPERATORS_BUILD_CASE_H

#include "tests/operators/vectors.h"

typedef struct BuiltCase {
  Module *module;
  Graph *graph;
  ValueId outputs[MOST_TENSORS];
  /* added to the expected gradient of every input: 1 where the loss would not depend on any of them otherwise */
  double gradient_offset;
} BuiltCase;

/* Inputs are module inputs in the order of the case (those left out are skipped); outputs are outputs of the graph
 * named "y0", "y1", …; gradients are asked for by `x0`, `x1`, …. NULL after diag_error. */
BuiltCase *build_case(MemoryArena *arena, const VectorCase *vectors);
/* Puts the case's data into the inputs of an evaluation; seed 7, micro-step 3. */
void fill_case(Evaluation *evaluation, const VectorCase *vectors);

/* Sets the attributes that a JSON object names, by their names in the signature; dies for a name that is not there. */
void read_attributes(Op op, json_t *values, Attribute *attributes);

#endif
