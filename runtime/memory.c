#include "runtime/memory.h"

#include <stdio.h>
#include <string.h>

enum { PATTERN = 0xA5, POISON = 0xFF };

/* End of the last byte of [from, to) that is not the pattern, or `from`. */
static int64_t last_changed(const char *arena, int64_t from, int64_t to) {
  while (to > from && (unsigned char)arena[to - 1] == PATTERN) to--;
  return to;
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

void rp_memory_start(RpMemoryWatch *watch, const RpContext *context) {
  const RpProgram *program = context->program;
  watch->measuring = true;
  watch->high_water = program->persistent_bytes;
  memset(context->arena + program->persistent_bytes, PATTERN,
         (size_t)(program->arena_bytes - program->persistent_bytes));
  watch->rss_before = rp_resident_bytes();
}

void rp_memory_kernel(RpMemoryWatch *watch, const RpContext *context, int64_t kernel) {
  const RpKernel *done = &context->phase->kernels[kernel];
  for (int64_t i = 0; i < done->freed_count; i++) {
    int64_t from = done->freed[2 * i], to = from + done->freed[2 * i + 1];
    if (watch->measuring) {
      to = last_changed(context->arena, from, to);
      if (to > from) raise_high_water(watch, to);
    }
    memset(context->arena + from, POISON, (size_t)(to - from));
  }
}

void rp_memory_finish(RpMemoryWatch *watch, const RpContext *context) {
  const RpProgram *program = context->program;
  int64_t alignment = program->alignment > 0 ? program->alignment : 1;
  raise_high_water(watch, last_changed(context->arena, watch->high_water, program->arena_bytes));
  watch->high_water = (watch->high_water + alignment - 1) / alignment * alignment;
  watch->measuring = false;
  watch->measured = true;
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
  rp_log_event(log, event);
}
