#include "tests/codegen/random_graph.h"

#include "ir/build.h"

typedef struct Operand {
  ValueId value;
  bool exact;
} Operand;

typedef struct Generator {
  Graph *graph;
  MemoryArena *arena;
  uint64_t state;
  bool exact; /* of what was last made */
  ARRAY(bool) outputs;
} Generator;

int64_t random_below(uint64_t *state, int64_t bound) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((*state >> 33) % (uint64_t)bound);
}

static int64_t below(Generator *g, int64_t bound) { return random_below(&g->state, bound); }

/* ---- leaves ---- */

static Operand leaf(Generator *g, DataType dtype, int rank, const int64_t *dims) {
  Module *module = g->graph->module;
  ModelInput input = {.name = memory_format(g->arena, "x%d", (int)module->inputs.count),
                      .type = type_make(dtype, rank, dims)};
  return (Operand){graph_input(g->graph, module_add_input(module, input)), true};
}

static Type random_shape(Generator *g) {
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 33, 64, 100, 1000};
  Type type = type_make(F32, (int)below(g, 5), (int64_t[MAX_RANK]){0});
  int64_t elements = 1;
  for (int i = 0; i < type.rank; i++) {
    do type.dims[i] = sizes[below(g, 11)];
    while (elements * type.dims[i] > 30000);
    elements *= type.dims[i];
  }
  return type;
}

/* A leaf that broadcasts to the shape. */
static Operand broadcast_leaf(Generator *g, DataType dtype, const Type *shape) {
  Type type = *shape;
  for (int i = 0; i < type.rank; i++)
    if (below(g, 3) == 0) type.dims[i] = 1;
  int drop = type.rank && below(g, 3) == 0 ? (int)below(g, type.rank + 1) : 0;
  return leaf(g, dtype, type.rank - drop, type.dims + drop);
}

static void output(Generator *g, Operand operand) {
  GraphOutput named = {.name = memory_format(g->arena, "y%d", (int)g->graph->outputs.count),
                       .value = operand.value,
                       .denominator = NO_VALUE};
  array_push(g->arena, &g->graph->outputs, named);
  array_push(g->arena, &g->outputs, operand.exact);
}

/* ---- pointwise ---- */

static Operand build1(Generator *g, Op op, Operand x) {
  return (Operand){build_apply(g->graph, op, NULL, 1, &x.value), x.exact};
}

static Operand build2(Generator *g, Op op, Operand x, Operand y) {
  ValueId inputs[] = {x.value, y.value};
  return (Operand){build_apply(g->graph, op, NULL, 2, inputs), x.exact && y.exact};
}

static DataType dtype_of(Generator *g, Operand x) { return value_type(g->graph, x.value)->dtype; }

/* Between -4 and 4, so that chains neither overflow nor run out of precision. */
static Operand clamp(Generator *g, Operand x) {
  if (dtype_class(dtype_of(g, x)) != CLASS_REAL) return x;
  Operand low = {build_constant(g->graph, dtype_of(g, x), -4), true};
  Operand high = {build_constant(g->graph, dtype_of(g, x), 4), true};
  return build2(g, OP_minimum, build2(g, OP_maximum, x, low), high);
}

static Operand positive(Generator *g, Operand x) {
  Operand half = {build_constant(g->graph, dtype_of(g, x), 0.5), true};
  return build2(g, OP_add, build1(g, OP_abs, x), half);
}

/* Where a small error of the operand is a large one of the result. */
static bool is_discontinuous(Op op) {
  static const Op list[] = {OP_equal,         OP_not_equal, OP_less,  OP_less_equal,   OP_greater,
                            OP_greater_equal, OP_sign,      OP_floor, OP_floor_divide, OP_modulo};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (op == list[i]) return true;
  return false;
}

static bool needs_positive(Op op) {
  return op == OP_log || op == OP_sqrt || op == OP_rsqrt || op == OP_power || op == OP_divide || op == OP_log1p;
}

static bool takes(const OpInfo *info, DataType dtype) {
  ScalarClass class = dtype_class(dtype);
  switch (info->operands) {
    case NUMBERS_TO_SAME:
    case NUMBERS_TO_BOOL:
      return class != CLASS_BOOL;
    case REALS_TO_SAME:
      return class == CLASS_REAL;
    case INTEGERS_TO_SAME:
      return class == CLASS_INTEGER;
    case BOOLS_TO_SAME:
      return class == CLASS_BOOL;
    default:
      return true;
  }
}

