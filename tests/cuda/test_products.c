/* rp_cuda_gemm against rp_gemm_batched_f32 (runtime/gemm.h): transposes, leading dimensions, batches of several axes,
 * broadcast operands; on the emulated cuBLAS, which wants a workspace in the arena and spoils it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/arena.h"
#include "runtime/cuda/device_program.h"
#include "runtime/random.h"
#include "tests/cuda/device_bench.h"

enum { ELEMENTS = 4096, A = 0, BYTES = 4 * ELEMENTS, B = BYTES, C = 2 * BYTES, WORKSPACE = 3 * BYTES, ROOM = 4096 };

typedef struct Case {
  RpGemmBatch batch;
  bool transpose_a, transpose_b;
  int64_t m, n, k, lda, ldb, ldc;
} Case;

static const Case cases[] = {
    {{0, {0}, {0}, {0}, {0}}, false, false, 5, 7, 3, 3, 7, 7},
    {{0, {0}, {0}, {0}, {0}}, true, false, 5, 7, 3, 6, 9, 8},
    {{0, {0}, {0}, {0}, {0}}, false, true, 5, 7, 3, 4, 5, 7},
    {{0, {0}, {0}, {0}, {0}}, true, true, 1, 1, 9, 2, 9, 1},
    {{1, {6}, {15}, {21}, {35}}, false, false, 5, 7, 3, 3, 7, 7},
    {{1, {6}, {15}, {0}, {35}}, false, false, 5, 7, 3, 3, 7, 7},
    {{3, {2, 3, 4}, {200, 0, 15}, {100, 25, 0}, {500, 140, 35}}, false, true, 5, 7, 3, 3, 3, 7},
    {{2, {3, 0}, {1, 1}, {1, 1}, {1, 1}}, false, false, 2, 2, 2, 2, 2, 2},
    {{0, {0}, {0}, {0}, {0}}, false, false, 0, 7, 3, 3, 7, 7},
    {{0, {0}, {0}, {0}, {0}}, false, false, 2, 3, 0, 1, 3, 3},
};
static const Case *current;

static void run_case(RpContext *context) {
  const Case *c = current;
  rp_cuda_gemm(context, c->batch.rank ? &c->batch : NULL, c->transpose_a, c->transpose_b, c->m, c->n, c->k, A, c->lda,
               B, c->ldb, C, c->ldc, WORKSPACE, ROOM);
  rp_done(context, 0);
}

static const RpKernel kernels[] = {{"product", "products.rp:1:1", "forward", false, 0, NULL, 0}};

static unsigned char *no_code(size_t *bytes) {
  char log[4096];
  char *image = compile_cuda(REPRISE_EMULATOR "/libnvrtc.so.13", "", "sm_90", NULL, log, sizeof log, bytes);
  assert_non_null(image);
  return (unsigned char *)image;
}

static void test_products(void **state) {
  (void)state;
  static float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS], found[ELEMENTS];
  size_t bytes;
  unsigned char *image = no_code(&bytes);
  const RpImage cubin = {90, image, (int64_t)bytes};
  const RpDeviceProgram device = {.backend = &rp_cuda_backend, .cubins = &cubin, .cubin_count = 1, .uses_gemm = true};
  const RpProgram program = {.arena_bytes = WORKSPACE + ROOM + 256,
                             .control_offset = WORKSPACE + ROOM,
                             .micro_step = {.run = run_case, .kernels = kernels, .kernel_count = 1},
                             .device = &device};
  RpContext context = {.program = &program, .phase = &program.micro_step};
  RpStatus status = {0};
  assert_true(rp_arena_open(&context, &status));
  for (int i = 0; i < ELEMENTS; i++) a[i] = rp_uniform(1, 2, 3, (uint64_t)i), b[i] = rp_uniform(4, 5, 6, (uint64_t)i);
  assert_true(rp_arena_write(&context, A, a, BYTES, &status) && rp_arena_write(&context, B, b, BYTES, &status));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    RpControl control = {0};
    current = &cases[i];
    memset(c, 0x7f, sizeof c);
    assert_true(rp_arena_fill(&context, C, 0x7f, BYTES, &status));
    rp_gemm_batched_f32(&current->batch, current->transpose_a, current->transpose_b, current->m, current->n, current->k,
                        1, a, current->lda, b, current->ldb, 0, c, current->ldc);
    context.observer = NULL;
    if (i == 0)
      assert_true(rp_phase_start(&context, &control, &status) && rp_phase_finish(&context, &control, NULL, &status));
    rp_cuda_fill(&context, C, 0x7f, BYTES);
    run_case(&context); /* queued by itself: a graph would keep the first case */
    assert_true(rp_arena_read(&context, C, found, BYTES, &status));
    for (int e = 0; e < ELEMENTS; e++)
      if (!(fabsf(found[e] - c[e]) <= 1e-6f * (1 + fabsf(c[e]))))
        fail_msg("case %zu, element %d: %g, expected %g", i, e, (double)found[e], (double)c[e]);
  }
  rp_arena_close(&context);
  free(image);
}

int main(void) {
  setenv("REPRISE_CUDA_PATH", REPRISE_EMULATOR, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
