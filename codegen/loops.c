/* codegen/loops.c - loop nests. */
#include "codegen/loops.h"

#include <inttypes.h>

LoopNest nest_create(MemoryArena *arena, const Type *shape, int operand_count) {
  LoopNest nest = {.rank = shape->rank, .operand_count = operand_count};
  memcpy(nest.dims, shape->dims, sizeof shape->dims);
  nest.strides = memory_alloc(arena, (operand_count + 1) * (int64_t)sizeof *nest.strides);
  return nest;
}

void nest_set_view(LoopNest *nest, int operand, const ViewLayout *view) {
  for (int i = 1; i <= view->rank; i++) {
    int axis = nest->rank - i, from = view->rank - i;
    ASSERT(axis >= 0 && (view->dims[from] == nest->dims[axis] || view->dims[from] == 1));
    nest->strides[operand][axis] = view->dims[from] == 1 ? 0 : view->strides[from];
  }
}

void nest_set_index(LoopNest *nest, int operand) {
  int64_t stride = 1;
  for (int axis = nest->rank - 1; axis >= 0; axis--) {
    nest->strides[operand][axis] = stride;
    stride *= nest->dims[axis];
  }
}

static void copy_axis(LoopNest *nest, int from, int to) {
  nest->dims[to] = nest->dims[from];
  nest->reduced[to] = nest->reduced[from];
  for (int k = 0; k < nest->operand_count; k++) nest->strides[k][to] = nest->strides[k][from];
}

static bool axes_merge(const LoopNest *nest, int outer, int inner) {
  if (nest->reduced[outer] != nest->reduced[inner]) return false;
  for (int k = 0; k < nest->operand_count; k++)
    if (nest->strides[k][outer] != nest->strides[k][inner] * nest->dims[inner]) return false;
  return true;
}

void nest_collapse(LoopNest *nest) {
  int rank = 0;
  for (int axis = 0; axis < nest->rank; axis++) {
    if (nest->dims[axis] == 1) continue;
    if (rank && axes_merge(nest, rank - 1, axis)) {
      int64_t outer = nest->dims[rank - 1];
      copy_axis(nest, axis, rank - 1);
      nest->dims[rank - 1] *= outer;
    } else {
      copy_axis(nest, axis, rank++);
    }
  }
  nest->rank = rank;
}

int64_t nest_elements(const LoopNest *nest) {
  int64_t elements = 1;
  for (int axis = 0; axis < nest->rank; axis++) elements *= nest->dims[axis];
  return elements;
}

/* ---- text ---- */

const char *nest_variable(int axis) {
  static const char *const names[MAX_RANK + 1] = {"i", "j", "k", "l", "m", "n", "p", "q", "r"};
  return names[axis];
}

char *nest_offset(MemoryArena *arena, const LoopNest *nest, int operand, const char *const *names) {
  Text text = {.arena = arena};
  for (int axis = 0; axis < nest->rank; axis++) {
    int64_t stride = nest->strides[operand][axis];
    if (!stride || !names[axis]) continue;
    text_append(&text, "%s%s", text.length ? " + " : "", names[axis]);
    if (stride != 1) text_append(&text, " * %" PRId64, stride);
  }
  return text.length ? text.bytes : memory_string(arena, "0");
}

bool nest_is_uniform(const LoopNest *nest, int operand) {
  for (int axis = 0; axis < nest->rank; axis++)
    if (nest->strides[operand][axis]) return false;
  return true;
}

void open_loop(Text *text, const char *variable, int64_t count) {
  text_open(text, "for (int64_t %s = 0; %s < %" PRId64 "; %s++)", variable, variable, count, variable);
}

void close_loops(Text *text, int count) {
  for (int i = 0; i < count; i++) text_close(text);
}

/* How many of the outermost loops are shared out among threads; -1: the innermost one, alone. */
static int parallel_loops(const LoopNest *nest) {
  if (nest_elements(nest) < PARALLEL_ELEMENTS) return 0;
  int64_t iterations = 1;
  for (int axis = 0; axis + 1 < nest->rank; axis++) {
    iterations *= nest->dims[axis];
    if (iterations >= PARALLEL_ITERATIONS) return axis + 1;
  }
  return nest->dims[nest->rank - 1] >= PARALLEL_ELEMENTS || nest->rank == 1 ? -1 : nest->rank - 1;
}

int open_nest(Text *text, const LoopNest *nest, bool vectorises) {
  int parallel = parallel_loops(nest);
  const char *simd = vectorises ? " simd" : "";
  for (int axis = 0; axis < nest->rank; axis++) {
    bool last = axis + 1 == nest->rank;
    if (parallel > 1 && axis == 0)
      text_line(text, "#pragma omp parallel for collapse(%d) schedule(static)", parallel);
    else if (parallel == 1 && axis == 0)
      text_line(text, "#pragma omp parallel for schedule(static)");
    else if (parallel < 0 && last)
      text_line(text, "#pragma omp parallel for%s schedule(static)", simd);
    else if (last && vectorises)
      text_line(text, "#pragma omp simd");
    open_loop(text, nest_variable(axis), nest->dims[axis]);
  }
  return nest->rank;
}
