/* frontend/driver/command_verify.c - `reprise verify`: gradients against finite differences in double precision, then
 * the compiled program against the interpreter, then programs at smaller budgets against it, on made-up data and the
 * model's own initial weights. */
#include <jansson.h>
#include <math.h>

#include "frontend/driver/commands.h"
#include "frontend/driver/model_inputs.h"
#include "frontend/driver/produce.h"
#include "frontend/driver/trial.h"
#include "frontend/driver/verify_budgets.h"
#include "runtime/safetensors.h"

static const double gradient_tolerance = 1e-4; /* relative, against finite differences in double */
static const double tensor_tolerance = 2e-3;   /* relative to the largest element of the tensor, float against float */
static const double loss_tolerance = 1e-3;     /* relative, of each step's loss */

/* What is compared: the interpreter's run of the unfused graph. */
typedef struct Verification {
  const Options *options;
  MemoryArena *arena;
  Module *module; /* differentiated, not fused: the reference */
  int64_t steps, micro_steps;
  double *losses;    /* of each update: what the program logs */
  EvalTensor *first; /* gradients of the first update, by graph->gradients index */
  Trial trial;
  json_t *report;
} Verification;

/* ---- the reference ---- */

static Module *load_reference(const Options *options, int *code) {
  Module *module = load_module(options, code);
  if (!module) return NULL;
  MemoryArena *scratch = memory_arena_create();
  simplify_graph(module->train, scratch);
  differentiate_graph(module->train, scratch);
  memory_arena_destroy(scratch);
  *code = diag_error_count() ? EXIT_SOURCE_ERROR : EXIT_OK;
  return diag_error_count() ? NULL : module;
}

/* Inputs of rank 0 are constants of the run: a record needs a first axis. */
static void fill_inputs(const Verification *v, Evaluation *evaluation, int64_t step) {
  for (int64_t i = 0; i < v->module->inputs.count; i++)
    fill_input(&evaluation->inputs[i], (int)i, v->trial.limits[i], v->module->training.seed,
               evaluation->inputs[i].type.rank ? step : 0);
}

static double first_element(const Evaluation *evaluation, ValueId value) {
  return eval_tensor_get(eval_value(evaluation, value), 0);
}

static bool report_fault(const Evaluation *evaluation) {
  diag_error(graph_node(evaluation->graph, evaluation->fault_node)->location, "%s", evaluation->fault);
  return false;
}

/* One micro-step; returns the loss, or its numerator with the denominator added to *denominator. */
static bool run_micro_step(Verification *v, Evaluation *evaluation, int64_t index, double *numerator,
                           double *denominator) {
  const Graph *graph = v->module->train;
  fill_inputs(v, evaluation, index);
  evaluation->control.micro_step = index;
  bool split = v->micro_steps > 1;
  if (!(split ? eval_run_phases(evaluation, PHASE_FORWARD, PHASE_BACKWARD) : eval_run(evaluation)))
    return report_fault(evaluation);
  *numerator += first_element(evaluation, graph->loss.value);
  *denominator += graph->loss.denominator == NO_VALUE ? 1 : first_element(evaluation, graph->loss.denominator);
  return true;
}

/* Gradients as the program dumps them: those of parameters as they are before the update - of the accumulators once
 * they are committed, divided by what is still due -, those of other values as of the first micro-step. */
static void keep_gradients(Verification *v, const Evaluation *evaluation, bool accumulated) {
  const Graph *graph = v->module->train;
  if (!v->first) v->first = NEW_ARRAY(v->arena, EvalTensor, graph->gradients.count + 1);
  for (int64_t g = 0; g < graph->gradients.count; g++) {
    const GraphGradient *gradient = &graph->gradients.items[g];
    if ((graph_value(graph, gradient->gradient)->kind == VALUE_PERSISTENT) != accumulated) continue;
    const EvalTensor *value = eval_value(evaluation, gradient->gradient);
    double divisor = gradient->divisor == NO_VALUE ? 1 : first_element(evaluation, gradient->divisor);
    v->first[g] = eval_tensor_create(v->arena, &value->type);
    for (int64_t i = 0; i < type_elements(&value->type); i++)
      eval_tensor_set(&v->first[g], i, eval_tensor_get(value, i) / divisor);
  }
}

