/* Every hand-made CUDA kernel, on the emulated device, against its form in C: over sizes that take the paths of whole
 * and broken vectors, of one warp and of several, and with outputs in the place of inputs where the op table allows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/kernels/argmax_rows.h"
#include "runtime/kernels/cross_entropy_rows.h"
#include "runtime/kernels/cross_entropy_rows_backward.h"
#include "runtime/kernels/embed.h"
#include "runtime/kernels/embed_backward.h"
#include "runtime/kernels/launch.h"
#include "runtime/kernels/layer_norm.h"
#include "runtime/kernels/layer_norm_backward.h"
#include "runtime/kernels/softmax_rows.h"
#include "runtime/kernels/softmax_rows_backward.h"
#include "runtime/random.h"
#include "tests/cuda/device_bench.h"

static const char source[] =
    "#include \"runtime/kernels/argmax_rows.cuh\"\n"
    "#include \"runtime/kernels/cross_entropy_rows.cuh\"\n"
    "#include \"runtime/kernels/cross_entropy_rows_backward.cuh\"\n"
    "#include \"runtime/kernels/embed.cuh\"\n"
    "#include \"runtime/kernels/embed_backward.cuh\"\n"
    "#include \"runtime/kernels/layer_norm.cuh\"\n"
    "#include \"runtime/kernels/layer_norm_backward.cuh\"\n"
    "#include \"runtime/kernels/softmax_rows.cuh\"\n"
    "#include \"runtime/kernels/softmax_rows_backward.cuh\"\n";

/* rows, columns: one element, less than a vector, one warp whole and broken, several warps, more than a block */
static const int sizes[][2] = {{1, 1}, {3, 3}, {2, 10}, {2, 64}, {2, 131}, {3, 132}, {2, 768}, {1, 4099}, {1, 4224}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static Bench bench;

static int start(void **state) {
  (void)state;
  bench_open(&bench, source);
  return 0;
}
static int end(void **state) {
  (void)state;
  bench_close(&bench);
  return 0;
}

/* ---- data ---- */

static uint64_t drawn;

static float draw(float low, float high) { return low + (high - low) * rp_uniform(1, 2, 3, drawn++); }

static float *draws(int64_t count, float low, float high) {
  float *values = malloc((size_t)count * sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = draw(low, high);
  return values;
}

/* Frees what the test before has left on the device. */
static void forget(void) {
  for (int i = 0; i < bench.count; i++) {
    bench.cuda.release(bench.pointers[i]);
    bench.cuda.release_host(bench.hosts[i]);
  }
  bench.count = 0;
}

static int floats(const float *values, int64_t count) { return bench_operand(&bench, values, (size_t)count * 4); }

static RpLaunch shape(const char *name, int64_t a, int64_t b, int64_t c) {
  RpLaunch launch;
  assert_true(rp_kernel_launch(name, (int64_t[]){a, b, c}, &launch));
  return launch;
}

#define RUN(name, extents, ...) \
  do { \
    RpLaunch launch = shape(name, extents); \
    assert_int_equal(BENCH_LAUNCH(&bench, "rp_" name, RP_DIM((uint32_t)launch.grid, 1, 1), \
                                  RP_DIM((uint32_t)launch.block, 1, 1), 0, __VA_ARGS__), \
                     0); \
  } while (0)
#define EXTENTS(a, b, c) a, b, c

/* Sums are taken in another order than in C: relative to the largest element of the row. */
static void assert_close(int operand, const float *expected, int64_t count, float tolerance) {
  const float *found = bench_read(&bench, operand);
  float scale = 1e-30f;
  for (int64_t i = 0; i < count; i++) scale = fabsf(expected[i]) > scale ? fabsf(expected[i]) : scale;
  for (int64_t i = 0; i < count; i++) {
    if (isnan(expected[i]) && isnan(found[i])) continue;
    if (expected[i] == found[i]) continue;
    if (!(fabsf(found[i] - expected[i]) <= tolerance * scale))
      fail_msg("element %lld of %lld: expected %.9g, found %.9g", (long long)i, (long long)count, (double)expected[i],
               (double)found[i]);
  }
}

/* ---- kernels ---- */

static void test_softmax(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = sizes[s][0], columns = sizes[s][1], count = rows * columns;
    forget();
    float *x = draws(count, -9, 9), *y = malloc((size_t)count * 4);
    if (columns > 2) x[columns / 2] = -INFINITY;
    rp_softmax_rows(y, x, rows, columns);
    int in = floats(x, count), out = floats(NULL, count);
    RUN("softmax_rows", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_IN(in), RP_I64(rows), RP_I64(columns));
    assert_close(out, y, count, 1e-6f);
    RUN("softmax_rows", EXTENTS(rows, columns, 0), BENCH_UPDATE(in), BENCH_UPDATE(in), RP_I64(rows), RP_I64(columns));
    assert_memory_equal(bench_read(&bench, in), bench_read(&bench, out), (size_t)count * 4);
    free(x);
    free(y);
  }
}

static void test_softmax_of_infinities(void **state) {
  (void)state;
  forget();
  const float x[] = {-INFINITY, -INFINITY, -INFINITY, 1, NAN, 2, INFINITY, 0, 0};
  int in = floats(x, 9), out = floats(NULL, 9);
  float y[9];
  rp_softmax_rows(y, x, 3, 3);
  RUN("softmax_rows", EXTENTS(3, 3, 0), BENCH_OUT(out), BENCH_IN(in), RP_I64(3), RP_I64(3));
  const float *found = bench_read(&bench, out);
  for (int i = 0; i < 9; i++) assert_int_equal(isnan(found[i]), isnan(y[i]));
}

static void test_softmax_backward(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = sizes[s][0], columns = sizes[s][1], count = rows * columns;
    forget();
    float *y = draws(count, 0, 1), *g = draws(count, -2, 2), *dx = malloc((size_t)count * 4);
    rp_softmax_rows_backward(dx, y, g, rows, columns);
    int value = floats(y, count), gradient = floats(g, count), out = floats(NULL, count);
    RUN("softmax_rows_backward", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_IN(value), BENCH_IN(gradient),
        RP_I64(rows), RP_I64(columns));
    assert_close(out, dx, count, 2e-6f);
    RUN("softmax_rows_backward", EXTENTS(rows, columns, 0), BENCH_UPDATE(gradient), BENCH_IN(value),
        BENCH_UPDATE(gradient), RP_I64(rows), RP_I64(columns));
    assert_memory_equal(bench_read(&bench, gradient), bench_read(&bench, out), (size_t)count * 4);
    free(y);
    free(g);
    free(dx);
  }
}

