#include "tests/operators/vectors.h"

#include <math.h>

double vectors_weight(int64_t i) { return (double)((i * 37 + 11) % 101 - 50) / 32; }

static double read_number(const json_t *value) {
  if (json_is_number(value)) return json_number_value(value);
  if (json_is_boolean(value)) return json_boolean_value(value);
  const char *text = json_string_value(value);
  if (!text) die("vectors: expected a number");
  return string_equal(text, "nan") ? NAN : string_equal(text, "inf") ? INFINITY : -INFINITY;
}

double *vectors_numbers(MemoryArena *arena, const json_t *array, int64_t count) {
  if (!json_is_array(array) || (int64_t)json_array_size(array) != count)
    die("vectors: expected %lld numbers", (long long)count);
  double *numbers = NEW_ARRAY(arena, double, count);
  for (int64_t i = 0; i < count; i++) numbers[i] = read_number(json_array_get(array, (size_t)i));
  return numbers;
}

static int read_integers(const json_t *array, size_t first, int64_t *numbers) {
  int count = 0;
  for (size_t i = first; i < json_array_size(array) && count < MAX_RANK; i++)
    numbers[count++] = json_integer_value(json_array_get(array, i));
  return count;
}

static VectorTensor read_tensor(MemoryArena *arena, const json_t *value) {
  VectorTensor tensor = {0};
  const char *type = json_string_value(json_object_get(value, "type"));
  if (!type || !dtype_from_name(type, &tensor.type.dtype)) die("vectors: a tensor lacks its type");
  tensor.type.rank = read_integers(json_object_get(value, "shape"), 0, tensor.type.dims);
  tensor.data = vectors_numbers(arena, json_object_get(value, "data"), type_elements(&tensor.type));
  return tensor;
}

static VectorInput read_input(MemoryArena *arena, const json_t *value, const json_t *gradient) {
  VectorInput input = {.present = !json_is_null(value)};
  if (!input.present) return input;
  input.tensor = read_tensor(arena, value);
  const json_t *views = json_object_get(value, "views");
  for (size_t i = 0; i < json_array_size(views); i++) {
    if (input.view_count == MOST_VIEWS) die("vectors: too many views");
    const json_t *view = json_array_get(views, i);
    VectorView *to = &input.views[input.view_count++];
    to->kind = json_string_value(json_array_get(view, 0));
    to->count = read_integers(view, 1, to->numbers);
  }
  if (!json_is_null(gradient)) input.gradient = vectors_numbers(arena, gradient, type_elements(&input.tensor.type));
  return input;
}

static VectorCase read_case(MemoryArena *arena, json_t *value) {
  const json_t *inputs = json_object_get(value, "inputs"), *outputs = json_object_get(value, "outputs");
  VectorCase result = {.op = json_string_value(json_object_get(value, "op")),
                       .name = json_string_value(json_object_get(value, "name")),
                       .attributes = json_object_get(value, "attributes"),
                       .input_count = (int)json_array_size(inputs),
                       .output_count = (int)json_array_size(outputs),
                       .differentiated = (int)json_integer_value(json_object_get(value, "differentiated")),
                       .tolerance = json_number_value(json_object_get(value, "tolerance"))};
  if (!result.op || !result.name || result.input_count > MOST_TENSORS || result.output_count > MOST_TENSORS)
    die("vectors: malformed case");
  const json_t *gradients = json_object_get(value, "gradients");
  for (int i = 0; i < result.input_count; i++)
    result.inputs[i] = read_input(arena, json_array_get(inputs, (size_t)i), json_array_get(gradients, (size_t)i));
  for (int i = 0; i < result.output_count; i++)
    result.outputs[i] = read_tensor(arena, json_array_get(outputs, (size_t)i));
  return result;
}

json_t *vectors_read(MemoryArena *arena, const char *path, VectorCases *cases) {
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (!json_is_array(root)) die("%s:%d: %s", path, error.line, root ? "expected a list of cases" : error.text);
  for (size_t i = 0; i < json_array_size(root); i++)
    array_push(arena, cases, read_case(arena, json_array_get(root, i)));
  return root;
}

bool vectors_match(const char *what, const EvalTensor *found, const double *expected, double relative,
                   double absolute) {
  int64_t count = type_elements(&found->type);
  double largest = 0;
  for (int64_t i = 0; i < count; i++)
    if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
  for (int64_t i = 0; i < count; i++) {
    double value = eval_tensor_get(found, i);
    if (value == expected[i] || (isnan(value) && isnan(expected[i]))) continue;
    if (fabs(value - expected[i]) <= absolute + relative * largest) continue;
    fprintf(stderr, "%s: element %lld is %.17g, expected %.12g (tolerance %g)\n", what, (long long)i, value,
            expected[i], absolute + relative * largest);
    return false;
  }
  return true;
}
