/* Faults planted in kernels, each of which the emulated device has to find, and correct uses of the same means, which
 * it has to let pass. A fault breaks the device, so every kernel runs in a process of its own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "tests/cuda/device_bench.h"

/* in, out: 64 floats, count: what is in the kernel's control. */
static const char source[] =
    "#include \"runtime/kernels/reduce.cuh\"\n"
    "RP_KERNEL right(float *out, const float *in, int *n) {\n"
    "  __shared__ float tile[64];\n"
    "  tile[threadIdx.x] = in[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  out[threadIdx.x] = tile[63 - threadIdx.x];\n"
    "}\n"
    "RP_KERNEL reads_beyond(float *out, const float *in, int *n) { out[threadIdx.x] = in[threadIdx.x + 1]; }\n"
    "RP_KERNEL writes_before(float *out, const float *in, int *n) { out[(int)threadIdx.x - 1] = in[threadIdx.x]; }\n"
    "RP_KERNEL writes_input(float *out, float *in, int *n) { out[threadIdx.x] = 1; in[threadIdx.x] = 1; }\n"
    "RP_KERNEL element(float *out, const float *in, int *n) { int i = (int)rp_thread(); out[i] = in[i]; }\n"
    "extern \"C\" __global__ void __launch_bounds__(32) bounded(float *out, const float *in, int *n) {\n"
    "  out[threadIdx.x] = in[threadIdx.x];\n"
    "}\n"
    "RP_KERNEL through_null(float *out, const float *in, int *n) { *(float *)0 = in[0]; }\n"
    "RP_KERNEL misaligned(float *out, const float *in, int *n) {\n"
    "  ((float4 *)(out + 1))->y = 1;\n"
    "}\n"
    "RP_KERNEL without_barrier(float *out, const float *in, int *n) {\n"
    "  __shared__ float tile[64];\n"
    "  tile[threadIdx.x] = in[threadIdx.x];\n"
    "  out[threadIdx.x] = tile[63 - threadIdx.x];\n"
    "}\n"
    "RP_KERNEL barrier_too_few(float *out, const float *in, int *n) {\n" /* read, then overwritten */
    "  __shared__ float tile[64];\n"
    "  tile[threadIdx.x] = in[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  float x = tile[63 - threadIdx.x];\n"
    "  tile[threadIdx.x] = x;\n"
    "  out[threadIdx.x] = x;\n"
    "}\n"
    "RP_KERNEL unguarded(float *out, const float *in, int *n) {\n"
    "  __shared__ float sum;\n"
    "  sum = in[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  out[threadIdx.x] = sum;\n"
    "}\n"
    "RP_KERNEL uninitialised(float *out, const float *in, int *n) {\n"
    "  __shared__ float tile[64];\n"
    "  if (threadIdx.x < 32) tile[threadIdx.x] = in[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  out[threadIdx.x] = tile[threadIdx.x];\n"
    "}\n"
    "RP_KERNEL beyond_shared(float *out, const float *in, int *n) {\n"
    "  __shared__ float last[4096];\n"
    "  last[threadIdx.x + n[0]] = 1;\n"
    "  __syncthreads();\n"
    "  out[threadIdx.x] = last[threadIdx.x];\n"
    "}\n"
    "RP_KERNEL dynamic(float *out, const float *in, int *n) {\n"
    "  RP_DYNAMIC_SHARED(float, tile);\n"
    "  tile[threadIdx.x] = in[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  out[threadIdx.x] = tile[63 - threadIdx.x];\n"
    "}\n"
    "RP_KERNEL half_barrier(float *out, const float *in, int *n) {\n"
    "  if (threadIdx.x < 32) __syncthreads();\n"
    "  out[threadIdx.x] = 1;\n"
    "}\n"
    "RP_KERNEL two_barriers(float *out, const float *in, int *n) {\n"
    "  if (threadIdx.x < 32)\n"
    "    __syncthreads();\n"
    "  else\n"
    "    __syncthreads();\n"
    "  out[threadIdx.x] = 1;\n"
    "}\n"
    "RP_KERNEL half_shuffle(float *out, const float *in, int *n) {\n"
    "  float x = in[threadIdx.x];\n"
    "  if (threadIdx.x % 32 < 16) x = __shfl_xor_sync(RP_ALL_LANES, x, 1);\n"
    "  out[threadIdx.x] = x;\n"
    "}\n"
    "RP_KERNEL warp_exchange(float *out, const float *in, int *n) {\n"
    "  __shared__ float tile[64];\n"
    "  tile[threadIdx.x] = in[threadIdx.x];\n"
    "  if (n[0]) __syncwarp();\n"
    "  out[threadIdx.x] = tile[threadIdx.x ^ 1];\n"
    "}\n"
    "RP_KERNEL order_dependent(float *out, const float *in, int *n) { out[atomicAdd(n, 1)] = in[threadIdx.x]; }\n"
    "RP_KERNEL counted(float *out, const float *in, int *n) { atomicAdd(n, 1); out[threadIdx.x] = 1; }\n"
    "RP_KERNEL across_blocks(float *out, const float *in, int *n) {\n"
    "  if (threadIdx.x == 0 || blockIdx.x == 0) out[threadIdx.x] = 1;\n"
    "}\n"
    "RP_KERNEL reads_other_block(float *out, const float *in, int *n) {\n"
    "  out[rp_thread()] = 1;\n"
    "  if (blockIdx.x == 1) out[rp_thread()] = out[0];\n"
    "}\n";

