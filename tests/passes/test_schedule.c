/* order, replay, memory map and its check: exact peaks, places of updates, planted faults. */
#include "passes/passes.h"
#include "tests/ir/small_graph.h"

typedef struct Planned {
  StorageTable *table;
  Schedule *schedule;
  MemoryMap *map;
} Planned;

static Planned plan(SmallGraph *small) {
  Planned p = {.table = assign_storages(small->graph, 64, small->arena)};
  p.schedule = order_graph(small->graph, p.table, small->arena);
  p.map = plan_memory(small->graph, p.table, p.schedule, -1, 0, small->arena);
  return p;
}

static const char *replay(SmallGraph *small, Planned *p) {
  return replay_schedule(small->graph, p->table, p->schedule, NULL, small->arena);
}

static const char *check(SmallGraph *small, Planned *p) {
  return check_memory(small->graph, p->table, p->schedule, p->map, small->arena);
}

static int64_t position(const Planned *p, NodeId node) {
  for (int64_t i = 0; i < p->schedule->steps.count; i++)
    if (p->schedule->steps.items[i].run && p->schedule->steps.items[i].node == node) return i;
  fail_msg("node %d does not run", node);
  return -1;
}

static void output(SmallGraph *small, ValueId value) {
  GraphOutput entry = {.name = "output", .value = value, .denominator = NO_VALUE};
  array_push(small->arena, &small->graph->outputs, entry);
}

/* x [16] → a → b → sum; a is read again in the backward phase. All are 64 bytes. */
typedef struct Chain {
  SmallGraph small;
  ValueId x, a, b, sum, back;
} Chain;

static Chain chain(void) {
  Chain c = {.small = small_graph()};
  Graph *graph = c.small.graph;
  c.x = small_input(&c.small, F32, SHAPE(16));
  c.a = BUILD(graph, tanh, c.x);
  c.b = BUILD(graph, exp, c.a);
  c.sum = build_reduce(graph, OP_sum, c.b, -1, NULL, false);
  graph->phase = PHASE_BACKWARD;
  c.back = BUILD(graph, square, c.a);
  output(&c.small, c.sum);
  output(&c.small, c.back);
  return c;
}

static void peaks_are_exact(void **state) {
  (void)state;
  Chain c = chain();
  Planned p = plan(&c.small);
  /* runs: tanh, exp, sum, square; frees: b after sum; square goes into a, and ends at once */
  assert_int_equal(p.schedule->steps.count, 6);
  int64_t live[6];
  assert_null(replay_schedule(c.small.graph, p.table, p.schedule, live, c.small.arena));
  const int64_t base = 128; /* x, control block */
  const int64_t expected[] = {base + 64, base + 128, base + 192, base + 128, base + 128, base + 64};
  for (int i = 0; i < 6; i++) assert_int_equal(live[i], expected[i]);
  assert_int_equal(p.schedule->live_peak, base + 192);
  assert_int_equal(p.schedule->peak_step, 2);
  assert_int_equal(p.schedule->anatomy.bytes[STORAGE_INPUT], 128);
  assert_int_equal(p.schedule->anatomy.bytes[STORAGE_ACTIVATION], 64);
  assert_int_equal(p.schedule->anatomy.bytes[STORAGE_TEMPORARY], 128);
  assert_int_equal(p.schedule->steps.items[4].into_count, 1);
  assert_int_equal(p.map->arena_bytes, p.schedule->live_peak);
  assert_int_equal(p.map->persistent_bytes, 128);
  assert_int_equal(p.map->control_offset, 64);
  assert_null(check(&c.small, &p));
  small_graph_destroy(&c.small);
}

