/* runtime/trace.h - --trace: one step's kernels as a Chrome trace (load it in chrome://tracing or ui.perfetto.dev).
 * Format: "Trace Event Format", complete events ("X", microseconds) and counters ("C"). */
#ifndef REPRISE_RUNTIME_TRACE_H
#define REPRISE_RUNTIME_TRACE_H

#include <jansson.h>

#include "runtime/program.h"
#include "runtime/status.h"

typedef struct RpTrace {
  bool active;
  double started, last; /* seconds: of the trace, and of the end of the last kernel */
  json_t *events;
} RpTrace;

void rp_trace_start(RpTrace *trace);
void rp_trace_kernel(RpTrace *trace, const RpContext *context, int64_t kernel);
/* Restarts the clock of the next kernel: after other observers, and before a phase. */
void rp_trace_resume(RpTrace *trace);
/* Writes the file and stops. */
bool rp_trace_finish(RpTrace *trace, const char *path, RpStatus *status);
/* Stops without writing. Harmless when inactive. */
void rp_trace_discard(RpTrace *trace);

#endif
