#include "random_graph.h"

#include <math.h>

#include "passes/passes.h"

uint64_t random_next(Random *random) {
  uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

int random_below(Random *random, int bound) { return (int)(random_next(random) % (uint64_t)bound); }

typedef struct Generator {
  Random random;
  Module *module;
  Graph *graph;
  ARRAY(ValueId) pool;
  int state;
} Generator;

static ValueId any_value(Generator *g) { return g->pool.items[random_below(&g->random, (int)g->pool.count)]; }

static ValueId value_of_rank(Generator *g, int rank) {
  for (int tries = 0; tries < 50; tries++) {
    ValueId value = any_value(g);
    if (value_type(g->graph, value)->rank >= rank) return value;
  }
  return g->pool.items[0];
}

static bool broadcast(const Type *a, const Type *b) {
  for (int i = 1; i <= a->rank && i <= b->rank; i++) {
    int64_t x = a->dims[a->rank - i], y = b->dims[b->rank - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

static ValueId random_binary(Generator *g) {
  static const Op ops[] = {OP_add, OP_subtract, OP_multiply, OP_maximum};
  for (int tries = 0; tries < 50; tries++) {
    ValueId a = any_value(g), b = any_value(g);
    if (broadcast(value_type(g->graph, a), value_type(g->graph, b)))
      return build_apply(g->graph, ops[random_below(&g->random, 4)], NULL, 2, (ValueId[]){a, b});
  }
  return NO_VALUE;
}

static ValueId random_unary(Generator *g) {
  static const Op ops[] = {OP_tanh, OP_sigmoid, OP_relu, OP_gelu, OP_negate, OP_square, OP_sin, OP_stop};
  ValueId x = any_value(g);
  return build_apply(g->graph, ops[random_below(&g->random, 8)], NULL, 1, &x);
}

static ValueId random_neutral(Generator *g) {
  static const struct {
    Op op;
    double value;
  } rules[] = {{OP_multiply, 1}, {OP_add, -0.0},   {OP_add, 0.0},     {OP_subtract, 0.0},
               {OP_divide, 1},   {OP_divide, 0.7}, {OP_multiply, -1}, {OP_multiply, 0.25}};
  int rule = random_below(&g->random, 8);
  ValueId x = any_value(g), constant = build_constant(g->graph, F32, rules[rule].value);
  if (random_below(&g->random, 2)) constant = BUILD(g->graph, negate, BUILD(g->graph, negate, constant));
  return build_apply(g->graph, rules[rule].op, NULL, 2, (ValueId[]){x, constant});
}

static ValueId random_reduction(Generator *g) {
  static const Op ops[] = {OP_sum, OP_mean, OP_max};
  ValueId x = value_of_rank(g, 1);
  int64_t axis = random_below(&g->random, value_type(g->graph, x)->rank);
  return build_reduce(g->graph, ops[random_below(&g->random, 3)], x, random_below(&g->random, 4) ? 1 : -1, &axis,
                      random_below(&g->random, 2));
}

static ValueId random_view(Generator *g) {
  ValueId x = value_of_rank(g, 2);
  Type type = *value_type(g->graph, x);
  if (type.rank < 2) return NO_VALUE;
  int axis = random_below(&g->random, type.rank);
  switch (random_below(&g->random, 4)) {
    case 0:
      return build_swap(g->graph, x, 0, -1);
    case 1:
      return build_reshape(g->graph, x, 2, (int64_t[]){type_elements(&type) / type.dims[0], type.dims[0]});
    case 2:
      return build_slice(g->graph, x, axis, 0, (type.dims[axis] + 1) / 2, 1 + random_below(&g->random, 2));
    default:
      if (type.rank == MAX_RANK) return NO_VALUE;
      for (int i = type.rank; i > 0; i--) type.dims[i] = type.dims[i - 1];
      type.dims[0] = 2;
      return type_elements(&type) > 200 ? NO_VALUE : build_expand(g->graph, x, type.rank + 1, type.dims);
  }
}

static ValueId random_contraction(Generator *g) {
  ValueId a = value_of_rank(g, 2), b = value_of_rank(g, 2);
  for (int tries = 0; tries < 30; tries++) {
    const Type *x = value_type(g->graph, a), *y = value_type(g->graph, b);
    if (x->rank == 2 && y->rank == 2 && x->dims[1] == y->dims[0] && x->dims[0] * y->dims[1] < 200)
      return BUILD(g->graph, contract, a, b);
    if (x->rank == 2 && y->rank == 2 && x->dims[1] == y->dims[1] && x->dims[0] * y->dims[0] < 200)
      return BUILD(g->graph, contract, a, build_swap(g->graph, b, 0, 1));
    b = value_of_rank(g, 2);
  }
  return NO_VALUE;
}

/* A value beside itself, or beside things made of it that nothing else reads, along any axis. */
static ValueId random_assembly(Generator *g, ValueId x) {
  int axis = random_below(&g->random, value_type(g->graph, x)->rank), kind = random_below(&g->random, 4);
  if (!kind) return build_concat(g->graph, 2, (ValueId[]){x, x}, axis);
  ValueId a = BUILD(g->graph, tanh, x), b = BUILD(g->graph, multiply, x, a), c = BUILD(g->graph, sigmoid, x);
  if (random_below(&g->random, 3) == 0) c = BUILD(g->graph, softmax_rows, x);
  if (kind == 1) return build_concat(g->graph, 3, (ValueId[]){c, x, BUILD(g->graph, sin, b)}, axis);
  return build_concat(g->graph, 2 + kind % 2, (ValueId[]){b, c, BUILD(g->graph, cos, x)}, axis);
}

static ValueId random_kernel(Generator *g) {
  ValueId x = value_of_rank(g, 1);
  if (value_type(g->graph, x)->rank < 1) return NO_VALUE;
  switch (random_below(&g->random, 3)) {
    case 0:
      return BUILD(g->graph, softmax_rows, x);
    case 1:
      return graph_apply(g->graph, OP_layer_norm, 1, &x, NULL, NULL);
    default:
      return random_assembly(g, x);
  }
}

static ValueId random_dropout(Generator *g) {
  Attribute p = attribute_float(0.5);
  ValueId x = any_value(g);
  return build_apply(g->graph, OP_drop, &p, 1, &x);
}

static ValueId random_node(Generator *g) {
  switch (random_below(&g->random, 12)) {
    case 0:
      return random_neutral(g);
    case 1:
      return random_reduction(g);
    case 2:
    case 3:
      return random_view(g);
    case 4:
    case 5:
      return random_contraction(g);
    case 6:
      return random_kernel(g);
    case 7:
      return random_dropout(g);
    case 8:
    case 9:
      return random_unary(g);
    default:
      return random_binary(g);
  }
}

static void add_persistent(Generator *g, PersistentRole role, int rank, const int64_t *dims) {
  Persistent persistent = {.name = memory_format(g->module->arena, "w%lld", (long long)g->module->persistents.count),
                           .type = type_make(F32, rank, dims),
                           .role = role,
                           .trainable = role == ROLE_PARAMETER};
  ValueId value = graph_persistent(g->graph, module_add_persistent(g->module, persistent));
  array_push(g->module->arena, &g->pool, value);
}

static void add_input(Generator *g, int rank, const int64_t *dims) {
  ModelInput input = {.name = memory_format(g->module->arena, "x%lld", (long long)g->module->inputs.count),
                      .type = type_make(F32, rank, dims)};
  array_push(g->module->arena, &g->pool, graph_input(g->graph, module_add_input(g->module, input)));
}

/* state ← 0.9 state + 0.1 mean(value), while the old value stays in use. */
static void update_state(Generator *g) {
  ValueId state = graph_persistent(g->graph, g->state);
  ValueId mean = build_reduce(g->graph, OP_mean, any_value(g), -1, NULL, false);
  ValueId kept = BUILD(g->graph, multiply, state, build_constant(g->graph, F32, 0.9));
  build_assign(g->graph, state,
               BUILD(g->graph, add, kept, BUILD(g->graph, multiply, mean, build_constant(g->graph, F32, 0.1))));
}

static void grow(Generator *g, int size) {
  int block_end = 0;
  for (int i = 0; i < size; i++) {
    if (i >= block_end) g->graph->recompute_block = 0;
    if (!random_below(&g->random, 20) && !g->graph->recompute_block) {
      array_push(g->module->arena, &g->graph->recompute_parents, 0);
      g->graph->recompute_block = ++g->graph->recompute_block_count;
      block_end = i + 4;
    }
    if (i == size / 2) update_state(g);
    ValueId value = random_node(g);
    if (value == NO_VALUE || type_elements(value_type(g->graph, value)) > 200) continue;
    if (!random_below(&g->random, 15) && !g->graph->recompute_block)
      graph_value(g->graph, value)->constraint = CONSTRAINT_KEEP;
    array_push(g->module->arena, &g->pool, value);
  }
  g->graph->recompute_block = 0;
}

/* The loss reads parameters, the first input, and every value that nothing else reads. */
static void set_loss(Generator *g) {
  int *uses = graph_count_uses(g->module->arena, g->graph);
  ValueId loss = NO_VALUE;
  int64_t values = g->graph->values.count;
  for (ValueId v = 0; v < values; v++) {
    const Value *value = graph_value(g->graph, v);
    bool leaf = value->kind == VALUE_PERSISTENT || (value->kind == VALUE_INPUT && value->index == 0);
    if (!leaf && (uses[v] || value->producer == NO_NODE || value->output > 0)) continue;
    ValueId mean = build_reduce(g->graph, OP_mean, BUILD(g->graph, tanh, v), -1, NULL, false);
    loss = loss == NO_VALUE ? mean : BUILD(g->graph, add, loss, mean);
  }
  g->graph->loss = (GraphOutput){.name = "loss", .value = loss, .denominator = NO_VALUE};
  for (int i = 0; i < 2; i++) {
    GraphOutput output = {.name = i ? "second" : "first", .value = any_value(g), .denominator = NO_VALUE};
    array_push(g->module->arena, &g->graph->outputs, output);
  }
  GraphOutput request = {.name = "x0", .value = graph_input(g->graph, 0), .denominator = NO_VALUE};
  array_push(g->module->arena, &g->graph->gradient_requests, request);
}

static Attribute *default_settings(MemoryArena *arena, Op op) {
  const OpInfo *info = op_info(op);
  Attribute *settings = NEW_ARRAY(arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) settings[i] = info->attributes[i].initial;
  settings[0] = attribute_float(0.01);
  return settings;
}

static void set_training(Generator *g) {
  static const Op optimizers[] = {OP_sgd, OP_adam, OP_adamw};
  Training *training = &g->module->training;
  training->present = training->has_optimizer = true;
  training->optimizer = optimizers[random_below(&g->random, 3)];
  training->optimizer_settings = default_settings(g->module->arena, training->optimizer);
  training->accumulate = random_below(&g->random, 3) ? 1 : 4;
  training->clip = random_below(&g->random, 2) ? 1.0 : 0;
  for (int64_t i = 0; i < g->module->persistents.count; i++)
    g->module->persistents.items[i].optimizer_settings = training->optimizer_settings;
}

Module *random_module(MemoryArena *arena, uint64_t seed, int size) {
  Generator g = {.random = {seed}, .module = module_create(arena, "Random", "random.rp")};
  g.graph = g.module->train = graph_create(g.module, false);
  add_input(&g, 2, (int64_t[]){4, 6});
  add_input(&g, 3, (int64_t[]){2, 4, 6});
  add_persistent(&g, ROLE_PARAMETER, 2, (int64_t[]){6, 6});
  add_persistent(&g, ROLE_PARAMETER, 2, (int64_t[]){4, 6});
  add_persistent(&g, ROLE_PARAMETER, 1, (int64_t[]){6});
  add_persistent(&g, ROLE_PARAMETER, 0, NULL);
  g.state = (int)g.module->persistents.count;
  add_persistent(&g, ROLE_STATE, 0, NULL);
  grow(&g, size);
  set_loss(&g);
  set_training(&g);
  MemoryArena *scratch = memory_arena_create();
  differentiate_graph(g.graph, scratch);
  memory_arena_destroy(scratch);
  return g.module;
}

/* ---- what a graph computes ---- */

void fill_pattern(Evaluation *evaluation) {
  const Module *module = evaluation->graph->module;
  for (int64_t i = 0; i < module->inputs.count; i++)
    for (int64_t e = 0; e < type_elements(&module->inputs.items[i].type); e++)
      eval_tensor_set(&evaluation->inputs[i], e, (float)sin(1.7 * (double)e + (double)i));
  for (int64_t p = 0; p < module->persistents.count; p++)
    for (int64_t e = 0; e < type_elements(&module->persistents.items[p].type); e++)
      eval_tensor_set(&evaluation->persistents[p], e, (float)fabs(0.5 * cos(2.3 * (double)e + (double)p)));
}

static void add_result(MemoryArena *arena, Results *results, const EvalTensor *tensor) {
  EvalTensor copy = eval_tensor_create(arena, &tensor->type);
  size_t bytes = (size_t)type_elements(&tensor->type) * sizeof(double);
  memcpy(copy.real ? (void *)copy.real : copy.integer, tensor->real ? (void *)tensor->real : tensor->integer, bytes);
  array_push(arena, &results->tensors, copy);
}

Results evaluate_graph(MemoryArena *arena, const Graph *graph) {
  Evaluation *evaluation = eval_create(arena, graph, EVAL_F32);
  Results results = {0};
  fill_pattern(evaluation);
  if (!eval_run(evaluation)) die("%s", evaluation->fault);
  add_result(arena, &results, eval_value(evaluation, graph->loss.value));
  for (int64_t i = 0; i < graph->outputs.count; i++)
    add_result(arena, &results, eval_value(evaluation, graph->outputs.items[i].value));
  for (int64_t i = 0; i < graph->gradients.count; i++)
    add_result(arena, &results, eval_value(evaluation, graph->gradients.items[i].gradient));
  for (int64_t p = 0; p < graph->module->persistents.count; p++)
    if (evaluation->was_written[p]) add_result(arena, &results, &evaluation->written[p]);
  return results;
}

bool results_equal(const Results *a, const Results *b) {
  if (a->tensors.count != b->tensors.count) return false;
  for (int64_t i = 0; i < a->tensors.count; i++) {
    const EvalTensor *x = &a->tensors.items[i], *y = &b->tensors.items[i];
    if (!type_equal(&x->type, &y->type)) return false;
    for (int64_t e = 0; e < type_elements(&x->type); e++) {
      double u = eval_tensor_get(x, e), v = eval_tensor_get(y, e);
      if (memcmp(&u, &v, sizeof u) && !(isnan(u) && isnan(v))) return false;
    }
  }
  return true;
}
