/* What a CUDA program does that a program for the host does not, on the emulated device. That it does the rest alike is
 * shown by tests/runtime/test_program.c, which runs on both. */
#include <dlfcn.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "tests/runtime/support.h"

static int enter(void **state) {
  if (enter_scratch(state) != 0) return -1;
  FILE *stream = fopen("points.csv", "w");
  assert_non_null(stream);
  fputs("a,b,c,y\n", stream);
  for (int i = 0; i < 28; i++) fprintf(stream, "%d,%d,%d,%d\n", i % 5 - 2, i % 3 - 1, i % 7 - 3, i % 4);
  fclose(stream);
  return 0;
}

static json_int_t reported(const char *key) {
  char *text = read_whole("report", NULL);
  json_t *report = text ? json_loads(text, 0, NULL) : NULL;
  assert_non_null(report);
  json_int_t value = json_integer_value(json_object_get(report, key));
  json_decref(report);
  free(text);
  return value;
}

/* Operation for operation the host's program: the same bits, however the device orders its streams, with graphs and
 * without. */
static void test_same_as_host(void **state) {
  (void)state;
  static const char *const hosts[] = {HOST, HOST2}, *const devices[] = {DEVICE, DEVICE2};
  static const char *const settings[] = {"", "REPRISE_EMULATOR_STREAMS=eager", "REPRISE_CUDA_SYNC=1"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(run("%s --steps 7 --save host", hosts[i]), 0);
    for (int s = 0; s < 3; s++) {
      assert_int_equal(run("%s %s --steps 7 --save device", settings[s], devices[i]), 0);
      assert_same_files("host", "device");
    }
    assert_int_equal(run("%s --steps 2 --dump-grads host", hosts[i]), 0);
    assert_int_equal(run("%s --steps 2 --dump-grads device", devices[i]), 0);
    assert_same_files("host", "device");
  }
}

/* The arena is the one allocation, and all of it is used; steps but the first are one graph each. */
static void test_one_allocation_one_graph(void **state) {
  (void)state;
  assert_int_equal(run("REPRISE_EMULATOR_REPORT=report %s --steps 6 --save device", DEVICE), 0);
  assert_contains("out", "\"emulated\":true");
  assert_contains("err", "the device is emulated");
  assert_int_equal(reported("allocations"), 1);
  assert_int_equal(reported("allocated_peak"), 960);
  assert_int_equal(reported("high_water"), 960);
  assert_int_equal(reported("in_use_peak"), 960 + 100663296); /* and the context */
  assert_int_equal(reported("left_allocated"), 0);
  assert_int_equal(reported("fault"), 0);
  assert_int_equal(reported("graph_launches"), 5 + 1); /* and 2 batches of test data, the second as a graph */
  assert_int_equal(reported("launches"), 6 * 4 + 2 * 2);
  assert_int_equal(run("REPRISE_EMULATOR_REPORT=report REPRISE_CUDA_SYNC=1 %s --steps 6", DEVICE), 0);
  assert_int_equal(reported("graph_launches"), 0);
}

static void test_memory(void **state) {
  (void)state;
  assert_int_equal(run("%s --memory", DEVICE), 0);
  assert_contains("out",
                  "\"device\":{\"name\":\"Reprise emulated device\",\"emulated\":true,\"total\":1073741824,"
                  "\"context\":100663296,\"libraries\":0}");
}

static void test_architectures(void **state) {
  (void)state;
  static const int runs[] = {80, 86, 89, 90, 100, 120}; /* cubins of sm_80 and sm_90, PTX of compute_80 */
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    assert_int_equal(run("REPRISE_EMULATOR_ARCH=%d %s --steps 1", runs[i], DEVICE), 0);
  assert_int_equal(run("REPRISE_EMULATOR_ARCH=75 %s --steps 1 --save never", DEVICE), 7);
  assert_contains("err",
                  "no code for Reprise emulated device, which is sm_75; it was compiled for sm_80, sm_90: compile "
                  "it with --arch=sm_75");
  assert_null(read_whole("never", NULL));
}