enum { COUNT = 64 };
static Bench bench;
static int in, out, number;

static int start(void **state) {
  (void)state;
  float data[COUNT];
  for (int i = 0; i < COUNT; i++) data[i] = (float)i;
  bench_open(&bench, source);
  in = bench_operand(&bench, data, sizeof data);
  out = bench_operand(&bench, NULL, sizeof data);
  number = bench_operand(&bench, &(int){0}, sizeof(int));
  return 0;
}
static int end(void **state) {
  (void)state;
  bench_close(&bench);
  return 0;
}

typedef struct Try {
  const char *kernel;
  unsigned grid, block, shared;
  int number;
  CuResult result;
  const char *expected; /* part of what the device says; NULL: nothing */
} Try;

static CuResult launch(const Try *try) {
  memcpy(bench.hosts[number], &try->number, sizeof(int));
  bench.cuda.copy_in(bench.pointers[number], bench.hosts[number], sizeof(int), bench.stream);
  return BENCH_LAUNCH(&bench, try->kernel, RP_DIM(try->grid, 1, 1), RP_DIM(try->block, 1, 1), try->shared,
                      BENCH_OUT(out), BENCH_IN(in), BENCH_UPDATE(number));
}

/* Runs in a child; what it writes on stderr comes back. */
static CuResult launch_apart(const Try *try, char *said, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    CuResult result = launch(try);
    _exit(result == 0 ? 0 : result == 1 ? 1 : result == 700 ? 2 : result == 719 ? 3 : 4);
  }
  close(ends[1]);
  ssize_t length, all = 0;
  while ((length = read(ends[0], said + all, size - 1 - (size_t)all)) > 0) all += length;
  said[all] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  static const CuResult results[] = {0, 1, 700, 719};
  return WIFEXITED(status) && WEXITSTATUS(status) < 4 ? results[WEXITSTATUS(status)] : -1;
}

static void test_faults(void **state) {
  (void)state;
  static const Try tries[] = {
      {"right", 1, COUNT, 0, 0, 0, NULL},
      {"reads_beyond", 1, COUNT, 0, 0, 700, "reads 4 bytes at byte 256 of operand 1"},
      {"writes_before", 1, COUNT, 0, 0, 700, "writes 4 bytes at byte -4 of operand 0"},
      {"writes_input", 1, COUNT, 0, 0, 700, "operand 1, which it may only read"},
      {"element", 2, COUNT / 2, 0, 0, 0, NULL},
      {"element", 1, COUNT / 2, 0, 0, 719, "does not write byte 128 of operand 0"},
      {"element", 3, COUNT / 2, 0, 0, 700, "reads 4 bytes at byte 256 of operand 1"},
      {"element", 1, 2048, 0, 0, 1, NULL},
      {"element", 1, 288, 0, 0, 1, NULL}, /* beyond launch bounds of 256 */
      {"bounded", 1, COUNT, 0, 0, 1, NULL},
      {"through_null", 1, 1, 0, 0, 700, "through a null pointer"},
      {"misaligned", 1, 1, 0, 0, 700, "no multiple of 16"},
      {"without_barrier", 1, COUNT, 0, 0, 700, "shared memory"},
      {"barrier_too_few", 1, COUNT, 0, 0, 700, "without a barrier between"},
      {"unguarded", 1, COUNT, 0, 0, 700, "writes shared memory"},
      {"uninitialised", 1, COUNT, 0, 0, 700, "that no thread of the block has written"},
      {"beyond_shared", 1, COUNT, 0, 1 << 20, 700, "beyond its end"},
      {"dynamic", 1, COUNT, 256, 0, 0, NULL},
      {"dynamic", 1, COUNT, 252, 0, 700, "dynamic shared memory at byte 252, the launch gives 252"},
      {"half_barrier", 1, COUNT, 0, 0, 719, "divergent barriers"},
      {"two_barriers", 1, COUNT, 0, 0, 719, "divergent barriers"},
      {"half_shuffle", 1, COUNT, 0, 0, 719, "a warp function"},
      {"warp_exchange", 1, COUNT, 0, 1, 0, NULL},
      {"warp_exchange", 1, COUNT, 0, 0, 700, "shared memory"},
      {"order_dependent", 1, COUNT, 0, 0, 719, "depend on the order of its threads"},
      {"counted", 1, COUNT, 0, 0, 0, NULL},
      {"across_blocks", 2, COUNT, 0, 0, 700, "which another block has written"},
      {"reads_other_block", 2, COUNT / 2, 0, 0, 700, "which another block has written"},
  };
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    char said[4096];
    CuResult result = launch_apart(&tries[i], said, sizeof said);
    bool as_expected = tries[i].expected ? strstr(said, tries[i].expected) != NULL : !*said;
    if (result != tries[i].result || !as_expected)
      fail_msg("%s: error %d, expected %d; \"%s\"", tries[i].kernel, result, tries[i].result, said);
  }
}

