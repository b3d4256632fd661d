/* ir/layouts.c - where the elements of views lie, where assemblies put their inputs, what kernels are called with. */
#include "ir/rows.h"

/* ---- views: strides in elements; a broadcast axis has stride 0 ---- */

/* Splits or merges axes without moving elements. Runs of input axes that lie densely are matched with runs of output
 * axes of the same number of elements; a run that is not dense cannot be split across. (NumPy's
 * attempt_nocopy_reshape.) */
bool layout_reshape(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output) {
  const Type *type = value_type(graph, node->outputs[0]);
  int64_t old_dims[MAX_RANK], old_strides[MAX_RANK];
  int old_rank = 0;
  for (int i = 0; i < input->rank; i++)
    if (input->dims[i] != 1) old_dims[old_rank] = input->dims[i], old_strides[old_rank++] = input->strides[i];
  *output = (ViewLayout){.rank = type->rank, .offset = input->offset};
  memcpy(output->dims, type->dims, sizeof output->dims);
  int old = 0, new = 0;
  while (old < old_rank && new < type->rank) {
    int old_end = old + 1, new_end = new + 1;
    int64_t old_count = old_dims[old], new_count = type->dims[new];
    while (old_count != new_count) {
      if (old_count < new_count)
        old_count *= old_dims[old_end++];
      else
        new_count *= type->dims[new_end++];
    }
    for (int i = old; i + 1 < old_end; i++)
      if (old_strides[i] != old_dims[i + 1] * old_strides[i + 1]) return false;
    output->strides[new_end - 1] = old_strides[old_end - 1];
    for (int i = new_end - 1; i > new; i--) output->strides[i - 1] = output->strides[i] * type->dims[i];
    old = old_end;
    new = new_end;
  }
  for (; new < type->rank; new ++) output->strides[new] = 1; /* axes of size 1 at the end */
  return true;
}

bool layout_permute(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output) {
  (void)graph;
  const Attribute *axes = node_attribute(node, "axes");
  *output = *input;
  for (int i = 0; i < axes->count; i++) {
    output->dims[i] = input->dims[axes->list[i]];
    output->strides[i] = input->strides[axes->list[i]];
  }
  return true;
}

bool layout_slice(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output) {
  int64_t axis = node_attribute(node, "axis")->integer;
  *output = *input;
  output->offset += node_attribute(node, "start")->integer * input->strides[axis];
  output->strides[axis] *= node_attribute(node, "step")->integer;
  output->dims[axis] = value_type(graph, node->outputs[0])->dims[axis];
  return true;
}

bool layout_expand(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output) {
  const Type *type = value_type(graph, node->outputs[0]);
  *output = (ViewLayout){.rank = type->rank, .offset = input->offset};
  memcpy(output->dims, type->dims, sizeof output->dims);
  for (int i = 1; i <= input->rank; i++) {
    int from = input->rank - i, to = type->rank - i;
    output->strides[to] = input->dims[from] == 1 && type->dims[to] != 1 ? 0 : input->strides[from];
  }
  return true;
}

/* ---- assemblies ---- */

void place_concat(const Graph *graph, const Node *node, int input, Placement *placement) {
  *placement = (Placement){.axis = (int)node_attribute(node, "axis")->integer, .step = 1};
  for (int i = 0; i < input; i++) placement->start += value_type(graph, node->inputs[i])->dims[placement->axis];
}

void place_place(const Graph *graph, const Node *node, int input, Placement *placement) {
  (void)graph, (void)input;
  *placement = (Placement){.axis = (int)node_attribute(node, "axis")->integer,
                           .start = node_attribute(node, "start")->integer,
                           .step = node_attribute(node, "step")->integer};
}

/* ---- kernels ---- */

static void push_extent(KernelArguments *arguments, int64_t extent) {
  ASSERT(arguments->count < MAX_KERNEL_EXTENTS);
  arguments->extents[arguments->count++] = extent;
}

/* rows, columns of input 0 with its last axis as columns */
void arguments_rows(const Graph *graph, const Node *node, KernelArguments *arguments) {
  const Type *type = value_type(graph, node->inputs[0]);
  int64_t columns = type->dims[type->rank - 1];
  push_extent(arguments, type_elements(type) / columns);
  push_extent(arguments, columns);
}

/* indices, width, entries of the table */
void arguments_embed(const Graph *graph, const Node *node, KernelArguments *arguments) {
  const Type *table = value_type(graph, node->inputs[0]);
  push_extent(arguments, type_elements(value_type(graph, node->inputs[1])));
  push_extent(arguments, table->dims[1]);
  push_extent(arguments, table->dims[0]);
}

/* indices, width, entries of the table */
void arguments_embed_backward(const Graph *graph, const Node *node, KernelArguments *arguments) {
  const Type *gradient = value_type(graph, node->outputs[0]);
  push_extent(arguments, type_elements(value_type(graph, node->inputs[1])));
  push_extent(arguments, gradient->dims[1]);
  push_extent(arguments, gradient->dims[0]);
}
