/* tests/cuda/device_bench.h - compiling CUDA source and launching its kernels on the emulated device, each operand in
 * an allocation of its own. */
#ifndef REPRISE_TESTS_CUDA_DEVICE_BENCH_H
#define REPRISE_TESTS_CUDA_DEVICE_BENCH_H

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"

enum { BENCH_OPERANDS = 16 };

typedef struct Bench {
  CudaLibraries cuda;
  CuStream stream;
  CuModule module;
  int count;
  CuPointer pointers[BENCH_OPERANDS];
  void *hosts[BENCH_OPERANDS]; /* pinned */
  size_t bytes[BENCH_OPERANDS];
} Bench;

/* Compiles with an NVRTC, the emulated one or a toolkit's, for a target: "sm_90" gives a cubin, "compute_90" PTX.
 * Returns it (malloc) and its size, or NULL with the log, cut, in `log`; the log is there after success too. `extra`
 * options end with NULL; NULL: none. */
char *compile_cuda(const char *library, const char *source, const char *target, const char *const *extra, char *log,
                   size_t log_size, size_t *bytes);

/* A started device with the module of `source`; the test fails when anything does. */
void bench_open(Bench *bench, const char *source);
void bench_close(Bench *bench);

/* An operand of device memory that starts as `data`; NULL: as the device gives it. Offsets of RpArguments are the
 * number that is returned. */
int bench_operand(Bench *bench, const void *data, size_t bytes);
/* Launches and waits; the error of the device. An argument's offset names an operand, its bytes are the whole
 * operand's. */
CuResult bench_launch(Bench *bench, const char *function, RpDim grid, RpDim block, uint32_t shared,
                      const RpArgument *arguments, int count);
/* What an operand holds now, in host memory of the bench. */
const void *bench_read(Bench *bench, int operand);

#define BENCH_IN(index) ((RpArgument){RP_OPERAND_IN, 0, {.offset = (index)}})
#define BENCH_OUT(index) ((RpArgument){RP_OPERAND_OUT, 0, {.offset = (index)}})
#define BENCH_UPDATE(index) ((RpArgument){RP_OPERAND_UPDATE, 0, {.offset = (index)}})
#define BENCH_LAUNCH(bench, function, grid, block, shared, ...) \
  bench_launch((bench), (function), (grid), (block), (shared), (const RpArgument[]){__VA_ARGS__}, \
               (int)(sizeof((const RpArgument[]){__VA_ARGS__}) / sizeof(RpArgument)))

#endif
