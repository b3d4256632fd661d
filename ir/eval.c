/* ir/eval.c - the driver of the reference interpreter: tensors, rounding, the order of nodes, writes. */
#include "ir/eval.h"

#include <math.h>

#include "ir/eval_internal.h"
#include "runtime/scalar_math.h"

/* ---- tensors ---- */

EvalTensor eval_tensor_create(MemoryArena *arena, const Type *type) {
  EvalTensor tensor = {.type = *type};
  int64_t elements = type_elements(type);
  if (dtype_class(type->dtype) == CLASS_REAL)
    tensor.real = NEW_ARRAY(arena, double, elements);
  else
    tensor.integer = NEW_ARRAY(arena, int64_t, elements);
  return tensor;
}

double eval_tensor_get(const EvalTensor *tensor, int64_t element) {
  return tensor->real ? tensor->real[element] : (double)tensor->integer[element];
}

void eval_tensor_set(EvalTensor *tensor, int64_t element, double value) {
  if (tensor->real)
    tensor->real[element] = value;
  else
    tensor->integer[element] = rp_float_to_integer(value, INT64_MIN, INT64_MAX);
}

static void copy_tensor(EvalTensor *to, const EvalTensor *from) {
  size_t bytes = (size_t)type_elements(&from->type) * 8;
  memcpy(to->real ? (void *)to->real : (void *)to->integer, from->real ? (void *)from->real : (void *)from->integer,
         bytes);
}

/* ---- data types ---- */

/* The nearest number (ties to even) with `digits` binary digits and an exponent of at least `lowest`, as frexp counts.
 */
static double round_digits(double value, int digits, int lowest, double largest) {
  if (value == 0 || !isfinite(value)) return value;
  int exponent;
  frexp(value, &exponent);
  int unit = (exponent < lowest ? lowest : exponent) - digits;
  double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
  return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

double eval_round(EvalPrecision precision, DataType dtype, double value) {
  if (precision == EVAL_F64) return value;
  switch (dtype) {
    case F32:
      return (double)(float)value;
    case BF16:
      return round_digits(value, 8, -125, 0x1.fep127);
    case F16:
      return round_digits(value, 11, -13, 65504);
    default:
      return value;
  }
}

int64_t eval_wrap(DataType dtype, int64_t value) {
  switch (dtype) {
    case I32:
      return (int32_t)(uint32_t)(uint64_t)value;
    case U8:
      return (uint8_t)value;
    case BOOL:
      return value != 0;
    default:
      return value;
  }
}

static void round_tensor(EvalPrecision precision, EvalTensor *tensor) {
  int64_t elements = type_elements(&tensor->type);
  DataType dtype = tensor->type.dtype;
  if (tensor->integer)
    for (int64_t i = 0; i < elements; i++) tensor->integer[i] = eval_wrap(dtype, tensor->integer[i]);
  else if (precision == EVAL_F32 && dtype == F32)
    for (int64_t i = 0; i < elements; i++) tensor->real[i] = (double)(float)tensor->real[i];
  else if (precision == EVAL_F32)
    for (int64_t i = 0; i < elements; i++) tensor->real[i] = eval_round(precision, dtype, tensor->real[i]);
}

/* ---- strides ---- */

EvalCursor eval_cursor(const Type *shape, const int64_t *strides, int64_t offset, int64_t first_element) {
  EvalCursor cursor = {.shape = *shape, .offset = offset};
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    cursor.strides[axis] = strides[axis];
    cursor.position[axis] = first_element % shape->dims[axis];
    first_element /= shape->dims[axis];
    cursor.offset += cursor.position[axis] * strides[axis];
  }
  return cursor;
}

void eval_cursor_next(EvalCursor *cursor) {
  for (int axis = cursor->shape.rank - 1; axis >= 0; axis--) {
    cursor->offset += cursor->strides[axis];
    if (++cursor->position[axis] < cursor->shape.dims[axis]) return;
    cursor->offset -= cursor->strides[axis] * cursor->shape.dims[axis];
    cursor->position[axis] = 0;
  }
}

void eval_strides(const Type *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape->dims[axis];
  }
}

void eval_broadcast_strides(const Type *from, const Type *shape, int64_t *strides) {
  int64_t dense[MAX_RANK];
  eval_strides(from, dense);
  for (int axis = 0; axis < shape->rank; axis++) {
    int source = axis - (shape->rank - from->rank);
    strides[axis] = source < 0 || from->dims[source] == 1 ? 0 : dense[source];
  }
}

/* ---- evaluations ---- */

Type eval_iteration(const Graph *graph, const Node *node) {
  if (node->body) return node->iteration;
  if (op_kind(node->op) == KIND_REDUCTION) return *value_type(graph, node->inputs[0]);
  return *value_type(graph, node->output_count ? node->outputs[0] : node->writes[0]);
}

static EvalPlan *plan_bodies(MemoryArena *arena, const Graph *graph) {
  EvalPlan *plan = NEW(arena, EvalPlan);
  int64_t registers = 1;
  plan->bodies = NEW_ARRAY(arena, Body, graph->nodes.count);
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    if (op_kind(node->op) == KIND_POINTWISE) plan->bodies[id] = node_body(arena, graph, node);
    if (op_kind(node->op) == KIND_REDUCTION && node->body) plan->bodies[id] = *node->body;
    int64_t needed = plan->bodies[id].instruction_count + node->input_count;
    if (plan->bodies[id].instruction_count && needed > registers) registers = needed;
  }
  plan->registers = NEW_ARRAY(arena, EvalLanes, registers);
  return plan;
}

