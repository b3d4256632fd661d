/* passes/planner/local_search.h - improving a plan by adding, removing and moving single recomputations.
 *
 * A plan is a set of pairs (stage, node): the node runs again just before the stage, those of one stage in the order of
 * the graph. Every set is a valid schedule, because each storage has been made once before; what a set changes is how
 * long storages live. So any number of recomputations of a node, and storages that are dropped and made again in the
 * middle, are within reach: what the integer program of retain_ilp.h leaves out. Simulated annealing with a penalty on
 * bytes above the budget; deterministic for a given seed and number of iterations. */
#ifndef REPRISE_PASSES_PLANNER_LOCAL_SEARCH_H
#define REPRISE_PASSES_PLANNER_LOCAL_SEARCH_H

#include "passes/planner/plan.h"

typedef struct LocalSearchOptions {
  int64_t budget;
  int64_t iterations; /* moves tried */
  uint64_t seed;
  double heat; /* starting temperature in units of the mean cost of a node that may run again */
} LocalSearchOptions;

typedef struct LocalSearchEvents {
  void *context;
  /* A sequence within the budget that is cheaper than all before; valid during the call. */
  void (*found)(void *context, RunList runs);
  bool (*stop)(void *context);
} LocalSearchEvents;

/* Starts from `runs` (any valid sequence in the order of the graph, within the budget or not). Returns the sequence of
 * the lowest peak that was met, in the arena; found() is called once at the end when something better was found. */
RunList local_search(MemoryArena *arena, const PlanGraph *graph, RunList runs, const LocalSearchOptions *options,
                     const LocalSearchEvents *events);

#endif