static void workspace_counts(void **state) {
  (void)state;
  Chain c = chain();
  graph_node(c.small.graph, graph_value(c.small.graph, c.back)->producer)->workspace = 1000; /* 1024 when aligned */
  Planned p = plan(&c.small);
  assert_int_equal(p.schedule->live_peak, 128 + 128 + 1024); /* x, control; sum, a with square in it; workspace */
  assert_int_equal(p.schedule->anatomy.bytes[STORAGE_WORKSPACE], 1024);
  assert_int_equal(p.map->arena_bytes, p.schedule->live_peak);
  assert_null(check(&c.small, &p));
  NodeId node = graph_value(c.small.graph, c.back)->producer;
  p.map->workspace_offsets[node] = p.map->offsets[p.table->layouts[c.a].storage];
  assert_non_null(check(&c.small, &p));
  p.map->workspace_offsets[node] = -1;
  assert_non_null(check(&c.small, &p));
  small_graph_destroy(&c.small);
}

static Step *step_at(Planned *p, int64_t index) { return &p->schedule->steps.items[index]; }

static void remove_step(Planned *p, int64_t index) {
  for (int64_t i = index; i + 1 < p->schedule->steps.count; i++) *step_at(p, i) = *step_at(p, i + 1);
  p->schedule->steps.count--;
}

static void move_step(Planned *p, int64_t from, int64_t to) {
  Step step = *step_at(p, from);
  for (int64_t i = from; i > to; i--) *step_at(p, i) = *step_at(p, i - 1);
  *step_at(p, to) = step;
}

static void assert_fault(SmallGraph *small, Planned *p, const char *expected) {
  const char *fault = replay(small, p);
  assert_non_null(fault);
  if (!strstr(fault, expected)) fail_msg("expected a fault with \"%s\", found \"%s\"", expected, fault);
}

static void replay_finds_faults(void **state) {
  (void)state;
  enum { TANH, EXP, SUM, FREE_B, SQUARE, FREE_SQUARE };
  static const char *const expected[] = {"never freed",    "is not live", "a second time",
                                         "is persistent",  "may not put", "is not live",
                                         "does not exist", "never ran",   "is live"};
  for (int which = 0; which < 8; which++) {
    Chain c = chain();
    Planned p = plan(&c.small);
    Step *freed = step_at(&p, FREE_B), *square = step_at(&p, SQUARE);
    switch (which) {
      case 0:
        remove_step(&p, FREE_B);
        break;
      case 1:
        *freed = *step_at(&p, SUM);
        *step_at(&p, SUM) = (Step){.storage = p.table->layouts[c.b].storage, .node = NO_NODE};
        break;
      case 2:
        *freed = *step_at(&p, SUM);
        break;
      case 3:
        freed->storage = p.table->layouts[c.x].storage;
        break;
      case 4:
        square->into_hosts[0] = p.table->layouts[c.sum].storage;
        break;
      case 5:
        freed->storage = p.table->layouts[c.back].storage;
        break;
      case 6:
        square->node = 99;
        break;
      default:
        remove_step(&p, FREE_SQUARE);
        remove_step(&p, SQUARE);
        array_push(c.small.arena, &p.schedule->steps,
                   ((Step){.storage = p.table->layouts[c.a].storage, .node = NO_NODE}));
    }
    assert_fault(&c.small, &p, expected[which]);
    small_graph_destroy(&c.small);
  }
}

static void results_live_on(void **state) {
  (void)state;
  Chain c = chain();
  Planned p = plan(&c.small);
  assert_true(p.table->storages.items[p.table->layouts[c.sum].storage].result);
  array_push(c.small.arena, &p.schedule->steps, ((Step){.storage = p.table->layouts[c.sum].storage, .node = NO_NODE}));
  assert_fault(&c.small, &p, "result");
  small_graph_destroy(&c.small);
}

