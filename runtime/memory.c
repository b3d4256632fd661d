#include "runtime/memory.h"

#include <stdio.h>
#include <string.h>

#include "runtime/arena.h"

enum { PATTERN = 0xA5, POISON = 0xFF };

/* Sets `end` to the end of the last byte of [from, to) that is not the pattern, or to `from`. */
static bool last_changed(const RpContext *context, int64_t from, int64_t to, int64_t *end, RpStatus *status) {
  enum { PART = 1 << 16 };
  unsigned char part[PART];
  for (*end = to; *end > from;) {
    int64_t count = *end - from < PART ? *end - from : PART, kept = count;
    if (!rp_arena_read(context, *end - count, part, count, status)) return false;
    while (kept > 0 && part[kept - 1] == PATTERN) kept--;
    *end -= count - kept;
    if (kept > 0) break;
  }
  return true;
}

static void raise_high_water(RpMemoryWatch *watch, int64_t end) {
  if (end > watch->high_water) watch->high_water = end;
}

int64_t rp_resident_bytes(void) {
  FILE *stream = fopen("/proc/self/status", "r");
  char line[256];
  long long kibibytes = 0;
  if (!stream) return 0;
  while (fgets(line, sizeof line, stream)) {
    if (sscanf(line, "VmRSS: %lld kB", &kibibytes) == 1) break;
  }
  fclose(stream);
  return (int64_t)kibibytes * 1024;
}

bool rp_memory_start(RpMemoryWatch *watch, const RpContext *context, RpStatus *status) {
  const RpProgram *program = context->program;
  watch->measuring = true;
  watch->high_water = program->persistent_bytes;
  watch->rss_before = rp_resident_bytes();
  return rp_arena_fill(context, program->persistent_bytes, PATTERN, program->arena_bytes - program->persistent_bytes,
                       status);
}

void rp_memory_kernel(RpMemoryWatch *watch, const RpContext *context, int64_t kernel) {
  const RpKernel *done = &context->phase->kernels[kernel];
  for (int64_t i = 0; i < done->freed_count; i++) {
    int64_t from = done->freed[2 * i], to = from + done->freed[2 * i + 1];
    if (watch->measuring) {
      if (!last_changed(context, from, to, &to, NULL)) return;
      if (to > from) raise_high_water(watch, to);
    }
    rp_arena_fill(context, from, POISON, to - from, NULL);
  }
  if (!watch->trespasser && !rp_arena_is_intact(context)) watch->trespasser = done;
}

bool rp_memory_finish(RpMemoryWatch *watch, const RpContext *context, RpStatus *status) {
  const RpProgram *program = context->program;
  int64_t alignment = program->alignment > 0 ? program->alignment : 1;
  int64_t end;
  if (!last_changed(context, watch->high_water, program->arena_bytes, &end, status)) return false;
  raise_high_water(watch, end);
  watch->high_water = (watch->high_water + alignment - 1) / alignment * alignment;
  watch->measuring = false;
  watch->measured = true;
  return true;
}

/* The kernel during which most bytes are live, over all phases of a step. */
static const RpKernel *find_peak(const RpProgram *program) {
  const RpPhase *phases[] = {&program->micro_step, &program->update};
  const RpKernel *peak = NULL;
  for (int p = 0; p < 2; p++) {
    for (int64_t k = 0; k < phases[p]->kernel_count; k++) {
      const RpKernel *kernel = &phases[p]->kernels[k];
      if (!peak || kernel->live_bytes > peak->live_bytes) peak = kernel;
    }
  }
  return peak;
}

static void show_row(RpLog *log, const char *label, int64_t bytes) {
  rp_log_text(log, "  %-16s %16lld  %10.2f MiB", label, (long long)bytes, (double)bytes / 1048576);
}

static void show_table(const RpMemoryWatch *watch, const RpProgram *program, RpLog *log) {
  const RpAnatomy *anatomy = &program->anatomy;
  const RpKernel *peak = find_peak(program);
  rp_log_text(log, "memory at the planned peak");
  show_row(log, "weights", anatomy->weights);
  show_row(log, "gradients", anatomy->gradients);
  show_row(log, "optimizer state", anatomy->optimizer_state);
  show_row(log, "activations", anatomy->activations);
  show_row(log, "temporaries", anatomy->temporaries);
  show_row(log, "workspace", anatomy->workspace);
  show_row(log, "inputs", anatomy->inputs);
  show_row(log, "live_peak", program->live_peak);
  if (peak) rp_log_text(log, "  reached in       %s (%s, %s)", peak->name, peak->phase, peak->source);
  show_row(log, "arena", program->arena_bytes);
  if (program->budget >= 0) show_row(log, "budget", program->budget);
  show_row(log, "high_water", watch->high_water);
  show_row(log, "process (RSS)", watch->rss_after);
}

/* Device memory outside the arena. */
static json_t *report_device(const RpDeviceFacts *facts, RpLog *log) {
  show_row(log, "CUDA context", facts->context_bytes);
  show_row(log, "cuBLAS", facts->libraries_bytes);
  show_row(log, "device", facts->total_bytes);
  return json_pack("{s:s, s:b, s:I, s:I, s:I}", "name", facts->name, "emulated", (int)facts->emulated, "total",
                   (json_int_t)facts->total_bytes, "context", (json_int_t)facts->context_bytes, "libraries",
                   (json_int_t)facts->libraries_bytes);
}

void rp_memory_report(RpMemoryWatch *watch, const RpContext *context, RpLog *log) {
  const RpProgram *program = context->program;
  const RpAnatomy *anatomy = &program->anatomy;
  const RpKernel *peak = find_peak(program);
  watch->rss_after = rp_resident_bytes();
  show_table(watch, program, log);
  json_t *parts =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)anatomy->weights, "gradients",
                (json_int_t)anatomy->gradients, "optimizer_state", (json_int_t)anatomy->optimizer_state, "activations",
                (json_int_t)anatomy->activations, "temporaries", (json_int_t)anatomy->temporaries, "workspace",
                (json_int_t)anatomy->workspace, "inputs", (json_int_t)anatomy->inputs);
  json_t *event = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "event", "memory", "anatomy", parts, "live_peak",
                            (json_int_t)program->live_peak, "arena", (json_int_t)program->arena_bytes, "high_water",
                            (json_int_t)watch->high_water, "rss_before", (json_int_t)watch->rss_before, "rss",
                            (json_int_t)watch->rss_after);
  if (program->budget >= 0) json_object_set_new(event, "budget", json_integer(program->budget));
  if (peak) {
    json_object_set_new(event, "peak",
                        json_pack("{s:s, s:s, s:s, s:I}", "kernel", peak->name, "phase", peak->phase, "source",
                                  peak->source, "live_bytes", (json_int_t)peak->live_bytes));
  }
  const RpBackend *backend = rp_backend(context);
  if (backend) json_object_set_new(event, "device", report_device(backend->facts(context), log));
  rp_log_event(log, event);
}
