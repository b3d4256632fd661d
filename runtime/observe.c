#include "runtime/observe.h"

#include <stddef.h>

#include "runtime/arena.h"

/* The trace goes first so that it times kernels only, poisoning last so that the others see live bytes. */
static void observe_kernel(RpContext *context, int64_t kernel) {
  RpObservation *observation = context->observer_data;
  rp_arena_synchronise(context);
  if (observation->trace.active) rp_trace_kernel(&observation->trace, context, kernel);
  if (observation->dump.active) rp_dump_kernel(&observation->dump, context, kernel);
  if (observation->memory.poison) rp_memory_kernel(&observation->memory, context, kernel);
  if (observation->trace.active) rp_trace_resume(&observation->trace);
}

void rp_observe(RpContext *context, RpObservation *observation) {
  bool active = observation->dump.active || observation->memory.poison || observation->trace.active;
  context->observer = active ? observe_kernel : NULL;
  context->observer_data = observation;
}