static void check_finds_faults(void **state) {
  (void)state;
  for (int which = 0; which < 8; which++) {
    Chain c = chain();
    Planned p = plan(&c.small);
    int64_t *a = &p.map->offsets[p.table->layouts[c.a].storage], *b = &p.map->offsets[p.table->layouts[c.b].storage];
    int64_t *back = &p.map->offsets[p.table->layouts[c.back].storage];
    assert_null(check(&c.small, &p));
    switch (which) {
      case 0: /* two live storages in one place */
        *b = *a;
        break;
      case 1: /* not aligned */
        *b += 4;
        break;
      case 2: /* beyond the arena */
        *b = p.map->arena_bytes;
        break;
      case 3: /* among the persistent ones */
        *b = 0;
        break;
      case 4: /* not in its host */
        *back = *b;
        break;
      case 5: /* bytes that nothing uses */
        p.map->arena_bytes += 64;
        break;
      case 6: /* from below into a storage that was there before */
        p.table->storages.items[p.table->layouts[c.b].storage].bytes = 128;
        *b = 128;
        *a = 192;
        p.map->offsets[p.table->layouts[c.sum].storage] = 256;
        p.map->offsets[p.table->layouts[c.back].storage] = 192;
        break;
      default: /* the control block on top of the input */
        p.map->offsets[p.table->control] = 0;
    }
    assert_non_null(check(&c.small, &p));
    small_graph_destroy(&c.small);
  }
}

/* behaviours.md 7: L = w2 (w1 x), x = 1, w1 = 2, w2 = 3, lr = 1 → w1 = −1, w2 = 1. */
static void updates_follow_last_readers(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w1 = small_parameter(&small, "w1", 2, SHAPE(1, 1)), w2 = small_parameter(&small, "w2", 3, SHAPE(1, 1));
  ValueId x = small_input(&small, F32, SHAPE(1, 1));
  ValueId h = BUILD(graph, contract, x, w1), y = BUILD(graph, contract, h, w2);
  graph->phase = PHASE_BACKWARD;
  ValueId one = BUILD(graph, square, x);
  ValueId gradient2 = BUILD(graph, contract, h, one), back = BUILD(graph, contract, one, w2);
  ValueId gradient1 = BUILD(graph, contract, x, back);
  ValueId late = BUILD(graph, contract, gradient1, gradient1), later = BUILD(graph, contract, late, late);
  graph->phase = PHASE_UPDATE;
  ValueId rate =
      build_apply(graph, OP_learning_rate_scale, (Attribute[]){attribute_ints(0, NULL), attribute_dtype(F32)}, 0, NULL);
  NodeId scalar = graph_value(graph, rate)->producer;
  build_assign(graph, w2, BUILD(graph, subtract, w2, BUILD(graph, multiply, rate, gradient2)));
  build_assign(graph, w1, BUILD(graph, subtract, w1, BUILD(graph, multiply, rate, gradient1)));
  output(&small, y);
  output(&small, later);
  fuse_graph(graph, small.arena);
  NodeId node2 = -1, node1 = -1;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, id);
    if (node->write_count) *(node->writes[0] == w2 ? &node2 : &node1) = id;
    if (node->output_count && node->outputs[0] == rate) scalar = id;
  }
  Planned p = plan(&small);
  int64_t last_reader = position(&p, graph_value(graph, back)->producer);
  assert_true(position(&p, node2) > last_reader);
  assert_true(position(&p, node2) < position(&p, graph_value(graph, gradient1)->producer));
  assert_true(position(&p, node1) > position(&p, graph_value(graph, gradient1)->producer));
  assert_true(position(&p, node1) < position(&p, graph_value(graph, late)->producer));
  /* the rate is made just before it is first needed */
  assert_true(position(&p, scalar) > last_reader && position(&p, scalar) < position(&p, node2));
  assert_null(check(&small, &p));
  /* an update before the last reader of the old weight is refused */
  move_step(&p, position(&p, node2), 0);
  assert_non_null(replay(&small, &p));
  small_graph_destroy(&small);
}

static void old_values_are_seen(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId e = small_parameter(&small, "e", 0, SHAPE(3)), x = small_input(&small, F32, SHAPE(3));
  build_assign(graph, e, BUILD(graph, add, e, x)); /* in program order before a reader of the old value */
  NodeId writer = (NodeId)graph->nodes.count - 1;
  ValueId y = BUILD(graph, multiply, e, x);
  output(&small, y);
  Planned p = plan(&small);
  NodeId reader = graph_value(graph, y)->producer;
  assert_true(position(&p, writer) > position(&p, reader));
  move_step(&p, position(&p, writer), position(&p, reader));
  assert_fault(&small, &p, "as it was before");
  small_graph_destroy(&small);
}