static void test_layer_norm(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = sizes[s][0], columns = sizes[s][1], count = rows * columns;
    forget();
    float *x = draws(count, -3, 5), *weight = draws(columns, -1, 2), *bias = draws(columns, -1, 1);
    float *y = malloc((size_t)count * 4), mean[4], rstd[4];
    for (int with = 0; with < 2; with++) {
      rp_layer_norm(y, mean, rstd, x, with ? weight : NULL, with ? bias : NULL, rows, columns, 1e-5f);
      int in = floats(x, count), out = floats(NULL, count), means = floats(NULL, rows), rstds = floats(NULL, rows);
      RpArgument w = with ? BENCH_IN(floats(weight, columns)) : RP_NONE;
      RpArgument b = with ? BENCH_IN(floats(bias, columns)) : RP_NONE;
      RUN("layer_norm", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_OUT(means), BENCH_OUT(rstds), BENCH_IN(in), w,
          b, RP_I64(rows), RP_I64(columns), RP_F32(1e-5f));
      assert_close(out, y, count, 2e-6f);
      assert_close(means, mean, rows, 2e-6f);
      assert_close(rstds, rstd, rows, 2e-6f);
      RUN("layer_norm", EXTENTS(rows, columns, 0), BENCH_UPDATE(in), BENCH_OUT(means), BENCH_OUT(rstds),
          BENCH_UPDATE(in), w, b, RP_I64(rows), RP_I64(columns), RP_F32(1e-5f));
      assert_memory_equal(bench_read(&bench, in), bench_read(&bench, out), (size_t)count * 4);
    }
    free(x);
    free(weight);
    free(bias);
    free(y);
  }
}

