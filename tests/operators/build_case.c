#include "tests/operators/build_case.h"

#include "ir/build.h"

/* ---- attributes ---- */

static int64_t read_choice(const AttributeInfo *info, const char *word) {
  for (int64_t i = 0; info->choices[i]; i++)
    if (string_equal(info->choices[i], word)) return i;
  die("'%s' is not a choice of attribute '%s'", word, info->name);
}

static DataType read_dtype(const char *word) {
  DataType dtype = F32;
  if (!dtype_from_name(word, &dtype)) die("unknown data type '%s'", word);
  return dtype;
}

static Attribute read_list(const json_t *value, AttributeKind kind) {
  Attribute attribute = {.kind = kind, .given = true, .count = (int)json_array_size(value)};
  for (int i = 0; i < attribute.count; i++) {
    const json_t *item = json_array_get(value, (size_t)i);
    attribute.list[i] = json_integer_value(item);
    attribute.numbers[i] = json_number_value(item);
  }
  return attribute;
}

static Attribute read_attribute(const AttributeInfo *info, const json_t *value) {
  switch (info->kind) {
    case ATTRIBUTE_INT:
      return attribute_int(json_integer_value(value));
    case ATTRIBUTE_FLOAT:
      return attribute_float(json_number_value(value));
    case ATTRIBUTE_NUMBER:
      return attribute_number(json_number_value(value), (int64_t)json_number_value(value));
    case ATTRIBUTE_BOOL:
      return attribute_bool(json_boolean_value(value));
    case ATTRIBUTE_CHOICE:
      return attribute_choice(read_choice(info, json_string_value(value)));
    case ATTRIBUTE_DTYPE:
      return attribute_dtype(read_dtype(json_string_value(value)));
    case ATTRIBUTE_INTS:
    case ATTRIBUTE_FLOATS:
      return read_list(value, info->kind);
  }
  die("unknown attribute kind");
}

void read_attributes(Op op, json_t *values, Attribute *attributes) {
  const OpInfo *info = op_info(op);
  for (int i = 0; i < info->attribute_count; i++) {
    const json_t *value = json_object_get(values, info->attributes[i].name);
    if (value) attributes[i] = read_attribute(&info->attributes[i], value);
  }
  for (void *item = json_object_iter(values); item; item = json_object_iter_next(values, item))
    if (op_attribute_index(op, json_object_iter_key(item)) < 0)
      die("operator %s has no attribute '%s'", info->name, json_object_iter_key(item));
}

/* ---- inputs ---- */

static ValueId apply_view(Graph *graph, ValueId x, const VectorView *view) {
  if (string_equal(view->kind, "permute")) return build_permute(graph, x, view->numbers);
  if (string_equal(view->kind, "reshape")) return build_reshape(graph, x, view->count, view->numbers);
  if (string_equal(view->kind, "expand")) return build_expand(graph, x, view->count, view->numbers);
  if (string_equal(view->kind, "slice"))
    return build_slice(graph, x, (int)view->numbers[0], view->numbers[1], view->numbers[2], view->numbers[3]);
  die("unknown view '%s'", view->kind);
}

static ValueId add_input(Graph *graph, const VectorInput *input, const char *name) {
  Module *module = graph->module;
  ValueId x = graph_input(graph, module_add_input(module, (ModelInput){.name = name, .type = input->tensor.type}));
  if (input->gradient) {
    GraphOutput request = {.name = name, .value = x, .denominator = NO_VALUE};
    array_push(module->arena, &graph->gradient_requests, request);
  }
  for (int i = 0; i < input->view_count; i++) x = apply_view(graph, x, &input->views[i]);
  return x;
}

/* ---- what the language offers beside the op table ---- */

static int64_t argument(const VectorCase *vectors, const char *name) {
  return json_integer_value(json_object_get(vectors->attributes, name));
}

static ValueId apply_rearrange(Graph *graph, const VectorCase *vectors, ValueId x) {
  const char *names[MAX_RANK], *name;
  int64_t sizes[MAX_RANK];
  int count = 0;
  json_t *size;
  json_object_foreach(json_object_get(vectors->attributes, "sizes"), name, size) {
    names[count] = name;
    sizes[count++] = json_integer_value(size);
  }
  const char *pattern = json_string_value(json_object_get(vectors->attributes, "pattern"));
  return build_rearrange(graph, x, pattern, count, names, sizes);
}

/* Returns false when the name is not one of these. */
static bool apply_special(Graph *graph, const VectorCase *vectors, ValueId x, ValueId *outputs) {
  if (string_equal(vectors->op, "rearrange"))
    outputs[0] = apply_rearrange(graph, vectors, x);
  else if (string_equal(vectors->op, "split"))
    build_split(graph, x, argument(vectors, "parts"), (int)argument(vectors, "axis"), outputs);
  else if (string_equal(vectors->op, "unstack"))
    build_unstack(graph, x, (int)argument(vectors, "axis"), outputs);
  else if (string_equal(vectors->op, "index"))
    outputs[0] = build_index(graph, x, (int)argument(vectors, "axis"), argument(vectors, "at"));
  else
    return false;
  return true;
}

