/* runtime/inputs.h - batches on their way into the arena. */
#ifndef REPRISE_RUNTIME_INPUTS_H
#define REPRISE_RUNTIME_INPUTS_H

#include "runtime/run.h"

/* Brings batch `number` of `data` into the arena, unless rp_inputs_prefetch has. */
bool rp_inputs_load(RpRun *run, RpData *data, int64_t number, RpStatus *status);

/* On a device: reads batch `number` while the phase that was started runs, and queues its copy after it, since the
 * plan may use an input's bytes again once it has been read. A failure is left to rp_inputs_load to report. */
void rp_inputs_prefetch(RpRun *run, RpData *data, int64_t number);

#endif
