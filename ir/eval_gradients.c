/* ir/eval_gradients.c - gradients against finite differences.
 *
 * With L(d) the loss when one element x is moved by d, and h = 3e-5 max(1, |x|):
 *   central(h) = (L(h) - L(-h)) / 2h           one-sided gap(h) = (L(h) - 2 L(0) + L(-h)) / h
 *   numeric = (4 central(h/2) - central(h)) / 3
 * Where L is smooth, gap(h/2) = gap(h)/2 and central(h) = central(h/2) up to h²; a kink nearby breaks one of the two.
 */
#include <math.h>

#include "ir/eval_internal.h"

/* Rounding of a loss L moves central(h) by about 1e-10 L and gap(h) by four times that: the tolerances, of 1e-5 L at
 * least, lie above. A kink below them moves the result by less than 1e-4. */
static const double step_size = 3e-5, central_tolerance = 3e-5, gap_tolerance = 1e-4, floor_share = 1e-5;

typedef struct Check {
  Evaluation *evaluation;
  GradientCheck *result;
  double loss;   /* unmoved, in the units of the gradients */
  double factor; /* from the loss value to what the gradient is of */
  double floor;  /* magnitudes below it count as it */
} Check;

/* Seed of the backward pass (passes/grad.c): 1 over the denominator, which is constant, or over the number of
 * micro-batches. */
static double loss_factor(const Evaluation *evaluation, double divisor) {
  const Graph *graph = evaluation->graph;
  int64_t accumulate = graph->module->training.accumulate;
  if (graph->loss.denominator == NO_VALUE) return 1.0 / (double)accumulate;
  return accumulate > 1 ? 1 / divisor : 1 / eval_tensor_get(eval_value(evaluation, graph->loss.denominator), 0);
}

/* What a step adds to a value: accumulators hold it in what was written. */
static double step_result(const Evaluation *evaluation, ValueId id, int64_t element) {
  const Value *value = graph_value(evaluation->graph, id);
  double now = eval_tensor_get(eval_value(evaluation, id), element);
  if (value->kind != VALUE_PERSISTENT || !evaluation->was_written[value->index]) return now;
  return eval_tensor_get(&evaluation->written[value->index], element) - now;
}

/* Loss with one element of a value moved. */
static bool moved_loss(const Check *check, ValueId of, int64_t element, double distance, double *loss) {
  Evaluation *evaluation = check->evaluation;
  const Graph *graph = evaluation->graph;
  bool made = graph_value(graph, of)->kind == VALUE_RESULT;
  double *x = &evaluation->values[of].real[element], unmoved = *x;
  evaluation->probe_value = made ? of : NO_VALUE;
  evaluation->probe_element = element;
  evaluation->probe_delta = distance;
  if (!made) *x += distance;
  bool done = eval_run_phases(evaluation, PHASE_FORWARD, PHASE_FORWARD);
  *loss = check->factor * eval_tensor_get(eval_value(evaluation, graph->loss.value), 0); /* may be x itself */
  if (!made) *x = unmoved;
  evaluation->probe_value = NO_VALUE;
  return done;
}

/* Nodes between what is moved and the loss run again, but for those that stop gradients on purpose. */
static const bool *nodes_to_skip(const Evaluation *evaluation, ValueId of) {
  const Graph *graph = evaluation->graph;
  bool *moves = NEW_ARRAY(evaluation->arena, bool, graph->values.count);
  bool *matters = NEW_ARRAY(evaluation->arena, bool, graph->values.count);
  bool *skipped = NEW_ARRAY(evaluation->arena, bool, graph->nodes.count);
  moves[of] = true;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    bool moved = graph_value(graph, of)->producer == id;
    for (int i = 0; i < node->input_count; i++)
      moved = moved || (node->inputs[i] != NO_VALUE && moves[node->inputs[i]]);
    bool real = node->output_count && evaluation->values[node->outputs[0]].real;
    skipped[id] = !moved || (op_has(node->op, OP_ZERO_GRADIENT) && !node->body && real);
    for (int i = 0; i < node->output_count; i++) moves[node->outputs[i]] = !skipped[id];
  }
  matters[graph->loss.value] = true;
  for (int64_t id = graph->nodes.count - 1; id >= 0; id--) {
    const Node *node = &graph->nodes.items[id];
    bool needed = false;
    for (int i = 0; i < node->output_count; i++) needed = needed || matters[node->outputs[i]];
    for (int i = 0; i < node->input_count && needed; i++)
      if (node->inputs[i] != NO_VALUE) matters[node->inputs[i]] = true;
    skipped[id] = skipped[id] || !needed;
  }
  return skipped;
}

