/* tests/passes/random_graph.h - random training graphs of every kind of node, and what they compute. */
#ifndef REPRISE_TESTS_PASSES_RANDOM_GRAPH_H
#define REPRISE_TESTS_PASSES_RANDOM_GRAPH_H

#include "ir/build.h"
#include "ir/eval.h"

/* SplitMix64. */
typedef struct Random {
  uint64_t state;
} Random;
uint64_t random_next(Random *random);
int random_below(Random *random, int bound);

/* A differentiated training graph with about `size` forward nodes: broadcasts, views, reductions, contractions,
 * kernels, dropout, a state, keep and recompute constraints, neutral operands, equal nodes; optimizer, clipping and
 * accumulation by the seed. */
Module *random_module(MemoryArena *arena, uint64_t seed, int size);

/* Loss, outputs, gradients and what was written, in the module's order, of one evaluated step. */
typedef struct Results {
  ARRAY(EvalTensor) tensors;
} Results;

/* Fills inputs and persistents with a fixed pattern. */
void fill_pattern(Evaluation *evaluation);
/* Runs the graph in float32 from the pattern. */
Results evaluate_graph(MemoryArena *arena, const Graph *graph);
/* Bit for bit. */
bool results_equal(const Results *a, const Results *b);

#endif
