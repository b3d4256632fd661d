/* passes/planner/plan_graph.h - the planning problem: nodes in a fixed order, storages with bytes, what may be run
 * again.
 *
 * This is the in-memory form of a reprise-graph file (docs/design.md, section 6). The compiler fills one from its own
 * graph with plan_graph_add_*(); reprise-planner reads one from a file. Storages and nodes are numbered from 0 in order
 * of addition; nodes stand in a topological order, which is the order that every plan keeps for first executions.
 * Bytes are rounded up to the alignment when added. Everything lives in the arena given at creation. */
#ifndef REPRISE_PASSES_PLANNER_PLAN_GRAPH_H
#define REPRISE_PASSES_PLANNER_PLAN_GRAPH_H

#include "ir/base.h"

/* A hard constraint on one storage. KEEP: made once and live until its last read. RECOMPUTE: not live from its last
 * read by a forward node until a backward node needs it. */
typedef enum PlanDecision { PLAN_FREE_CHOICE, PLAN_KEEP, PLAN_RECOMPUTE } PlanDecision;

/* What the bytes of a storage are for: the rows of the anatomy. Optional key "role" of tensors and outputs. */
typedef enum PlanRole {
  PLAN_ROLE_WEIGHTS,
  PLAN_ROLE_GRADIENTS,
  PLAN_ROLE_OPTIMIZER_STATE,
  PLAN_ROLE_ACTIVATIONS,
  PLAN_ROLE_TEMPORARIES,
  PLAN_ROLE_WORKSPACE,
  PLAN_ROLE_INPUTS,
  PLAN_ROLE_COUNT
} PlanRole;
/* "weights", "gradients", … as written in files. */
const char *plan_role_name(PlanRole role);
bool plan_role_parse(const char *name, PlanRole *role);

typedef enum PlanPhase { PLAN_PHASE_NONE, PLAN_PHASE_FORWARD, PLAN_PHASE_BACKWARD, PLAN_PHASE_UPDATE } PlanPhase;

typedef struct PlanStorage {
  const char *id;
  int64_t bytes; /* a multiple of the alignment */
  bool persistent;
  bool result; /* must be live at the end */
  PlanDecision decision;
  PlanRole role;
  int32_t producer; /* the node that makes it; -1 when persistent */
  /* Filled by plan_graph_finish(): the nodes that read and (persistent only) write it, ascending, without repetition.
   */
  int32_t *readers, *writers;
  int32_t reader_count, writer_count;
} PlanStorage;

/* The node may put `output` into the bytes of its input `host`. */
typedef struct PlanInplace {
  int32_t host, output;
} PlanInplace;

typedef struct PlanNode {
  const char *id;
  double cost;
  int32_t *inputs, *outputs, *writes; /* storages */
  int32_t input_count, output_count, write_count, inplace_count;
  PlanInplace *inplace;
  int64_t workspace; /* a multiple of the alignment */
  bool recompute;    /* may run more than once; false wherever there are writes */
  PlanPhase phase;
  const char *op, *module, *source; /* NULL when not given */
} PlanNode;

typedef struct PlanGraph {
  MemoryArena *arena;
  const char *name, *cost_unit; /* NULL when not given */
  int64_t alignment;
  ARRAY(PlanStorage) storages;
  ARRAY(PlanNode) nodes;
  StringMap storage_index, node_index;
  /* Filled by plan_graph_finish(). */
  int32_t first_stage; /* the first node before which nodes may be run again; node count where there is none */
  int64_t persistent_bytes;
  double base_cost; /* every node once */
} PlanGraph;

PlanGraph *plan_graph_create(MemoryArena *arena, int64_t alignment);

/* Each add copies what it is given and returns the new number. The caller vouches for unique ids, bytes >= 0 and
 * storages that exist; broken rules die(). For input of a user, plan_graph_read() checks first. */
int32_t plan_graph_add_tensor(PlanGraph *graph, const char *id, int64_t bytes, PlanRole role);
/* node->outputs and node->output_count are ignored: outputs are added one by one afterwards. */
int32_t plan_graph_add_node(PlanGraph *graph, const PlanNode *node);
int32_t plan_graph_add_output(PlanGraph *graph, int32_t node, const char *id, int64_t bytes, PlanDecision decision);
/* After the outputs of the node are added. */
void plan_graph_add_inplace(PlanGraph *graph, int32_t node, int32_t host, int32_t output);
void plan_graph_add_result(PlanGraph *graph, int32_t storage);
/* Computes readers, writers, stages and sums. Dies when the sum of all bytes does not fit int64. */
void plan_graph_finish(PlanGraph *graph);

/* Reads a graph file (path "-" is stdin). On faults reports each with diag_error(), naming the file and the JSON path
 * of the element, and returns NULL. */
PlanGraph *plan_graph_read(MemoryArena *arena, const char *path);
/* The same from a text; path is only for messages. */
PlanGraph *plan_graph_parse(MemoryArena *arena, const char *path, const char *text, int64_t length);
/* The graph as the text of a graph file, one node a line; read back it gives the same graph. */
char *plan_graph_text(MemoryArena *arena, const PlanGraph *graph);

/* Storage or node number of an id, or -1. */
int32_t plan_graph_storage(const PlanGraph *graph, const char *id);
int32_t plan_graph_node(const PlanGraph *graph, const char *id);
/* The last node that reads a storage: the node count for a result, the producer (-1 of a persistent) where nobody does.
 */
int32_t plan_graph_last_need(const PlanGraph *graph, int32_t storage);
/* Does a stage, a node from first_stage on, read the storage? */
bool plan_graph_read_by_stages(const PlanGraph *graph, int32_t storage);
/* May node run again once the nodes of `order` < `position` have run for the first time? No when the node may not be
 * recomputed or a later node that has run has written what it reads. */
bool plan_graph_may_rerun(const PlanGraph *graph, int32_t node, int32_t position);

#endif
