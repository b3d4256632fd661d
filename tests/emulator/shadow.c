/* Every access of a kernel's threads, from the hooks of -fsanitize=thread.
 *
 * Four bytes of device or shared memory have a cell, which knows the run of a block that touched them last, which
 * thread wrote, which read, and in which epoch: barriers of the block count epochs, __syncwarp those of a warp. Two
 * accesses by different threads, one of them a write, are a race unless a barrier lies between them; by different
 * blocks of a launch always. Accesses below four bytes are not looked at for races, since neighbours share a cell. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/emulator.h"

/* Writers and readers that are no single thread; EARLIER: before the last barrier. */
enum { NOBODY = 0, SEVERAL = 0xffff, ATOMIC = 0xfffe, EARLIER = 0xfffd, EARLIER_ATOMIC = 0xfffc, MOST_WARPS = 32 };

typedef struct Cell {
  uint32_t run;                    /* serial number of the run of a block that touched it last; 0: none */
  uint32_t epoch;                  /* of the block, at that time */
  uint16_t writer, reader;         /* 1 + thread; readers of one warp: SEVERAL with reader_warp */
  uint8_t write_epoch, read_epoch; /* of the writer's and reader's warp, modulo 256 */
  uint8_t reader_warp;             /* 0xff: of several warps */
  uint8_t read_elsewhere;          /* another block of the launch has read it */
} Cell;

/* A region of memory with cells. */
typedef struct Region {
  CuPointer start;
  size_t bytes;
  Cell *cells;
  size_t reserved;
} Region;

typedef struct Undo {
  CuPointer address;
  unsigned bytes;
  unsigned char value[16];
} Undo;
typedef struct UndoLog {
  Undo *items;
  size_t count, capacity;
} UndoLog;

static struct {
  const Launch *launch;
  Region statics, dynamic;
  uint32_t run, first_run_of_launch, first_run_of_block;
  uint32_t epoch;
  uint8_t warp_epochs[MOST_WARPS];
  UndoLog log, kept;
  const CuOperand *last_operand;
} shadow;

AT_UNLOAD free_shadow(void) {
  const Region *regions[] = {&shadow.statics, &shadow.dynamic};
  for (int i = 0; i < 2; i++)
    if (regions[i]->cells) munmap(regions[i]->cells, regions[i]->reserved);
  free(shadow.log.items);
  free(shadow.kept.items);
}

/* ---- messages ---- */

static void __attribute__((noreturn, format(printf, 1, 2))) stop(const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fault(ERROR_ILLEGAL_ADDRESS, "thread (%u,%u,%u) %s", running->position.x, running->position.y, running->position.z,
        text);
  abandon();
}

/* ---- regions ---- */

static void reserve_cells(Region *region, CuPointer start, size_t bytes) {
  size_t needed = (bytes / 4 + 2) * sizeof(Cell);
  if (needed > region->reserved) {
    if (region->cells) munmap(region->cells, region->reserved);
    region->cells = mmap(NULL, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region->cells == MAP_FAILED) abort();
    region->reserved = needed;
  }
  region->start = start;
  region->bytes = bytes;
}

static Cell *cell_at(const Region *region, CuPointer address) { return &region->cells[(address - region->start) / 4]; }

static const Region *device_region(Allocation *allocation) {
  if (allocation->cells) return allocation->cells;
  Region *region = calloc(1, sizeof *region);
  if (!region) abort();
  reserve_cells(region, allocation->start, allocation->bytes);
  return allocation->cells = region;
}

void shadow_forget(Allocation *allocation) {
  Region *region = allocation->cells;
  if (region) munmap(region->cells, region->reserved);
  free(region);
  allocation->cells = NULL;
}

static bool contains(const Region *region, CuPointer address) {
  return region->bytes && address - region->start < region->bytes;
}

/* ---- bounds ---- */

static bool covers(const CuOperand *operand, CuPointer address, size_t bytes) {
  return address >= operand->address && bytes <= operand->bytes && address - operand->address <= operand->bytes - bytes;
}

