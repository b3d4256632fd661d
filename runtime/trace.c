#include "runtime/trace.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/files.h"
#include "runtime/log.h"

void rp_trace_start(RpTrace *trace) {
  *trace = (RpTrace){.active = true, .started = rp_seconds(), .events = json_array()};
  trace->last = trace->started;
}

void rp_trace_kernel(RpTrace *trace, const RpContext *context, int64_t kernel) {
  const RpKernel *done = &context->phase->kernels[kernel];
  double now = rp_seconds(), begin = 1e6 * (trace->last - trace->started), duration = 1e6 * (now - trace->last);
  json_array_append_new(trace->events,
                        json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:b}}", "name", done->name, "cat",
                                  done->phase, "ph", "X", "pid", 0, "tid", 0, "ts", begin, "dur", duration, "args",
                                  "source", done->source, "recomputed", (int)done->clone));
  json_array_append_new(trace->events, json_pack("{s:s, s:s, s:i, s:f, s:{s:I}}", "name", "live bytes", "ph", "C",
                                                 "pid", 0, "ts", begin, "args", "bytes", (json_int_t)done->live_bytes));
}

void rp_trace_resume(RpTrace *trace) { trace->last = rp_seconds(); }

bool rp_trace_finish(RpTrace *trace, const char *path, RpStatus *status) {
  json_t *document = json_pack("{s:O, s:s}", "traceEvents", trace->events, "displayTimeUnit", "ms");
  char *text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
  json_decref(document);
  rp_trace_discard(trace);
  RpOutput output;
  bool written = false;
  if (!text) {
    rp_fail(status, RP_INTERNAL, "out of memory for the trace");
  } else if (rp_output_open(&output, path, status)) {
    written = rp_output_write(&output, 0, text, (int64_t)strlen(text), status);
    if (written) written = rp_output_commit(&output, status);
    if (!written) rp_output_discard(&output);
  }
  free(text);
  return written;
}

void rp_trace_discard(RpTrace *trace) {
  json_decref(trace->events);
  *trace = (RpTrace){0};
}
