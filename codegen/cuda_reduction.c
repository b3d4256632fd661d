/* codegen/cuda_reduction.c - reductions as kernels.
 *
 * The elements that make one result are numbered in row-major order of the reduced axes. Who combines them depends on
 * their number, on the number of results and on whether the innermost axis is reduced:
 *
 *   serial:  up to SERIAL elements; one thread for a result.
 *   warps:   up to WARP_ELEMENTS along rows; a warp for a result.
 *   blocks:  more along rows; a block for a result, or for a piece of it.
 *   columns: the innermost axis is kept; a block of 32 columns by 8 threads for 32 results, or a piece of them.
 *
 * A thread combines every so manyth element in order, then lanes are combined by a butterfly or rows of threads in
 * order. Where results are too few for a device, they are made in pieces, which a second kernel combines. There are no
 * atomics: the order is a function of shape and layout. */
#include <inttypes.h>

#include "codegen/cuda.h"
#include "codegen/expression.h"

enum {
  SERIAL = 32,
  WARP_ELEMENTS = 1024,
  BLOCK_WARPS = BLOCK_THREADS / WARP_THREADS,
  ENOUGH_BLOCKS = 256,
  ROW_PIECE = 4096, /* least elements of a piece */
  COLUMN_PIECE = 64
};

typedef enum Form { FORM_SERIAL, FORM_WARPS, FORM_BLOCKS, FORM_COLUMNS } Form;

/* Which threads do what; from the shape alone. */
typedef struct ReductionPlan {
  Form form;
  int64_t results, elements; /* elements for each result */
  int64_t pieces, piece;     /* of a result, and elements of each but the last */
} ReductionPlan;

typedef struct Reduction {
  GraphEmission *graph;
  const Node *node;
  MemoryArena *arena;
  const OpInfo *info;
  ReductionPlan plan;
  DataType dtype;   /* of the accumulator: F32, F64 or I64 */
  const char *type; /* its C type */
  const char *index;
  LoopNest nest; /* operand 0 is the result */
  BodyText body;
  int width; /* neighbours that a thread reads at once */
  const char *names[MAX_RANK + 1];
  Text text;
} Reduction;

/* ---- the plan ---- */

static void divide_results(ReductionPlan *plan, int64_t blocks, int64_t least, int64_t multiple) {
  plan->pieces = 1;
  plan->piece = plan->elements;
  if (blocks >= ENOUGH_BLOCKS) return;
  int64_t wanted = divide_up(2 * ENOUGH_BLOCKS, blocks), most = divide_up(plan->elements, least);
  plan->piece = align_size(divide_up(plan->elements, wanted < most ? wanted : most), multiple);
  plan->pieces = divide_up(plan->elements, plan->piece);
}

static ReductionPlan plan_reduction(const Graph *graph, const Node *node) {
  Type shape = node_iteration(graph, node);
  const Attribute *axes = node_attribute(node, "axis");
  bool reduced[MAX_RANK] = {false}, by_rows = true;
  ReductionPlan plan = {.results = 1, .elements = 1};
  int64_t columns = 1; /* kept elements that lie side by side */
  for (int i = 0; i < axes->count; i++) reduced[axes->list[i]] = true;
  for (int axis = 0; axis < shape.rank; axis++) {
    if (shape.dims[axis] == 1) continue;
    columns = !reduced[axis] ? columns * shape.dims[axis] : 1;
    by_rows = reduced[axis];
    *(reduced[axis] ? &plan.elements : &plan.results) *= shape.dims[axis];
  }
  plan.form = plan.elements <= SERIAL          ? FORM_SERIAL
              : !by_rows                       ? FORM_COLUMNS
              : plan.elements <= WARP_ELEMENTS ? FORM_WARPS
                                               : FORM_BLOCKS;
  plan.pieces = 1;
  plan.piece = plan.elements;
  if (plan.form == FORM_BLOCKS) divide_results(&plan, plan.results, ROW_PIECE, VECTOR * BLOCK_THREADS);
  if (plan.form == FORM_COLUMNS)
    divide_results(&plan, plan.results / columns * divide_up(columns, WARP_THREADS), COLUMN_PIECE, BLOCK_WARPS);
  return plan;
}

