/* ir/eval_structure.c - reductions, views, assemblies and contractions in the interpreter. */
#include <math.h>

#include "ir/eval_internal.h"

/* ---- reductions ---- */

/* Stride 0 along reduced axes, those of the result along the others. */
static void reduced_strides(const Node *node, const Type *iteration, int64_t *strides) {
  const Attribute *axes = node_attribute(node, "axis");
  bool reduced[MAX_RANK] = {false};
  for (int i = 0; i < axes->count; i++) reduced[axes->list[i]] = true;
  int64_t stride = 1;
  for (int axis = iteration->rank - 1; axis >= 0; axis--) {
    strides[axis] = reduced[axis] ? 0 : stride;
    if (!reduced[axis]) stride *= iteration->dims[axis];
  }
}

typedef enum ReductionStep { REDUCTION_START, REDUCTION_COMBINE, REDUCTION_FINISH } ReductionStep;

#define ROW(name, initial, combine, finish) \
  case OP_##name: \
    return step == REDUCTION_START ? (initial) : step == REDUCTION_COMBINE ? (combine) : (finish);
#define REAL_ROW_NUMBERS_TO_SAME ROW
#define REAL_ROW_REALS_TO_SAME ROW
#define INTEGER_ROW_NUMBERS_TO_SAME ROW
#define INTEGER_ROW_REALS_TO_SAME(...)

#define REAL(literal) ((double)literal##L)
#define COUNT ((double)count)
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY

static double reduce_real(Op op, ReductionStep step, double a, double x, int64_t count) {
  switch (op) {
#define REDUCTION(name, rule, initial, combine, finish, gradient) REAL_ROW_##rule(name, initial, combine, finish)
#include "ir/ops.def"
    default:
      die("interpreter: no real form of %s", op_info(op)->name);
  }
}

#undef REAL
#undef LOWEST
#undef HIGHEST
#define REAL(literal) ((int64_t)literal##L)
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX

static int64_t reduce_integer(Op op, ReductionStep step, int64_t a, int64_t x) {
  switch (op) {
#define REDUCTION(name, rule, initial, combine, finish, gradient) INTEGER_ROW_##rule(name, initial, combine, finish)
#include "ir/ops.def"
    default:
      die("interpreter: no integer form of %s", op_info(op)->name);
  }
}

static void reduce_step(Op op, ReductionStep step, EvalTensor *result, int64_t element, const EvalLanes *lanes,
                        int lane, int64_t count) {
  if (result->real)
    result->real[element] = reduce_real(op, step, result->real[element], lanes ? lanes->real[lane] : 0, count);
  else
    result->integer[element] = reduce_integer(op, step, result->integer[element], lanes ? lanes->integer[lane] : 0);
}

static const EvalLanes *reduction_lanes(Evaluation *evaluation, NodeId id, const Type *iteration, int64_t start,
                                        int count) {
  const Node *node = graph_node(evaluation->graph, id);
  EvalLanes *registers = evaluation->plan->registers;
  if (node->body) {
    eval_body(evaluation, id, iteration, start, count);
    return &registers[node->body->results[0]];
  }
  const EvalTensor *input = &evaluation->values[node->inputs[0]];
  const void *from = input->real ? (const void *)(input->real + start) : (const void *)(input->integer + start);
  memcpy(registers, from, (size_t)count * sizeof(double));
  return registers;
}

void eval_reduction(Evaluation *evaluation, NodeId id) {
  const Node *node = graph_node(evaluation->graph, id);
  EvalTensor *result = &evaluation->values[node->outputs[0]];
  Type iteration = eval_iteration(evaluation->graph, node);
  int64_t strides[MAX_RANK], elements = type_elements(&iteration), results = type_elements(&result->type);
  reduced_strides(node, &iteration, strides);
  for (int64_t i = 0; i < results; i++) reduce_step(node->op, REDUCTION_START, result, i, NULL, 0, 0);
  EvalCursor cursor = eval_cursor(&iteration, strides, 0, 0);
  for (int64_t start = 0; start < elements; start += EVAL_LANES) {
    int count = elements - start < EVAL_LANES ? (int)(elements - start) : EVAL_LANES;
    const EvalLanes *lanes = reduction_lanes(evaluation, id, &iteration, start, count);
    for (int i = 0; i < count; i++, eval_cursor_next(&cursor))
      reduce_step(node->op, REDUCTION_COMBINE, result, cursor.offset, lanes, i, 0);
  }
  for (int64_t i = 0; i < results; i++) reduce_step(node->op, REDUCTION_FINISH, result, i, NULL, 0, elements / results);
}

/* ---- views and assemblies ---- */