static bool run_reference(Verification *v) {
  Evaluation *evaluation = eval_create(v->arena, v->module->train, EVAL_F32);
  eval_fill_initial(evaluation, v->module->training.seed);
  v->losses = NEW_ARRAY(v->arena, double, v->steps);
  for (int64_t step = 0, index = 0; step < v->steps; step++) {
    double numerator = 0, denominator = 0;
    evaluation->control.update = step + 1;
    evaluation->control.learning_rate_scale = 1;
    for (int64_t micro = 0; micro < v->micro_steps; micro++, index++) {
      if (!run_micro_step(v, evaluation, index, &numerator, &denominator)) return false;
      if (index == 0) keep_gradients(v, evaluation, false);
      if (v->micro_steps > 1) eval_commit(evaluation);
    }
    v->losses[step] = numerator / denominator;
    if (step == 0) keep_gradients(v, evaluation, true);
    if (v->micro_steps > 1 && !eval_run_phases(evaluation, PHASE_UPDATE, PHASE_UPDATE)) return report_fault(evaluation);
    eval_commit(evaluation);
  }
  return true;
}

/* ---- finite differences ---- */

static bool check_gradients(Verification *v, bool *passed) {
  Evaluation *evaluation = eval_create(v->arena, v->module->train, EVAL_F64);
  GradientCheck check;
  eval_fill_initial(evaluation, v->module->training.seed);
  fill_inputs(v, evaluation, 0);
  if (!eval_gradient_check(evaluation, v->options->elements ? v->options->elements : 8, &check))
    return report_fault(evaluation);
  *passed = check.checked > 0 && check.worst <= gradient_tolerance;
  if (!v->options->quiet && !v->options->json)
    printf("finite differences: %lld elements, %lld skipped at kinks, worst relative error %.1e%s%s  %s\n",
           (long long)check.checked, (long long)check.skipped, check.worst, check.name ? " in " : "",
           check.name ? check.name : "", *passed ? "ok" : "FAILED");
  if (!check.checked)
    fputs("reprise: no gradient could be checked: nothing is trained, or every element lies at a kink\n", stderr);
  if (!*passed && check.name)
    fprintf(stderr, "reprise: gradient of '%s', element %lld: %.9g by differentiation, %.9g by finite differences\n",
            check.name, (long long)check.element, check.analytic, check.numeric);
  json_object_set_new(v->report, "finite_differences",
                      json_pack("{s:I, s:I, s:f, s:b}", "checked", (json_int_t)check.checked, "skipped",
                                (json_int_t)check.skipped, "worst", check.worst, "passed", *passed));
  return true;
}

/* ---- the compiled program ---- */

static double relative(double difference, double scale) { return fabs(difference) / (scale > 1e-6 ? scale : 1e-6); }

static bool compare_losses(Verification *v, double *worst) {
  double *losses = NEW_ARRAY(v->arena, double, v->steps);
  int64_t count = read_losses(&v->trial, losses, v->steps);
  *worst = 0;
  for (int64_t step = 0; step < count; step++) {
    double difference = relative(losses[step] - v->losses[step], fabs(v->losses[step]));
    if (!(difference <= *worst)) *worst = difference;
  }
  return count == v->steps;
}

static double largest_element(const EvalTensor *tensor) {
  double largest = 0;
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) largest = fmax(largest, fabs(eval_tensor_get(tensor, i)));
  return largest;
}

/* Largest difference between a tensor of the dump and the reference, relative to the reference's largest element. */
static bool compare_tensor(Verification *v, const RpTensorFile *file, const RpTensorEntry *entry,
                           const EvalTensor *expected, double floor, double *worst) {
  int64_t elements = type_elements(&expected->type);
  RpStatus status = {0};
  RpType type = entry->type == RP_F64 ? RP_F64 : RP_F32;
  void *found = NEW_ARRAY(v->arena, double, elements);
  double difference = 0;
  if (!rp_tensors_readable(entry, type) || !rp_tensors_read(file, entry, type, 0, elements, found, &status))
    return false;
  for (int64_t i = 0; i < elements; i++) {
    double value = type == RP_F64 ? ((double *)found)[i] : (double)((float *)found)[i];
    double error = fabs(value - eval_tensor_get(expected, i));
    if (!(error <= difference)) difference = error;
  }
  *worst = relative(difference, fmax(floor, largest_element(expected)));
  return true;
}

/* Gradients far below the others, such as those that cancel to zero, are rounding errors of the others: they are
 * compared on a scale of at least this share of the largest of all. */
