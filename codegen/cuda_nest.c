/* codegen/cuda_nest.c - loop nests shared out among threads. */
#include <inttypes.h>
#include <stdlib.h>

#include "codegen/cuda.h"
#include "codegen/expression.h"

/* Blocks from which a thread takes several turns: two waves of the largest devices of today. */
enum { MOST_BLOCKS = 2112 };

int64_t divide_up(int64_t a, int64_t b) { return (a - 1) / b + 1; }

/* ---- what moves where ---- */

const char *cuda_index_type(const LoopNest *nest) {
  enum { LIMIT = 1 << 30 }; /* leaves room for the stride of a grid */
  bool narrow = nest_elements(nest) < LIMIT;
  for (int k = 0; k < nest->operand_count && narrow; k++) {
    int64_t span = 0;
    for (int axis = 0; axis < nest->rank; axis++) span += llabs(nest->strides[k][axis]) * (nest->dims[axis] - 1);
    narrow = span < LIMIT;
  }
  return narrow ? "int32_t" : "int64_t";
}

bool nest_moves(const LoopNest *nest, int axis, int first, int end) {
  for (int k = first; k < end; k++)
    if (nest->strides[k][axis]) return true;
  return false;
}

bool nest_vector_operand(const LoopNest *nest, int operand, const ViewLayout *view) {
  int last = nest->rank - 1;
  if (last < 0 || nest->dims[last] % VECTOR) return false;
  if (nest->strides[operand][last] == 0) return true;
  if (nest->strides[operand][last] != 1 || view->offset % VECTOR) return false;
  for (int axis = 0; axis < last; axis++)
    if (nest->strides[operand][axis] % VECTOR) return false;
  return true;
}

/* ---- variables of axes ---- */

void write_axes(Text *text, const char *type, const char *number, const AxisRange *range, int width) {
  const LoopNest *nest = range->nest;
  int64_t stride = 1;
  int outermost = 0;
  while (outermost < nest->rank && (nest->reduced[outermost] != range->reduced || outermost == range->skipped))
    outermost++;
  for (int axis = nest->rank - 1; axis >= outermost; axis--) {
    int64_t step = axis == nest->rank - 1 ? width : 1, count = nest->dims[axis] / step;
    if (nest->reduced[axis] != range->reduced || axis == range->skipped) continue;
    if (nest_moves(nest, axis, range->first, range->end)) {
      text_append(text, "%*sconst %s %s = %s", 2 * text->indent, "", type, nest_variable(axis), number);
      if (stride > 1) text_append(text, " / %" PRId64, stride);
      if (axis != outermost) text_append(text, " %% %" PRId64, count);
      if (step > 1) text_append(text, " * %" PRId64, step);
      text_append(text, ";\n");
    }
    stride *= count;
  }
}

/* ---- loops ---- */

void open_thread_loop(Text *text, const LoopNest *nest, int width) {
  const char *type = cuda_index_type(nest);
  bool narrow = string_equal(type, "int32_t");
  const char *cast = narrow ? "(int32_t)" : "", *variable = nest->rank == 1 && width == 1 ? nest_variable(0) : "item";
  text_open(text, "for (%s %s = %srp_thread(); %s < %" PRId64 "; %s += %srp_threads())", type, variable, cast, variable,
            nest_elements(nest) / width, variable, cast);
  AxisRange axes = {.nest = nest, .end = nest->operand_count, .skipped = -1};
  if (string_equal(variable, "item")) write_axes(text, type, "item", &axes, width);
}

CudaLaunch thread_loop_launch(const LoopNest *nest, int width) {
  int64_t items = nest_elements(nest) / width, blocks = divide_up(items, BLOCK_THREADS);
  /* A single element may be overwritten where it was read: no second thread reads it. */
  int64_t block = items == 1 ? 1 : items < BLOCK_THREADS ? align_size(items, WARP_THREADS) : BLOCK_THREADS;
  return (CudaLaunch){blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, block, 1};
}

void write_vector_loads(BodyText *body, Text *text, const char *const *names) {
  const Graph *graph = body->graph->compiled->graph;
  const LoopNest *nest = body->nest;
  MemoryArena *arena = text->arena;
  int instructions = body->body.instruction_count;
  body->loads = NEW_ARRAY(arena, const char *, body->node->input_count);
  for (int i = 0; i < body->node->input_count; i++) {
    int operand = body->target_count + i;
    if (!body->used[instructions + i] || !nest->strides[operand][nest->rank - 1]) continue;
    const char *number = body->texts[instructions + i] + 1; /* of "x3" */
    text_line(text, "%s v%s[%d];", c_storage_type(value_type(graph, body->node->inputs[i])->dtype), number, VECTOR);
    text_line(text, "rp_load_vector(v%s, in%s + %s);", number, number, nest_offset(arena, nest, operand, names));
    body->loads[i] = memory_format(arena, "v%s[lane]", number);
  }
}
