/* A grid, block after block. Threads run until they wait; a thread that never waits leaves its stack to the next, so a
 * kernel without barriers is a plain loop. Every block runs under three orders of its threads, from the same memory,
 * and has to write the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"

enum { MOST_THREADS = 1024, WARP = 32, ORDERS = 3, STATIC_SHARED_LIMIT = 48 << 10 };

/* What the lanes of a warp do together. Values are kept twice: lanes may give new ones before all have read. */
typedef struct Warp {
  unsigned lanes;         /* that the block has */
  unsigned mask, arrived; /* of the function that is under way */
  int kind, line;
  const char *file;
  int64_t generation;
  uint64_t values[2][WARP];
} Warp;

static struct {
  const Launch *launch;
  Dims position;
  Thread threads[MOST_THREADS];
  int thread_count;
  Warp warps[MOST_THREADS / WARP];
  int arrived, line;
  const char *file;
  int64_t barriers; /* that all threads have passed */
  bool abandoned;
  char *dynamic_shared;
  size_t dynamic_capacity;
  char title[256];
} block;

Thread *running;

AT_UNLOAD free_shared(void) { free(block.dynamic_shared); }

const char *launch_title(void) { return block.title; }

void abandon(void) {
  block.abandoned = true;
  fiber_wait();
  abort();
}

/* ---- what kernels call ---- */

EXPORT unsigned reprise_index(int which) {
  const Dims *all[] = {&running->position, &block.position, &block.launch->block, &block.launch->grid};
  const Dims *dims = all[which / 3];
  return which % 3 == 0 ? dims->x : which % 3 == 1 ? dims->y : dims->z;
}

EXPORT int reprise_lane(void) { return running->lane; }
EXPORT void *reprise_dynamic_shared(void) { return block.dynamic_shared; }

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void wait_at(const char *what, const char *file, int line, bool (*ready)(const Thread *), int64_t generation) {
  running->waits_for = what;
  running->file = file;
  running->line = line;
  running->barrier = generation;
  running->ready = ready;
  fiber_wait();
}

static bool barrier_passed(const Thread *thread) { return block.barriers > thread->barrier; }

EXPORT void reprise_barrier(const char *file, int line) {
  if (block.arrived == 0) {
    block.file = file;
    block.line = line;
  } else if (block.line != line || strcmp(block.file, file) != 0) {
    fault(ERROR_LAUNCH_FAILED, "divergent barriers: thread %d is at %s:%d, others are at %s:%d", running->index,
          base_name(file), line, base_name(block.file), block.line);
    abandon();
  }
  if (++block.arrived < block.thread_count) {
    wait_at("__syncthreads", file, line, barrier_passed, block.barriers);
    return;
  }
  block.arrived = 0;
  block.barriers++;
  shadow_block_barrier();
}

static bool exchange_done(const Thread *thread) { return block.warps[thread->warp].generation > thread->barrier; }

static void start_exchange(Warp *warp, unsigned mask, int kind, const char *file, int line) {
  bool lanes = (mask & warp->lanes) == mask, own = mask >> running->lane & 1;
  if (!lanes || !own) {
    fault(ERROR_LAUNCH_FAILED, "warp function at %s:%d: lane %d gives the mask %#x, the warp has lanes %#x",
          base_name(file), line, running->lane, mask, warp->lanes);
    abandon();
  }
  if (warp->arrived == 0) {
    warp->mask = mask;
    warp->kind = kind;
    warp->file = file;
    warp->line = line;
  } else if (warp->mask != mask || warp->kind != kind || warp->line != line || strcmp(warp->file, file) != 0) {
    fault(ERROR_LAUNCH_FAILED, "divergent warp functions: lane %d is at %s:%d with mask %#x, others at %s:%d with %#x",
          running->lane, base_name(file), line, mask, base_name(warp->file), warp->line, warp->mask);
    abandon();
  }
}

EXPORT const uint64_t *reprise_exchange(unsigned mask, uint64_t value, int kind, const char *file, int line) {
  Warp *warp = &block.warps[running->warp];
  start_exchange(warp, mask, kind, file, line);
  int64_t generation = warp->generation;
  warp->values[generation & 1][running->lane] = value;
  warp->arrived |= 1u << running->lane;
  if (warp->arrived == warp->mask) {
    warp->arrived = 0;
    warp->generation++;
  } else {
    wait_at("a warp function", file, line, exchange_done, generation);
  }
  return warp->values[generation & 1];
}

/* Memory is made common only to whole warps. */
EXPORT void reprise_warp_barrier(unsigned mask, const char *file, int line) {
  Warp *warp = &block.warps[running->warp];
  mask &= warp->lanes;
  int64_t generation = warp->generation;
  bool whole = mask == warp->lanes, last = (warp->arrived | 1u << running->lane) == mask;
  reprise_exchange(mask, 0, 3, file, line);
  if (whole && last && warp->generation == generation + 1) shadow_warp_barrier(running->warp);
}

/* ---- one run of a block ---- */

static void run_thread(void) { block.launch->function->kernel->run(block.launch->parameters); }

/* Thread number `i` of an order: ascending, descending, or a permutation by a stride that shares no factor with the
 * number of threads. */