static double smallest_scale(const Verification *v) {
  static const double share = 1e-3;
  double largest = 0;
  for (int64_t g = 0; g < v->module->train->gradients.count; g++)
    largest = fmax(largest, largest_element(&v->first[g]));
  return share * largest;
}

static bool compare_gradients(Verification *v, double *worst, const char **where) {
  RpTensorFile file;
  RpStatus status = {0};
  const Graph *graph = v->module->train;
  double scale = smallest_scale(v);
  bool complete = true;
  *worst = 0;
  if (!rp_tensors_open(&file, trial_path(&v->trial, "gradients.safetensors"), &status)) return false;
  for (int64_t g = 0; g < graph->gradients.count; g++) {
    bool found = false;
    char *name = memory_format(v->arena, "grad.%s", graph->gradients.items[g].name);
    for (int64_t e = 0; e < file.count; e++) {
      double difference;
      if (!string_equal(file.entries[e].name, name)) continue;
      found = compare_tensor(v, &file, &file.entries[e], &v->first[g], scale, &difference);
      if (found && !(difference <= *worst)) *worst = difference, *where = graph->gradients.items[g].name;
    }
    if (!found) *where = graph->gradients.items[g].name;
    complete = complete && found;
  }
  rp_tensors_close(&file);
  return complete;
}

static int compare_program(Verification *v, bool *passed) {
  double loss_error, gradient_error;
  const char *where = NULL;
  int code = run_verified_program(&v->trial, v->steps);
  if (code != 0) {
    fprintf(stderr, "reprise: the compiled program stopped with exit code %d\n", code);
    *passed = false;
    return EXIT_OK;
  }
  bool complete = compare_losses(v, &loss_error);
  complete = compare_gradients(v, &gradient_error, &where) && complete;
  *passed = complete && loss_error <= loss_tolerance && gradient_error <= tensor_tolerance;
  if (!v->options->quiet && !v->options->json)
    printf("program against interpreter: %lld steps, loss within %.1e, gradients within %.1e  %s\n",
           (long long)v->steps, loss_error, gradient_error, *passed ? "ok" : "FAILED");
  if (!*passed && where)
    fprintf(stderr, "reprise: the program's gradient of '%s' differs from the interpreter's\n", where);
  json_object_set_new(v->report, "program",
                      json_pack("{s:I, s:f, s:f, s:b}", "steps", (json_int_t)v->steps, "loss_error", loss_error,
                                "gradient_error", gradient_error, "passed", *passed));
  return EXIT_OK;
}

/* With everything kept: the program that programs at other budgets are compared with. */
static int check_program(Verification *v, bool *passed, const Compilation **compilation) {
  int code;
  const char *error;
  Options options = *v->options;
  options.budget = -1;
  Module *module = load_module(&options, &code);
  if (!module) return code;
  if (!write_trial_data(&v->trial, module, v->steps * v->micro_steps, &error)) {
    fprintf(stderr, "reprise: %s\n", error);
    return EXIT_IO;
  }
  *compilation = compile_for_target(&options, module, &code);
  if (!*compilation) return code;
  code = produce_executable(&options, *compilation, trial_path(&v->trial, "program"));
  return code == EXIT_OK && run_reference(v) ? compare_program(v, passed) : code ? code : EXIT_SOURCE_ERROR;
}

int verify_command(const Options *options) {
  int code;
  Verification v = {.options = options, .arena = options->arena, .steps = options->steps ? options->steps : 3};
  const Compilation *compilation = NULL;
  v.module = load_reference(options, &code);
  if (!v.module) return code;
  v.micro_steps = v.module->training.accumulate;
  if (!open_trial(&v.trial, options, v.module->train)) return EXIT_IO;
  v.report = json_object();
  bool differences = false, program = false, budgets = false;
  code = check_gradients(&v, &differences) ? check_program(&v, &program, &compilation) : EXIT_SOURCE_ERROR;
  if (code == EXIT_OK) code = check_budgets(options, &v.trial, compilation, v.steps, v.micro_steps, v.report, &budgets);
  close_trial(&v.trial);
  if (code == EXIT_OK && options->json) json_dumpf(v.report, stdout, JSON_INDENT(2)), putchar('\n');
  json_decref(v.report);
  if (code != EXIT_OK) return code;
  return differences && program && budgets ? EXIT_OK : EXIT_VERIFICATION_FAILED;
}
