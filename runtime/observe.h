/* runtime/observe.h - what looks at the arena after each kernel: dumps, measurement of memory, traces. */
#ifndef REPRISE_RUNTIME_OBSERVE_H
#define REPRISE_RUNTIME_OBSERVE_H

#include "runtime/dump.h"
#include "runtime/memory.h"
#include "runtime/program.h"
#include "runtime/trace.h"

typedef struct RpObservation {
  RpDump dump;
  RpMemoryWatch memory;
  RpTrace trace;
} RpObservation;

/* Sets the context's observer to those of `observation` that are active, or to none. */
void rp_observe(RpContext *context, RpObservation *observation);

#endif