static bool allowed(const CuOperand *operand, CuPointer address, size_t bytes, bool write) {
  return covers(operand, address, bytes) && (!write || operand->use != RP_OPERAND_IN);
}

/* The operand that an address off the mark is nearest to, for the message. */
static void __attribute__((noreturn)) stop_outside(CuPointer address, size_t bytes, bool write) {
  const Launch *launch = shadow.launch;
  const CuOperand *nearest = NULL;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < launch->operand_count; i++) {
    const CuOperand *operand = &launch->operands[i];
    CuPointer end = operand->address + operand->bytes;
    uint64_t distance = address < operand->address ? operand->address - address : address < end ? 0 : address - end + 1;
    if (distance < least) least = distance, nearest = operand;
  }
  const char *action = write ? "writes" : "reads";
  if (!nearest)
    stop("%s %zu bytes at %#llx, which is no memory of the device", action, bytes, (unsigned long long)address);
  stop("%s %zu bytes at byte %lld of operand %d, which it may %s for %zu bytes", action, bytes,
       (long long)(address - nearest->address), (int)(nearest - launch->operands),
       nearest->use == RP_OPERAND_IN ? "only read," : "use", nearest->bytes);
}

static void check_bounds(CuPointer address, size_t bytes, bool write) {
  const Launch *launch = shadow.launch;
  if (launch->operand_count == 0) {
    if (!find_allocation(address, bytes)) stop_outside(address, bytes, write);
    return;
  }
  if (shadow.last_operand && allowed(shadow.last_operand, address, bytes, write)) return;
  for (int i = 0; i < launch->operand_count; i++) {
    if (!allowed(&launch->operands[i], address, bytes, write)) continue;
    shadow.last_operand = &launch->operands[i];
    return;
  }
  stop_outside(address, bytes, write);
}

/* ---- races ---- */

static bool is_shared(const Region *region) { return region == &shadow.statics || region == &shadow.dynamic; }

static void __attribute__((noreturn))
stop_race(const Region *region, CuPointer address, bool write, const char *how, int other) {
  char text[64] = "another block";
  if (other == SEVERAL) snprintf(text, sizeof text, "other threads");
  if (other >= 0 && other != SEVERAL) snprintf(text, sizeof text, "thread %d", other);
  stop("%s %s at byte %lld, which %s %s, without a barrier between", write ? "writes" : "reads",
       is_shared(region) ? "shared memory" : "device memory", (long long)(address - region->start), text, how);
}

/* Makes the cell one of this run; what other blocks did is looked at on the way. */
static void renew(const Region *region, Cell *cell, CuPointer address, bool write, bool atomic, bool races) {
  bool of_launch = cell->run >= shadow.first_run_of_launch && !is_shared(region);
  bool of_other = of_launch && cell->run < shadow.first_run_of_block;
  bool both_atomic = atomic && (cell->writer == ATOMIC || cell->writer == EARLIER_ATOMIC);
  if (races && of_other && cell->writer != NOBODY && !both_atomic) stop_race(region, address, write, "has written", -1);
  bool read_elsewhere = of_launch && (cell->read_elsewhere || (of_other && cell->reader != NOBODY));
  *cell = (Cell){.run = shadow.run, .epoch = shadow.epoch, .reader_warp = 0xff, .read_elsewhere = read_elsewhere};
}

static bool apart(const Cell *cell, int warp, uint8_t epoch) {
  return cell->epoch != shadow.epoch || (warp == running->warp && epoch != shadow.warp_epochs[running->warp]);
}

static void check_writer(const Region *region, const Cell *cell, CuPointer address, bool write) {
  int writer = cell->writer - 1;
  if (cell->writer == NOBODY || cell->writer == EARLIER || cell->writer == EARLIER_ATOMIC) return;
  if (writer == running->index) return;
  if (cell->writer == ATOMIC) stop_race(region, address, write, "change atomically", SEVERAL);
  if (!apart(cell, writer / 32, cell->write_epoch)) stop_race(region, address, write, "has written", writer);
}

