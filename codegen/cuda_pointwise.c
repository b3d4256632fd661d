/* codegen/cuda_pointwise.c - pointwise nodes and assemblies as kernels.
 *
 * A thread takes four neighbours along the innermost axis where all operands that move along it lie densely there; one
 * element otherwise. Where an input lies densely along another axis than what is written, a block brings a tile of it
 * through shared memory, so that both sides are read and written in runs of 32 elements. */
#include <inttypes.h>

#include "codegen/cuda.h"
#include "codegen/expression.h"
#include "passes/facts.h"

enum { TILE = 32, TILE_ROWS = 8 };

/* A node whose body is computed elementwise. */
typedef struct Pointwise {
  GraphEmission *graph;
  const Node *node;
  LoopNest nest;
  BodyText body;
  int target_count;
  const Layout *targets; /* where results go, and their types */
  const DataType *dtypes;
  const char *names[MAX_RANK + 1];
  Text text;
} Pointwise;

static const char *target_name(const Pointwise *p, int k) {
  return p->target_count == 1 ? "out" : memory_format(p->text.arena, "out%d", k);
}

static char *target_offset(const Pointwise *p, int k, const char *const *names) {
  return nest_offset(p->text.arena, &p->nest, k, names);
}

/* ---- one element, four elements ---- */

static int pointwise_width(const Pointwise *p) {
  for (int k = 0; k < p->target_count; k++)
    if (!nest_vector_operand(&p->nest, k, &p->targets[k].view) || p->nest.strides[k][p->nest.rank - 1] != 1) return 1;
  for (int i = 0; i < p->node->input_count; i++)
    if (p->body.used[p->body.body.instruction_count + i] &&
        !nest_vector_operand(&p->nest, p->target_count + i, &value_layout(p->graph, p->node->inputs[i])->view))
      return 1;
  return VECTOR;
}

static void write_element(Pointwise *p, const char *const *names) {
  body_write_element(&p->body, &p->text, names);
  for (int k = 0; k < p->target_count; k++)
    text_line(&p->text, "%s[%s] = %s;", target_name(p, k), target_offset(p, k, names), body_result(&p->body, k));
}

static void write_vector(Pointwise *p) {
  const char *names[MAX_RANK + 1];
  int last = p->nest.rank - 1;
  memcpy(names, p->names, sizeof names);
  write_vector_loads(&p->body, &p->text, names);
  for (int k = 0; k < p->target_count; k++) text_line(&p->text, "%s r%d[%d];", c_storage_type(p->dtypes[k]), k, VECTOR);
  text_line(&p->text, "#pragma unroll");
  text_open(&p->text, "for (int lane = 0; lane < %d; lane++)", VECTOR);
  names[last] = memory_format(p->text.arena, "(%s + lane)", p->names[last]);
  body_write_element(&p->body, &p->text, names);
  for (int k = 0; k < p->target_count; k++) text_line(&p->text, "r%d[lane] = %s;", k, body_result(&p->body, k));
  text_close(&p->text);
  for (int k = 0; k < p->target_count; k++)
    text_line(&p->text, "rp_store_vector(%s + %s, r%d);", target_name(p, k), target_offset(p, k, p->names), k);
}

static CudaLaunch write_elements(Pointwise *p) {
  int width = pointwise_width(p);
  open_thread_loop(&p->text, &p->nest, width);
  if (width > 1)
    write_vector(p);
  else
    write_element(p, p->names);
  text_close(&p->text);
  return thread_loop_launch(&p->nest, width);
}

/* ---- tiles ---- */

/* The axis along which an operand lies densely, when that is not the innermost one and a tile is worth it; else -1. */
static int crossed_axis(const LoopNest *nest, int operand) {
  int last = nest->rank - 1;
  if (last < 1 || nest->strides[operand][last] < 2 || nest->dims[last] < TILE_ROWS) return -1;
  for (int axis = 0; axis < last; axis++)
    if (nest->strides[operand][axis] == 1 && nest->dims[axis] >= TILE_ROWS) return axis;
  return -1;
}

/* The axis of all crossed inputs; -1: there are none, too many, or the results do not lie densely. */
static int tile_axis(const Pointwise *p) {
  enum { MOST_TILES = 2 };
  int axis = -1, count = 0;
  for (int k = 0; k < p->target_count; k++)
    if (p->nest.rank && p->nest.strides[k][p->nest.rank - 1] != 1) return -1;
  for (int i = 0; i < p->node->input_count; i++) {
    int crossed = crossed_axis(&p->nest, p->target_count + i);
    if (crossed < 0) continue;
    if (axis >= 0 && crossed != axis) return -1;
    axis = crossed;
    count++;
  }
  return count <= MOST_TILES ? axis : -1;
}

