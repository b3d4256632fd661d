/* passes/planner/nested.h - nested recomputation over a sequence of separators, for budgets that one recomputation of
 * each storage cannot reach.
 *
 * A separator is what crosses from the forward nodes before a cut to those after it. Between cuts i and j the cheapest
 * schedule that holds separator i is found by the recursion of the optimal checkpointing of chains (Griewank and
 * Walther's revolve; with bytes and costs, Beaumont, Herrmann, Pallez and Shilova's dynamic program):
 *
 *   C(i,j,m) = min over i<k<j of  advance(i,k) + C(k,j,m - bytes(k)) + C(i,k,m),     C(i,i+1,m) = cost inside segment i
 *
 * with m the bytes that are left beside the separators held. On equal chains it is optimal. Stages that need several
 * segments at once get them all; a replay judges the result, and the local search improves it. */
#ifndef REPRISE_PASSES_PLANNER_NESTED_H
#define REPRISE_PASSES_PLANNER_NESTED_H

#include "passes/planner/plan.h"

/* A run sequence made for the budget; the caller must look at its peak. Empty when the recursion has no solution. */
RunList nested_runs(MemoryArena *arena, const PlanGraph *graph, int64_t budget);

#endif
