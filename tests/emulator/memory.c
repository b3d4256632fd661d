/* Device memory: addresses of their own, each allocation between guard zones, freed addresses never given out again. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/emulator.h"

static const size_t range_bytes = (size_t)1 << 40, guard_bytes = (size_t)1 << 20;
enum { MOST_ALLOCATIONS = 4096 };

static struct {
  char *range;
  size_t used;
  int count;
  Allocation allocations[MOST_ALLOCATIONS];
} device;

typedef struct Pinned {
  char *start;
  size_t bytes;
  struct Pinned *next;
} Pinned;
static Pinned *pinned;

static bool reserve(void) {
  if (device.range) return true;
  void *range = mmap(NULL, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  device.range = range;
  return true;
}

AT_UNLOAD free_device(void) {
  for (int i = 0; i < device.count; i++) shadow_forget(&device.allocations[i]);
  if (device.range) munmap(device.range, range_bytes);
}

bool in_device_range(CuPointer address) {
  return device.range && address - (CuPointer)(uintptr_t)device.range < range_bytes;
}

Allocation *find_allocation(CuPointer address, size_t bytes) {
  static Allocation *last;
  if (last && address >= last->start && bytes <= last->bytes && address - last->start <= last->bytes - bytes)
    return last;
  for (int i = 0; i < device.count; i++) {
    Allocation *a = &device.allocations[i];
    if (address >= a->start && bytes <= a->bytes && address - a->start <= a->bytes - bytes) return last = a;
  }
  return NULL;
}

void note_written(const Allocation *allocation, CuPointer end) {
  enum { UNIT = 256 };
  size_t units = ((size_t)(end - allocation->start) + UNIT - 1) / UNIT * UNIT;
  int64_t mark = (int64_t)(units < allocation->bytes ? units : allocation->bytes);
  if (mark > counters.high_water) counters.high_water = mark;
}

void touch(CuPointer address, size_t bytes) {
  const Allocation *a = find_allocation(address, bytes);
  if (a && bytes) note_written(a, address + bytes);
}

void note_use(void) {
  int64_t in_use = counters.allocated + counters.libraries + counters.context;
  if (in_use > counters.in_use_peak) counters.in_use_peak = in_use;
}

/* 256-byte aligned, with bytes that are noticed: NaN as floats. */
EXPORT CuResult cuMemAlloc_v2(CuPointer *pointer, size_t bytes) {
  if (unusable()) return broken();
  if (!pointer || !bytes) return ERROR_INVALID_VALUE;
  size_t pages = (bytes + 4095) / 4096 * 4096;
  int64_t in_use = counters.allocated + counters.libraries + counters.context;
  bool fits = bytes < range_bytes / 4 && (int64_t)bytes <= settings()->memory - in_use;
  if (!fits || !reserve() || device.count == MOST_ALLOCATIONS || device.used + pages + 2 * guard_bytes > range_bytes)
    return ERROR_OUT_OF_MEMORY;
  char *start = device.range + device.used + guard_bytes;
  if (mprotect(start, pages, PROT_READ | PROT_WRITE) != 0) return ERROR_OUT_OF_MEMORY;
  device.used += pages + 2 * guard_bytes;
  memset(start, 0xff, bytes);
  *pointer = (CuPointer)(uintptr_t)start;
  device.allocations[device.count++] = (Allocation){*pointer, bytes, NULL};
  counters.allocations++;
  counters.allocated += (int64_t)bytes;
  if (counters.allocated > counters.allocated_peak) counters.allocated_peak = counters.allocated;
  note_use();
  return 0;
}

EXPORT CuResult cuMemFree_v2(CuPointer pointer) {
  CuResult result = synchronize_all();
  for (int i = 0; i < device.count; i++) {
    Allocation *a = &device.allocations[i];
    if (a->start != pointer || !a->bytes) continue;
    counters.allocated -= (int64_t)a->bytes;
    void *start = (void *)(uintptr_t)a->start;
    size_t pages = (a->bytes + 4095) / 4096 * 4096;
    mmap(start, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    shadow_forget(a);
    a->bytes = 0;
    return result;
  }
  return ERROR_INVALID_VALUE;
}

EXPORT CuResult cuMemGetInfo_v2(size_t *available, size_t *total) {
  if (unusable()) return broken();
  *total = (size_t)settings()->memory;
  *available = (size_t)(settings()->memory - counters.allocated - counters.libraries - counters.context);
  return broken();
}

EXPORT CuResult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  if (unusable()) return broken();
  Pinned *node = malloc(sizeof *node);
  char *start = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!node || !start) abort();
  memset(start, 0xff, bytes);
  *node = (Pinned){start, bytes, pinned};
  pinned = node;
  *pointer = start;
  return broken();
}

EXPORT CuResult cuMemFreeHost(void *pointer) {
  CuResult result = synchronize_all();
  for (Pinned **at = &pinned; *at; at = &(*at)->next) {
    Pinned *node = *at;
    if (node->start != pointer) continue;
    *at = node->next;
    free(node->start);
    free(node);
    return result;
  }
  return ERROR_INVALID_VALUE;
}

bool in_pinned_memory(const void *address, size_t bytes) {
  for (const Pinned *node = pinned; node; node = node->next) {
    const char *at = address;
    if (at >= node->start && at + bytes <= node->start + node->bytes) return true;
  }
  return false;
}
