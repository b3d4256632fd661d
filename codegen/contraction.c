/* codegen/contraction.c - batched matrix products: BLAS for float, plain loops for the rest. */
#include <inttypes.h>

#include "codegen/contraction.h"
#include "codegen/expression.h"

static ViewLayout without_matrix(ViewLayout view) {
  view.rank -= 2;
  return view;
}

/* Where b is the same for the whole last batch axis, and a and c go on from matrix to matrix as from row to row, the
 * axis joins the rows: one large product instead of many. */
static void join_rows(Product *p) {
  LoopNest *batch = &p->batch;
  while (batch->rank) {
    int last = batch->rank - 1;
    int64_t a = batch->strides[OPERAND_A][last], c = batch->strides[OPERAND_C][last];
    bool single = p->m == 1 && a > 0 && c > 0, joins = a == p->a_m * p->m && c == p->c_m * p->m;
    if (batch->strides[OPERAND_B][last] || !(single || joins)) return;
    if (single) p->a_m = a, p->c_m = c;
    p->m *= batch->dims[last];
    batch->rank--;
  }
}

Product product_create(const GraphEmission *graph, const Node *node) {
  const ViewLayout *a = &value_layout(graph, node->inputs[0])->view, *b = &value_layout(graph, node->inputs[1])->view;
  const ViewLayout *c = &value_layout(graph, node->outputs[0])->view,
                   matrices[] = {without_matrix(*a), without_matrix(*b), without_matrix(*c)};
  Type shape = type_make(F32, c->rank - 2, c->dims);
  Product p = {.batch = nest_create(graph->emission->arena, &shape, 3)};
  for (int operand = 0; operand < 3; operand++) nest_set_view(&p.batch, operand, &matrices[operand]);
  nest_collapse(&p.batch);
  p.m = a->dims[a->rank - 2];
  p.k = a->dims[a->rank - 1];
  p.n = b->dims[b->rank - 1];
  p.a_m = a->strides[a->rank - 2];
  p.a_k = a->strides[a->rank - 1];
  p.b_k = b->strides[b->rank - 2];
  p.b_n = b->strides[b->rank - 1];
  p.c_m = c->strides[c->rank - 2];
  p.c_n = c->strides[c->rank - 1];
  join_rows(&p);
  return p;
}

/* ---- BLAS ---- */

Matrix matrix_form(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  bool unit_columns = column_stride == 1 || columns == 1, unit_rows = row_stride == 1 || rows == 1;
  bool plain = unit_columns && (rows == 1 || row_stride >= columns);
  if (plain) return (Matrix){false, rows == 1 ? columns : row_stride};
  if (unit_rows) return (Matrix){true, columns == 1 ? rows : column_stride};
  if (unit_columns) return (Matrix){false, row_stride};
  die("an operand of a matrix product has no unit stride");
}

static void append_numbers(Text *text, int count, const int64_t *numbers) {
  text_append(text, ", {");
  for (int i = 0; i < count; i++) text_append(text, "%s%" PRId64, i ? ", " : "", numbers[i]);
  text_append(text, "}");
}

const char *batch_constant(GraphEmission *graph, const LoopNest *batch) {
  Text text = {.arena = graph->emission->arena};
  text_append(&text, "{%d", batch->rank);
  append_numbers(&text, batch->rank, batch->dims);
  for (int operand = 0; operand < 3; operand++) append_numbers(&text, batch->rank, batch->strides[operand]);
  text_append(&text, "}");
  return emission_constant(graph->emission, "static const RpGemmBatch", "batch", text_bytes(&text));
}