static void check_readers(const Region *region, const Cell *cell, CuPointer address) {
  if (cell->read_elsewhere) stop_race(region, address, true, "has read", -1);
  if (cell->reader == NOBODY || cell->reader - 1 == running->index) return;
  int warp = cell->reader_warp;
  if (!apart(cell, warp, cell->read_epoch))
    stop_race(region, address, true, "has read", cell->reader == SEVERAL ? warp * 32 : cell->reader - 1);
}

/* A new epoch forgets readers of the old one; that there was a writer is kept. */
static void enter_epoch(Cell *cell) {
  if (cell->epoch == shadow.epoch) return;
  cell->epoch = shadow.epoch;
  cell->reader = NOBODY;
  if (cell->writer == ATOMIC || cell->writer == EARLIER_ATOMIC)
    cell->writer = EARLIER_ATOMIC;
  else if (cell->writer != NOBODY)
    cell->writer = EARLIER;
}

static void note_read(Cell *cell) {
  uint16_t self = (uint16_t)(running->index + 1);
  uint8_t warp = (uint8_t)running->warp, epoch = shadow.warp_epochs[running->warp];
  bool first = cell->reader == NOBODY || (cell->reader_warp == warp && cell->read_epoch != epoch);
  if (first) {
    cell->reader = self;
    cell->reader_warp = warp;
  } else if (cell->reader != self) {
    cell->reader = SEVERAL;
    if (cell->reader_warp != warp) cell->reader_warp = 0xff;
  }
  cell->read_epoch = epoch;
}

static void note_write(Cell *cell, bool atomic) {
  cell->writer = atomic ? ATOMIC : (uint16_t)(running->index + 1);
  cell->write_epoch = shadow.warp_epochs[running->warp];
  cell->reader = NOBODY;
}

static void check_cell(const Region *region, CuPointer address, bool write, bool atomic, bool races) {
  Cell *cell = cell_at(region, address);
  if (cell->run != shadow.run) renew(region, cell, address, write, atomic, races);
  bool atomics = atomic && cell->writer == ATOMIC;
  if (!write && is_shared(region) && cell->writer == NOBODY)
    stop("reads shared memory at byte %lld that no thread of the block has written",
         (long long)(address - region->start));
  if (races && !atomics) {
    bool same_epoch = cell->epoch == shadow.epoch;
    if (same_epoch) check_writer(region, cell, address, write);
    if (write && (same_epoch || cell->read_elsewhere)) {
      if (same_epoch)
        check_readers(region, cell, address);
      else
        stop_race(region, address, true, "has read", -1);
    }
  }
  enter_epoch(cell);
  if (write)
    note_write(cell, atomic);
  else
    note_read(cell);
}

/* ---- undoing ---- */

static void push(UndoLog *log, CuPointer address, size_t bytes) {
  enum { MOST = sizeof((Undo *)0)->value };
  for (; bytes > MOST; address += MOST, bytes -= MOST) push(log, address, MOST);
  if (log->count == log->capacity) {
    log->capacity = log->capacity ? 2 * log->capacity : 1024;
    log->items = realloc(log->items, log->capacity * sizeof *log->items);
    if (!log->items) abort();
  }
  Undo *undo = &log->items[log->count++];
  undo->address = address;
  undo->bytes = (unsigned)bytes;
  memcpy(undo->value, (const void *)(uintptr_t)address, bytes);
}

void shadow_undo(void) {
  for (size_t i = shadow.log.count; i-- > 0;) {
    const Undo *undo = &shadow.log.items[i];
    memcpy((void *)(uintptr_t)undo->address, undo->value, undo->bytes);
  }
}

void shadow_keep(void) {
  shadow.kept.count = 0;
  for (size_t i = 0; i < shadow.log.count; i++)
    push(&shadow.kept, shadow.log.items[i].address, shadow.log.items[i].bytes);
}

