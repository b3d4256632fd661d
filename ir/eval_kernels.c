/* ir/eval_kernels.c - the hand-made kernels in the interpreter: their formulas, written in double. */
#include <math.h>

#include "ir/eval_internal.h"

/* One call: operands and the extents most kernels have, rows and columns of input 0. */
typedef struct Call {
  Evaluation *evaluation;
  const Node *node;
  const EvalTensor *inputs[MAX_OP_INPUTS]; /* NULL: an optional one left out */
  EvalTensor *outputs[MAX_OP_OUTPUTS];
  int64_t rows, columns;
} Call;

/* Row `row` of an operand with `columns` columns. */
static const double *input_row(const Call *call, int input, int64_t row) {
  return call->inputs[input]->real + row * call->columns;
}
static double *output_row(const Call *call, int64_t row) { return call->outputs[0]->real + row * call->columns; }

static double log_sum_exp(const double *x, int64_t count) {
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < count; j++) largest = fmax(largest, x[j]);
  for (int64_t j = 0; j < count; j++) sum += exp(x[j] - largest);
  return largest + log(sum);
}

/* y_j = e^x_j / sum e^x */
static const char *softmax_rows(const Call *call) {
  for (int64_t row = 0; row < call->rows; row++) {
    const double *x = input_row(call, 0, row), total = log_sum_exp(x, call->columns);
    double *y = output_row(call, row);
    for (int64_t j = 0; j < call->columns; j++) y[j] = exp(x[j] - total);
  }
  return NULL;
}

/* dx = y (g - sum g y) */
static const char *softmax_rows_backward(const Call *call) {
  for (int64_t row = 0; row < call->rows; row++) {
    const double *y = input_row(call, 0, row), *g = input_row(call, 1, row);
    double *dx = output_row(call, row), dot = 0;
    for (int64_t j = 0; j < call->columns; j++) dot += g[j] * y[j];
    for (int64_t j = 0; j < call->columns; j++) dx[j] = y[j] * (g[j] - dot);
  }
  return NULL;
}

/* y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + eps), biased variance */
static const char *layer_norm(const Call *call) {
  double eps = node_attribute(call->node, "eps")->number, n = (double)call->columns;
  for (int64_t row = 0; row < call->rows; row++) {
    const double *x = input_row(call, 0, row);
    double *y = output_row(call, row), mean = 0, variance = 0;
    for (int64_t j = 0; j < call->columns; j++) mean += x[j] / n;
    for (int64_t j = 0; j < call->columns; j++) variance += (x[j] - mean) * (x[j] - mean) / n;
    double rstd = 1 / sqrt(variance + eps);
    for (int64_t j = 0; j < call->columns; j++) {
      double weight = call->inputs[1] ? call->inputs[1]->real[j] : 1,
             bias = call->inputs[2] ? call->inputs[2]->real[j] : 0;
      y[j] = (x[j] - mean) * rstd * weight + bias;
    }
    call->outputs[1]->real[row] = mean;
    call->outputs[2]->real[row] = rstd;
  }
  return NULL;
}

/* dx = rstd (h - mean(h) - xhat mean(h xhat)), h = g weight, xhat = (x - mean) rstd */
static const char *layer_norm_backward(const Call *call) {
  double n = (double)call->columns;
  for (int64_t row = 0; row < call->rows; row++) {
    const double *g = input_row(call, 0, row), *x = input_row(call, 1, row),
                 *weight = call->inputs[2] ? call->inputs[2]->real : NULL;
    double mean = call->inputs[3]->real[row], rstd = call->inputs[4]->real[row];
    double *dx = output_row(call, row), mean_h = 0, mean_hx = 0;
    for (int64_t j = 0; j < call->columns; j++) {
      double h = weight ? g[j] * weight[j] : g[j];
      mean_h += h / n;
      mean_hx += h * (x[j] - mean) * rstd / n;
    }
    for (int64_t j = 0; j < call->columns; j++) {
      double h = weight ? g[j] * weight[j] : g[j];
      dx[j] = rstd * (h - mean_h - (x[j] - mean) * rstd * mean_hx);
    }
  }
  return NULL;
}

/* ---- cross entropy: loss = (1 - s) (lse - x_t) + s mean_j (lse - x_j), s = smoothing ---- */

