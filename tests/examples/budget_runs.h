/* tests/examples/budget_runs.h - one model compiled at several budgets, from everything kept to the smallest that has a
 * plan, and the promises of docs/design.md, section 1, checked on the programs. Faults fail the running cmocka test. */
#ifndef REPRISE_TESTS_EXAMPLES_BUDGET_RUNS_H
#define REPRISE_TESTS_EXAMPLES_BUDGET_RUNS_H

#include <jansson.h>

#include "tests/examples/model_run.h"
#include "tests/examples/program_run.h"

enum { BUDGET_PROGRAMS = 4 };

typedef struct BudgetProgram {
  const char *label; /* "unlimited", "keep-all", "middle", "smallest" */
  int64_t budget;    /* bytes, -1: none */
  const char *path;
  json_t *plan;         /* what its --plan prints */
  int64_t further_runs; /* of nodes, in the plan */
} BudgetProgram;

typedef struct BudgetRuns {
  MemoryArena *arena;
  const char *folder, *model;
  ModelRun *interpreted[BUDGET_PROGRAMS]; /* the graph with the clones of that budget's plan, before the first step */
  BudgetProgram programs[BUDGET_PROGRAMS];
} BudgetRuns;

/* Compiles MODEL into the folder. Checks that the plans keep their budgets, that their peaks never exceed that of
 * keeping everything, that the budget of keeping everything asks for no clone that no budget asks for, and that costs
 * never fall with the budget. */
BudgetRuns *compile_at_budgets(MemoryArena *arena, const char *folder, const char *model);
void release_budget_runs(BudgetRuns *runs);

/* A run of one program: its files in the folder, named by label and `name`. */
typedef struct ProgramFiles {
  const char *log, *gradients, *weights;
} ProgramFiles;
ProgramFiles files_of_run(const BudgetRuns *runs, int program, const char *name);
/* Runs every program for some steps with freed bytes poisoned and up to eight further words (NULL-terminated, or NULL):
 * losses, gradients and weights must be, bit for bit, those of the first program. */
void compare_programs(const BudgetRuns *runs, const char *name, const char *steps, const char *const *words);
/* The same for the interpreter, after `steps` updates: loss, gradients, weights, states, optimizer state. The inputs
 * stay what they are. `feed`, when not NULL, is called before each micro-step of each run. */
void compare_interpreted(const BudgetRuns *runs, int64_t steps,
                         void (*feed)(void *context, ModelRun *run, int64_t micro_step), void *context);
/* live_peak <= arena = high_water <= budget, live_peak = the plan's peak; executed clones = planned clones. */
void check_memory_and_clones(const BudgetRuns *runs, const char *const *words);

/* How often the node that makes a storage runs in a plan, and whether the storage is there from its first making to its
 * last use, by the plan's decisions; 0 and false when they do not name it. */
int64_t times_run(const json_t *plan, const char *storage);
bool is_kept(const json_t *plan, const char *storage);
/* Bytes of what a plan keeps for the backward pass, by its decisions. */
int64_t kept_bytes(const json_t *plan);

#endif
