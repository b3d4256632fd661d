/* tests/planner/exhaustive.h - the true optimum of graphs of up to 64 storages, by a search that shares no code with
 * the planner.
 *
 * Dijkstra over states (first executions done, set of live storages). It leaves out only what cannot matter, and
 * test_exhaustive.c compares it with brute_force.c, which leaves out nothing:
 * - a storage that neither the end, nor a first execution to come, nor a node that may run again for the sake of such a
 *   storage reads, ends at once (storages may always be freed);
 * - a storage is freed only where some run does not fit (more live storages cost nothing but bytes);
 * - a run drops exactly those of its outputs that are live (the others can be made and freed);
 * - a storage that is needed and cannot be made again is not freed. */
#ifndef REPRISE_TESTS_PLANNER_EXHAUSTIVE_H
#define REPRISE_TESTS_PLANNER_EXHAUSTIVE_H

#include "passes/planner/plan_graph.h"

/* Least cost of any schedule within the budget whose first executions keep the order of the graph; -1 when there is
 * none. At most 64 storages that are not persistent, and 64 nodes. Decisions of the source are not regarded. */
double exhaustive_cost(const PlanGraph *graph, int64_t budget);
/* The smallest budget that has a schedule. */
int64_t exhaustive_smallest(const PlanGraph *graph);

#endif
