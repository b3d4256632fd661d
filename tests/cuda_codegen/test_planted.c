/* Faults planted in emitted kernels: the emulated device finds each. One process for each, for a device is broken after
 * a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/build.h"
#include "tests/cuda_codegen/device_emitted.h"

static ValueId input(Graph *graph, const char *name, int64_t rows, int64_t columns) {
  ModelInput declared = {.name = name, .type = type_make(F32, 2, (int64_t[]){rows, columns})};
  return graph_input(graph, module_add_input(graph->module, declared));
}

/* A vector form, a tile with a ragged edge, a reduction of columns in pieces and one of long rows. */
static Module *build(MemoryArena *arena) {
  Module *module = module_create(arena, "planted", "planted.rp");
  Graph *graph = module->evaluation = graph_create(module, true);
  ValueId wide = input(graph, "wide", 40, 64), ragged = input(graph, "ragged", 45, 37),
          tall = input(graph, "tall", 200, 40), row = input(graph, "row", 3, 2048);
  const ValueId results[] = {BUILD(graph, exp, wide), build_copy(graph, build_swap(graph, ragged, 0, 1)),
                             build_reduce(graph, OP_sum, tall, 1, (int64_t[]){0}, false),
                             build_reduce(graph, OP_max, row, 1, (int64_t[]){1}, false)};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    GraphOutput output = {.name = memory_format(arena, "y%d", (int)i), .value = results[i], .denominator = NO_VALUE};
    array_push(arena, &graph->outputs, output);
  }
  return module;
}

/* The exit code of a process: 0 when the program ran, 1 when the device found a fault. */
static int run(const char *from, const char *to) {
  MemoryArena *arena = memory_arena_create();
  Module *module = build(arena);
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(module, &options);
  assert_non_null(compilation);
  emitted_plant(from, to);
  Emitted *emitted = emitted_load(arena, compilation);
  RpStatus status = {0};
  memset(emitted->arena, 0, (size_t)emitted->program->arena_bytes);
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    _exit(emitted_try(emitted, &emitted->program->evaluation, &status) ? 0 : 1);
  }
  int result = -1;
  assert_true(child > 0 && waitpid(child, &result, 0) == child);
  free(emitted->arena);
  memory_arena_destroy(arena);
  return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void nothing_is_found_in_what_is_emitted(void **state) {
  (void)state;
  assert_int_equal(run(NULL, NULL), 0);
}

static void each_fault_is_found(void **state) {
  (void)state;
  static const char *const faults[][2] = {
      {"item < 640", "item < 641"},                        /* one vector too many */
      {"if (row < 45 && column < 37) ", "if (row < 45) "}, /* a load without its guard */
      {"in0 + i", "in0 + i + 1"},                          /* a vector that is not aligned */
      {"  __syncthreads();\n", ""},                        /* the barrier behind the first shared write */
      {"[r][threadIdx.x] = ", "[0][threadIdx.x] = "},      /* threads write the same shared element */
      {"if (threadIdx.y != 0 || ", "if ("},                /* all threads of a block store a result */
      {"blockIdx.x % ", "blockIdx.x * 0 % "},              /* blocks that share results */
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (run(faults[i][0], faults[i][1]) != 1) fail_msg("'%s' for '%s' is not found", faults[i][1], faults[i][0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_found_in_what_is_emitted),
      cmocka_unit_test(each_fault_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
