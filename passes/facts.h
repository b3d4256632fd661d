/* passes/facts.h - what several passes ask of a graph and do to it. */
#ifndef REPRISE_PASSES_FACTS_H
#define REPRISE_PASSES_FACTS_H

#include "ir/ir.h"

/* Does the node, or an instruction of its body, have the property? */
bool node_has(const Node *node, OpProperty property);
/* Has the node code, or is it only another layout of its input? */
static inline bool node_is_view(const Node *node) { return op_kind(node->op) == KIND_VIEW; }
/* Must the node run although nobody reads its results? */
bool node_has_effect(const Node *node);
/* A step of a module that accumulates gradients is two programs over the same persistents: the micro-step (0), then the
 * update (1). Otherwise everything is program 0. */
int node_program(const Graph *graph, const Node *node);
/* Is the value the same compile-time constant in every element? value->producer must be current. */
bool value_is_uniform(const Graph *graph, ValueId value);

/* Calls visit(data, &value id) for every value that the graph names beside its nodes: loss, outputs, requested and
 * computed gradients. Values that are left out (NO_VALUE) are not visited. */
void graph_visit_roots(Graph *graph, void (*visit)(void *data, ValueId *value), void *data);
/* Per value: is it named by loss, outputs or computed gradients (and so has to exist in the arena)? */
bool *graph_named_values(MemoryArena *arena, const Graph *graph);
/* Removes nodes that neither a root nor an effect needs; brings producers up to date. */
void graph_remove_dead(Graph *graph, MemoryArena *scratch);
/* Makes phase, module path, location and recompute block of `node` those of nodes built from here on. */
void graph_build_beside(Graph *graph, const Node *node);

/* Row-major, from offset 0. */
ViewLayout layout_dense(const Type *type);
/* Do the elements lie one after the other in row-major order, wherever they start? */
bool layout_is_dense(const ViewLayout *layout);
/* The same elements in the same places? Strides of axes of size 1 do not matter. */
bool layout_equal(const ViewLayout *a, const ViewLayout *b);

/* The slice that input i of an assembly fills of its output, which lies at `output`. */
ViewLayout assembly_slice_view(const Graph *graph, const Node *node, int input, const ViewLayout *output);

#endif