static int ordered(int order, int i) {
  int count = block.thread_count, stride = 37;
  if (order == 0) return i;
  if (order == 1) return count - 1 - i;
  while (count % stride == 0) stride += 2;
  for (int a = stride, b = count; b;) {
    int rest = a % b;
    a = b, b = rest;
    if (!b && a != 1) stride++, a = stride, b = count;
  }
  return (int)(((int64_t)i * stride + 11) % count);
}

static void prepare_threads(void) {
  const Dims *dims = &block.launch->block;
  int count = block.thread_count;
  for (int i = 0; i < count; i++) {
    unsigned plane = dims->x * dims->y, index = (unsigned)i;
    block.threads[i] = (Thread){.index = i,
                                .position = {index % dims->x, index % plane / dims->x, index / plane},
                                .warp = i / WARP,
                                .lane = i % WARP};
  }
  for (int w = 0; w * WARP < count; w++) {
    int lanes = count - w * WARP < WARP ? count - w * WARP : WARP;
    block.warps[w] = (Warp){.lanes = lanes == WARP ? 0xffffffffu : (1u << lanes) - 1};
  }
  block.arrived = 0;
  block.barriers = 0;
  block.abandoned = false;
  fiber_reset();
}

static void report_deadlock(void) {
  const Thread *waiting = NULL;
  int done = 0;
  for (int i = 0; i < block.thread_count; i++) {
    const Thread *thread = &block.threads[i];
    done += thread->done;
    if (!thread->done && !waiting) waiting = thread;
  }
  for (int i = 0; i < block.thread_count; i++) {
    const Thread *thread = &block.threads[i];
    if (thread->done || (thread->line == waiting->line && strcmp(thread->file, waiting->file) == 0)) continue;
    fault(ERROR_LAUNCH_FAILED, "divergent barriers: thread %d waits for %s at %s:%d, thread %d for %s at %s:%d",
          waiting->index, waiting->waits_for, base_name(waiting->file), waiting->line, thread->index, thread->waits_for,
          base_name(thread->file), thread->line);
    return;
  }
  fault(ERROR_LAUNCH_FAILED, "divergent barriers: thread %d waits for %s at %s:%d, %d threads have ended",
        waiting->index, waiting->waits_for, base_name(waiting->file), waiting->line, done);
}

static bool run_block(int order) {
  int left = block.thread_count;
  prepare_threads();
  while (left) {
    bool progress = false;
    for (int i = 0; i < block.thread_count; i++) {
      Thread *thread = &block.threads[ordered(order, i)];
      if (thread->done || (thread->ready && !thread->ready(thread))) continue;
      thread->ready = NULL;
      progress = true;
      fiber_resume(thread, run_thread);
      if (block.abandoned) return false;
      left -= thread->done;
    }
    if (progress) continue;
    report_deadlock();
    return false;
  }
  return true;
}

static bool run_orders(void) {
  shadow_start_run(false);
  if (!run_block(0)) return false;
  shadow_keep();
  for (int order = 1; order < ORDERS && block.thread_count > 1; order++) {
    shadow_undo();
    shadow_start_run(true);
    if (!run_block(order) || !shadow_compare()) return false;
  }
  counters.blocks++;
  return true;
}

/* ---- grids ---- */

static bool run_blocks(void) {
  const Dims *grid = &block.launch->grid;
  for (unsigned z = 0; z < grid->z; z++)
    for (unsigned y = 0; y < grid->y; y++)
      for (unsigned x = 0; x < grid->x; x++) {
        block.position = (Dims){x, y, z};
        snprintf(block.title, sizeof block.title, "kernel %s, block (%u,%u,%u): ", block.launch->function->name, x, y,
                 z);
        if (!run_orders()) return false;
      }
  return true;
}

CuResult run_grid(const Launch *launch) {
  enum { GUARD = 4096 };
  size_t needed = (size_t)launch->shared + GUARD;
  if (needed > block.dynamic_capacity) {
    free(block.dynamic_shared);
    block.dynamic_shared = aligned_alloc(256, (needed + 255) / 256 * 256);
    block.dynamic_capacity = needed;
    if (!block.dynamic_shared) abort();
  }
  block.launch = launch;
  block.thread_count = (int)(launch->block.x * launch->block.y * launch->block.z);
  shadow_start_launch(launch, launch->function->shared, launch->function->shared_bytes, block.dynamic_shared);
  bool good = run_blocks();
  snprintf(block.title, sizeof block.title, "kernel %s: ", launch->function->name);
  if (good) shadow_check_written();
  block.title[0] = '\0';
  return broken();
}

EXPORT CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CuStream stream, void **parameters,
                               void **extra) {
  Launch launch = {.function = function,
                   .grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .shared = shared,
                   .parameters = parameters};
  uint64_t threads = (uint64_t)block_x * block_y * block_z;
  size_t most_shared = function->most_dynamic_shared ? (size_t)function->most_dynamic_shared : STATIC_SHARED_LIMIT;
  bool fits = grid_x && grid_y && grid_z && grid_x <= INT32_MAX && grid_y <= 65535 && grid_z <= 65535 && threads &&
              threads <= (uint64_t)function->kernel->most_threads && block_z <= 64 && shared <= most_shared && !extra;
  if (!fits) return ERROR_INVALID_VALUE;
  return enqueue_launch(stream, &launch);
}