/* What is accumulated dies at once; the update is a program of its own. */
static void accumulation_updates_last(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  small.module->training.accumulate = 4;
  ValueId w = small_parameter(&small, "w", 1, SHAPE(3, 3)), sum = small_parameter(&small, "sum", 0, SHAPE(3, 3));
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  graph->phase = PHASE_BACKWARD;
  ValueId gradient = BUILD(graph, contract, w, x), other = BUILD(graph, contract, x, x);
  build_assign(graph, sum, BUILD(graph, add, sum, gradient));
  graph->phase = PHASE_UPDATE;
  build_assign(graph, w, BUILD(graph, subtract, w, sum));
  build_assign(graph, sum, build_full(graph, type_make(F32, SHAPE(3, 3)), 0));
  output(&small, other);
  fuse_graph(graph, small.arena);
  NodeId accumulate = NO_NODE, update = NO_NODE;
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (graph_node(graph, id)->write_count)
      *(graph_node(graph, id)->phase == PHASE_UPDATE ? &update : &accumulate) = id;
  Planned p = plan(&small);
  assert_int_equal(position(&p, accumulate), position(&p, graph_value(graph, gradient)->producer) + 1);
  assert_true(position(&p, accumulate) < position(&p, graph_value(graph, other)->producer));
  assert_true(position(&p, update) > position(&p, graph_value(graph, other)->producer));
  assert_null(check(&small, &p));
  small_graph_destroy(&small);
}

/* The planner's stages begin with the first backward node: none stands among forward nodes. */
static void updates_wait_for_the_forward_pass(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w = small_parameter(&small, "w", 1, SHAPE(3, 3)), x = small_input(&small, F32, SHAPE(3, 3));
  ValueId first = BUILD(graph, contract, w, x), second = BUILD(graph, contract, x, x);
  graph->phase = PHASE_UPDATE;
  build_assign(graph, w, first); /* could run as soon as `first` is made */
  NodeId update = (NodeId)graph->nodes.count - 1;
  output(&small, second);
  Planned p = plan(&small);
  assert_true(position(&p, update) > position(&p, graph_value(graph, second)->producer));
  small_graph_destroy(&small);
}

static void graphs_share_the_persistent_section(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId w = small_parameter(&small, "w", 1, SHAPE(100)), v = small_parameter(&small, "v", 1, SHAPE(7));
  ValueId x = small_input(&small, F32, SHAPE(100));
  output(&small,
         BUILD(small.graph, multiply, BUILD(small.graph, add, x, w), v = build_slice(small.graph, w, 0, 0, 1, 1)));
  Graph *evaluation = small.module->evaluation = graph_create(small.module, true);
  BUILD(evaluation, exp, graph_input(evaluation, 0));
  Planned train = plan(&small);
  SmallGraph other = {small.arena, small.module, evaluation};
  Planned tested = plan(&other);
  assert_int_equal(train.map->persistent_bytes, tested.map->persistent_bytes);
  for (int i = 0; i < 4; i++) assert_int_equal(train.map->offsets[i], tested.map->offsets[i]);
  assert_int_equal(train.map->control_offset, tested.map->control_offset);
  assert_null(check(&small, &train));
  assert_null(check(&other, &tested));
  (void)v;
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(peaks_are_exact),
      cmocka_unit_test(workspace_counts),
      cmocka_unit_test(replay_finds_faults),
      cmocka_unit_test(results_live_on),
      cmocka_unit_test(check_finds_faults),
      cmocka_unit_test(updates_follow_last_readers),
      cmocka_unit_test(old_values_are_seen),
      cmocka_unit_test(accumulation_updates_last),
      cmocka_unit_test(updates_wait_for_the_forward_pass),
      cmocka_unit_test(graphs_share_the_persistent_section),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
