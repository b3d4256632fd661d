/* passes/rematerialize.h - between the compiler's graph and the planner's: the planning problem of a graph out, a plan
 * back in as a graph with clones and its schedule. */
#ifndef REPRISE_PASSES_REMATERIALIZE_H
#define REPRISE_PASSES_REMATERIALIZE_H

#include "passes/passes.h"
#include "passes/planner/plan.h"

/* A planning problem with the way back: which node and storage of ours each of its numbers means. */
typedef struct PlanningProblem {
  PlanGraph *plan_graph;
  NodeId *nodes; /* per node of plan_graph */
  int *storages; /* per storage of plan_graph: index into table->storages, or -1: none of ours */
} PlanningProblem;

/* The schedule's runs in order become the nodes. costs: microseconds per node id of the graph. Only nodes of the
 * forward pass without effects may be run again. Constraints of storages become decisions. */
PlanningProblem *state_problem(const Graph *graph, const StorageTable *table, const Schedule *schedule,
                               const double *costs, MemoryArena *arena);

/* A copy of the graph with a clone for every further run of a node, in the order of the plan, and its storages and
 * schedule. The plan must be valid (replay.h). Every read sees the instance that is live at that time; views of a
 * cloned value are made anew. The given graph is not changed. */
CompiledGraph insert_clones(const Graph *graph, const StorageTable *table, const PlanningProblem *problem,
                            const Plan *plan, MemoryArena *arena);

#endif