static Attribute random_attribute(Generator *g, const AttributeInfo *info, const Type *shape) {
  static const DataType dtypes[] = {F32, F64, I32, I64, U8, BOOL};
  switch (info->kind) {
    case ATTRIBUTE_DTYPE:
      return attribute_dtype(dtypes[below(g, 6)]);
    case ATTRIBUTE_INTS:
      return attribute_ints(shape->rank, shape->dims);
    case ATTRIBUTE_NUMBER: {
      int64_t number = below(g, 9) - 4;
      return attribute_number((double)number, number);
    }
    case ATTRIBUTE_CHOICE:
      return attribute_choice(below(g, 2));
    case ATTRIBUTE_INT:
      return attribute_int(1 + below(g, 20));
    default:
      return attribute_float((1 + (double)below(g, 8)) / 10);
  }
}

/* Any pointwise operator of the table on x and, where it takes more, on leaves that broadcast to x's shape. */
static Operand random_pointwise(Generator *g, Operand x) {
  Type shape = *value_type(g->graph, x.value);
  for (;;) {
    Op op = (Op)(1 + below(g, OP_COUNT - 1));
    const OpInfo *info = op_info(op);
    if (info->kind != KIND_POINTWISE || op_has(op, OP_EFFECT) || !takes(info, shape.dtype)) continue;
    if (is_discontinuous(op) && !x.exact) continue;
    if (op == OP_cast && !x.exact) continue;
    if (needs_positive(op)) x = positive(g, x);
    Attribute attributes[MAX_OP_ATTRIBUTES];
    for (int i = 0; i < info->attribute_count; i++) attributes[i] = random_attribute(g, &info->attributes[i], &shape);
    ValueId inputs[MAX_POINTWISE_INPUTS] = {x.value};
    int count = info->input_count;
    if (info->operands == BOOL_ANY_TO_SAME) {
      inputs[0] = build1(g, OP_logical_not, broadcast_leaf(g, BOOL, &shape)).value;
      inputs[1] = x.value;
      inputs[2] = broadcast_leaf(g, shape.dtype, &shape).value;
    } else if (count == 2) {
      Operand other = broadcast_leaf(g, shape.dtype, &shape);
      inputs[1] = needs_positive(op) ? positive(g, other).value : other.value;
    }
    bool exact = count ? x.exact : true;
    return (Operand){build_apply(g->graph, op, attributes, count, inputs), exact};
  }
}

/* ---- views and assemblies ---- */

