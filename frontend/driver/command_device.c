/* frontend/driver/command_device.c - `reprise device`: descriptions of devices, and one of the machine it runs on. */
#include <omp.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "frontend/driver/commands.h"
#include "frontend/driver/produce.h"
#include "passes/cost.h"
#include "runtime/gemm.h"

enum { REPETITIONS = 5 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best of several runs: the machine is rarely alone. */
static double best_seconds(void (*work)(float *a, float *b, float *c), float *a, float *b, float *c) {
  double best = 1e30;
  for (int i = 0; i < REPETITIONS; i++) {
    double start = seconds();
    work(a, b, c);
    double taken = seconds() - start;
    if (taken < best) best = taken;
  }
  return best;
}

enum { SIDE = 1024, STREAM = 1 << 25, LAUNCHES = 1000 };

static void multiply(float *a, float *b, float *c) {
  rp_gemm_f32(false, false, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE);
}

static void stream(float *a, float *b, float *c) {
  (void)c;
#pragma omp parallel for
  for (int i = 0; i < STREAM; i++) b[i] = a[i] + 1;
}

static void launch(float *a, float *b, float *c) {
  (void)a, (void)c;
  for (int i = 0; i < LAUNCHES; i++) {
#pragma omp parallel
    b[omp_get_thread_num()] += 1;
  }
}

static Device *measure_device(MemoryArena *arena) {
  size_t bytes = (size_t)STREAM * sizeof(float);
  float *a = calloc(1, bytes), *b = calloc(1, bytes), *c = calloc(1, bytes);
  if (!a || !b || !c) die_out_of_memory(0);
  for (int i = 0; i < SIDE * SIDE; i++) a[i] = (float)i / SIDE, b[i] = 1;
  Device *device = NEW(arena, Device);
  device->name = "cpu";
  device->flops = 2.0 * SIDE * SIDE * SIDE / best_seconds(multiply, a, b, c);
  device->bandwidth = 2.0 * (double)bytes / best_seconds(stream, a, b, c);
  device->launch = 1e6 * best_seconds(launch, a, b, c) / LAUNCHES;
  device->memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
  free(a), free(b), free(c);
  return device;
}

int device_command(const Options *options) {
  const char *io_error, *output = options->output ? options->output : "-";
  if (options->measure) {
    if (options->files.count) return fputs("reprise device: --measure takes no name\n", stderr), EXIT_USAGE;
    return write_text(options, output, device_text(options->arena, measure_device(options->arena)));
  }
  if (!options->files.count) {
    char *names = memory_string(options->arena, "");
    for (const char *const *name = device_names(); *name; name++)
      names = memory_format(options->arena, "%s%s\n", names, *name);
    return write_text(options, output, names);
  }
  const Device *device = find_device(options->arena, options->files.items[0], &io_error);
  if (io_error) fprintf(stderr, "reprise: %s\n", io_error);
  if (!device) return io_error ? EXIT_IO : EXIT_SOURCE_ERROR;
  return write_text(options, output, device_text(options->arena, device));
}
