/* tests/planner/sample_graphs.h - planning problems for tests: chains, and small random graphs with everything in them.
 */
#ifndef REPRISE_TESTS_PLANNER_SAMPLE_GRAPHS_H
#define REPRISE_TESTS_PLANNER_SAMPLE_GRAPHS_H

#include "passes/planner/plan.h"

/* A chain of `length` equal layers, their loss and backward nodes; bytes and cost per layer (NULL: 1 MiB and 1).
 * Storages h1 … hn, L, gn … g0, x of no bytes; result g0. With inplace, b_k may put its result into its
 * output-gradient's bytes. */
PlanGraph *chain_graph(MemoryArena *arena, int length, bool inplace, const int64_t *bytes, const double *costs);

/* Equal layers of three nodes with different costs and sizes, as in a network of wide and narrow products: what is
 * cheap to make again lies between what is dear. */
PlanGraph *equal_layers_graph(MemoryArena *arena, int layers);

/* Two branches that meet, and 5 stages that read some of what they made; random sizes and costs, and workspace that
 * differs much, so that what is worth holding differs from stage to stage. */
PlanGraph *uneven_graph(MemoryArena *arena, uint64_t seed);

/* A random graph of `forward` forward nodes and a backward pass that reads some of what they made: several outputs,
 * in-place pairs, workspace, writes, empty storages, nodes that may not run again. The same seed gives the same graph.
 */
PlanGraph *random_graph(MemoryArena *arena, uint64_t seed, int forward);

uint64_t random_next(uint64_t *state);
int random_below(uint64_t *state, int limit);

#endif