static Operand random_permute(Generator *g, Operand x) {
  int rank = value_type(g->graph, x.value)->rank;
  int64_t axes[MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i;
  for (int i = rank - 1; i > 0; i--) {
    int64_t other = below(g, i + 1), axis = axes[i];
    axes[i] = axes[other];
    axes[other] = axis;
  }
  return (Operand){build_permute(g->graph, x.value, axes), x.exact};
}

static Operand random_slice(Generator *g, Operand x) {
  const Type *type = value_type(g->graph, x.value);
  if (!type->rank) return x;
  int axis = (int)below(g, type->rank);
  int64_t start = below(g, type->dims[axis]), stop = start + 1 + below(g, type->dims[axis] - start);
  return (Operand){build_slice(g->graph, x.value, axis, start, stop, 1 + below(g, 3)), x.exact};
}

/* Merges two axes, or puts one of size 1 in. */
static Operand random_reshape(Generator *g, Operand x) {
  Type type = *value_type(g->graph, x.value);
  if (type.rank >= 2) {
    int axis = (int)below(g, type.rank - 1);
    type.dims[axis] *= type.dims[axis + 1];
    for (int i = axis + 1; i + 1 < type.rank; i++) type.dims[i] = type.dims[i + 1];
    type.rank--;
  } else {
    type.dims[type.rank++] = 1;
  }
  return (Operand){build_reshape(g->graph, x.value, type.rank, type.dims), x.exact};
}

static Operand random_expand(Generator *g, Operand x) {
  Type type = *value_type(g->graph, x.value);
  if (type.rank >= 4 || type_elements(&type) > 5000) return x;
  int64_t dims[MAX_RANK];
  dims[0] = 1 + below(g, 4);
  for (int i = 0; i < type.rank; i++) dims[i + 1] = type.dims[i] == 1 ? 1 + below(g, 5) : type.dims[i];
  return (Operand){build_expand(g->graph, x.value, type.rank + 1, dims), x.exact};
}

static Operand random_concat(Generator *g, Operand x) {
  Type type = *value_type(g->graph, x.value);
  if (!type.rank || type_elements(&type) > 20000) return x;
  int axis = (int)below(g, type.rank);
  Type other = type;
  other.dims[axis] = 1 + below(g, 4);
  ValueId values[] = {x.value, leaf(g, type.dtype, other.rank, other.dims).value, x.value};
  return (Operand){build_concat(g->graph, 2 + (int)below(g, 2), values, axis), x.exact};
}

static Operand random_place(Generator *g, Operand x) {
  Type type = *value_type(g->graph, x.value);
  if (!type.rank || type_elements(&type) > 10000) return x;
  int64_t axis = below(g, type.rank), start = below(g, 3), step = 1 + below(g, 3);
  Attribute attributes[] = {attribute_int(axis), attribute_int(start), attribute_int(step),
                            attribute_int(start + (type.dims[axis] - 1) * step + 1 + below(g, 3))};
  return (Operand){build_apply(g->graph, OP_place, attributes, 1, &x.value), x.exact};
}

static Operand random_layout(Generator *g, Operand x) {
  static Operand (*const makers[])(Generator *, Operand) = {random_permute, random_slice,  random_reshape,
                                                            random_expand,  random_concat, random_place};
  return makers[below(g, 6)](g, x);
}

/* ---- reductions, contractions, kernels ---- */

static Operand random_reduction(Generator *g, Operand x) {
  static const Op ops[] = {OP_sum, OP_mean, OP_max, OP_min};
  const Type *type = value_type(g->graph, x.value);
  bool real = dtype_class(type->dtype) == CLASS_REAL;
  Op op = real ? ops[below(g, 4)] : ops[2 * below(g, 2)];
  int64_t axes[MAX_RANK];
  int count = 0;
  for (int axis = 0; axis < type->rank; axis++)
    if (below(g, 2)) axes[count++] = axis;
  bool ordered = op == OP_max || op == OP_min || !real;
  return (Operand){build_reduce(g->graph, op, x.value, below(g, 4) ? count : -1, axes, below(g, 2)),
                   x.exact && ordered};
}

static Operand random_contraction(Generator *g, DataType dtype) {
  int64_t m = 1 + below(g, 40), k = 1 + below(g, 40), n = 1 + below(g, 40), batch = 1 + below(g, 4),
          outer = 1 + below(g, 3);
  bool transposed_a = below(g, 2), transposed_b = below(g, 2);
  int rank_a = 2 + (int)below(g, 3), rank_b = 2 + (int)below(g, 3);
  int64_t a[4] = {outer, below(g, 3) ? batch : 1, transposed_a ? k : m, transposed_a ? m : k};
  int64_t b[4] = {below(g, 3) ? outer : 1, batch, transposed_b ? n : k, transposed_b ? k : n};
  ValueId x = leaf(g, dtype, rank_a, a + 4 - rank_a).value, y = leaf(g, dtype, rank_b, b + 4 - rank_b).value;
  if (transposed_a) x = build_swap(g->graph, x, -1, -2);
  if (transposed_b) y = build_swap(g->graph, y, -1, -2);
  ValueId inputs[] = {x, y};
  return (Operand){build_apply(g->graph, OP_contract, NULL, 2, inputs), dtype_class(dtype) == CLASS_INTEGER};
}

static Operand random_rows(Generator *g) {
  static const int64_t sizes[] = {1, 3, 17, 64, 1000};
  int64_t dims[] = {1 + below(g, 3), 1 + below(g, 30), sizes[below(g, 5)]};
  int rank = 1 + (int)below(g, 3);
  return leaf(g, F32, rank, dims + 3 - rank);
}

static ValueId same_leaf(Generator *g, ValueId like, DataType dtype, int drop) {
  const Type *type = value_type(g->graph, like);
  return leaf(g, dtype, type->rank - drop, type->dims).value;
}

static Operand make(Generator *g, Op op, const Attribute *attributes, int count, const ValueId *inputs, bool exact) {
  return (Operand){build_apply(g->graph, op, attributes, count, inputs), exact};
}

static ValueId class_indices(Generator *g, ValueId like, int drop, int64_t classes) {
  ValueId drawn = same_leaf(g, like, I32, drop);
  return BUILD(g->graph, modulo, drawn, build_integer(g->graph, I32, classes));
}

static void random_kernels(Generator *g) {
  Graph *graph = g->graph;
  ValueId x = random_rows(g).value, other = same_leaf(g, x, F32, 0);
  const Type type = *value_type(graph, x);
  int64_t columns = type.dims[type.rank - 1];
  ValueId weight = below(g, 2) ? leaf(g, F32, 1, &columns).value : NO_VALUE;
  ValueId bias = below(g, 2) ? leaf(g, F32, 1, &columns).value : NO_VALUE;
  output(g, make(g, OP_softmax_rows, NULL, 1, &x, false));
  output(g, make(g, OP_argmax_rows, NULL, 1, &x, true));
  output(g, make(g, OP_softmax_rows_backward, NULL, 2, (ValueId[]){x, other}, false));
  ValueId norm[3];
  graph_apply(graph, OP_layer_norm, 3, (ValueId[]){x, weight, bias}, NULL, norm);
  for (int i = 0; i < 3; i++) output(g, (Operand){norm[i], false});
  output(g, make(g, OP_layer_norm_backward, NULL, 5, (ValueId[]){other, x, weight, norm[1], norm[2]}, false));
  Attribute settings[] = {below(g, 2) ? attribute_int(0) : attribute_none(ATTRIBUTE_INT),
                          attribute_float(below(g, 2) ? 0.1 : 0)};
  ValueId target = class_indices(g, x, 1, columns), entropy[2];
  graph_apply(graph, OP_cross_entropy_rows, 2, (ValueId[]){x, target}, settings, entropy);
  for (int i = 0; i < 2; i++) output(g, (Operand){entropy[i], false});
  ValueId scale = same_leaf(g, x, F32, 1);
  output(g, make(g, OP_cross_entropy_rows_backward, settings, 4, (ValueId[]){x, target, entropy[1], scale}, false));
  int64_t entries = 1 + below(g, 20);
  ValueId table = leaf(g, F32, 2, (int64_t[]){entries, columns}).value, indices = class_indices(g, x, 1, entries);
  output(g, make(g, OP_embed, NULL, 2, (ValueId[]){table, indices}, true));
  Attribute size = attribute_int(entries);
  output(g, make(g, OP_embed_backward, &size, 2, (ValueId[]){x, indices}, false));
}

/* ---- cases ---- */

static void random_chain(Generator *g) {
  static const DataType dtypes[] = {F32, F32, F32, F32, F64, I32, I64, U8, BOOL};
  Type shape = random_shape(g);
  Operand x = leaf(g, dtypes[below(g, 9)], shape.rank, shape.dims);
  for (int i = (int)below(g, 8); i >= 0; i--) {
    x = below(g, 3) ? clamp(g, random_pointwise(g, x)) : random_layout(g, x);
    if (below(g, 6) == 0) output(g, x);
    if (below(g, 8) == 0 && dtype_of(g, x) != BOOL) x = random_reduction(g, x);
  }
  output(g, x);
  if (dtype_of(g, x) != BOOL) output(g, random_reduction(g, x));
}

/* Sizes at which loops are parallel, and few long rows, few long columns, both. */
static void large_reductions(Generator *g) {
  static const int64_t shapes[][3] = {{1, 1, 70001}, {3, 9000, 3},  {30000, 2, 1}, {2, 300, 130},
                                      {40, 17, 50},  {1, 40, 3000}, {5000, 1, 5},  {2, 5000, 4}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int axes = 1; axes < 8; axes++) {
      Operand x = leaf(g, i % 3 ? F32 : F64, 3, shapes[i]);
      if (axes & 1) x = build1(g, OP_tanh, x);
      int64_t reduced[3];
      int count = 0;
      for (int axis = 0; axis < 3; axis++)
        if (axes >> axis & 1) reduced[count++] = axis;
      output(g, (Operand){build_reduce(g->graph, i % 2 ? OP_sum : OP_mean, x.value, count, reduced, false), false});
    }
}

RandomGraph random_graph(MemoryArena *arena, uint64_t seed, int cases) {
  Module *module = module_create(arena, "random", "random.rp");
  module->evaluation = graph_create(module, true);
  Generator g = {.graph = module->evaluation, .arena = arena, .state = seed};
  for (int i = 0; i < cases; i++) {
    g.graph->module_path = memory_format(arena, "case.%d", i);
    random_chain(&g);
    if (i % 4 == 0) output(&g, random_contraction(&g, (DataType[]){F32, F32, F64, I32}[below(&g, 4)]));
    if (i % 8 == 0) random_kernels(&g);
  }
  large_reductions(&g);
  g.graph->module_path = "";
  return (RandomGraph){module, g.outputs.items};
}
