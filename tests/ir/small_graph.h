/* tests/ir/small_graph.h - a module with one graph, built and run in a few lines. */
#ifndef REPRISE_TESTS_IR_SMALL_GRAPH_H
#define REPRISE_TESTS_IR_SMALL_GRAPH_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ir/build.h"
#include "ir/eval.h"

typedef struct SmallGraph {
  MemoryArena *arena;
  Module *module;
  Graph *graph;
} SmallGraph;

static inline SmallGraph small_graph(void) {
  MemoryArena *arena = memory_arena_create();
  Module *module = module_create(arena, "Small", "small.rp");
  module->train = graph_create(module, false);
  return (SmallGraph){arena, module, module->train};
}

static inline void small_graph_destroy(SmallGraph *small) {
  assert_int_equal(diag_error_count(), 0);
  memory_arena_destroy(small->arena);
}

/* SHAPE(2, 3): rank and dims of an argument list; SCALAR: none. */
#define SHAPE(...) \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL

static inline ValueId small_input(SmallGraph *small, DataType dtype, int rank, const int64_t *dims) {
  char *name = memory_format(small->arena, "input%lld", (long long)small->module->inputs.count);
  ModelInput input = {.name = name, .type = type_make(dtype, rank, dims)};
  return graph_input(small->graph, module_add_input(small->module, input));
}

static inline ValueId small_parameter(SmallGraph *small, const char *name, double value, int rank,
                                      const int64_t *dims) {
  Persistent persistent = {.name = name,
                           .type = type_make(F32, rank, dims),
                           .role = ROLE_PARAMETER,
                           .trainable = true,
                           .initial = {.kind = INITIAL_CONSTANT, .value = value}};
  return graph_persistent(small->graph, module_add_persistent(small->module, persistent));
}

/* Element i of input `input` is values[i]; the number of values must be its number of elements. */
#define FILL(evaluation, input, ...) \
  small_fill(&(evaluation)->inputs[input], sizeof((double[]){__VA_ARGS__}) / sizeof(double), \
             (const double[]){__VA_ARGS__})
static inline void small_fill(EvalTensor *tensor, size_t count, const double *values) {
  assert_int_equal((int64_t)count, type_elements(&tensor->type));
  for (size_t i = 0; i < count; i++) eval_tensor_set(tensor, (int64_t)i, values[i]);
}

/* A smooth pattern without symmetries, in (-1, 1). */
static inline void small_fill_pattern(EvalTensor *tensor, double phase) {
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) eval_tensor_set(tensor, i, sin(1.7 * (double)i + phase));
}

static inline void small_run(Evaluation *evaluation) {
  bool done = eval_run(evaluation);
  if (!done) fail_msg("%s", evaluation->fault);
}

/* EXPECT(evaluation, value, tolerance, numbers…): all elements, absolute tolerance plus relative. */
#define EXPECT(evaluation, value, tolerance, ...) \
  small_expect(eval_value(evaluation, value), tolerance, sizeof((double[]){__VA_ARGS__}) / sizeof(double), \
               (const double[]){__VA_ARGS__})
static inline void small_expect(const EvalTensor *tensor, double tolerance, size_t count, const double *expected) {
  assert_int_equal((int64_t)count, type_elements(&tensor->type));
  for (size_t i = 0; i < count; i++) {
    double found = eval_tensor_get(tensor, (int64_t)i), wanted = expected[i];
    if (found == wanted || (isnan(found) && isnan(wanted))) continue;
    if (!(fabs(found - wanted) <= tolerance * (1 + fabs(wanted))))
      fail_msg("element %zu: expected %.17g, found %.17g", i, wanted, found);
  }
}

#endif
