/* frontend/driver/verify_budgets.h - programs of one model at several budgets, bit for bit against each other. */
#ifndef REPRISE_FRONTEND_DRIVER_VERIFY_BUDGETS_H
#define REPRISE_FRONTEND_DRIVER_VERIFY_BUDGETS_H

#include <jansson.h>

#include "frontend/driver/produce.h"
#include "frontend/driver/trial.h"

/* Runs the trial's program for `steps` updates with freed bytes poisoned; it leaves its log, the first update's
 * gradients and the last weights in the trial's folder. Returns its exit code. */
int run_verified_program(Trial *trial, int64_t steps);

/* The losses of the steps in the trial's log; returns their number, at most `most`. */
int64_t read_losses(const Trial *trial, double *losses, int64_t most);

/* Compiles the model at other budgets, runs each program and compares losses, gradients and weights with what the
 * program of keep-everything, compiled as `keep_all`, has left in the folder. The budgets are those of the options: the
 * one given, or options->points - 1 (2 unless given) from the smallest that is found upwards. *passed: all are bitwise
 * equal. Prints unless told not to and adds to the report. Returns an ExitCode after its message. */
int check_budgets(const Options *options, Trial *trial, const Compilation *keep_all, int64_t steps, int64_t micro_steps,
                  json_t *report, bool *passed);

#endif