static DataType accumulator(const Graph *graph, const Node *node) {
  DataType result = value_type(graph, node->outputs[0])->dtype;
  return dtype_class(result) == CLASS_REAL ? result : I64;
}

int64_t cuda_reduction_workspace(const Graph *graph, const Node *node) {
  ReductionPlan plan = plan_reduction(graph, node);
  return plan.pieces > 1 ? plan.pieces * plan.results * dtype_bytes(accumulator(graph, node)) : 0;
}

/* ---- expressions ---- */

static char *combine(const Reduction *r, const char *a, const char *x) {
  const Symbol symbols[] = {{"a", a}, {"x", x}};
  return expression_write(r->arena, r->info->combine, r->dtype, 2, symbols);
}

static char *initial(const Reduction *r) {
  const Symbol symbols[] = {{"LOWEST", c_lowest(r->arena, r->dtype)}, {"HIGHEST", c_highest(r->arena, r->dtype)}};
  return expression_write(r->arena, r->info->initial, r->dtype, 2, symbols);
}

static char *finish(const Reduction *r, const char *a) {
  char *number = dtype_class(r->dtype) == CLASS_REAL ? c_real_literal(r->arena, r->dtype, (double)r->plan.elements)
                                                     : c_integer_literal(r->arena, r->plan.elements);
  const Symbol symbols[] = {{"a", a}, {"COUNT", number}};
  return expression_write(r->arena, r->info->finish, r->dtype, 2, symbols);
}

/* ---- parts of kernels ---- */

/* Axes that are kept, numbered by `number`: those that the elements need, and the result where it is stored here. */
static void write_kept_axes(Reduction *r, const char *number, int skipped) {
  AxisRange kept = {.nest = &r->nest, .first = r->plan.pieces > 1, .end = r->nest.operand_count, .skipped = skipped};
  write_axes(&r->text, r->index, number, &kept, 1);
}

static void write_total(Reduction *r, const char *x) { text_line(&r->text, "total = %s;", combine(r, "total", x)); }

/* for (e = …; e < end; e += step) total = combine(total, element e), `width` neighbours at a time. */
static void write_elements(Reduction *r, const char *first, const char *end, int64_t step) {
  const char *names[MAX_RANK + 1];
  memcpy(names, r->names, sizeof names);
  text_open(&r->text, "for (%s e = %s; e < %s; e += %" PRId64 ")", r->index, first, end, step);
  AxisRange reduced = {.nest = &r->nest, .reduced = true, .first = 1, .end = r->nest.operand_count, .skipped = -1};
  if (r->width > 1) {
    LoopNest vectors = r->nest; /* e counts elements, and is a multiple of the width */
    reduced.nest = &vectors;
    write_axes(&r->text, r->index, "e", &reduced, 1);
    write_vector_loads(&r->body, &r->text, names);
    text_line(&r->text, "#pragma unroll");
    text_open(&r->text, "for (int lane = 0; lane < %d; lane++)", VECTOR);
    names[r->nest.rank - 1] = memory_format(r->arena, "(%s + lane)", names[r->nest.rank - 1]);
  } else {
    write_axes(&r->text, r->index, "e", &reduced, 1);
  }
  body_write_element(&r->body, &r->text, names);
  text_line(&r->text, "const %s x = %s;", r->type, body_result(&r->body, 0));
  write_total(r, "x");
  if (r->width > 1) text_close(&r->text);
  text_close(&r->text);
}

static void write_start(Reduction *r) { text_line(&r->text, "%s total = %s;", r->type, initial(r)); }

static void write_butterfly(Reduction *r) {
  text_open(&r->text, "for (int distance = %d; distance > 0; distance /= 2)", WARP_THREADS / 2);
  text_line(&r->text, "const %s other = __shfl_xor_sync(RP_ALL_LANES, total, distance);", r->type);
  write_total(r, "other");
  text_close(&r->text);
}

/* number: of the result; piece: of it. */
static void write_store(Reduction *r, const char *number) {
  if (r->plan.pieces > 1)
    text_line(&r->text, "pieces[piece * %" PRId64 " + %s] = total;", r->plan.results, number);
  else
    text_line(&r->text, "out[%s] = %s;", nest_offset(r->arena, &r->nest, 0, r->names), finish(r, "total"));
}

