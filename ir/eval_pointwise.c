/* ir/eval_pointwise.c - scalar expressions: the expression column of the op table, compiled for float, double and
 * int64_t.
 *
 * A body runs instruction by instruction over blocks of up to EVAL_LANES elements. */
#include "ir/eval_internal.h"
#include "runtime/random.h"
#include "runtime/scalar_math.h"

/* What an expression may read. Operands are all of the class in which it is evaluated. */
typedef struct Arguments {
  const EvalLanes *x[MAX_POINTWISE_INPUTS];
  const Attribute *attributes;
  const EvalControl *control;
  uint64_t random_id;
  int64_t start; /* flat index of the first element */
  int count;
} Arguments;

static double attribute_real(const Attribute *attribute) {
  bool integral = attribute->kind != ATTRIBUTE_FLOAT && attribute->kind != ATTRIBUTE_NUMBER;
  return integral ? (double)attribute->integer : attribute->number;
}

/* ---- the legend of ops.def ---- */

#define A0 (arguments->attributes[0].integer)
#define A1 (arguments->attributes[1].integer)
#define A2 (arguments->attributes[2].integer)
#define A3 (arguments->attributes[3].integer)
/* REAL pastes L to its literal, which makes these of the attributes that are reals. */
#define A0L attribute_real(&arguments->attributes[0])
#define A1L attribute_real(&arguments->attributes[1])
#define A2L attribute_real(&arguments->attributes[2])
#define A3L attribute_real(&arguments->attributes[3])
#define INDEX (arguments->start + i)
#define CONTROL arguments->control
#define UNIFORM \
  rp_uniform(arguments->control->seed, arguments->random_id, (uint64_t)arguments->control->micro_step, (uint64_t)INDEX)
#define INTEGER_FLOOR_DIVIDE(x, y) rp_integer_floor_divide(x, y)
#define INTEGER_MODULO(x, y) rp_integer_modulo(x, y)

#define LOOP(name, lanes, convert, expression) \
  case OP_##name: \
    for (int i = 0; i < arguments->count; i++) result->lanes[i] = convert(expression); \
    return;

/* Rows by operand rule; rules that a class cannot meet are left out. */
#define REAL_ROW_NUMBERS_TO_SAME LOOP
#define REAL_ROW_REALS_TO_SAME LOOP
#define REAL_ROW_INTEGERS_TO_SAME(...)
#define REAL_ROW_BOOLS_TO_SAME(...)
#define REAL_ROW_ANY_TO_SAME LOOP
#define REAL_ROW_ANY_TO_BOOL LOOP
#define REAL_ROW_NUMBERS_TO_BOOL LOOP
#define REAL_ROW_ANY_TO_ATTRIBUTE LOOP
#define REAL_ROW_BOOL_ANY_TO_SAME LOOP
#define INTEGER_ROW_NUMBERS_TO_SAME LOOP
#define INTEGER_ROW_REALS_TO_SAME(...)
#define INTEGER_ROW_INTEGERS_TO_SAME LOOP
#define INTEGER_ROW_BOOLS_TO_SAME LOOP
#define INTEGER_ROW_ANY_TO_SAME LOOP
#define INTEGER_ROW_ANY_TO_BOOL LOOP
#define INTEGER_ROW_NUMBERS_TO_BOOL LOOP
#define INTEGER_ROW_ANY_TO_ATTRIBUTE LOOP
#define INTEGER_ROW_BOOL_ANY_TO_SAME LOOP

/* ---- float ---- */

#define x0 ((float)arguments->x[0]->real[i])
#define x1 ((float)arguments->x[1]->real[i])
#define x2 ((float)arguments->x[2]->real[i])
#define x3 ((float)arguments->x[3]->real[i])
#define REAL(literal) ((float)literal##L)
#define EXP rp_exp_f32
#define LOG rp_log_f32
#define LOG1P rp_log1p_f32
#define TANH rp_tanh_f32
#define ERF rp_erf_f32
#define SQRT rp_sqrt_f32
#define POW rp_pow_f32
#define SIN rp_sin_f32
#define COS rp_cos_f32
#define ABS rp_abs_f32
#define FLOOR rp_floor_f32

static void apply_f32(Op op, const Arguments *arguments, EvalLanes *result) {
  switch (op) {
#define POINTWISE(name, signature, rule, properties, expression, gradient) \
  REAL_ROW_##rule(name, real, (double)(float), expression)
#include "ir/ops.def"
    default:
      die("interpreter: no float form of %s", op_info(op)->name);
  }
}

