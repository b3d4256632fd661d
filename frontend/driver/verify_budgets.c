/* frontend/driver/verify_budgets.c - "the budget does not change the result", for the model at hand. */
#include "frontend/driver/verify_budgets.h"

#include "frontend/driver/commands.h"

enum { DEFAULT_BUDGETS = 3, MOST_ATTEMPTS = 4, SOLVER_NODES = 10 };

/* What a program leaves behind. */
typedef struct Outcome {
  double *losses;
  int64_t loss_count;
  char *gradients, *weights;
  int64_t gradient_bytes, weight_bytes;
} Outcome;

typedef struct BudgetCheck {
  const Options *options;
  Trial *trial;
  int64_t keep_all_bytes, evaluation_bytes; /* arenas; the latter of the evaluation graph, below which no budget is */
  int64_t steps, micro_steps;
  Outcome expected;
  json_t *rows;
  bool passed;
} BudgetCheck;

int run_verified_program(Trial *trial, int64_t steps) {
  const char *arguments[] = {"--steps",      memory_format(trial->arena, "%lld", (long long)steps),
                             "--dump-grads", trial_path(trial, "gradients.safetensors"),
                             "--save",       trial_path(trial, "weights.safetensors"),
                             "--log",        trial_path(trial, "log.jsonl"),
                             "--poison",     NULL};
  return run_trial(trial, arguments);
}

int64_t read_losses(const Trial *trial, double *losses, int64_t most) {
  int64_t length, count = 0;
  const char *error;
  char *text = file_read(trial->arena, trial_path(trial, "log.jsonl"), &length, &error), *rest;
  for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && string_equal(kind, "step") && count < most)
      losses[count++] = json_number_value(json_object_get(event, "loss"));
    json_decref(event);
  }
  return count;
}

static bool read_outcome(const BudgetCheck *check, Outcome *outcome) {
  const char *error;
  MemoryArena *arena = check->trial->arena;
  outcome->losses = NEW_ARRAY(arena, double, check->steps);
  outcome->loss_count = read_losses(check->trial, outcome->losses, check->steps);
  outcome->gradients =
      file_read(arena, trial_path(check->trial, "gradients.safetensors"), &outcome->gradient_bytes, &error);
  outcome->weights = file_read(arena, trial_path(check->trial, "weights.safetensors"), &outcome->weight_bytes, &error);
  return outcome->loss_count == check->steps && outcome->gradients && outcome->weights;
}

static bool same_bytes(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  return a_bytes == b_bytes && memcmp(a, b, (size_t)a_bytes) == 0;
}

/* What differs from keeping everything, or NULL. */
static const char *find_difference(const Outcome *expected, const Outcome *found) {
  int64_t loss_bytes = expected->loss_count * (int64_t)sizeof(double);
  if (!same_bytes(expected->losses, loss_bytes, found->losses, loss_bytes)) return "the losses";
  if (!same_bytes(expected->gradients, expected->gradient_bytes, found->gradients, found->gradient_bytes))
    return "the gradients";
  if (!same_bytes(expected->weights, expected->weight_bytes, found->weights, found->weight_bytes)) return "the weights";
  return NULL;
}

/* ---- one budget ---- */

static void report_budget(BudgetCheck *check, const Compilation *compilation, const char *difference) {
  const Options *options = check->options;
  const Plan *plan = compilation->checkpoint->answer.plan;
  char *bytes = format_bytes(options->arena, compilation->budget);
  double overhead = plan->base_cost > 0 ? 100 * (plan->cost / plan->base_cost - 1) : 0;
  json_array_append_new(check->rows,
                        json_pack("{s:I, s:I, s:f, s:b}", "budget", (json_int_t)compilation->budget, "arena",
                                  (json_int_t)compilation->arena_bytes, "overhead", overhead, "equal", !difference));
  if (difference) {
    check->passed = false;
    fprintf(stderr, "reprise: %s at a budget of %s differ from those with everything kept\n", difference, bytes);
  }
  if (options->quiet || options->json) return;
  printf("at %s (+%.1f %% time) against everything kept: losses, gradients, weights %s\n", bytes, overhead,
         difference ? "DIFFER" : "bitwise equal  ok");
}