/* "piece", "first" and "end" of a block's part of the elements; `sites` blocks have the same piece. */
static void write_piece(Reduction *r, int64_t sites) {
  if (r->plan.pieces == 1) return;
  text_line(&r->text, "const %s piece = (%s)blockIdx.x / %" PRId64 ", first = piece * %" PRId64 ";", r->index, r->index,
            sites, r->plan.piece);
  if (r->plan.elements % r->plan.piece)
    text_line(&r->text, "const %s end = first + %" PRId64 " < %" PRId64 " ? first + %" PRId64 " : %" PRId64 ";",
              r->index, r->plan.piece, r->plan.elements, r->plan.piece, r->plan.elements);
  else
    text_line(&r->text, "const %s end = first + %" PRId64 ";", r->index, r->plan.piece);
}

static const char *first_element(const Reduction *r, const char *thread) {
  return r->plan.pieces > 1 ? memory_format(r->arena, "first + %s", thread) : thread;
}

static const char *end_element(const Reduction *r) {
  return r->plan.pieces > 1 ? "end" : memory_format(r->arena, "%" PRId64, r->plan.elements);
}

/* ---- the forms ---- */

/* The number of the result, from the number of the thread, or of the warp. */
static void write_site(Reduction *r, const char *expression, int64_t per_block) {
  text_line(&r->text, "const %s site = %s;", r->index, expression);
  if (r->plan.results % per_block) text_line(&r->text, "if (site >= %" PRId64 ") return;", r->plan.results);
}

static CudaLaunch write_serial(Reduction *r) {
  write_site(r, memory_format(r->arena, "(%s)rp_thread()", r->index), BLOCK_THREADS);
  write_kept_axes(r, "site", -1);
  write_start(r);
  write_elements(r, "0", end_element(r), 1);
  write_store(r, "site");
  return (CudaLaunch){divide_up(r->plan.results, BLOCK_THREADS), BLOCK_THREADS, 1};
}

static CudaLaunch write_warps(Reduction *r) {
  write_site(r, memory_format(r->arena, "(%s)blockIdx.x * %d + rp_warp()", r->index, BLOCK_WARPS), BLOCK_WARPS);
  write_kept_axes(r, "site", -1);
  write_start(r);
  write_elements(r, r->width > 1 ? "4 * rp_lane()" : "rp_lane()", end_element(r), (int64_t)r->width * WARP_THREADS);
  write_butterfly(r);
  text_open(&r->text, "if (rp_lane() == 0)");
  write_store(r, "site");
  text_close(&r->text);
  return (CudaLaunch){divide_up(r->plan.results, BLOCK_WARPS), BLOCK_THREADS, 1};
}

static CudaLaunch write_blocks(Reduction *r) {
  const char *number = r->plan.pieces > 1
                           ? memory_format(r->arena, "(%s)blockIdx.x %% %" PRId64, r->index, r->plan.results)
                           : memory_format(r->arena, "(%s)blockIdx.x", r->index);
  text_line(&r->text, "__shared__ %s warps[%d];", r->type, BLOCK_WARPS);
  write_piece(r, r->plan.results);
  if (r->plan.results > 1) {
    text_line(&r->text, "const %s site = %s;", r->index, number);
    write_kept_axes(r, "site", -1);
  }
  write_start(r);
  write_elements(r, first_element(r, r->width > 1 ? "4 * (int)threadIdx.x" : "(int)threadIdx.x"), end_element(r),
                 (int64_t)r->width * BLOCK_THREADS);
  write_butterfly(r);
  text_line(&r->text, "if (rp_lane() == 0) warps[rp_warp()] = total;");
  text_line(&r->text, "__syncthreads();");
  text_line(&r->text, "if (threadIdx.x != 0) return;");
  text_open(&r->text, "for (int warp = 1; warp < %d; warp++)", BLOCK_WARPS);
  text_line(&r->text, "const %s x = warps[warp];", r->type);
  write_total(r, "x");
  text_close(&r->text);
  write_store(r, r->plan.results > 1 ? "site" : "0");
  return (CudaLaunch){r->plan.results * r->plan.pieces, BLOCK_THREADS, 1};
}