static void apply_operator(Graph *graph, const VectorCase *vectors, const ValueId *inputs, ValueId *outputs) {
  if (apply_special(graph, vectors, inputs[0], outputs)) return;
  Op op = op_find(vectors->op);
  if (op == OP_NONE) die("the op table has no operator '%s'", vectors->op);
  Attribute attributes[MAX_OP_ATTRIBUTES];
  for (int i = 0; i < op_info(op)->attribute_count; i++)
    attributes[i] = attribute_none(op_info(op)->attributes[i].kind);
  read_attributes(op, vectors->attributes, attributes);
  outputs[0] = graph_apply(graph, op, vectors->input_count, inputs, attributes, outputs);
}

/* ---- the loss ---- */

/* Sum of output times weight. The weights are built into the graph: the index times 37 plus 11, modulo 101, … */
static ValueId weighted_sum(Graph *graph, ValueId y) {
  Type type = *value_type(graph, y);
  Attribute count[] = {attribute_ints(type.rank, type.dims), attribute_dtype(I32)};
  ValueId index = graph_apply(graph, OP_arange, 0, NULL, count, NULL);
  ValueId number =
      BUILD(graph, add, BUILD(graph, multiply, index, build_integer(graph, I32, 37)), build_integer(graph, I32, 11));
  number = BUILD(graph, subtract, BUILD(graph, modulo, number, build_integer(graph, I32, 101)),
                 build_integer(graph, I32, 50));
  ValueId weight =
      BUILD(graph, multiply, build_cast(graph, number, type.dtype), build_constant(graph, type.dtype, 1.0 / 32));
  return build_reduce(graph, OP_sum, BUILD(graph, multiply, y, weight), -1, NULL, false);
}

static ValueId as_f32(Graph *graph, ValueId x) {
  return value_type(graph, x)->dtype == F32 ? x : build_cast(graph, x, F32);
}

static bool all_zero(const VectorCase *vectors) {
  for (int i = 0; i < vectors->input_count; i++) {
    const VectorInput *input = &vectors->inputs[i];
    for (int64_t k = 0; input->gradient && k < type_elements(&input->tensor.type); k++)
      if (input->gradient[k] != 0) return false;
  }
  return true;
}

/* From request `first_request` on, the gradients asked for are those of this case. */
static void build_loss(Graph *graph, const ValueId *outputs, BuiltCase *built, int64_t first_request) {
  const VectorCase *vectors = built->vectors;
  ValueId loss = graph->loss.value == NO_VALUE ? build_constant(graph, F32, 0) : graph->loss.value;
  for (int i = 0; i < vectors->differentiated; i++)
    if (dtype_class(value_type(graph, outputs[i])->dtype) == CLASS_REAL)
      loss = BUILD(graph, add, loss, as_f32(graph, weighted_sum(graph, outputs[i])));
  built->gradient_offset = all_zero(vectors) ? 1 : 0;
  for (int64_t i = first_request; built->gradient_offset != 0 && i < graph->gradient_requests.count; i++) {
    ValueId sum = build_reduce(graph, OP_sum, graph->gradient_requests.items[i].value, -1, NULL, false);
    loss = BUILD(graph, add, loss, as_f32(graph, sum));
  }
  graph->loss.name = "loss";
  graph->loss.value = loss;
}

bool build_case(Graph *graph, const VectorCase *vectors, const char *prefix, BuiltCase *built) {
  MemoryArena *arena = graph->module->arena;
  ValueId inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  int64_t first_request = graph->gradient_requests.count;
  *built = (BuiltCase){.vectors = vectors, .prefix = prefix, .first_input = (int)graph->module->inputs.count};
  for (int i = 0; i < vectors->input_count; i++)
    inputs[i] = vectors->inputs[i].present
                    ? add_input(graph, &vectors->inputs[i], memory_format(arena, "%sx%d", prefix, i))
                    : NO_VALUE;
  graph->module_path = vectors->name; /* what random operators are keyed by */
  apply_operator(graph, vectors, inputs, outputs);
  graph->module_path = "";
  if (diag_error_count()) return false;
  for (int i = 0; i < vectors->output_count; i++) {
    GraphOutput output = {
        .name = memory_format(arena, "%sy%d", prefix, i), .value = outputs[i], .denominator = NO_VALUE};
    array_push(arena, &graph->outputs, output);
  }
  build_loss(graph, outputs, built, first_request);
  return diag_error_count() == 0;
}

void fill_case(Evaluation *evaluation, const BuiltCase *built) {
  int next = built->first_input;
  evaluation->control.seed = 7;
  evaluation->control.micro_step = 3;
  for (int i = 0; i < built->vectors->input_count; i++) {
    const VectorTensor *tensor = &built->vectors->inputs[i].tensor;
    if (!built->vectors->inputs[i].present) continue;
    EvalTensor *input = &evaluation->inputs[next++];
    for (int64_t k = 0; k < type_elements(&tensor->type); k++) eval_tensor_set(input, k, tensor->data[k]);
  }
}

double *expected_gradient(MemoryArena *arena, const BuiltCase *built, int input) {
  const VectorInput *from = &built->vectors->inputs[input];
  int64_t count = type_elements(&from->tensor.type);
  double *expected = NEW_ARRAY(arena, double, count);
  for (int64_t k = 0; k < count; k++) expected[k] = from->gradient[k] + built->gradient_offset;
  return expected;
}

Tolerance case_tolerance(const VectorCase *vectors, EvalPrecision precision) {
  if (precision == EVAL_F64) return (Tolerance){1e-11, 1e-13};
  return (Tolerance){vectors->tolerance > 0 ? vectors->tolerance : 3e-6, 3e-7};
}