static void bind_value(Evaluation *evaluation, ValueId id, bool *made) {
  const Value *value = graph_value(evaluation->graph, id);
  EvalTensor *tensor = &evaluation->values[id];
  if (value->kind == VALUE_INPUT)
    *tensor = evaluation->inputs[value->index];
  else if (value->kind == VALUE_PERSISTENT)
    *tensor = evaluation->persistents[value->index];
  else if (made[id])
    *tensor = eval_tensor_create(evaluation->arena, &value->type);
}

Evaluation *eval_create(MemoryArena *arena, const Graph *graph, EvalPrecision precision) {
  Evaluation *evaluation = NEW(arena, Evaluation);
  const Module *module = graph->module;
  *evaluation = (Evaluation){
      .graph = graph, .precision = precision, .arena = arena, .fault_node = NO_NODE, .probe_value = NO_VALUE};
  evaluation->control = (EvalControl){.seed = module->training.seed,
                                      .update = 1,
                                      .learning_rate_scale = 1,
                                      .micro_steps = (int32_t)module->training.accumulate};
  evaluation->inputs = NEW_ARRAY(arena, EvalTensor, module->inputs.count);
  for (int64_t i = 0; i < module->inputs.count; i++)
    evaluation->inputs[i] = eval_tensor_create(arena, &module->inputs.items[i].type);
  evaluation->persistents = NEW_ARRAY(arena, EvalTensor, module->persistents.count);
  evaluation->written = NEW_ARRAY(arena, EvalTensor, module->persistents.count);
  evaluation->was_written = NEW_ARRAY(arena, bool, module->persistents.count);
  for (int64_t i = 0; i < module->persistents.count; i++)
    evaluation->persistents[i] = eval_tensor_create(arena, &module->persistents.items[i].type);
  bool *made = NEW_ARRAY(arena, bool, graph->values.count);
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    for (int i = 0; i < node->output_count; i++) made[node->outputs[i]] = true;
    for (int i = 0; i < node->write_count; i++) {
      int index = graph_value(graph, node->writes[i])->index;
      EvalTensor *written = &evaluation->written[index];
      if (!written->real && !written->integer)
        *written = eval_tensor_create(arena, &module->persistents.items[index].type);
    }
  }
  evaluation->values = NEW_ARRAY(arena, EvalTensor, graph->values.count);
  for (int64_t id = 0; id < graph->values.count; id++) bind_value(evaluation, (ValueId)id, made);
  evaluation->plan = plan_bodies(arena, graph);
  return evaluation;
}

const EvalTensor *eval_value(const Evaluation *evaluation, ValueId value) { return &evaluation->values[value]; }

/* ---- running ---- */

static const char *run_node(Evaluation *evaluation, NodeId id) {
  const Node *node = graph_node(evaluation->graph, id);
  switch (op_kind(node->op)) {
    case KIND_POINTWISE:
      eval_pointwise(evaluation, id);
      return NULL;
    case KIND_REDUCTION:
      eval_reduction(evaluation, id);
      return NULL;
    case KIND_VIEW:
      eval_view(evaluation, node);
      return NULL;
    case KIND_ASSEMBLY:
      eval_assembly(evaluation, node);
      return NULL;
    case KIND_CONTRACTION:
      eval_contraction(evaluation, node);
      return NULL;
    case KIND_KERNEL:
      return eval_kernel(evaluation, node);
    default:
      die("interpreter: operator %s in a graph", op_info(node->op)->name);
  }
}

static void finish_output(Evaluation *evaluation, ValueId id) {
  EvalTensor *tensor = &evaluation->values[id];
  round_tensor(evaluation->precision, tensor);
  if (id == evaluation->probe_value) tensor->real[evaluation->probe_element] += evaluation->probe_delta;
}

bool eval_run_phases(Evaluation *evaluation, Phase first, Phase last) {
  const Module *module = evaluation->graph->module;
  evaluation->fault = NULL;
  evaluation->fault_node = NO_NODE;
  for (int64_t i = 0; i < module->inputs.count; i++) round_tensor(evaluation->precision, &evaluation->inputs[i]);
  for (int64_t i = 0; i < module->persistents.count; i++)
    round_tensor(evaluation->precision, &evaluation->persistents[i]);
  for (int64_t id = 0; id < evaluation->graph->nodes.count; id++) {
    const Node *node = &evaluation->graph->nodes.items[id];
    if (node->phase < first || node->phase > last || (evaluation->skipped && evaluation->skipped[id])) continue;
    evaluation->fault = run_node(evaluation, (NodeId)id);
    if (evaluation->fault) {
      evaluation->fault_node = (NodeId)id;
      return false;
    }
    for (int i = 0; i < node->output_count; i++) finish_output(evaluation, node->outputs[i]);
    for (int i = 0; i < node->write_count; i++)
      evaluation->was_written[graph_value(evaluation->graph, node->writes[i])->index] = true;
  }
  return true;
}

bool eval_run(Evaluation *evaluation) { return eval_run_phases(evaluation, PHASE_FORWARD, PHASE_UPDATE); }

void eval_commit(Evaluation *evaluation) {
  for (int64_t i = 0; i < evaluation->graph->module->persistents.count; i++) {
    if (evaluation->was_written[i]) copy_tensor(&evaluation->persistents[i], &evaluation->written[i]);
    evaluation->was_written[i] = false;
  }
}