static void test_no_device(void **state) {
  (void)state;
  assert_int_equal(run("REPRISE_EMULATOR_DRIVER=12040 %s", DEVICE), 7);
  assert_contains("err", "driver is too old: it supports CUDA 12.4, this program needs 13.0");
  assert_int_equal(run("REPRISE_EMULATOR_DEVICES=0 %s", DEVICE), 7);
  assert_contains("err", "no NVIDIA GPU is visible");
  assert_int_equal(run("REPRISE_EMULATOR_MEMORY=100664000 %s --save never", DEVICE), 7);
  assert_contains("err", "out of device memory: the arena takes 960 bytes");
  assert_contains("err", "704 free of 100664000");
  assert_int_equal(run("REPRISE_EMULATOR_MEMORY=100664256 %s --steps 1", DEVICE), 0);
  assert_null(read_whole("never", NULL));
}

static void test_no_driver(void **state) {
  (void)state;
  if (dlopen("libcuda.so.1", RTLD_NOW)) skip(); /* this machine has one */
  assert_int_equal(run("REPRISE_CUDA_PATH= %s --save never", DEVICE), 7);
  assert_contains("err", "needs an NVIDIA GPU and its driver");
  assert_contains("err", "libcuda.so.1");
  assert_null(read_whole("never", NULL));
}

/* A folder that has files, but no libraries, of these names; or less memory than a context takes. */
static void test_broken_driver(void **state) {
  (void)state;
  assert_int_equal(run("mkdir broken && echo text >broken/libcuda.so.1"), 0);
  assert_int_equal(run("REPRISE_CUDA_PATH=broken %s --save never", DEVICE), 7);
  assert_contains("err",
                  "needs an NVIDIA GPU and its driver (version 580 or later): cannot load libcuda.so.1: broken/");
  assert_int_equal(run("REPRISE_CUDA_PATH=broken/libcuda.so.1 %s --save never", DEVICE), 7);
  assert_contains("err", "REPRISE_CUDA_PATH is to name a folder with CUDA libraries; 'broken/libcuda.so.1' is none");
  assert_int_equal(run("REPRISE_EMULATOR_MEMORY=1000 %s --save never", DEVICE), 7);
  assert_contains("err", "CUDA cannot open a context: out of memory");
  assert_null(read_whole("never", NULL));
}

/* Without the waiting between streams, copies of batches and steps are in no order, which is found whatever the order
 * in which the work happens to be done; without the host's waiting a step's results are not there when they are read.
 */
static void test_without_waiting(void **state) {
  (void)state;
  static const char *const orders[] = {"late", "eager"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(
        run("REPRISE_EMULATOR_STREAMS=%s REPRISE_EMULATOR_WITHOUT=cuStreamWaitEvent %s --steps 5 --save never",
            orders[i], DEVICE),
        70);
    assert_contains("err", "use the same memory");
    assert_contains("err", "in no order");
  }
  assert_int_equal(run("%s --steps 5 --log right", DEVICE), 0);
  run("REPRISE_EMULATOR_WITHOUT=cuEventSynchronize %s --steps 5 --log wrong", DEVICE);
  char *right = read_whole("right", NULL), *wrong = read_whole("wrong", NULL);
  const char *right_loss = strstr(right, "\"loss\""), *wrong_loss = wrong ? strstr(wrong, "\"loss\"") : NULL;
  assert_non_null(right_loss);
  assert_true(!wrong_loss || strncmp(right_loss, wrong_loss, 16) != 0);
  free(right);
  free(wrong);
  assert_null(read_whole("never", NULL));
}

/* A kernel that goes wrong: the program stops; the debug mode says which it was. */
static void test_planted(void **state) {
  (void)state;
  assert_int_equal(run("%s --save never", PLANTED), 70);
  assert_contains("err",
                  "kernel predict_planted, block (1,0,0): thread (1,0,0) writes 4 bytes at byte 16 of operand 0");
  assert_contains("err", "run with REPRISE_CUDA_SYNC=1 to see which kernel it was");
  assert_int_equal(run("REPRISE_CUDA_SYNC=1 %s --save never", PLANTED), 70);
  assert_contains("err", "regression.rp:4:7: predict: CUDA cannot run it: an illegal memory access was encountered");
  assert_null(read_whole("never", NULL));
}

int main(void) {
  setenv("REPRISE_CUDA_PATH", REPRISE_EMULATOR, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_as_host),   cmocka_unit_test(test_one_allocation_one_graph),
      cmocka_unit_test(test_memory),         cmocka_unit_test(test_architectures),
      cmocka_unit_test(test_no_device),      cmocka_unit_test(test_no_driver),
      cmocka_unit_test(test_planted),        cmocka_unit_test(test_broken_driver),
      cmocka_unit_test(test_without_waiting)};
  return cmocka_run_group_tests(tests, enter, leave_scratch);
}
