/* runtime/run.h - the state of one run of a program, and what can be done with it. */
#ifndef REPRISE_RUNTIME_RUN_H
#define REPRISE_RUNTIME_RUN_H

#include "runtime/batches.h"
#include "runtime/log.h"
#include "runtime/observe.h"
#include "runtime/options.h"
#include "runtime/program.h"
#include "runtime/status.h"

typedef struct RpRun {
  const RpProgram *program;
  const RpOptions *options;
  RpContext context; /* owns the arena */
  RpData training, test;
  RpLog log;
  RpObservation observation;
  uint64_t seed;
  RpControl control;         /* of the micro-step or update that runs; afterwards as the kernels left it */
  float *scalars;            /* of the phase that ran: value and denominator of each */
  const RpData *staged_data; /* the batch that is in the arena, or on its way, ahead of time; NULL: none */
  int64_t staged;
  double learning_rate; /* base rate of this run */
  int64_t update;       /* updates done */
  int64_t steps;        /* updates when training is done */
  bool diverged;        /* a loss was not finite */
} RpRun;

/* Sums that combine a scalar over micro-steps or batches. */
typedef struct RpScalarSum {
  double numerator, denominator;
} RpScalarSum;

/* Adds the scalars of the phase that ran to `sums`. */
void rp_scalars_add(const RpRun *run, const RpPhase *phase, RpScalarSum *sums);
/* numerator / denominator; the denominator is the number of additions where the scalar has none of its own. */
void rp_scalars_finish(const RpPhase *phase, const RpScalarSum *sums, double *values);

/* Runs a phase, with run->control, under the observers that are on; afterwards reports a kernel's fault as
 * RP_BAD_DATA. next: the batch of `data` that the following phase takes, -1 when it takes none. */
bool rp_run_phase(RpRun *run, const RpPhase *phase, RpData *data, int64_t next, RpStatus *status);

/* Trains until run->steps, observing the first step as the options say. Stops early after SIGINT, without error. */
bool rp_train(RpRun *run, RpStatus *status);

/* One pass over the test data; writes an event named `event`. */
bool rp_evaluate(RpRun *run, const char *event, RpStatus *status);

#endif