/* "row < 100 && column < 100", of what is not whole tiles; "" when all is. */
static char *tile_guard(const Pointwise *p, int across) {
  int64_t rows = p->nest.dims[p->nest.rank - 1], columns = p->nest.dims[across];
  Text text = {.arena = p->text.arena};
  if (rows % TILE) text_append(&text, "row < %" PRId64, rows);
  if (columns % TILE) text_append(&text, "%scolumn < %" PRId64, rows % TILE ? " && " : "", columns);
  return memory_string(text.arena, text_bytes(&text));
}

/* tile[r][c] = input at row r along the innermost axis, column c along the axis `across`. */
static void write_tile_loads(Pointwise *p, int across) {
  MemoryArena *arena = p->text.arena;
  int last = p->nest.rank - 1;
  const char *names[MAX_RANK + 1], *guard = tile_guard(p, across);
  memcpy(names, p->names, sizeof names);
  names[across] = "column";
  names[last] = "row";
  p->body.loads = NEW_ARRAY(arena, const char *, p->node->input_count);
  text_open(&p->text, "for (int r = (int)threadIdx.y; r < %d; r += %d)", TILE, TILE_ROWS);
  text_line(&p->text, "const %s row = first_%s + r, column = first_%s + (int)threadIdx.x;", cuda_index_type(&p->nest),
            p->names[last], p->names[across]);
  for (int i = 0; i < p->node->input_count; i++) {
    if (crossed_axis(&p->nest, p->target_count + i) < 0) continue;
    const char *number = p->body.texts[p->body.body.instruction_count + i] + 1;
    text_line(&p->text, "%s%s%stile%s[r][threadIdx.x] = in%s[%s];", *guard ? "if (" : "", guard, *guard ? ") " : "",
              number, number, nest_offset(arena, &p->nest, p->target_count + i, names));
    p->body.loads[i] = memory_format(arena, "tile%s[threadIdx.x][r]", number);
  }
  text_close(&p->text);
}

static void declare_tiles(Pointwise *p) {
  for (int i = 0; i < p->node->input_count; i++) {
    if (crossed_axis(&p->nest, p->target_count + i) < 0) continue;
    DataType dtype = value_type(p->graph->compiled->graph, p->node->inputs[i])->dtype;
    text_line(&p->text, "__shared__ %s tile%s[%d][%d];", c_storage_type(dtype),
              p->body.texts[p->body.body.instruction_count + i] + 1, TILE, TILE + 1);
  }
}

static CudaLaunch write_tiles(Pointwise *p, int across) {
  const char *type = cuda_index_type(&p->nest);
  int last = p->nest.rank - 1;
  int64_t rows = divide_up(p->nest.dims[across], TILE), columns = divide_up(p->nest.dims[last], TILE);
  declare_tiles(p);
  text_line(&p->text, "const %s block = (%s)blockIdx.x;", type, type);
  text_line(&p->text, "const %s first_%s = block %% %" PRId64 " * %d;", type, p->names[last], columns, TILE);
  text_line(&p->text, "const %s first_%s = block / %" PRId64 " %% %" PRId64 " * %d;", type, p->names[across], columns,
            rows, TILE);
  LoopNest outer = p->nest; /* the other axes alone */
  outer.rank = last;
  AxisRange axes = {.nest = &outer, .end = p->nest.operand_count, .skipped = across};
  write_axes(&p->text, type, memory_format(p->text.arena, "block / %" PRId64, rows * columns), &axes, 1);
  write_tile_loads(p, across);
  text_line(&p->text, "__syncthreads();");
  text_open(&p->text, "for (int r = (int)threadIdx.y; r < %d; r += %d)", TILE, TILE_ROWS);
  text_line(&p->text, "const %s %s = first_%s + r, %s = first_%s + (int)threadIdx.x;", type, p->names[across],
            p->names[across], p->names[last], p->names[last]);
  if (p->nest.dims[across] % TILE)
    text_line(&p->text, "if (%s >= %" PRId64 ") continue;", p->names[across], p->nest.dims[across]);
  if (p->nest.dims[last] % TILE)
    text_line(&p->text, "if (%s >= %" PRId64 ") continue;", p->names[last], p->nest.dims[last]);
  write_element(p, p->names);
  text_close(&p->text);
  return (CudaLaunch){nest_elements(&p->nest) / p->nest.dims[across] / p->nest.dims[last] * rows * columns, TILE,
                      TILE_ROWS};
}

/* ---- the node ---- */

