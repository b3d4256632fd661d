/* runtime/initial.h - initial values of persistent tensors. */
#ifndef REPRISE_RUNTIME_INITIAL_H
#define REPRISE_RUNTIME_INITIAL_H

#include "runtime/program.h"

/* Micro-step that keys initial values, which no training step has. */
#define RP_INITIAL_STREAM UINT64_C(0xFFFFFFFF)

/* Standard normal number `index` of the stream (seed, op_id, micro_step), by Box-Muller in double. */
double rp_normal(uint64_t seed, uint64_t op_id, uint64_t micro_step, uint64_t index);

/* Fills `data` (contiguous, of the tensor's type) from persistent->initial. Element i depends only on the seed, the
 * tensor's name and i. Truncated normals reject beyond two standard deviations; attempt k uses micro-step
 * RP_INITIAL_STREAM - k. */
void rp_initialise(const RpPersistent *persistent, uint64_t seed, void *data);

#endif