static bool same_bytes(const UndoLog *results) {
  for (size_t i = 0; i < results->count; i++) {
    const Undo *result = &results->items[i];
    if (memcmp((const void *)(uintptr_t)result->address, result->value, result->bytes) == 0) continue;
    fault(ERROR_LAUNCH_FAILED, "the bytes that the block writes depend on the order of its threads, at %#llx",
          (unsigned long long)result->address);
    return false;
  }
  return true;
}

/* Memory has what the second run wrote. Every result of the first has to be there; and with the first's written over
 * what was before, every result of the second. */
bool shadow_compare(void) {
  UndoLog second = {0};
  if (!same_bytes(&shadow.kept)) return false;
  for (size_t i = 0; i < shadow.log.count; i++) push(&second, shadow.log.items[i].address, shadow.log.items[i].bytes);
  shadow_undo();
  for (size_t i = 0; i < shadow.kept.count; i++) {
    const Undo *result = &shadow.kept.items[i];
    memcpy((void *)(uintptr_t)result->address, result->value, result->bytes);
  }
  bool same = same_bytes(&second);
  free(second.items);
  return same;
}

/* ---- accesses ---- */

static void access_region(const Region *region, CuPointer address, size_t bytes, bool write, bool atomic) {
  bool races = bytes >= 4;
  for (CuPointer at = address & ~(CuPointer)3; at < address + bytes; at += 4)
    check_cell(region, at < region->start ? region->start : at, write, atomic, races);
}

static void access_device(CuPointer address, size_t bytes, bool write, bool atomic) {
  check_bounds(address, bytes, write);
  Allocation *allocation = find_allocation(address, bytes);
  if (!allocation) stop_outside(address, bytes, write);
  access_region(device_region(allocation), address, bytes, write, atomic);
  if (!write) return;
  push(&shadow.log, address, bytes);
  note_written(allocation, address + bytes);
}

static void access_memory(const void *pointer, size_t bytes, bool write, bool atomic) {
  CuPointer address = (CuPointer)(uintptr_t)pointer;
  if (!running) return;
  if (contains(&shadow.statics, address)) {
    access_region(&shadow.statics, address, bytes, write, atomic);
  } else if (contains(&shadow.dynamic, address)) {
    if (address + bytes > shadow.dynamic.start + shadow.launch->shared)
      stop("%s dynamic shared memory at byte %lld, the launch gives %u", write ? "writes" : "reads",
           (long long)(address - shadow.dynamic.start), shadow.launch->shared);
    access_region(&shadow.dynamic, address, bytes, write, atomic);
  } else if (in_device_range(address)) {
    access_device(address, bytes, write, atomic);
  } else if (address < 4096) {
    stop("%s through a null pointer", write ? "writes" : "reads");
  } else if (address >= shadow.launch->function->data_start && address < shadow.launch->function->data_end) {
    stop("%s shared memory beyond its end", write ? "writes" : "reads");
  } else if (in_pinned_memory(pointer, bytes) || (write && !on_fiber_stack(pointer))) {
    stop("%s memory that is not the device's, or shared memory beyond its end", write ? "writes" : "reads");
  }
}

EXPORT int reprise_atomic(int *address, int operation, int value, int compare, int is_signed) {
  access_memory(address, 4, true, true);
  int old = *address;
  bool less = is_signed ? value < old : (unsigned)value < (unsigned)old;
  int results[] = {(int)((unsigned)old + (unsigned)value),
                   less ? value : old,
                   less ? old : value,
                   value,
                   old | value,
                   old & value,
                   old == compare ? value : old};
  *address = results[operation];
  return old;
}

/* ---- launches ---- */

void shadow_start_launch(const Launch *launch, char *static_shared, size_t static_bytes, char *dynamic_shared) {
  enum { DYNAMIC_GUARD = 4096 };
  shadow.launch = launch;
  shadow.last_operand = NULL;
  reserve_cells(&shadow.statics, (CuPointer)(uintptr_t)static_shared, static_bytes);
  reserve_cells(&shadow.dynamic, (CuPointer)(uintptr_t)dynamic_shared, (size_t)launch->shared + DYNAMIC_GUARD);
  shadow.first_run_of_launch = shadow.run + 1;
  if (shadow.run > UINT32_MAX / 2) abort(); /* serial numbers are used up */
}