/* The model at a budget; without a plan where none fits. NULL after a message, with the exit code. */
static Compilation *compile_at(BudgetCheck *check, const Options *options, int *code) {
  const char *error;
  Module *module = load_module(options, code);
  if (!module) return NULL;
  if (write_trial_data(check->trial, module, check->steps * check->micro_steps, &error)) {
    Compilation *compilation = compile_within_budget(options, module, code);
    if (!compilation || compilation->checkpoint->answer.exit != EXIT_INTERRUPTED) return compilation;
    *code = EXIT_INTERRUPTED;
    return NULL;
  }
  fprintf(stderr, "reprise: %s\n", error);
  *code = EXIT_IO;
  return NULL;
}

static int run_and_compare(BudgetCheck *check, const Options *options, const Compilation *compilation) {
  int code = produce_executable(options, compilation, trial_path(check->trial, "program"));
  if (code) return code;
  const char *difference = "results";
  Outcome found;
  code = run_verified_program(check->trial, check->steps);
  if (code)
    fprintf(stderr, "reprise: the program with a budget of %lld bytes stopped with exit code %d\n",
            (long long)options->budget, code);
  else if (read_outcome(check, &found))
    difference = find_difference(&check->expected, &found);
  report_budget(check, compilation, difference);
  return EXIT_OK;
}

static int check_budget(BudgetCheck *check, int64_t budget) {
  int code;
  Options options = *check->options;
  options.budget = budget;
  Compilation *compilation = compile_at(check, &options, &code);
  if (!compilation) return code;
  code = report_plan_faults(&options, compilation);
  return code ? code : run_and_compare(check, &options, compilation);
}

/* Where to go on after a budget that nothing fits: the smallest plan known, or what its packing takes. -1: unknown. */
static int64_t next_budget(const Compilation *compilation) {
  const Checkpoint *checkpoint = compilation->checkpoint;
  const Plan *smallest = checkpoint->answer.smallest;
  int64_t next = checkpoint->answer.plan ? checkpoint->packed : smallest ? smallest->peak : -1;
  return next > compilation->budget ? next : -1;
}

/* Checks the smallest budget at which the model compiles, as far as a few attempts find it; *budget is -1 when they do
 * not. */
static int check_smallest(BudgetCheck *check, int64_t *budget) {
  int code = EXIT_OK;
  *budget = check->evaluation_bytes > 1 ? check->evaluation_bytes : 1;
  for (int attempt = 0; attempt < MOST_ATTEMPTS && *budget >= 0 && *budget < check->keep_all_bytes; attempt++) {
    Options options = *check->options;
    options.budget = *budget;
    Compilation *compilation = compile_at(check, &options, &code);
    if (!compilation) return code;
    if (compilation->checkpoint->compiled.graph) return run_and_compare(check, &options, compilation);
    *budget = next_budget(compilation);
  }
  *budget = -1;
  return code;
}

/* The smallest, and others evenly between it and keeping everything. */
static int check_spread(BudgetCheck *check, int64_t budgets) {
  if (budgets == 0) return EXIT_OK;
  int64_t low, high = check->keep_all_bytes, last;
  int code = check_smallest(check, &low);
  if (!code && low < 0 && !check->options->quiet && !check->options->json) puts("no smaller budget is possible");
  last = low;
  for (int64_t k = 1; k < budgets && low >= 0 && !code; k++) {
    int64_t budget = low + (int64_t)((double)(high - low) * (double)k / (double)budgets);
    if (budget > last) code = check_budget(check, budget);
    last = budget;
  }
  return code;
}

int check_budgets(const Options *given, Trial *trial, const Compilation *keep_all, int64_t steps, int64_t micro_steps,
                  json_t *report, bool *passed) {
  Options options = *given;
  if (!options.solver_nodes) options.solver_nodes = SOLVER_NODES; /* any plan will do */
  BudgetCheck check = {.options = &options,
                       .trial = trial,
                       .keep_all_bytes = keep_all->arena_bytes,
                       .steps = steps,
                       .micro_steps = micro_steps,
                       .rows = json_array(),
                       .passed = true};
  if (keep_all->evaluation.map) check.evaluation_bytes = keep_all->evaluation.map->arena_bytes;
  json_object_set_new(report, "budgets", check.rows);
  int64_t budgets = (options.points ? options.points : DEFAULT_BUDGETS) - 1;
  int code = EXIT_OK;
  if (!read_outcome(&check, &check.expected)) {
    fputs("reprise: the compiled program has left no losses, gradients or weights to compare\n", stderr);
    check.passed = false;
  } else {
    code = options.budget >= 0 ? check_budget(&check, options.budget) : check_spread(&check, budgets);
  }
  *passed = check.passed;
  return code;
}
