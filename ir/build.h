/* ir/build.h - short calls for building graphs in C: composites, gradients, optimizers, passes and tests. */
#ifndef REPRISE_IR_BUILD_H
#define REPRISE_IR_BUILD_H

#include "ir/ir.h"

/* graph_apply with default attributes; every input is NO_VALUE-safe: a NO_VALUE required input gives NO_VALUE silently,
 * since the fault was reported where it arose. */
#define BUILD(graph, name, ...) \
  build_apply((graph), OP_##name, NULL, (int)(sizeof((ValueId[]){__VA_ARGS__}) / sizeof(ValueId)), \
              (ValueId[]){__VA_ARGS__})
ValueId build_apply(Graph *graph, Op op, const Attribute *attributes, int input_count, const ValueId *inputs);

/* A constant scalar, and one of a whole shape. */
ValueId build_constant(Graph *graph, DataType dtype, double value);
ValueId build_integer(Graph *graph, DataType dtype, int64_t value);
ValueId build_full(Graph *graph, Type type, double value);

ValueId build_reshape(Graph *graph, ValueId x, int rank, const int64_t *dims);
ValueId build_permute(Graph *graph, ValueId x, const int64_t *axes);
/* Swaps two axes (negative ones count from the end). */
ValueId build_swap(Graph *graph, ValueId x, int axis, int other);
/* Elements start, start + step, … below stop of an axis; bounds must hold. */
ValueId build_slice(Graph *graph, ValueId x, int axis, int64_t start, int64_t stop, int64_t step);
/* The slice of one index with the axis dropped: x[i] along axis. */
ValueId build_index(Graph *graph, ValueId x, int axis, int64_t index);
/* Broadcast to a shape. */
ValueId build_expand(Graph *graph, ValueId x, int rank, const int64_t *dims);
ValueId build_cast(Graph *graph, ValueId x, DataType dtype);
/* The same elements in row-major order. */
ValueId build_copy(Graph *graph, ValueId x);
/* Reduction (sum, mean, max, min) over the given axes, or over all with count < 0. */
ValueId build_reduce(Graph *graph, Op op, ValueId x, int count, const int64_t *axes, bool keepdims);
/* Sums over the axes along which `from` was broadcast, so that the result has the shape `to`. */
ValueId build_sum_to(Graph *graph, ValueId x, const Type *to);
ValueId build_concat(Graph *graph, int count, const ValueId *values, int axis);
/* persistent <- value at the end of the step. */
void build_assign(Graph *graph, ValueId persistent, ValueId value);

ValueId build_add(Graph *graph, ValueId a, ValueId b);
/* 1 / x */
ValueId build_reciprocal(Graph *graph, ValueId x);
/* ir/optimizers.c: scale · min(1, limit / (‖scale · gradients‖ + 1e-6)), the norm over all of them together, f32 [];
 * scale may be NO_VALUE for one. */
ValueId build_clip_scale(Graph *graph, int count, const ValueId *gradients, ValueId scale, double limit);

/* ir/rearrange.c: "b t (h d) -> b h t d" with sizes of named axes (names[i] = sizes[i]); reports at graph->location. */
ValueId build_rearrange(Graph *graph, ValueId x, const char *pattern, int count, const char *const *names,
                        const int64_t *sizes);
/* n equal parts along an axis. Returns false after an error; parts[n]. */
bool build_split(Graph *graph, ValueId x, int64_t n, int axis, ValueId *parts);
/* All indices of an axis, the axis dropped; parts[dims[axis]]. */
bool build_unstack(Graph *graph, ValueId x, int axis, ValueId *parts);

/* Gradient of input i of a node; reports (once per operator and place) and returns NO_VALUE when none is known;
 * NO_VALUE without error means zero. gradients[k]: of output k, or NO_VALUE. The result has the shape of the input. */
ValueId build_gradient(Graph *graph, NodeId node, int input, const ValueId *gradients);
/* Sum of the contributions to one gradient, in the order given; slices that tile a whole are put together instead of
 * added. */
/* True for the gradient of a slice: zero but for one slice. Contributions of this kind are best summed together. */
bool build_is_placement(const Graph *graph, ValueId value);
ValueId build_accumulated(Graph *graph, int count, const ValueId *contributions);

#endif