static void copy_element(EvalTensor *to, int64_t to_element, const EvalTensor *from, int64_t from_element) {
  if (to->real)
    to->real[to_element] = from->real[from_element];
  else
    to->integer[to_element] = from->integer[from_element];
}

void eval_view(Evaluation *evaluation, const Node *node) {
  const EvalTensor *input = &evaluation->values[node->inputs[0]];
  EvalTensor *output = &evaluation->values[node->outputs[0]];
  ViewLayout dense = {.rank = input->type.rank}, view;
  memcpy(dense.dims, input->type.dims, sizeof dense.dims);
  eval_strides(&input->type, dense.strides);
  if (!op_info(node->op)->layout(evaluation->graph, node, &dense, &view))
    die("interpreter: %s of a dense tensor has no layout", op_info(node->op)->name);
  EvalCursor cursor = eval_cursor(&output->type, view.strides, view.offset, 0);
  int64_t elements = type_elements(&output->type);
  for (int64_t i = 0; i < elements; i++, eval_cursor_next(&cursor)) copy_element(output, i, input, cursor.offset);
}

void eval_assembly(Evaluation *evaluation, const Node *node) {
  EvalTensor *output = &evaluation->values[node->outputs[0]];
  memset(output->real ? (void *)output->real : (void *)output->integer, 0, (size_t)type_elements(&output->type) * 8);
  for (int k = 0; k < node->input_count; k++) {
    const EvalTensor *input = &evaluation->values[node->inputs[k]];
    Placement placement = {0};
    op_info(node->op)->place(evaluation->graph, node, k, &placement);
    int64_t strides[MAX_RANK], elements = type_elements(&input->type);
    eval_strides(&output->type, strides);
    int64_t offset = placement.start * strides[placement.axis];
    strides[placement.axis] *= placement.step;
    EvalCursor cursor = eval_cursor(&input->type, strides, offset, 0);
    for (int64_t i = 0; i < elements; i++, eval_cursor_next(&cursor)) copy_element(output, cursor.offset, input, i);
  }
}

/* ---- contractions: c[batch, i, j] = sum over k of a[batch, i, k] b[batch, k, j] ---- */

/* c[i, j] of [rows, columns]. Each element is summed in the order of k; rows of b are walked so that inner loops are
 * dense. */
static void multiply_reals(const double *a, const double *b, double *restrict c, int64_t rows, int64_t inner,
                           int64_t columns) {
  for (int64_t i = 0; i < rows; i++) {
    double *restrict row = c + i * columns;
    for (int64_t j = 0; j < columns; j++) row[j] = 0;
    for (int64_t k = 0; k < inner; k++) {
      const double factor = a[i * inner + k], *from = b + k * columns;
      for (int64_t j = 0; j < columns; j++) row[j] += factor * from[j];
    }
  }
}

static void multiply_integers(const int64_t *a, const int64_t *b, int64_t *c, int64_t rows, int64_t inner,
                              int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t sum = 0;
      for (int64_t k = 0; k < inner; k++) sum += a[i * inner + k] * b[k * columns + j];
      c[i * columns + j] = sum;
    }
}

void eval_contraction(Evaluation *evaluation, const Node *node) {
  const EvalTensor *a = &evaluation->values[node->inputs[0]], *b = &evaluation->values[node->inputs[1]];
  EvalTensor *c = &evaluation->values[node->outputs[0]];
  Type batch = c->type, a_batch = a->type, b_batch = b->type;
  int64_t rows = batch.dims[batch.rank - 2], columns = batch.dims[batch.rank - 1],
          inner = a_batch.dims[a_batch.rank - 1];
  batch.rank -= 2, a_batch.rank -= 2, b_batch.rank -= 2;
  int64_t a_strides[MAX_RANK], b_strides[MAX_RANK], batches = type_elements(&batch);
  eval_broadcast_strides(&a_batch, &batch, a_strides);
  eval_broadcast_strides(&b_batch, &batch, b_strides);
  EvalCursor at_a = eval_cursor(&batch, a_strides, 0, 0), at_b = eval_cursor(&batch, b_strides, 0, 0);
  for (int64_t i = 0; i < batches; i++, eval_cursor_next(&at_a), eval_cursor_next(&at_b)) {
    int64_t a_start = at_a.offset * rows * inner, b_start = at_b.offset * inner * columns, c_start = i * rows * columns;
    if (c->real)
      multiply_reals(a->real + a_start, b->real + b_start, c->real + c_start, rows, inner, columns);
    else
      multiply_integers(a->integer + a_start, b->integer + b_start, c->integer + c_start, rows, inner, columns);
  }
}
