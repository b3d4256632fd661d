/* tests/emulator/emulator.h - an NVIDIA device that is not there: libcuda.so.1 for tests.
 *
 *   device.c   devices, context, modules, settings, the report
 *   memory.c   allocations in a range of addresses of their own, with guard zones
 *   stream.c   streams, events, copies, graphs; the order of streams is checked
 *   block.c    a grid, block after block, every block under several orders of its threads
 *   fiber.c    a thread of a block
 *   shadow.c   every access of a kernel: bounds, races, uninitialised shared memory
 *
 * Settings, all environment variables:
 *   REPRISE_EMULATOR_MEMORY    bytes of device memory (1 GiB)
 *   REPRISE_EMULATOR_ARCH      90: the device is an sm_90
 *   REPRISE_EMULATOR_DRIVER    version of the driver, 13000
 *   REPRISE_EMULATOR_DEVICES   number of devices, 1
 *   REPRISE_EMULATOR_STREAMS   lazy (work is done as late as the host allows) or eager (at once)
 *   REPRISE_EMULATOR_REPORT    file that receives a JSON object at the end
 *
 * A fault is said on stderr, and every later call fails with its error, as on a device. */
#ifndef REPRISE_TESTS_EMULATOR_EMULATOR_H
#define REPRISE_TESTS_EMULATOR_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  ERROR_INVALID_VALUE = 1,
  ERROR_OUT_OF_MEMORY = CU_OUT_OF_MEMORY,
  ERROR_NOT_INITIALIZED = 3,
  ERROR_NO_DEVICE = CU_NO_DEVICE,
  ERROR_INVALID_IMAGE = 200,
  ERROR_INVALID_CONTEXT = 201,
  ERROR_NO_BINARY = CU_NO_BINARY_FOR_GPU,
  ERROR_NOT_FOUND = 500,
  ERROR_ILLEGAL_ADDRESS = 700,
  ERROR_LAUNCH_FAILED = 719,
  ERROR_CAPTURE_UNSUPPORTED = 900,
  EMULATED_CONTEXT_BYTES = 96 << 20, /* device memory that the context takes, and cuBLAS */
  EMULATED_CUBLAS_BYTES = 24 << 20
};

typedef struct Settings {
  int64_t memory;
  int architecture, driver, devices;
  bool eager;
  const char *without; /* a driver function that does nothing, to see what is found; "" */
  const char *report;
} Settings;
const Settings *settings(void);

/* What the report says. */
typedef struct Counters {
  int64_t allocated, allocated_peak; /* bytes of cuMemAlloc */
  int64_t high_water;                /* end of the last unit of memory written, from the start of its allocation */
  int64_t in_use_peak;               /* what cuMemGetInfo tells less of: allocations, libraries and context together */
  int64_t libraries, context;        /* bytes in use by them */
  int64_t allocations, launches, graph_launches, products, blocks;
} Counters;
extern Counters counters;

/* Says what is wrong, once; the device is broken from then on. Returns the error. */
EXPORT CuResult fault(CuResult error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 0, or the error of the first fault. */
CuResult broken(void);
/* Likewise; a fault where this thread has made no context current, as most functions of the driver want it. */
CuResult unusable(void);

/* Runs when the library is unloaded: gives back what a file holds. */
#define AT_UNLOAD static void __attribute__((destructor))

/* ---- memory.c ---- */

typedef struct Allocation {
  CuPointer start;
  size_t bytes;
  void *cells; /* shadow.c's, NULL until a kernel touches it */
} Allocation;
/* The allocation of which [address, address + bytes) is a part, or NULL. */
EXPORT Allocation *find_allocation(CuPointer address, size_t bytes);
/* Whether the address is in the range from which device memory is given out. */
bool in_device_range(CuPointer address);
bool in_pinned_memory(const void *address, size_t bytes);
/* Notes that device memory was written; memory counts in units of 256 bytes, to which addresses are aligned. */
EXPORT void touch(CuPointer address, size_t bytes);
void note_written(const Allocation *allocation, CuPointer end);
/* Notes that more is in use. */
void note_use(void);

/* ---- modules ---- */

/* As in shim.h. */
typedef struct RepriseKernel {
  int count;
  const unsigned char *sizes;
  void (*run)(void **parameters);
  int most_threads;
} RepriseKernel;
struct CUfunc_st {
  const char *name;
  const RepriseKernel *kernel;
  char *shared; /* static shared memory of the module */
  size_t shared_bytes;
  CuPointer data_start, data_end; /* what else of the module's data there is around it */
  int most_dynamic_shared;
  struct CUfunc_st *next;
};

/* ---- block.c ---- */

typedef struct Dims {
  unsigned x, y, z;
} Dims;
typedef struct Launch {
  CuFunction function;
  Dims grid, block;
  unsigned shared;
  void **parameters;
  const CuOperand *operands;
  int operand_count;
} Launch;
CuResult run_grid(const Launch *launch);
/* "kernel add, block (3,0,0): " while one runs, for messages. */
const char *launch_title(void);

/* The thread that runs, NULL outside kernels. */
typedef struct Thread Thread;
struct Thread {
  int index; /* x fastest */
  Dims position;
  int warp, lane;
  bool done;
  bool (*ready)(const Thread *thread); /* while it waits: whether it may go on; NULL: it may */
  const char *waits_for, *file;        /* for messages */
  int line;
  int64_t barrier;     /* number of the block's barrier, or of the warp's exchange, that it waits for */
  unsigned epoch_mask; /* of the exchange: its lanes */
  int exchange_kind;
  int64_t exchanges; /* done, by this lane */
  void *stack_pointer;
  int stack;
};
extern Thread *running;
/* Gives up the kernel at a fault: does not return. */
void abandon(void) __attribute__((noreturn));

/* ---- fiber.c ---- */

/* Runs `thread` until it waits or is done: the first time from entry(). */
void fiber_resume(Thread *thread, void (*entry)(void));
/* Back to where the running thread was resumed. */
void fiber_wait(void);
/* Marks the running thread done and goes back: does not return. */
void fiber_exit(void) __attribute__((noreturn));
/* A stack for a thread that starts; stacks are taken again when their thread is done. */
void fiber_reset(void);
bool on_fiber_stack(const void *address);

/* ---- shadow.c ---- */

void shadow_start_launch(const Launch *launch, char *static_shared, size_t static_bytes, char *dynamic_shared);
/* The allocation goes away. */
void shadow_forget(Allocation *allocation);
/* Before each run of a block. repeat: it is the same block again. */
void shadow_start_run(bool repeat);
void shadow_block_barrier(void);
void shadow_warp_barrier(int warp);
/* Takes back what the run has written. */
void shadow_undo(void);
/* Keeps what the run has written, then compares with a second one that started from the same memory: false when they
 * differ, after a message. */
void shadow_keep(void);
bool shadow_compare(void);
/* Whether every operand that is to be written whole was. */
bool shadow_check_written(void);

/* ---- stream.c ---- */

/* Queues a function of another library (cuBLAS), which reads and writes the operands; data is copied. */
typedef CuResult (*Work)(void *data);
EXPORT CuResult enqueue_work(CuStream stream, const char *name, Work work, const void *data, size_t bytes,
                             const CuOperand *operands, int count);
CuResult synchronize_all(void);
/* Queues a launch with the operands that were declared for it; parameters are copied. */
CuResult enqueue_launch(CuStream stream, const Launch *launch);

/* ---- device.c ---- */

/* Device memory that a library takes for itself, or gives back. */
EXPORT CuResult take_library_memory(int64_t bytes);

#endif