static void test_layer_norm_backward(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = sizes[s][0], columns = sizes[s][1], count = rows * columns;
    forget();
    float *g = draws(count, -1, 1), *x = draws(count, -3, 5), *weight = draws(columns, -1, 2);
    float *y = malloc((size_t)count * 4), *dx = malloc((size_t)count * 4), mean[4], rstd[4];
    rp_layer_norm(y, mean, rstd, x, NULL, NULL, rows, columns, 1e-5f);
    int gradient = floats(g, count), in = floats(x, count), weights = floats(weight, columns),
        out = floats(NULL, count);
    int means = floats(mean, rows), rstds = floats(rstd, rows);
    for (int with = 0; with < 2; with++) {
      rp_layer_norm_backward(dx, g, x, with ? weight : NULL, mean, rstd, rows, columns);
      RpArgument w = with ? BENCH_IN(weights) : RP_NONE;
      RUN("layer_norm_backward", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_IN(gradient), BENCH_IN(in), w,
          BENCH_IN(means), BENCH_IN(rstds), RP_I64(rows), RP_I64(columns));
      assert_close(out, dx, count, columns == 1 ? 1e30f : 5e-6f); /* of one column the gradient is rounding alone */
    }
    RUN("layer_norm_backward", EXTENTS(rows, columns, 0), BENCH_UPDATE(in), BENCH_IN(gradient), BENCH_UPDATE(in),
        BENCH_IN(weights), BENCH_IN(means), BENCH_IN(rstds), RP_I64(rows), RP_I64(columns));
    assert_memory_equal(bench_read(&bench, in), bench_read(&bench, out), (size_t)count * 4);
    free(g);
    free(x);
    free(weight);
    free(y);
    free(dx);
  }
}

static void test_cross_entropy(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = 4, columns = sizes[s][1], count = rows * columns;
    float smoothing = s % 2 ? 0.1f : 0.0f;
    forget();
    float *x = draws(count, -9, 9), *dx = malloc((size_t)count * 4), loss[4], total[4], g[] = {0.5f, 1, 2, 0.25f};
    int32_t target[] = {(int32_t)columns - 1, 0, -1, (int32_t)columns};
    RpControl control = {0};
    rp_cross_entropy_rows(loss, total, x, target, rows, columns, true, -1, smoothing, &control, 6);
    rp_cross_entropy_rows_backward(dx, x, target, total, g, rows, columns, true, -1, smoothing);
    assert_int_equal(control.fault, 7);
    control.fault = 0;
    int logits = floats(x, count), losses = floats(NULL, rows), totals = floats(NULL, rows), gs = floats(g, rows);
    int targets = bench_operand(&bench, target, sizeof target), out = floats(NULL, count);
    int block = bench_operand(&bench, &control, sizeof control);
    RUN("cross_entropy_rows", EXTENTS(rows, columns, 0), BENCH_OUT(losses), BENCH_OUT(totals), BENCH_IN(logits),
        BENCH_IN(targets), RP_I64(rows), RP_I64(columns), RP_BOOL(true), RP_I64(-1), RP_F32(smoothing),
        BENCH_UPDATE(block), RP_I32(6));
    assert_close(losses, loss, rows, 2e-6f);
    assert_close(totals, total, rows, 2e-6f);
    assert_int_equal(((const RpControl *)bench_read(&bench, block))->fault, 7);
    RUN("cross_entropy_rows_backward", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_IN(logits), BENCH_IN(targets),
        BENCH_IN(totals), BENCH_IN(gs), RP_I64(rows), RP_I64(columns), RP_BOOL(true), RP_I64(-1), RP_F32(smoothing));
    assert_close(out, dx, count, 2e-6f);
    RUN("cross_entropy_rows_backward", EXTENTS(rows, columns, 0), BENCH_UPDATE(logits), BENCH_UPDATE(logits),
        BENCH_IN(targets), BENCH_IN(totals), BENCH_IN(gs), RP_I64(rows), RP_I64(columns), RP_BOOL(true), RP_I64(-1),
        RP_F32(smoothing));
    assert_memory_equal(bench_read(&bench, logits), bench_read(&bench, out), (size_t)count * 4);
    free(x);
    free(dx);
  }
}