static CudaLaunch write_columns(Reduction *r) {
  int last = r->nest.rank - 1;
  int64_t columns = r->nest.dims[last], tiles = divide_up(columns, WARP_THREADS), outer = r->plan.results / columns;
  const char *column = nest_variable(last);
  text_line(&r->text, "__shared__ %s rows[%d][%d];", r->type, BLOCK_WARPS, WARP_THREADS);
  write_piece(r, outer * tiles);
  text_line(&r->text, "const %s %s = (%s)blockIdx.x %% %" PRId64 " * %d + (int)threadIdx.x;", r->index, column,
            r->index, tiles, WARP_THREADS);
  const char *row = memory_format(r->arena, "(%s)blockIdx.x / %" PRId64 " %% %" PRId64, r->index, tiles, outer);
  if (outer > 1) {
    text_line(&r->text, "const %s row = %s;", r->index, row);
    write_kept_axes(r, "row", last);
  }
  write_start(r);
  bool partial = columns % WARP_THREADS != 0;
  if (partial) text_open(&r->text, "if (%s < %" PRId64 ")", column, columns);
  write_elements(r, first_element(r, "(int)threadIdx.y"), end_element(r), BLOCK_WARPS);
  if (partial) text_close(&r->text);
  text_line(&r->text, "rows[threadIdx.y][threadIdx.x] = total;");
  text_line(&r->text, "__syncthreads();");
  if (partial)
    text_line(&r->text, "if (threadIdx.y != 0 || %s >= %" PRId64 ") return;", column, columns);
  else
    text_line(&r->text, "if (threadIdx.y != 0) return;");
  text_open(&r->text, "for (int y = 1; y < %d; y++)", BLOCK_WARPS);
  text_line(&r->text, "const %s x = rows[y][threadIdx.x];", r->type);
  write_total(r, "x");
  text_close(&r->text);
  write_store(r, outer > 1 ? memory_format(r->arena, "row * %" PRId64 " + %s", columns, column) : column);
  return (CudaLaunch){outer * tiles * r->plan.pieces, WARP_THREADS, BLOCK_WARPS};
}

/* ---- pieces ---- */

static void emit_combination(Reduction *r, const char *stem, const char *result, const char *output, int64_t workspace,
                             Text *steps) {
  int64_t results = r->plan.results, pieces = r->plan.pieces;
  r->text = (Text){.arena = r->arena, .indent = 1};
  r->plan.pieces = 1; /* this kernel makes whole results */
  if (results > 1)
    write_site(r, memory_format(r->arena, "(%s)blockIdx.x * %d + rp_warp()", r->index, BLOCK_WARPS), BLOCK_WARPS);
  AxisRange kept = {.nest = &r->nest, .end = 1, .skipped = -1};
  write_axes(&r->text, r->index, "site", &kept, 1);
  write_start(r);
  text_open(&r->text, "for (%s piece = rp_lane(); piece < %" PRId64 "; piece += %d)", r->index, pieces, WARP_THREADS);
  text_line(&r->text, "const %s x = pieces[piece * %" PRId64 " + %s];", r->type, results, results > 1 ? "site" : "0");
  write_total(r, "x");
  text_close(&r->text);
  write_butterfly(r);
  text_open(&r->text, "if (rp_lane() == 0)");
  write_store(r, "site");
  text_close(&r->text);
  const char *name =
      cuda_kernel(r->graph, r->node, memory_format(r->arena, "%s_pieces", stem),
                  memory_format(r->arena, "%s *out, const %s *pieces", result, r->type), text_bytes(&r->text));
  int64_t bytes = results * pieces * dtype_bytes(r->dtype);
  CudaLaunch launch = {divide_up(results, BLOCK_WARPS), results > 1 ? BLOCK_THREADS : WARP_THREADS, 1};
  cuda_launch(steps, name, launch,
              memory_format(r->arena, "%s, RP_IN(%" PRId64 ", %" PRId64 ")", output, workspace, bytes));
}

/* ---- the node ---- */