/* Shared memory starts as signalling NaNs; the log starts anew. */
void shadow_start_run(bool repeat) {
  static const uint32_t pattern = 0x7fa00000u;
  const Region *regions[] = {&shadow.statics, &shadow.dynamic};
  for (int r = 0; r < 2; r++)
    for (size_t i = 0; i + 4 <= regions[r]->bytes; i += 4)
      memcpy((char *)(uintptr_t)regions[r]->start + i, &pattern, sizeof pattern);
  shadow.run++;
  if (!repeat) shadow.first_run_of_block = shadow.run;
  shadow.epoch = 0;
  memset(shadow.warp_epochs, 0, sizeof shadow.warp_epochs);
  shadow.log.count = 0;
}

void shadow_block_barrier(void) { shadow.epoch++; }
void shadow_warp_barrier(int warp) { shadow.warp_epochs[warp]++; }

static bool written_whole(const CuOperand *operand, int index) {
  Allocation *allocation = find_allocation(operand->address, operand->bytes);
  if (!allocation) {
    fault(ERROR_ILLEGAL_ADDRESS, "operand %d is not in device memory", index);
    return false;
  }
  const Region *region = device_region(allocation);
  for (size_t i = 0; i < operand->bytes; i += 4) {
    const Cell *cell = cell_at(region, operand->address + i);
    if (cell->run >= shadow.first_run_of_launch && cell->writer != NOBODY) continue;
    fault(ERROR_LAUNCH_FAILED, "the launch does not write byte %zu of operand %d, an output of %zu bytes", i, index,
          operand->bytes);
    return false;
  }
  return true;
}

bool shadow_check_written(void) {
  for (int i = 0; i < shadow.launch->operand_count; i++) {
    const CuOperand *operand = &shadow.launch->operands[i];
    if (operand->use == RP_OPERAND_OUT && !written_whole(operand, i)) return false;
  }
  return true;
}

/* ---- the hooks that -fsanitize=thread calls ---- */

#define HOOKS(bytes) \
  EXPORT void __tsan_read##bytes(void *p) { access_memory(p, bytes, false, false); } \
  EXPORT void __tsan_write##bytes(void *p) { access_memory(p, bytes, true, false); } \
  EXPORT void __tsan_unaligned_read##bytes(void *p) { access_memory(p, bytes, false, false); } \
  EXPORT void __tsan_unaligned_write##bytes(void *p) { access_memory(p, bytes, true, false); } \
  EXPORT void __tsan_volatile_read##bytes(void *p) { access_memory(p, bytes, false, false); } \
  EXPORT void __tsan_volatile_write##bytes(void *p) { access_memory(p, bytes, true, false); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
EXPORT void __tsan_read_range(void *p, size_t bytes) { access_memory(p, bytes, false, false); }
EXPORT void __tsan_write_range(void *p, size_t bytes) { access_memory(p, bytes, true, false); }
EXPORT void __tsan_func_entry(void *p) { (void)p; }
EXPORT void __tsan_func_exit(void) {}
EXPORT void __tsan_init(void) {}
EXPORT void __tsan_vptr_update(void **p, void *value) { (void)p, (void)value; }

/* What -fsanitize=alignment tells its hook: where in the source, the type, the logarithm of what it needs. */
typedef struct Misaligned {
  const char *file;
  uint32_t line, column;
  const void *type;
  unsigned char alignment, kind;
} Misaligned;
EXPORT void reprise_misaligned(const Misaligned *data, uintptr_t address) {
  if (running)
    stop("uses %#llx, which is no multiple of %d, at line %u", (unsigned long long)address, 1 << data->alignment,
         data->line);
}