typedef struct Differences {
  double central, gap;
} Differences;

static bool take_differences(const Check *check, ValueId of, int64_t element, double h, Differences *differences) {
  double above, below;
  if (!moved_loss(check, of, element, h, &above) || !moved_loss(check, of, element, -h, &below)) return false;
  differences->central = (above - below) / (2 * h);
  differences->gap = (above - 2 * check->loss + below) / h;
  return true;
}

static bool has_kink(const Check *check, Differences wide, Differences narrow) {
  double magnitude = fmax(check->floor, fmax(fabs(wide.central), fabs(narrow.central)));
  if (fabs(wide.central - narrow.central) > central_tolerance * magnitude) return true;
  return fabs(wide.gap) > gap_tolerance * magnitude && fabs(narrow.gap) > 0.75 * fabs(wide.gap);
}

static bool check_element(const Check *check, const GraphGradient *gradient, int64_t element, double x,
                          double analytic) {
  GradientCheck *result = check->result;
  double h = step_size * fmax(1, fabs(x));
  Differences wide, narrow;
  if (!take_differences(check, gradient->of, element, h, &wide)) return false;
  if (!take_differences(check, gradient->of, element, h / 2, &narrow)) return false;
  if (has_kink(check, wide, narrow)) {
    result->skipped++;
    return true;
  }
  double numeric = (4 * narrow.central - wide.central) / 3;
  double error = fabs(analytic - numeric) / fmax(check->floor, fmax(fabs(analytic), fabs(numeric)));
  if (isnan(error)) error = INFINITY;
  if (!result->checked++ || error > result->worst) {
    result->worst = error;
    result->name = gradient->name;
    result->element = element;
    result->analytic = analytic;
    result->numeric = numeric;
  }
  return true;
}

static bool check_gradient(Evaluation *evaluation, const GraphGradient *gradient, int64_t elements,
                           GradientCheck *result) {
  int64_t size = type_elements(value_type(evaluation->graph, gradient->of)), count = size < elements ? size : elements;
  if (!eval_run_phases(evaluation, PHASE_FORWARD, PHASE_BACKWARD)) return false;
  double divisor = gradient->divisor == NO_VALUE ? 1 : step_result(evaluation, gradient->divisor, 0), largest = 0;
  for (int64_t i = 0; i < size; i++)
    largest = fmax(largest, fabs(step_result(evaluation, gradient->gradient, i) / divisor));
  Check check = {.evaluation = evaluation, .result = result, .factor = loss_factor(evaluation, divisor)};
  check.loss = check.factor * eval_tensor_get(eval_value(evaluation, evaluation->graph->loss.value), 0);
  check.floor = floor_share * fmax(largest, fabs(check.loss)) + 1e-300;
  int64_t *chosen = NEW_ARRAY(evaluation->arena, int64_t, count);
  double *analytic = NEW_ARRAY(evaluation->arena, double, count), *x = NEW_ARRAY(evaluation->arena, double, count);
  for (int64_t k = 0; k < count; k++) {
    chosen[k] = count > 1 ? (int64_t)((double)k * (double)(size - 1) / (double)(count - 1)) : 0;
    analytic[k] = step_result(evaluation, gradient->gradient, chosen[k]) / divisor;
    x[k] = eval_tensor_get(eval_value(evaluation, gradient->of), chosen[k]);
  }
  evaluation->skipped = nodes_to_skip(evaluation, gradient->of);
  bool done = true;
  for (int64_t k = 0; k < count && done; k++) done = check_element(&check, gradient, chosen[k], x[k], analytic[k]);
  evaluation->skipped = NULL;
  return done;
}

bool eval_gradient_check(Evaluation *evaluation, int64_t elements, GradientCheck *check) {
  const Graph *graph = evaluation->graph;
  ASSERT(evaluation->precision == EVAL_F64 && graph->loss.value != NO_VALUE);
  *check = (GradientCheck){0};
  bool done = true;
  for (int64_t i = 0; i < graph->gradients.count && done; i++) {
    const EvalTensor *of = eval_value(evaluation, graph->gradients.items[i].of);
    if (of->real) done = check_gradient(evaluation, &graph->gradients.items[i], elements, check);
  }
  memset(evaluation->was_written, 0, (size_t)graph->module->persistents.count * sizeof *evaluation->was_written);
  return done;
}
