/* tests/examples/model_run.h - a model file through the compiler and into the interpreter. */
#ifndef REPRISE_TESTS_EXAMPLES_MODEL_RUN_H
#define REPRISE_TESTS_EXAMPLES_MODEL_RUN_H

#include "frontend/elaborate.h"
#include "ir/eval.h"
#include "passes/checkpoint.h"

typedef struct ModelRun {
  MemoryArena *arena;
  Module *module; /* after all passes */
  Compilation *compilation;
  Evaluation *evaluation;   /* of the training graph; persistents have their initial values */
  double loss, denominator; /* of the last update, over its micro-steps */
  EvalTensor *gradients;    /* of the last update, by graph->gradients index, divided by what was still due */
} ModelRun;

/* Elaborates, compiles and prepares; prints diagnostics and returns NULL after errors. Everything lives in the arena.
 */
ModelRun *model_run_create(MemoryArena *arena, const char *path, const Definition *definitions, int definition_count,
                           EvalPrecision precision);
/* The same with a budget in bytes (-1: none) and a small planning effort: the graph has the clones of its plan. NULL
 * when no plan fits. */
ModelRun *model_run_create_within(MemoryArena *arena, const char *path, const Definition *definitions,
                                  int definition_count, EvalPrecision precision, int64_t budget);

/* What a model needs, in bytes of its arena. */
typedef struct ModelBudgets {
  int64_t smallest, keep_all;
} ModelBudgets;
ModelBudgets model_find_budgets(MemoryArena *arena, const char *path, const Definition *definitions,
                                int definition_count);

/* One micro-step of forward and backward; after the last one of an update, the update too. False after a data fault. */
bool model_run_micro_step(ModelRun *run);
/* By name; NULL when there is none. */
EvalTensor *model_run_input(ModelRun *run, const char *name);
EvalTensor *model_run_persistent(ModelRun *run, const char *name);
const EvalTensor *model_run_output(const ModelRun *run, const char *name);
const EvalTensor *model_run_gradient(const ModelRun *run, const char *name);

#endif
