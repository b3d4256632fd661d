/* tests/codegen/random_graph.h - random graphs of every kind of node, the same for the same seed. */
#ifndef REPRISE_TESTS_CODEGEN_RANDOM_GRAPH_H
#define REPRISE_TESTS_CODEGEN_RANDOM_GRAPH_H

#include "ir/ir.h"

typedef struct RandomGraph {
  Module *module; /* with an evaluation graph of many outputs */
  bool *exact;    /* by output: made of leaves by pointwise nodes, views and assemblies only, so equal bit for bit */
} RandomGraph;

RandomGraph random_graph(MemoryArena *arena, uint64_t seed, int cases);
/* A number in [0, bound). */
int64_t random_below(uint64_t *state, int64_t bound);

#endif
