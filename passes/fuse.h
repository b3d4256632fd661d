/* passes/fuse.h - groups of nodes that become one, shared by the files of the fuse pass. */
#ifndef REPRISE_PASSES_FUSE_H
#define REPRISE_PASSES_FUSE_H

#include "ir/ir.h"

/* Bounds on one kernel: what compilers digest well, and what a call can carry. */
enum { MAX_GROUP_INSTRUCTIONS = 256, MAX_GROUP_INPUTS = 24, MAX_GROUP_WRITES = MAX_OP_OUTPUTS };

/* Pointwise nodes over one iteration shape that will be one node, standing where its member `anchor` stands. */
typedef struct Group {
  NodeId anchor;
  bool open;         /* may take more members: false for nodes that are not pointwise, and for reductions */
  bool read_outside; /* a node walked over already, and not a member, reads a value of it */
  Type shape;
  Phase phase;
  int32_t recompute_block;
  Constraint constraint; /* NONE or RECOMPUTE */
  int instruction_count; /* constants included */
  int input_count, unread_count, write_count;
  ValueId inputs[MAX_GROUP_INPUTS];
  ValueId unread[MAX_OP_OUTPUTS]; /* values that a node outside reads or may still read: the outputs */
  ValueId writes[MAX_GROUP_WRITES];
} Group;

/* The node that stands for a group. members: in order; reduction: the node whose body the group is, or NULL. Values are
 * outputs where remaining[value] > 0. */
Node build_fused(const Graph *graph, const Group *group, int member_count, const Node **members, const Node *reduction,
                 const int *remaining);

#endif