static void emit_blas(GraphEmission *graph, const Node *node, const Product *p, Text *steps) {
  Matrix a = matrix_form(p->m, p->k, p->a_m, p->a_k), b = matrix_form(p->k, p->n, p->b_k, p->b_n),
         c = matrix_form(p->m, p->n, p->c_m, p->c_n);
  ASSERT(!c.transposed);
  Text call = {.arena = graph->emission->arena};
  if (p->batch.rank)
    text_append(&call, "rp_gemm_batched_f32(&%s, ", batch_constant(graph, &p->batch));
  else
    text_append(&call, "rp_gemm_f32(");
  text_append(&call, "%s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", 1.0f, ", a.transposed ? "true" : "false",
              b.transposed ? "true" : "false", p->m, p->n, p->k);
  text_append(&call, "%s, %" PRId64 ", ", value_pointer(graph, node->inputs[0]), a.leading);
  text_append(&call, "%s, %" PRId64 ", 0.0f, ", value_pointer(graph, node->inputs[1]), b.leading);
  text_append(&call, "%s, %" PRId64 ");", value_pointer(graph, node->outputs[0]), c.leading);
  text_wrapped(steps, text_bytes(&call));
}

/* ---- loops ---- */

static void append_term(Text *text, const char *variable, int64_t stride) {
  if (stride == 1) text_append(text, " + %s", variable);
  if (stride != 0 && stride != 1) text_append(text, " + %s * %" PRId64, variable, stride);
}

static char *element(MemoryArena *arena, const Product *p, int operand, const char *first, int64_t first_stride,
                     const char *second, int64_t second_stride) {
  const char *names[MAX_RANK + 1];
  for (int axis = 0; axis < p->batch.rank; axis++) names[axis] = nest_variable(axis);
  Text text = {.arena = arena};
  text_append(&text, "%s", nest_offset(arena, &p->batch, operand, names));
  append_term(&text, first, first_stride);
  append_term(&text, second, second_stride);
  return text.bytes;
}

/* Rows of c are sums of rows of b: the inner loop runs along them. Each element is summed in order of the inner axis.
 */
static void emit_loops(GraphEmission *graph, const Node *node, const Product *p, DataType dtype, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  const char *type = c_storage_type(dtype), *compute = c_compute_type(dtype);
  Text text = {.arena = arena, .indent = 1};
  if (p->m * p->n * p->k * nest_elements(&p->batch) >= PARALLEL_ELEMENTS)
    text_line(&text, "#pragma omp parallel for collapse(%d) schedule(static)", p->batch.rank + 1);
  for (int axis = 0; axis < p->batch.rank; axis++) open_loop(&text, nest_variable(axis), p->batch.dims[axis]);
  open_loop(&text, "row", p->m);
  char *target = element(arena, p, OPERAND_C, "row", p->c_m, "column", p->c_n);
  text_line(&text, "for (int64_t column = 0; column < %" PRId64 "; column++) out[%s] = 0;", p->n, target);
  open_loop(&text, "inner", p->k);
  text_line(&text, "const %s x = a[%s];", compute, element(arena, p, OPERAND_A, "row", p->a_m, "inner", p->a_k));
  text_line(&text, "for (int64_t column = 0; column < %" PRId64 "; column++)", p->n);
  text_line(&text, "  out[%s] += (%s)(x * b[%s]);", target, type,
            element(arena, p, OPERAND_B, "inner", p->b_k, "column", p->b_n));
  close_loops(&text, p->batch.rank + 2);
  const char *name =
      emission_function(graph->emission, graph->emission->target->function, node_title(arena, node, '_'),
                        memory_format(arena, "%s *out, const %s *a, const %s *b", type, type, type), text_bytes(&text));
  text_line(steps, "%s(%s, %s, %s);", name, value_pointer(graph, node->outputs[0]),
            value_pointer(graph, node->inputs[0]), value_pointer(graph, node->inputs[1]));
}

void emit_contraction(GraphEmission *graph, const Node *node, Text *steps) {
  DataType dtype = value_type(graph->compiled->graph, node->outputs[0])->dtype;
  Product product = product_create(graph, node);
  if (dtype == F32)
    emit_blas(graph, node, &product, steps);
  else
    emit_loops(graph, node, &product, dtype, steps);
}