static bool ignored(const Call *call, int64_t target) {
  const Attribute *ignore = node_attribute(call->node, "ignore");
  return ignore->given && target == ignore->integer;
}

static const char *range_fault(const Call *call, const char *what, int64_t found, int64_t size) {
  return memory_format(call->evaluation->arena, "%s %lld is out of range: expected 0..%lld", what, (long long)found,
                       (long long)size - 1);
}

static const char *cross_entropy_rows(const Call *call) {
  double smoothing = node_attribute(call->node, "smoothing")->number;
  for (int64_t row = 0; row < call->rows; row++) {
    const double *x = input_row(call, 0, row), total = log_sum_exp(x, call->columns);
    int64_t target = call->inputs[1]->integer[row];
    call->outputs[0]->real[row] = 0;
    call->outputs[1]->real[row] = total;
    if (ignored(call, target)) continue;
    if (target < 0 || target >= call->columns) return range_fault(call, "class index", target, call->columns);
    double spread = 0;
    for (int64_t j = 0; j < call->columns; j++) spread += (total - x[j]) / (double)call->columns;
    call->outputs[0]->real[row] = (1 - smoothing) * (total - x[target]) + smoothing * spread;
  }
  return NULL;
}

/* dx_j = g (e^(x_j - lse) - (1 - s) [j = t] - s / columns) */
static const char *cross_entropy_rows_backward(const Call *call) {
  double smoothing = node_attribute(call->node, "smoothing")->number;
  for (int64_t row = 0; row < call->rows; row++) {
    const double *x = input_row(call, 0, row), total = call->inputs[2]->real[row], g = call->inputs[3]->real[row];
    int64_t target = call->inputs[1]->integer[row];
    double *dx = output_row(call, row);
    for (int64_t j = 0; j < call->columns; j++) {
      double wanted = (j == target ? 1 - smoothing : 0) + smoothing / (double)call->columns;
      dx[j] = ignored(call, target) ? 0 : g * (exp(x[j] - total) - wanted);
    }
  }
  return NULL;
}

static const char *argmax_rows(const Call *call) {
  for (int64_t row = 0; row < call->rows; row++) {
    const double *x = input_row(call, 0, row);
    int64_t best = 0;
    for (int64_t j = 1; j < call->columns; j++)
      if (x[j] > x[best]) best = j;
    call->outputs[0]->integer[row] = best;
  }
  return NULL;
}

/* ---- tables ---- */

static const char *embed(const Call *call) {
  int64_t count = type_elements(&call->inputs[1]->type), entries = call->rows;
  for (int64_t row = 0; row < count; row++) {
    int64_t index = call->inputs[1]->integer[row];
    if (index < 0 || index >= entries) return range_fault(call, "index", index, entries);
    for (int64_t j = 0; j < call->columns; j++) output_row(call, row)[j] = input_row(call, 0, index)[j];
  }
  return NULL;
}

/* Rows of g added into the entries they were read from; indices out of range were refused by the forward kernel. */
static const char *embed_backward(const Call *call) {
  int64_t entries = call->outputs[0]->type.dims[0];
  memset(call->outputs[0]->real, 0, (size_t)(entries * call->columns) * sizeof(double));
  for (int64_t row = 0; row < call->rows; row++) {
    int64_t index = call->inputs[1]->integer[row];
    if (index < 0 || index >= entries) return range_fault(call, "index", index, entries);
    for (int64_t j = 0; j < call->columns; j++) output_row(call, index)[j] += input_row(call, 0, row)[j];
  }
  return NULL;
}

/* Every row of the table needs its function here, or this does not compile. */
const char *eval_kernel(Evaluation *evaluation, const Node *node) {
  static const char *(*const functions[OP_COUNT])(const Call *) = {
#define KERNEL(name, ...) [OP_##name] = name,
#include "ir/ops.def"
  };
  Call call = {.evaluation = evaluation, .node = node};
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] != NO_VALUE) call.inputs[i] = &evaluation->values[node->inputs[i]];
  for (int i = 0; i < node->output_count; i++) call.outputs[i] = &evaluation->values[node->outputs[i]];
  const Type *type = &call.inputs[0]->type;
  call.columns = type->dims[type->rank - 1];
  call.rows = type_elements(type) / call.columns;
  return functions[node->op](&call);
}