/* The smallest check that failed is reported, in whatever order blocks come. */
static void test_smallest_fault(void **state) {
  (void)state;
  forget();
  const float table[] = {1, 2};
  const int32_t wrong[] = {5}, right[] = {1};
  RpControl control = {.fault = 9};
  int block = bench_operand(&bench, &control, sizeof control), rows = floats(table, 2), out = floats(NULL, 1);
  int bad = bench_operand(&bench, wrong, 4), good = bench_operand(&bench, right, 4);
  int checks[] = {11, 3, 5}, expected[] = {9, 4, 4};
  for (int i = 0; i < 3; i++) {
    RUN("embed", EXTENTS(1, 1, 2), BENCH_OUT(out), BENCH_IN(rows), BENCH_IN(bad), RP_I64(1), RP_I64(1), RP_I64(2),
        BENCH_UPDATE(block), RP_I32(checks[i]));
    assert_int_equal(((const RpControl *)bench_read(&bench, block))->fault, expected[i]);
    assert_float_equal(*(const float *)bench_read(&bench, out), 0, 0);
  }
  RUN("embed", EXTENTS(1, 1, 2), BENCH_OUT(out), BENCH_IN(rows), BENCH_IN(good), RP_I64(1), RP_I64(1), RP_I64(2),
      BENCH_UPDATE(block), RP_I32(0));
  assert_int_equal(((const RpControl *)bench_read(&bench, block))->fault, 4);
}

static void test_argmax(void **state) {
  (void)state;
  for (int s = 0; s < SIZES; s++) {
    int64_t rows = 5, columns = sizes[s][1], count = rows * columns;
    forget();
    float *x = draws(count, 0, 4);
    for (int64_t i = 0; i < columns; i++) {
      x[i] = floorf(x[i]); /* many equal ones */
      x[columns + i] = NAN;
      x[2 * columns + i] = -INFINITY;
      if (i % 3 == 0) x[3 * columns + i] = NAN;
    }
    int32_t index[5];
    rp_argmax_rows(index, x, rows, columns);
    int in = floats(x, count), out = bench_operand(&bench, NULL, sizeof index);
    RUN("argmax_rows", EXTENTS(rows, columns, 0), BENCH_OUT(out), BENCH_IN(in), RP_I64(rows), RP_I64(columns));
    assert_memory_equal(bench_read(&bench, out), index, sizeof index);
    free(x);
  }
}