static void emit(Pointwise *p, Text *steps) {
  MemoryArena *arena = p->text.arena;
  Text parameters = {.arena = arena}, arguments = {.arena = arena}, unused = {.arena = arena};
  for (int k = 0; k < p->target_count; k++) {
    text_append(&parameters, "%s%s *%s", k ? ", " : "", c_storage_type(p->dtypes[k]), target_name(p, k));
    text_append(&arguments, "%s%s", k ? ", " : "",
                cuda_operand(p->graph, OPERAND_WRITTEN, &p->targets[k], p->dtypes[k]));
  }
  body_parameters(&p->body, &parameters, &unused);
  cuda_body_arguments(&p->body, &arguments);
  body_write_invariants(&p->body, &p->text);
  int across = tile_axis(p);
  CudaLaunch launch = across >= 0 ? write_tiles(p, across) : write_elements(p);
  const char *name =
      cuda_kernel(p->graph, p->node, node_title(arena, p->node, '_'), text_bytes(&parameters), text_bytes(&p->text));
  cuda_launch(steps, name, launch, text_bytes(&arguments));
}

void emit_cuda_pointwise(GraphEmission *graph, NodeId id, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  const Node *node = graph_node(graph->compiled->graph, id);
  Pointwise p = {.graph = graph, .node = node, .text = {.arena = arena, .indent = 1}};
  p.target_count = node->output_count + node->write_count;
  Layout *targets = NEW_ARRAY(arena, Layout, p.target_count);
  DataType *dtypes = NEW_ARRAY(arena, DataType, p.target_count);
  Type iteration = node_iteration(graph->compiled->graph, node);
  p.nest = nest_create(arena, &iteration, p.target_count + node->input_count + 1);
  for (int k = 0; k < p.target_count; k++) {
    ValueId value = k < node->output_count ? node->outputs[k] : node->writes[k - node->output_count];
    targets[k] = *value_layout(graph, value);
    dtypes[k] = value_type(graph->compiled->graph, value)->dtype;
    nest_set_view(&p.nest, k, &targets[k].view);
  }
  p.targets = targets;
  p.dtypes = dtypes;
  p.body = body_create(graph, node, &p.nest, p.target_count);
  for (int axis = 0; axis <= MAX_RANK; axis++) p.names[axis] = nest_variable(axis);
  emit(&p, steps);
}

/* ---- assemblies ---- */

/* Zeroes every element of a view. */
static void emit_fill(GraphEmission *graph, const Node *node, const Layout *target, DataType dtype, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  Type shape = type_make(dtype, target->view.rank, target->view.dims);
  if (layout_is_dense(&target->view)) {
    text_line(steps, "rp_cuda_fill(context, %" PRId64 ", 0, %" PRId64 ");", layout_offset(graph, target, dtype),
              type_bytes(&shape));
    return;
  }
  LoopNest nest = nest_create(arena, &shape, 1);
  const char *names[MAX_RANK + 1];
  Text text = {.arena = arena, .indent = 1};
  nest_set_view(&nest, 0, &target->view);
  nest_collapse(&nest);
  for (int axis = 0; axis <= MAX_RANK; axis++) names[axis] = nest_variable(axis);
  open_thread_loop(&text, &nest, 1);
  text_line(&text, "out[%s] = 0;", nest_offset(arena, &nest, 0, names));
  text_close(&text);
  const char *name =
      cuda_kernel(graph, node, "zero", memory_format(arena, "%s *out", c_storage_type(dtype)), text_bytes(&text));
  cuda_launch(steps, name, thread_loop_launch(&nest, 1), cuda_operand(graph, OPERAND_WRITTEN, target, dtype));
}

/* Copies input i to its slice: as a node with one input, whose body is that input. */
static void emit_copy(GraphEmission *graph, const Node *node, int i, const Layout *slice, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  Node part = *node;
  part.inputs = node->inputs + i;
  part.input_count = 1;
  const Type *shape = value_type(graph->compiled->graph, node->inputs[i]);
  Pointwise p = {.graph = graph, .node = &part, .target_count = 1, .text = {.arena = arena, .indent = 1}};
  p.targets = slice;
  p.dtypes = &shape->dtype;
  p.nest = nest_create(arena, shape, 3);
  nest_set_view(&p.nest, 0, &slice->view);
  p.body = body_create(graph, &part, &p.nest, 1);
  for (int axis = 0; axis <= MAX_RANK; axis++) p.names[axis] = nest_variable(axis);
  emit(&p, steps);
}

void emit_cuda_assembly(GraphEmission *graph, NodeId id, Text *steps) {
  const Graph *ir = graph->compiled->graph;
  const Node *node = graph_node(ir, id);
  const Type *output = value_type(ir, node->outputs[0]);
  int64_t covered = 0;
  for (int i = 0; i < node->input_count; i++) covered += type_elements(value_type(ir, node->inputs[i]));
  if (covered < type_elements(output))
    emit_fill(graph, node, value_layout(graph, node->outputs[0]), output->dtype, steps);
  for (int i = 0; i < node->input_count; i++) {
    Layout slice = assembly_slice(graph, node, i);
    if (!lies_in_place(graph, &slice, value_layout(graph, node->inputs[i]))) emit_copy(graph, node, i, &slice, steps);
  }
}
