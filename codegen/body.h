/* codegen/body.h - the scalar body of a pointwise or reduction node, written into a loop nest. */
#ifndef REPRISE_CODEGEN_BODY_H
#define REPRISE_CODEGEN_BODY_H

#include "codegen/emission.h"
#include "codegen/expression.h"
#include "codegen/loops.h"

/* Operands of the nest: `target_count` of the caller's own (what is written), then the inputs of the node, then the
 * flat index. What does not change inside the nest is computed in front of it. */
typedef struct BodyText {
  GraphEmission *graph;
  const Node *node;
  Body body;
  LoopNest *nest;
  int target_count;
  bool *used;         /* per instruction, then per input */
  bool *invariant;    /* likewise: the same for every element */
  const char **texts; /* likewise: name, literal, or for the last instruction its expression */
  const char **loads; /* by input: what an element is read from in place of memory, or NULL; NULL: all memory */
  bool reads_index, reads_control, vectorises;
  int random_count;
} BodyText;

/* Shape of the nest of a node. */
Type node_iteration(const Graph *graph, const Node *node);
/* Fills strides of inputs and index, collapses the nest, finds what is used. Targets must be set in the nest before. */
BodyText body_create(GraphEmission *graph, const Node *node, LoopNest *nest, int target_count);
/* Parameters after those of the targets: ", const float *in0, …", and the arguments of a call. */
void body_parameters(BodyText *body, Text *parameters, Text *arguments);
/* Lines in front of the loops, and lines of one element; names are those of nest_offset. */
void body_write_invariants(BodyText *body, Text *text);
void body_write_element(BodyText *body, Text *text, const char *const *names);
/* Text of result k, valid after the element's lines. */
const char *body_result(const BodyText *body, int result);

#endif