/* Rows are added in their order, as in C: the same bits. */
static void test_embed(void **state) {
  (void)state;
  enum { ROWS = 37, ENTRIES = 41 };
  for (int s = 0; s < 7; s++) {
    int64_t columns = sizes[s][1];
    forget();
    float *table = draws(ENTRIES * columns, -1, 1), *g = draws(ROWS * columns, -1, 1);
    float *out = malloc((size_t)(ROWS * columns) * 4), *gradient = malloc((size_t)(ENTRIES * columns) * 4);
    int32_t indices[ROWS];
    RpControl control = {0};
    for (int i = 0; i < ROWS; i++) indices[i] = (int32_t)(i * i % 17) + (i == 5 ? 100 : i == 9 ? -50 : 0);
    rp_embed(out, table, indices, ROWS, columns, ENTRIES, &control, 2);
    rp_embed_backward(gradient, g, indices, ROWS, columns, ENTRIES, ENTRIES);
    int tables = floats(table, ENTRIES * columns), gs = floats(g, ROWS * columns), rows = floats(NULL, ROWS * columns);
    int where = bench_operand(&bench, indices, sizeof indices), gradients = floats(NULL, ENTRIES * columns);
    int block = bench_operand(&bench, &(RpControl){0}, sizeof control);
    RUN("embed", EXTENTS(ROWS, columns, ENTRIES), BENCH_OUT(rows), BENCH_IN(tables), BENCH_IN(where), RP_I64(ROWS),
        RP_I64(columns), RP_I64(ENTRIES), BENCH_UPDATE(block), RP_I32(2));
    assert_memory_equal(bench_read(&bench, rows), out, (size_t)(ROWS * columns) * 4);
    assert_int_equal(((const RpControl *)bench_read(&bench, block))->fault, 3);
    RUN("embed_backward", EXTENTS(ROWS, columns, ENTRIES), BENCH_OUT(gradients), BENCH_IN(gs), BENCH_IN(where),
        RP_I64(ROWS), RP_I64(columns), RP_I64(ENTRIES), RP_I64(ENTRIES));
    assert_memory_equal(bench_read(&bench, gradients), gradient, (size_t)(ENTRIES * columns) * 4);
    free(table);
    free(g);
    free(out);
    free(gradient);
  }
}

/* More indices than a tile of the kernel holds. */
static void test_embed_backward_tiles(void **state) {
  (void)state;
  enum { ROWS = 2500, ENTRIES = 9, COLUMNS = 5 };
  forget();
  float *g = draws(ROWS * COLUMNS, -1, 1), gradient[ENTRIES * COLUMNS];
  int32_t *indices = malloc(ROWS * sizeof *indices);
  for (int i = 0; i < ROWS; i++) indices[i] = i * 7 % ENTRIES;
  rp_embed_backward(gradient, g, indices, ROWS, COLUMNS, ENTRIES, ENTRIES);
  int gs = floats(g, ROWS * COLUMNS), where = bench_operand(&bench, indices, ROWS * 4);
  int gradients = floats(NULL, ENTRIES * COLUMNS);
  RUN("embed_backward", EXTENTS(ROWS, COLUMNS, ENTRIES), BENCH_OUT(gradients), BENCH_IN(gs), BENCH_IN(where),
      RP_I64(ROWS), RP_I64(COLUMNS), RP_I64(ENTRIES), RP_I64(ENTRIES));
  assert_memory_equal(bench_read(&bench, gradients), gradient, sizeof gradient);
  free(g);
  free(indices);
}

static void test_unknown_kernel(void **state) {
  (void)state;
  RpLaunch launch;
  assert_false(rp_kernel_launch("softmax", (int64_t[]){1, 1}, &launch));
}

int main(void) {
  setenv("REPRISE_CUDA_PATH", REPRISE_EMULATOR, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax),
                                     cmocka_unit_test(test_softmax_of_infinities),
                                     cmocka_unit_test(test_softmax_backward),
                                     cmocka_unit_test(test_layer_norm),
                                     cmocka_unit_test(test_layer_norm_backward),
                                     cmocka_unit_test(test_cross_entropy),
                                     cmocka_unit_test(test_smallest_fault),
                                     cmocka_unit_test(test_argmax),
                                     cmocka_unit_test(test_embed),
                                     cmocka_unit_test(test_embed_backward_tiles),
                                     cmocka_unit_test(test_unknown_kernel)};
  return cmocka_run_group_tests(tests, start, end);
}
