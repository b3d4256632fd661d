/* codegen/cuda_contraction.c - batched matrix products: cuBLAS for float, a thread per element for the rest. */
#include <inttypes.h>

#include "codegen/contraction.h"
#include "codegen/cuda.h"
#include "codegen/expression.h"

static int64_t float_offset(const GraphEmission *graph, ValueId value) {
  return layout_offset(graph, value_layout(graph, value), F32);
}

static bool lie_alike(const GraphEmission *graph, ValueId a, ValueId b) {
  enum { ALIGNMENT = 256 }; /* of storages */
  const ViewLayout *x = &value_layout(graph, a)->view, *y = &value_layout(graph, b)->view;
  bool alike = x->rank == y->rank && (x->offset - y->offset) * dtype_bytes(F32) % ALIGNMENT == 0;
  for (int axis = 0; alike && axis < x->rank; axis++) alike = x->strides[axis] == y->strides[axis];
  return alike;
}

/* cuBLAS chooses a kernel by strides and alignment, and kernels add in different orders: a clone has to have those of
 * its original, or a budget would change the result. */
static bool lies_like_original(const GraphEmission *graph, const Node *node) {
  if (node->original == NO_NODE) return true;
  const Node *original = graph_node(graph->compiled->graph, node->original);
  return lie_alike(graph, node->inputs[0], original->inputs[0]) &&
         lie_alike(graph, node->inputs[1], original->inputs[1]) &&
         lie_alike(graph, node->outputs[0], original->outputs[0]);
}

static void emit_cublas(GraphEmission *graph, NodeId id, const Product *p, Text *steps) {
  const Node *node = graph_node(graph->compiled->graph, id);
  Matrix a = matrix_form(p->m, p->k, p->a_m, p->a_k), b = matrix_form(p->k, p->n, p->b_k, p->b_n),
         c = matrix_form(p->m, p->n, p->c_m, p->c_n);
  ASSERT(!c.transposed && node->workspace > 0);
  ASSERT(lies_like_original(graph, node));
  Text call = {.arena = graph->emission->arena};
  const char *batch = p->batch.rank ? memory_format(call.arena, "&%s", batch_constant(graph, &p->batch)) : "NULL";
  text_append(&call, "rp_cuda_gemm(context, %s, %s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", ", batch,
              a.transposed ? "true" : "false", b.transposed ? "true" : "false", p->m, p->n, p->k);
  text_append(&call, "%" PRId64 ", %" PRId64 ", ", float_offset(graph, node->inputs[0]), a.leading);
  text_append(&call, "%" PRId64 ", %" PRId64 ", ", float_offset(graph, node->inputs[1]), b.leading);
  text_append(&call, "%" PRId64 ", %" PRId64 ", ", float_offset(graph, node->outputs[0]), c.leading);
  text_append(&call, "%" PRId64 ", %" PRId64 ");", graph->compiled->map->workspace_offsets[id], node->workspace);
  text_wrapped(steps, text_bytes(&call));
  graph->emission->cuda->uses_gemm = true;
}

/* The elements of c as a nest, operands a, b, c: batch axes, then row and column. */
static LoopNest element_nest(const Product *p) {
  LoopNest nest = p->batch;
  const int64_t strides[3][2] = {{p->a_m, 0}, {0, p->b_n}, {p->c_m, p->c_n}};
  nest.dims[nest.rank] = p->m;
  nest.dims[nest.rank + 1] = p->n;
  for (int operand = 0; operand < 3; operand++)
    for (int axis = 0; axis < 2; axis++) nest.strides[operand][nest.rank + axis] = strides[operand][axis];
  nest.rank += 2;
  nest_collapse(&nest);
  return nest;
}

static char *inner_offset(MemoryArena *arena, const LoopNest *nest, int operand, const char *const *names,
                          int64_t stride) {
  char *offset = nest_offset(arena, nest, operand, names);
  return stride ? memory_format(arena, "%s + inner * %" PRId64, offset, stride) : offset;
}

static void emit_elements(GraphEmission *graph, const Node *node, const Product *p, DataType dtype, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  const char *type = c_storage_type(dtype), *compute = c_compute_type(dtype), *names[MAX_RANK + 1];
  LoopNest nest = element_nest(p);
  Text text = {.arena = arena, .indent = 1};
  for (int axis = 0; axis <= MAX_RANK; axis++) names[axis] = nest_variable(axis);
  open_thread_loop(&text, &nest, 1);
  text_line(&text, "%s sum = 0;", type);
  text_open(&text, "for (int64_t inner = 0; inner < %" PRId64 "; inner++)", p->k);
  text_line(&text, "const %s x = a[%s];", compute, inner_offset(arena, &nest, OPERAND_A, names, p->a_k));
  text_line(&text, "sum += (%s)(x * b[%s]);", type, inner_offset(arena, &nest, OPERAND_B, names, p->b_k));
  text_close(&text);
  text_line(&text, "out[%s] = sum;", nest_offset(arena, &nest, OPERAND_C, names));
  text_close(&text);
  const char *name =
      cuda_kernel(graph, node, node_title(arena, node, '_'),
                  memory_format(arena, "%s *out, const %s *a, const %s *b", type, type, type), text_bytes(&text));
  char *operands[] = {cuda_operand(graph, OPERAND_WRITTEN, value_layout(graph, node->outputs[0]), dtype),
                      cuda_operand(graph, OPERAND_READ, value_layout(graph, node->inputs[0]), dtype),
                      cuda_operand(graph, OPERAND_READ, value_layout(graph, node->inputs[1]), dtype)};
  cuda_launch(steps, name, thread_loop_launch(&nest, 1),
              memory_format(arena, "%s, %s, %s", operands[0], operands[1], operands[2]));
}

void emit_cuda_contraction(GraphEmission *graph, NodeId id, Text *steps) {
  const Node *node = graph_node(graph->compiled->graph, id);
  DataType dtype = value_type(graph->compiled->graph, node->outputs[0])->dtype;
  Product product = product_create(graph, node);
  if (dtype == F32)
    emit_cublas(graph, id, &product, steps);
  else
    emit_elements(graph, node, &product, dtype, steps);
}
