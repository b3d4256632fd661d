/* runtime/memory.h - --memory and --poison: what the plan says about the arena against what a step does to it. */
#ifndef REPRISE_RUNTIME_MEMORY_H
#define REPRISE_RUNTIME_MEMORY_H

#include "runtime/log.h"
#include "runtime/program.h"

typedef struct RpMemoryWatch {
  bool poison;    /* overwrite freed bytes with 0xFF (NaN) after each kernel */
  bool measuring; /* between rp_memory_start and rp_memory_finish */
  bool measured;
  const RpKernel *trespasser;    /* the first kernel that has written outside the arena, or NULL */
  int64_t high_water;            /* end of the last byte changed, rounded up to the alignment */
  int64_t rss_before, rss_after; /* bytes resident when measuring started and when the report was made */
} RpMemoryWatch;

/* Fills the arena's transient part with a pattern. Call before the inputs of the step are read. */
bool rp_memory_start(RpMemoryWatch *watch, const RpContext *context, RpStatus *status);
/* Poisons the storages that die after `kernel`, only as far as they were written, so that the measurement holds, and
 * looks at the guard zones. */
void rp_memory_kernel(RpMemoryWatch *watch, const RpContext *context, int64_t kernel);
/* Looks for the last byte changed since rp_memory_start. */
bool rp_memory_finish(RpMemoryWatch *watch, const RpContext *context, RpStatus *status);
/* The report: an event, or a table on a terminal. */
void rp_memory_report(RpMemoryWatch *watch, const RpContext *context, RpLog *log);

/* Resident bytes of the process, 0 where the system does not tell. */
int64_t rp_resident_bytes(void);

#endif
