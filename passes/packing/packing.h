/* passes/packing/packing.h - dynamic storage allocation with known lifetimes: every buffer gets a fixed offset in one
 * arena so that buffers that live at the same time never overlap, and the arena is as small as possible.
 *
 * The engine knows nothing of graphs. It is deterministic: its limits count work and never seconds, so the same program
 * gives the same offsets for the same input, however slow the machine. docs/packing.md explains the algorithms and
 * gives measured figures. */
#ifndef REPRISE_PASSES_PACKING_PACKING_H
#define REPRISE_PASSES_PACKING_PACKING_H

#include "ir/base.h"

/* A buffer lives in the half-open interval [lower, upper) and takes `size` bytes there. */
typedef struct PackingBuffer {
  int64_t lower, upper; /* any origin and unit; lower < upper */
  int64_t size;         /* bytes, >= 0; a buffer of no bytes gets offset 0 and overlaps nothing */
  int64_t offset;       /* bytes from the start of the arena, a multiple of the alignment; set by pack_buffers() */
  const char *id;       /* a name for people; may be NULL */
} PackingBuffer;

/* Zero-initialise for the defaults. */
typedef struct PackingOptions {
  int64_t capacity;  /* bytes the arena may take; 0: as few as the effort allows */
  int64_t alignment; /* every size is rounded up to a multiple of it; 0 means 1 */
  int64_t effort;    /* most units of work after the first full packing, about 0.5 us each; 0: PACKING_DEFAULT_EFFORT */
} PackingOptions;

enum { PACKING_DEFAULT_EFFORT = 15000000 };

typedef struct PackingResult {
  int64_t makespan;    /* bytes of the arena: the largest offset + rounded size */
  int64_t lower_bound; /* the largest sum of rounded sizes live at once: no packing is smaller */
  int64_t effort;      /* units of work that were spent */
  bool optimal;        /* makespan == lower_bound */
  bool fits;           /* makespan <= capacity; true without a capacity */
} PackingResult;

/* Sets the offset of every buffer. Stops as soon as the makespan equals the lower bound; when it is at most the
 * capacity, only the cheap rules are tried to improve on it. Requires lower < upper, size >= 0, alignment >= 0; dies
 * when the total of the rounded sizes overflows (check with packing_total_size() where the sizes are the user's).
 * Needs about 300 bytes of memory per buffer, and up to 200 MB more for a search; all is freed on return. */
PackingResult pack_buffers(PackingBuffer *buffers, int64_t count, const PackingOptions *options);

/* The sum of all sizes, each rounded up to the alignment: false when it does not fit int64. */
bool packing_total_size(const PackingBuffer *buffers, int64_t count, int64_t alignment, int64_t *total);

/* ---- the checker: a sweep over time that shares no code with the engine ---- */

typedef enum PackingFault {
  PACKING_VALID,
  PACKING_OVERLAP,      /* buffers `first` and `second` share bytes while both live */
  PACKING_BEYOND,       /* buffer `first` ends beyond the makespan */
  PACKING_MISALIGNED,   /* the offset of buffer `first` is no multiple of the alignment */
  PACKING_NEGATIVE,     /* the offset of buffer `first` is negative */
  PACKING_NEVER_TOUCHED /* no buffer ends at the makespan, the largest end is lower */
} PackingFault;

typedef struct PackingCheck {
  PackingFault fault;
  int64_t first, second; /* indices of buffers, -1 where the fault names none */
} PackingCheck;

/* Checks offsets against lifetimes, sizes (as given, not rounded; an arena of rounded sizes may end up to alignment - 1
 * bytes later), alignment (0 means 1) and makespan. Reports the first fault in the order of time, then of index. */
PackingCheck check_packing(const PackingBuffer *buffers, int64_t count, int64_t alignment, int64_t makespan);

/* ---- the command ---- */

/* `reprise pack FILE [--capacity=SIZE] [--alignment=SIZE] [--effort=N] [-o FILE]`: reads id,lower,upper,size, writes
 * the same with an offset column. argv[0] is the command's own name. Returns an ExitCode: 1 malformed file, 2 usage,
 * 3 does not fit (nothing is written), 4 input or output. Prints its own diagnostics and empties their collector. */
int pack_command(int argc, char **argv);

#endif