/* ---- double ---- */

#undef x0
#undef x1
#undef x2
#undef x3
#undef REAL
#undef EXP
#undef LOG
#undef LOG1P
#undef TANH
#undef ERF
#undef SQRT
#undef POW
#undef SIN
#undef COS
#undef ABS
#undef FLOOR
#define x0 (arguments->x[0]->real[i])
#define x1 (arguments->x[1]->real[i])
#define x2 (arguments->x[2]->real[i])
#define x3 (arguments->x[3]->real[i])
#define REAL(literal) ((double)literal##L)
#define EXP rp_exp_f64
#define LOG rp_log_f64
#define LOG1P rp_log1p_f64
#define TANH rp_tanh_f64
#define ERF rp_erf_f64
#define SQRT rp_sqrt_f64
#define POW rp_pow_f64
#define SIN rp_sin_f64
#define COS rp_cos_f64
#define ABS rp_abs_f64
#define FLOOR rp_floor_f64

static void apply_f64(Op op, const Arguments *arguments, EvalLanes *result) {
  switch (op) {
#define POINTWISE(name, signature, rule, properties, expression, gradient) \
  REAL_ROW_##rule(name, real, (double), expression)
#include "ir/ops.def"
    default:
      die("interpreter: no double form of %s", op_info(op)->name);
  }
}

/* ---- integers and bools ---- */

#undef x0
#undef x1
#undef x2
#undef x3
#undef REAL
#undef ABS
#define x0 (arguments->x[0]->integer[i])
#define x1 (arguments->x[1]->integer[i])
#define x2 (arguments->x[2]->integer[i])
#define x3 (arguments->x[3]->integer[i])
#define REAL(literal) ((int64_t)literal##L)
#define ABS rp_integer_abs

static void apply_integer(Op op, const Arguments *arguments, EvalLanes *result) {
  switch (op) {
#define POINTWISE(name, signature, rule, properties, expression, gradient) \
  INTEGER_ROW_##rule(name, integer, (int64_t), expression)
#include "ir/ops.def"
    default:
      die("interpreter: no integer form of %s", op_info(op)->name);
  }
}

/* ---- conversion between classes ---- */

static int64_t real_to_integer(DataType dtype, double value) {
  switch (dtype) {
    case I32:
      return rp_float_to_integer(value, INT32_MIN, INT32_MAX);
    case U8:
      return rp_float_to_integer(value, 0, UINT8_MAX);
    case BOOL:
      return value != 0;
    default:
      return rp_float_to_integer(value, INT64_MIN, INT64_MAX);
  }
}

static double integer_to_real(EvalPrecision precision, DataType dtype, int64_t value) {
  if (precision == EVAL_F32 && dtype == F32) return (double)(float)value;
  return eval_round(precision, dtype, (double)value);
}

/* Makes lanes, which hold reals or integers, lanes of a data type. */
static void convert_lanes(EvalPrecision precision, bool real, DataType dtype, int count, EvalLanes *lanes) {
  bool to_real = dtype_class(dtype) == CLASS_REAL;
  if (real && to_real && (precision == EVAL_F64 || dtype == F64)) return;
  for (int i = 0; i < count; i++) {
    if (real && to_real)
      lanes->real[i] = eval_round(precision, dtype, lanes->real[i]);
    else if (real)
      lanes->integer[i] = real_to_integer(dtype, lanes->real[i]);
    else if (to_real)
      lanes->real[i] = integer_to_real(precision, dtype, lanes->integer[i]);
    else
      lanes->integer[i] = eval_wrap(dtype, lanes->integer[i]);
  }
}

/* ---- bodies ---- */

static void load_input(const EvalTensor *tensor, const Type *iteration, int64_t start, int count, EvalLanes *lanes) {
  int64_t strides[MAX_RANK];
  if (shape_equal(&tensor->type, iteration)) {
    memcpy(lanes, tensor->real ? (void *)(tensor->real + start) : (void *)(tensor->integer + start), (size_t)count * 8);
    return;
  }
  eval_broadcast_strides(&tensor->type, iteration, strides);
  EvalCursor cursor = eval_cursor(iteration, strides, 0, start);
  for (int i = 0; i < count; i++, eval_cursor_next(&cursor)) {
    if (tensor->real)
      lanes->real[i] = tensor->real[cursor.offset];
    else
      lanes->integer[i] = tensor->integer[cursor.offset];
  }
}

