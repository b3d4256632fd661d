/* passes/planner/bound_process.h - the phase bounds (bound.h) computed by a second process beside the search.
 *
 * Bounds and search do not need each other's results, so they share the two cores; the results are taken at fixed
 * points of the search, so that a run is deterministic. A solver that crashes takes only the bound with it. */
#ifndef REPRISE_PASSES_PLANNER_BOUND_PROCESS_H
#define REPRISE_PASSES_PLANNER_BOUND_PROCESS_H

#include <sys/types.h>

#include "passes/planner/bound.h"

typedef struct BoundProcess {
  pid_t child; /* 0: none could be started */
  int results; /* read end of a pipe of doubles */
} BoundProcess;

/* Starts computing bound_cost() for each number of phases in turn; options->phases is ignored. */
BoundProcess bound_process_start(const PlanGraph *graph, const BoundOptions *options, const int32_t *phases,
                                 int32_t count);
/* Waits for the next bound. False when there is none to come. */
bool bound_process_next(BoundProcess *process, double *bound);
/* Stops whatever still runs. */
void bound_process_end(BoundProcess *process);

#endif
