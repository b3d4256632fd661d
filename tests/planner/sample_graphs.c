/* tests/planner/sample_graphs.c - chains and random planning problems. */
#include "tests/planner/sample_graphs.h"

uint64_t random_next(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

int random_below(uint64_t *state, int limit) { return (int)(random_next(state) % (uint64_t)limit); }

static int32_t add_node(PlanGraph *graph, const char *id, double cost, PlanPhase phase, bool recompute,
                        const int32_t *inputs, int32_t input_count) {
  PlanNode node = {.id = id, .cost = cost, .phase = phase, .recompute = recompute, .inputs = (int32_t *)inputs};
  node.input_count = input_count;
  return plan_graph_add_node(graph, &node);
}

PlanGraph *chain_graph(MemoryArena *arena, int length, bool inplace, const int64_t *bytes, const double *costs) {
  const int64_t layer = 1 << 20;
  PlanGraph *graph = plan_graph_create(arena, 1);
  int32_t *h = NEW_ARRAY(arena, int32_t, length + 1), gradient;
  h[0] = plan_graph_add_tensor(graph, "x", 0, PLAN_ROLE_INPUTS);
  for (int i = 1; i <= length; i++) {
    int32_t node =
        add_node(graph, memory_format(arena, "f%d", i), costs ? costs[i] : 1, PLAN_PHASE_FORWARD, true, &h[i - 1], 1);
    h[i] =
        plan_graph_add_output(graph, node, memory_format(arena, "h%d", i), bytes ? bytes[i] : layer, PLAN_FREE_CHOICE);
  }
  int32_t loss = plan_graph_add_output(graph, add_node(graph, "loss", 0, PLAN_PHASE_FORWARD, false, &h[length], 1), "L",
                                       0, PLAN_FREE_CHOICE);
  gradient =
      plan_graph_add_output(graph, add_node(graph, "seed", 0, PLAN_PHASE_BACKWARD, false, &loss, 1),
                            memory_format(arena, "g%d", length), bytes ? bytes[length] : layer, PLAN_FREE_CHOICE);
  for (int i = length; i > 0; i--) {
    int32_t node = add_node(graph, memory_format(arena, "b%d", i), costs ? costs[i] : 1, PLAN_PHASE_BACKWARD, false,
                            (int32_t[]){h[i], gradient}, 2);
    int32_t next = plan_graph_add_output(graph, node, memory_format(arena, "g%d", i - 1),
                                         bytes ? bytes[i > 1 ? i - 1 : 1] : layer, PLAN_FREE_CHOICE);
    if (inplace) plan_graph_add_inplace(graph, node, gradient, next);
    gradient = next;
  }
  plan_graph_add_result(graph, gradient);
  plan_graph_finish(graph);
  return graph;
}

static int32_t add_layer_node(PlanGraph *graph, const char *name, int layer, double cost, bool forward, int64_t bytes,
                              int32_t a, int32_t b) {
  MemoryArena *arena = graph->arena;
  int32_t inputs[] = {a, b};
  int32_t node = add_node(graph, memory_format(arena, "%s.%d", name, layer), cost,
                          forward ? PLAN_PHASE_FORWARD : PLAN_PHASE_BACKWARD, forward, inputs, a == b ? 1 : 2);
  return plan_graph_add_output(graph, node, memory_format(arena, "%s_o.%d", name, layer), bytes, PLAN_FREE_CHOICE);
}

PlanGraph *equal_layers_graph(MemoryArena *arena, int layers) {
  const int64_t mib = 1 << 20;
  PlanGraph *graph = plan_graph_create(arena, 1);
  int32_t *x = NEW_ARRAY(arena, int32_t, layers + 1), *wide = NEW_ARRAY(arena, int32_t, layers + 1);
  int32_t *act = NEW_ARRAY(arena, int32_t, layers + 1);
  x[0] = plan_graph_add_tensor(graph, "x", mib, PLAN_ROLE_INPUTS);
  for (int i = 1; i <= layers; i++) {
    wide[i] = add_layer_node(graph, "wide", i, 10, true, 4 * mib, x[i - 1], x[i - 1]);
    act[i] = add_layer_node(graph, "act", i, 1, true, 4 * mib, wide[i], wide[i]);
    x[i] = add_layer_node(graph, "narrow", i, 10, true, mib, act[i], x[i - 1]);
  }
  int32_t gradient = add_layer_node(graph, "loss", 0, 1, false, mib, x[layers], x[layers]);
  for (int i = layers; i > 0; i--) {
    int32_t a = add_layer_node(graph, "dnarrow", i, 20, false, 4 * mib, act[i], gradient);
    int32_t b = add_layer_node(graph, "dact", i, 2, false, 4 * mib, wide[i], a);
    gradient = add_layer_node(graph, "dwide", i, 20, false, mib, x[i - 1], b);
  }
  plan_graph_add_result(graph, gradient);
  plan_graph_finish(graph);
  return graph;
}

PlanGraph *uneven_graph(MemoryArena *arena, uint64_t seed) {
  /* a = A(x), b = B(x), u = f(a), z = Z(b), w = g(u, z), l = L(w); what each node reads */
  enum { X, A, B, U, Z, W, L, FORWARD = L, STAGES = 5 };
  static const int32_t read[][2] = {[A] = {X, X}, [B] = {X, X}, [U] = {A, A}, [Z] = {B, B}, [W] = {U, Z}, [L] = {W, W}};
  static const int32_t wanted[] = {A, B, Z, W};
  PlanGraph *graph = plan_graph_create(arena, 1);
  plan_graph_add_tensor(graph, "x", 0, PLAN_ROLE_INPUTS);
  for (int i = A; i <= FORWARD; i++) {
    double cost = i == A || i == B || i == Z ? 10 : 1;
    int32_t node = add_node(graph, memory_format(arena, "f%d", i), cost, PLAN_PHASE_FORWARD, true, read[i],
                            read[i][0] == read[i][1] ? 1 : 2);
    plan_graph_add_output(graph, node, memory_format(arena, "a%d", i), i == L ? 0 : 1 + random_below(&seed, 2),
                          PLAN_FREE_CHOICE);
  }
  for (int32_t i = 0, gradient = L; i < STAGES; i++) {
    int32_t inputs[] = {gradient, wanted[random_below(&seed, 4)]};
    PlanNode node = {.id = memory_format(arena, "s%d", (int)i), .cost = 1, .phase = PLAN_PHASE_BACKWARD};
    node.inputs = inputs;
    node.input_count = random_below(&seed, 4) ? 2 : 1;
    node.workspace = random_below(&seed, 12);
    gradient = plan_graph_add_output(graph, plan_graph_add_node(graph, &node), memory_format(arena, "g%d", (int)i), 0,
                                     PLAN_FREE_CHOICE);
    if (i + 1 == STAGES) plan_graph_add_result(graph, gradient);
  }
  plan_graph_finish(graph);
  return graph;
}

typedef struct Maker {
  PlanGraph *graph;
  uint64_t random;
  int32_t made[64], weights[2];
  int made_count;
} Maker;

static int64_t random_bytes(Maker *maker) {
  return random_below(&maker->random, 8) == 0 ? 0 : 1 + random_below(&maker->random, 9);
}

static void add_outputs(Maker *maker, int32_t node, const char *prefix, int32_t host) {
  MemoryArena *arena = maker->graph->arena;
  int count = random_below(&maker->random, 4) == 0 ? 2 : 1;
  for (int o = 0; o < count; o++) {
    const char *id = memory_format(arena, "%s%d_%d", prefix, (int)node, o);
    bool same = host >= 0 && o == 0 && random_below(&maker->random, 2);
    int64_t bytes = same ? maker->graph->storages.items[host].bytes : random_bytes(maker);
    int32_t output = plan_graph_add_output(maker->graph, node, id, bytes, PLAN_FREE_CHOICE);
    if (same) plan_graph_add_inplace(maker->graph, node, host, output);
    maker->made[maker->made_count++] = output;
  }
}

static void add_random_node(Maker *maker, PlanPhase phase, int from) {
  int32_t inputs[4], count = 0, host = -1;
  if (maker->made_count > from) {
    inputs[count++] = host = maker->made[maker->made_count - 1];
    for (int i = 0; i < 2; i++)
      if (random_below(&maker->random, 3) == 0)
        inputs[count++] = maker->made[random_below(&maker->random, maker->made_count)];
  }
  if (random_below(&maker->random, 2)) inputs[count++] = maker->weights[random_below(&maker->random, 2)];
  PlanNode node = {.phase = phase, .cost = 1 + random_below(&maker->random, 6), .inputs = inputs, .input_count = count};
  node.id = memory_format(maker->graph->arena, "n%d", (int)maker->graph->nodes.count);
  node.recompute = phase == PLAN_PHASE_FORWARD && random_below(&maker->random, 8) != 0;
  node.workspace = random_below(&maker->random, 4) == 0 ? random_below(&maker->random, 6) : 0;
  int32_t index = plan_graph_add_node(maker->graph, &node);
  add_outputs(maker, index, "s", host);
}

static void add_backward_node(Maker *maker, int32_t gradient, int position) {
  MemoryArena *arena = maker->graph->arena;
  int32_t inputs[4] = {gradient}, count = 1, update = maker->weights[position & 1];
  inputs[count++] = maker->made[position];
  if (random_below(&maker->random, 3) == 0) inputs[count++] = maker->made[random_below(&maker->random, position + 1)];
  bool writes = random_below(&maker->random, 6) == 0;
  PlanNode node = {.phase = PLAN_PHASE_BACKWARD,
                   .cost = 1 + random_below(&maker->random, 6),
                   .inputs = inputs,
                   .input_count = count};
  node.id = memory_format(arena, "b%d", position);
  if (writes) node.writes = &update, node.write_count = 1;
  int32_t index = plan_graph_add_node(maker->graph, &node);
  add_outputs(maker, index, "g", gradient);
}

PlanGraph *random_graph(MemoryArena *arena, uint64_t seed, int forward) {
  Maker maker = {.graph = plan_graph_create(arena, 1), .random = seed};
  maker.weights[0] = plan_graph_add_tensor(maker.graph, "w0", random_below(&maker.random, 3), PLAN_ROLE_WEIGHTS);
  maker.weights[1] = plan_graph_add_tensor(maker.graph, "w1", random_below(&maker.random, 3), PLAN_ROLE_WEIGHTS);
  for (int i = 0; i < forward; i++) add_random_node(&maker, PLAN_PHASE_FORWARD, 0);
  int made = maker.made_count;
  add_random_node(&maker, PLAN_PHASE_BACKWARD, 0);
  for (int i = made - 1; i >= 0; i -= 1 + random_below(&maker.random, 2))
    add_backward_node(&maker, maker.made[maker.made_count - 1], i);
  plan_graph_add_result(maker.graph, maker.made[maker.made_count - 1]);
  plan_graph_finish(maker.graph);
  return maker.graph;
}