void eval_store(EvalTensor *tensor, int64_t start, int count, const EvalLanes *lanes) {
  if (tensor->real)
    memcpy(tensor->real + start, lanes->real, (size_t)count * sizeof *lanes->real);
  else
    memcpy(tensor->integer + start, lanes->integer, (size_t)count * sizeof *lanes->integer);
}

static DataType operand_dtype(const Graph *graph, const Node *node, const Body *body, int operand) {
  return operand >= 0 ? body->instructions[operand].dtype : value_type(graph, node->inputs[~operand])->dtype;
}

/* A constant is its attribute: a real or an integer by its data type. */
static void fill_constant(const Instruction *instruction, const Arguments *arguments, EvalLanes *result) {
  const Attribute *value = &instruction->attributes[op_attribute_index(instruction->op, "value")];
  bool real = dtype_class(instruction->dtype) == CLASS_REAL;
  for (int i = 0; i < arguments->count; i++) {
    if (real)
      result->real[i] = value->number;
    else
      result->integer[i] = value->integer;
  }
}

static void run_instruction(const Evaluation *evaluation, const Node *node, const Body *body, int index,
                            Arguments *arguments) {
  const Instruction *instruction = &body->instructions[index];
  const Graph *graph = evaluation->graph;
  EvalLanes *registers = evaluation->plan->registers, converted[MAX_POINTWISE_INPUTS];
  int operands = instruction->operand_count;
  DataType dtype =
      operands ? operand_dtype(graph, node, body, instruction->operands[operands - 1]) : instruction->dtype;
  bool real = dtype_class(dtype) == CLASS_REAL;
  for (int k = 0; k < operands; k++) {
    int operand = instruction->operands[k];
    const EvalLanes *lanes = &registers[operand >= 0 ? operand : body->instruction_count + ~operand];
    bool operand_real = dtype_class(operand_dtype(graph, node, body, operand)) == CLASS_REAL;
    arguments->x[k] = lanes;
    if (operand_real == real) continue;
    converted[k] = *lanes;
    convert_lanes(evaluation->precision, operand_real, dtype, arguments->count, &converted[k]);
    arguments->x[k] = &converted[k];
  }
  arguments->attributes = instruction->attributes;
  arguments->random_id = instruction->random_id;
  EvalLanes *result = &registers[index];
  if (op_has(instruction->op, OP_UNIFORM))
    fill_constant(instruction, arguments, result);
  else if (!real)
    apply_integer(instruction->op, arguments, result);
  else if (evaluation->precision == EVAL_F32 && dtype != F64)
    apply_f32(instruction->op, arguments, result);
  else
    apply_f64(instruction->op, arguments, result);
  convert_lanes(evaluation->precision, real, instruction->dtype, arguments->count, result);
}

void eval_body(Evaluation *evaluation, NodeId id, const Type *iteration, int64_t start, int count) {
  const Node *node = graph_node(evaluation->graph, id);
  const Body *body = &evaluation->plan->bodies[id];
  Arguments arguments = {.control = &evaluation->control, .start = start, .count = count};
  for (int i = 0; i < node->input_count; i++)
    load_input(&evaluation->values[node->inputs[i]], iteration, start, count,
               &evaluation->plan->registers[body->instruction_count + i]);
  for (int i = 0; i < body->instruction_count; i++) run_instruction(evaluation, node, body, i, &arguments);
}

void eval_pointwise(Evaluation *evaluation, NodeId id) {
  const Node *node = graph_node(evaluation->graph, id);
  const Body *body = &evaluation->plan->bodies[id];
  Type iteration = eval_iteration(evaluation->graph, node);
  int64_t elements = type_elements(&iteration);
  for (int64_t start = 0; start < elements; start += EVAL_LANES) {
    int count = elements - start < EVAL_LANES ? (int)(elements - start) : EVAL_LANES;
    eval_body(evaluation, id, &iteration, start, count);
    for (int k = 0; k < body->result_count; k++) {
      bool output = k < node->output_count;
      ValueId value = output ? node->outputs[k] : node->writes[k - node->output_count];
      EvalTensor *tensor =
          output ? &evaluation->values[value] : &evaluation->written[graph_value(evaluation->graph, value)->index];
      eval_store(tensor, start, count, &evaluation->plan->registers[body->results[k]]);
    }
  }
}