/* Strides of the result in the iteration shape: 0 along reduced axes. */
static void set_result_view(Reduction *r, const Type *iteration) {
  const Layout *layout = value_layout(r->graph, r->node->outputs[0]);
  const Attribute *axes = node_attribute(r->node, "axis");
  bool keepdims = node_attribute(r->node, "keepdims")->integer;
  for (int i = 0; i < axes->count; i++) r->nest.reduced[axes->list[i]] = true;
  for (int axis = 0, out = 0; axis < iteration->rank; axis++) {
    if (!r->nest.reduced[axis]) r->nest.strides[0][axis] = layout->view.strides[out];
    if (!r->nest.reduced[axis] || keepdims) out++;
  }
}

static Reduction create(GraphEmission *graph, const Node *node) {
  MemoryArena *arena = graph->emission->arena;
  const Graph *ir = graph->compiled->graph;
  Reduction r = {.graph = graph, .node = node, .arena = arena, .info = op_info(node->op), .width = 1};
  Type iteration = node_iteration(ir, node);
  r.text = (Text){.arena = arena, .indent = 1};
  r.plan = plan_reduction(ir, node);
  r.dtype = accumulator(ir, node);
  r.type = c_compute_type(r.dtype);
  r.nest = nest_create(arena, &iteration, node->input_count + 2);
  set_result_view(&r, &iteration);
  return r;
}

static int reduction_width(const Reduction *r) {
  int last = r->nest.rank - 1, slots = r->body.body.instruction_count;
  if (r->plan.form == FORM_SERIAL || r->plan.form == FORM_COLUMNS || last < 0 || r->nest.dims[last] % VECTOR) return 1;
  for (int i = 0; i < r->node->input_count; i++)
    if (r->body.used[slots + i] &&
        !nest_vector_operand(&r->nest, 1 + i, &value_layout(r->graph, r->node->inputs[i])->view))
      return 1;
  return VECTOR;
}

static CudaLaunch write_kernel(Reduction *r) {
  body_write_invariants(&r->body, &r->text);
  switch (r->plan.form) {
    case FORM_SERIAL:
      return write_serial(r);
    case FORM_WARPS:
      return write_warps(r);
    case FORM_BLOCKS:
      return write_blocks(r);
    default:
      return write_columns(r);
  }
}

void emit_cuda_reduction(GraphEmission *graph, NodeId id, Text *steps) {
  const Node *node = graph_node(graph->compiled->graph, id);
  Reduction r = create(graph, node);
  MemoryArena *arena = r.arena;
  DataType dtype = value_type(graph->compiled->graph, node->outputs[0])->dtype;
  const char *result = c_storage_type(dtype), *stem = node_title(arena, node, '_');
  char *output = cuda_operand(graph, OPERAND_WRITTEN, value_layout(graph, node->outputs[0]), dtype);
  int64_t workspace = graph->compiled->map->workspace_offsets[id];
  r.body = body_create(graph, node, &r.nest, 1);
  r.index = cuda_index_type(&r.nest);
  for (int axis = 0; axis <= MAX_RANK; axis++) r.names[axis] = nest_variable(axis);
  r.width = reduction_width(&r);
  bool divided = r.plan.pieces > 1;
  ASSERT(!divided || workspace >= 0);
  Text parameters = {.arena = arena}, arguments = {.arena = arena}, unused = {.arena = arena};
  text_append(&parameters, "%s *%s", divided ? r.type : result, divided ? "pieces" : "out");
  if (divided)
    text_append(&arguments, "RP_OUT(%" PRId64 ", %" PRId64 ")", workspace,
                r.plan.results * r.plan.pieces * dtype_bytes(r.dtype));
  else
    text_append(&arguments, "%s", output);
  body_parameters(&r.body, &parameters, &unused);
  cuda_body_arguments(&r.body, &arguments);
  CudaLaunch launch = write_kernel(&r);
  const char *name = cuda_kernel(graph, node, stem, text_bytes(&parameters), text_bytes(&r.text));
  cuda_launch(steps, name, launch, text_bytes(&arguments));
  if (divided) emit_combination(&r, stem, result, output, workspace, steps);
}
