/* frontend/driver/measured_costs.h - --cost=profile: kernels timed in the model's own program. */
#ifndef REPRISE_FRONTEND_DRIVER_MEASURED_COSTS_H
#define REPRISE_FRONTEND_DRIVER_MEASURED_COSTS_H

#include "frontend/driver/options.h"
#include "passes/profile.h"

/* The profile of the options' file that knows every kernel of the model. When some are missing, the model is compiled with modelled
 * costs within the options' budget, its program runs on made-up data, and the times of its kernels are added to the file. NULL after
 * errors were reported, with the exit code. */
Profile *complete_profile(const Options *options, int *code);

#endif