/* ---- streams ---- */

enum { UNORDERED, BY_EVENT, BY_HOST, PAGEABLE, OUTSIDE, THREAD };

/* A thread of its own has no context, unless it makes one current. */
static void *copy_in_thread(void *data) {
  CuResult *result = data;
  *result = bench.cuda.copy_in(bench.pointers[out], bench.hosts[in], COUNT, bench.stream);
  return NULL;
}

static CuResult copy_twice(int how) {
  const CudaLibraries *cuda = &bench.cuda;
  if (how == THREAD) {
    pthread_t thread;
    CuResult result = 0;
    if (pthread_create(&thread, NULL, copy_in_thread, &result) == 0) pthread_join(thread, NULL);
    return result;
  }
  CuStream other;
  CuEvent event;
  char pageable[COUNT];
  size_t bytes = how == OUTSIDE ? 4096 : COUNT;
  cuda->stream_create(&other, CU_STREAM_NON_BLOCKING);
  cuda->event_create(&event, CU_EVENT_DISABLE_TIMING);
  cuda->copy_in(bench.pointers[out], how == PAGEABLE ? pageable : bench.hosts[in], bytes, bench.stream);
  cuda->event_record(event, bench.stream);
  if (how == BY_EVENT) cuda->stream_wait(other, event, 0);
  if (how == BY_HOST) cuda->stream_synchronize(bench.stream);
  cuda->copy_in(bench.pointers[out], bench.hosts[in], COUNT, other);
  return cuda->stream_synchronize(other);
}

static void test_streams(void **state) {
  (void)state;
  static const struct {
    int how;
    const char *expected;
  } tries[] = {{UNORDERED, "in no order"}, {BY_EVENT, NULL},           {BY_HOST, NULL},
               {PAGEABLE, "pinned"},       {OUTSIDE, "not allocated"}, {THREAD, "no context is current"}};
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    int ends[2], status;
    char said[1024] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      _exit(copy_twice(tries[i].how) != 0);
    }
    close(ends[1]);
    assert_true(read(ends[0], said, sizeof said - 1) >= 0);
    close(ends[0]);
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), tries[i].expected != NULL);
    if (tries[i].expected && !strstr(said, tries[i].expected)) fail_msg("expected \"%s\": %s", tries[i].expected, said);
  }
}

/* Work is done when the host waits, not before; an event lets what it stands for pass. */
static void test_late_work(void **state) {
  (void)state;
  const CudaLibraries *cuda = &bench.cuda;
  CuEvent event;
  char *host = bench.hosts[out];
  memset(bench.hosts[in], 7, COUNT);
  memset(host, 0, COUNT);
  assert_int_equal(cuda->event_create(&event, CU_EVENT_DISABLE_TIMING), 0);
  assert_int_equal(cuda->copy_in(bench.pointers[out], bench.hosts[in], COUNT, bench.stream), 0);
  assert_int_equal(cuda->copy_out(host, bench.pointers[out], COUNT, bench.stream), 0);
  assert_int_equal(cuda->event_record(event, bench.stream), 0);
  assert_int_equal(cuda->fill(bench.pointers[out], 9, COUNT, bench.stream), 0);
  assert_int_equal(host[0], 0);
  assert_int_equal(cuda->event_synchronize(event), 0);
  assert_int_equal(host[0], 7);
  assert_int_equal(cuda->event_destroy(event), 0);
  assert_int_equal(((const char *)bench_read(&bench, out))[COUNT - 1], 9);
}

int main(void) {
  setenv("REPRISE_CUDA_PATH", REPRISE_EMULATOR, 1);
  unsetenv("REPRISE_EMULATOR_STREAMS");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults), cmocka_unit_test(test_streams),
                                     cmocka_unit_test(test_late_work)};
  return cmocka_run_group_tests(tests, start, end);
}
