/* tests/operators/build_case.h - from a case to a graph with the gradients of its loss. */
#ifndef REPRISE_TESTS_OPERATORS_BUILD_CASE_H
#define REPRISE_TESTS_OPERATORS_BUILD_CASE_H

#include "tests/operators/vectors.h"

typedef struct BuiltCase {
  const VectorCase *vectors;
  const char *prefix;
  int first_input; /* of the module; the case's inputs follow in order, those left out skipped */
  /* added to the expected gradient of every input: 1 where the loss would not depend on any of them otherwise */
  double gradient_offset;
} BuiltCase;

/* Adds a case to a graph, its loss to the graph's loss. Outputs are outputs of the graph named prefix "y0", "y1", …;
 * gradients are asked for by prefix "x0", "x1", …. False after diag_error. */
bool build_case(Graph *graph, const VectorCase *vectors, const char *prefix, BuiltCase *built);
/* Puts the case's data into the inputs of an evaluation; seed 7, micro-step 3. */
void fill_case(Evaluation *evaluation, const BuiltCase *built);
/* The gradient of input i that must come out. */
double *expected_gradient(MemoryArena *arena, const BuiltCase *built, int input);

/* The vectors have twelve digits; float32 rounds once per operator, composites and their gradients a few times. What
 * cancels, as in 1 - tanh², leaves errors of the size of one rounding of a number near 1. */
typedef struct Tolerance {
  double relative, absolute;
} Tolerance;
Tolerance case_tolerance(const VectorCase *vectors, EvalPrecision precision);

/* Sets the attributes that a JSON object names, by their names in the signature; dies for a name that is not there. */
void read_attributes(Op op, json_t *values, Attribute *attributes);

#endif
