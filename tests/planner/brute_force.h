/* tests/planner/brute_force.h - the true optimum of small graphs, by a search that shares no code with the planner. */
#ifndef REPRISE_TESTS_PLANNER_BRUTE_FORCE_H
#define REPRISE_TESTS_PLANNER_BRUTE_FORCE_H

#include "passes/planner/plan_graph.h"

/* Least cost of any schedule within the budget whose first executions keep the order of the graph; -1 when there is
 * none. At most 20 storages that are not persistent. */
double brute_force_cost(const PlanGraph *graph, int64_t budget);

#endif
