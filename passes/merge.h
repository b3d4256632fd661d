/* passes/merge.h - a table of nodes by what they compute, in which equal ones are found (common subexpressions). */
#ifndef REPRISE_PASSES_MERGE_H
#define REPRISE_PASSES_MERGE_H

#include "ir/ir.h"

typedef struct NodeTable {
  MemoryArena *arena;
  const Graph *graph;
  NodeId *slots; /* node + 1, 0: empty; open addressing */
  uint64_t *hashes;
  int64_t slot_count, count;
} NodeTable;

/* The node of the graph that computes the same as `node`: same operator, inputs (in any order where the operator
 * commutes), attributes, random id, phase and recompute block. NO_NODE when the table has none. */
NodeId node_table_find(const NodeTable *table, const Node *node);
void node_table_insert(NodeTable *table, NodeId id);

#endif
