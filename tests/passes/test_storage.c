/* storage: layouts, classes, names, constraints and in-place permissions, with and without clones. */
#include "passes/passes.h"
#include "tests/ir/small_graph.h"

static StorageTable *table_of(SmallGraph *small) { return assign_storages(small->graph, 64, small->arena); }

static const Storage *storage_of(const StorageTable *table, ValueId value) {
  return &table->storages.items[table->layouts[value].storage];
}

static bool permitted(const StorageTable *table, ValueId host, ValueId output) {
  for (int64_t i = 0; i < table->inplace.count; i++)
    if (table->inplace.items[i].host == table->layouts[host].storage &&
        table->inplace.items[i].output == table->layouts[output].storage)
      return true;
  return false;
}

static void persistents_come_first(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, I32, SHAPE(5)), w = small_parameter(&small, "h.w", 0, SHAPE(3, 7));
  Persistent slot = {.name = "optimizer.m.h.w", .type = type_make(F32, SHAPE(100)), .role = ROLE_OPTIMIZER};
  module_add_persistent(small.module, slot); /* nothing in the graph reads it: it is in the arena all the same */
  const StorageTable *table = table_of(&small);
  assert_int_equal(table->storages.count, 4);
  assert_string_equal(table->storages.items[0].name, "h.w");
  assert_int_equal(table->layouts[w].storage, 0);
  assert_int_equal(table->storages.items[0].bytes, 128);
  assert_int_equal(table->storages.items[0].class, STORAGE_WEIGHT);
  assert_int_equal(table->storages.items[1].class, STORAGE_OPTIMIZER);
  assert_int_equal(table->storages.items[1].bytes, 448);
  assert_int_equal(table->layouts[x].storage, 2);
  assert_int_equal(table->storages.items[2].class, STORAGE_INPUT);
  assert_int_equal(table->control, 3);
  for (int i = 0; i < 4; i++) assert_true(table->storages.items[i].persistent);
  small_graph_destroy(&small);
}

static void views_share_bytes(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  ValueId x = small_input(&small, F32, SHAPE(4, 6)), y = BUILD(small.graph, tanh, x);
  ValueId part = build_slice(small.graph, y, 1, 1, 6, 2), turned = build_swap(small.graph, part, 0, 1);
  const StorageTable *table = table_of(&small);
  const Layout *layout = &table->layouts[turned];
  assert_int_equal(layout->storage, table->layouts[y].storage);
  assert_int_equal(layout->view.offset, 1);
  assert_int_equal(layout->view.dims[0], 3);
  assert_int_equal(layout->view.strides[0], 2);
  assert_int_equal(layout->view.strides[1], 6);
  assert_int_equal(storage_of(table, turned)->root, y);
  assert_int_equal(storage_of(table, turned)->bytes, 128);
  small_graph_destroy(&small);
}

static void classes_and_names(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w = small_parameter(&small, "w", 0, SHAPE(3)), x = small_input(&small, F32, SHAPE(3));
  graph->module_path = "h.0";
  ValueId kept = BUILD(graph, multiply, x, w), passing = BUILD(graph, exp, kept), again = BUILD(graph, exp, passing);
  graph_value(graph, kept)->name = "y";
  ValueId loss = build_reduce(graph, OP_sum, again, -1, NULL, false);
  graph->phase = PHASE_BACKWARD;
  ValueId gradient = BUILD(graph, square, build_reshape(graph, kept, SHAPE(3)));
  graph->loss = (GraphOutput){.name = "loss", .value = loss, .denominator = NO_VALUE};
  GraphGradient record = {.name = "w", .of = w, .gradient = gradient, .divisor = NO_VALUE};
  array_push(small.arena, &graph->gradients, record);
  const StorageTable *table = table_of(&small);
  assert_int_equal(storage_of(table, kept)->class, STORAGE_ACTIVATION);
  assert_int_equal(storage_of(table, passing)->class, STORAGE_TEMPORARY);
  assert_int_equal(storage_of(table, gradient)->class, STORAGE_GRADIENT);
  assert_true(storage_of(table, loss)->result);
  assert_false(storage_of(table, kept)->result);
  assert_string_equal(storage_of(table, kept)->name, "h.0.y");
  assert_string_equal(storage_of(table, passing)->name, "h.0.exp");
  assert_string_equal(storage_of(table, again)->name, "h.0.exp#2");
  small_graph_destroy(&small);
}

static void inplace_permissions(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w = small_parameter(&small, "w", 0, SHAPE(3, 3)), x = small_input(&small, F32, SHAPE(3, 3));
  ValueId a = BUILD(graph, tanh, x), b = BUILD(graph, add, a, w);
  ValueId row = BUILD(graph, tanh, build_slice(graph, x, 0, 0, 1, 1)), wide = BUILD(graph, add, b, row);
  ValueId turned = build_swap(graph, wide, 0, 1), mixed = BUILD(graph, add, wide, turned);
  ValueId flat = BUILD(graph, square, build_reshape(graph, mixed, SHAPE(9)));
  ValueId half = BUILD(graph, square, build_slice(graph, flat, 0, 0, 4, 1));
  ValueId integers = build_cast(graph, half, I32);
  ValueId sum = build_reduce(graph, OP_sum, mixed, 1, (int64_t[]){0}, false);
  ValueId rows = BUILD(graph, softmax_rows, mixed);
  ValueId slopes = BUILD(graph, softmax_rows_backward, rows, mixed),
          twice = BUILD(graph, softmax_rows_backward, rows, rows);
  const StorageTable *table = table_of(&small);
  assert_false(permitted(table, x, a)); /* inputs stay */
  assert_true(permitted(table, a, b));
  assert_false(permitted(table, w, b));
  assert_true(permitted(table, b, wide));
  assert_false(permitted(table, row, wide));      /* broadcast */
  assert_false(permitted(table, wide, mixed));    /* also read through another mapping */
  assert_true(permitted(table, mixed, flat));     /* the same elements in the same order */
  assert_false(permitted(table, flat, half));     /* not the whole storage */
  assert_false(permitted(table, half, integers)); /* another type */
  assert_false(permitted(table, mixed, sum));
  assert_true(permitted(table, mixed, rows));
  assert_true(permitted(table, rows, slopes));
  assert_true(permitted(table, mixed, slopes));
  assert_false(permitted(table, rows, twice)); /* read twice by one kernel */
  small_graph_destroy(&small);
}

static void recompute_blocks(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  for (int i = 0; i < 2; i++) array_push(small.arena, &graph->recompute_parents, i); /* block 2 lies in block 1 */
  graph->recompute_block = 1;
  ValueId a = BUILD(graph, contract, x, x);
  graph->recompute_block = 2;
  ValueId b = BUILD(graph, contract, a, a), c = BUILD(graph, contract, b, b);
  graph->recompute_block = 1;
  ValueId d = BUILD(graph, contract, build_swap(graph, c, 0, 1), a), kept = BUILD(graph, contract, d, d);
  graph_value(graph, kept)->constraint = CONSTRAINT_KEEP;
  ValueId result = BUILD(graph, contract, kept, d), logged = BUILD(graph, contract, d, x);
  graph->recompute_block = 0;
  ValueId outside = BUILD(graph, contract, result, x);
  GraphOutput output = {.name = "logged", .value = logged, .denominator = NO_VALUE};
  array_push(small.arena, &graph->outputs, output);
  const StorageTable *table = table_of(&small);
  assert_int_equal(storage_of(table, a)->constraint, CONSTRAINT_RECOMPUTE);
  assert_int_equal(storage_of(table, b)->constraint, CONSTRAINT_RECOMPUTE);
  assert_int_equal(storage_of(table, c)->constraint, CONSTRAINT_RECOMPUTE); /* leaves block 2, not block 1 */
  assert_int_equal(storage_of(table, d)->constraint, CONSTRAINT_RECOMPUTE);
  assert_int_equal(storage_of(table, kept)->constraint, CONSTRAINT_KEEP);
  assert_int_equal(storage_of(table, result)->constraint, CONSTRAINT_NONE);
  assert_int_equal(storage_of(table, logged)->constraint, CONSTRAINT_NONE);
  assert_int_equal(storage_of(table, outside)->constraint, CONSTRAINT_NONE);
  small_graph_destroy(&small);
}

/* The table with parts of a graph whose outputs are what it keeps. */
static StorageTable *table_with_parts(SmallGraph *small, Schedule **schedule) {
  StorageTable *table = table_of(small);
  *schedule = order_graph(small->graph, table, small->arena);
  return place_parts(small->graph, table, schedule, small->arena);
}

static void name_output(SmallGraph *small, ValueId value) {
  GraphOutput output = {.name = "out", .value = value, .denominator = NO_VALUE};
  array_push(small->arena, &small->graph->outputs, output);
}

/* One node makes three values that are only there to be put side by side, along the inner axis. */
static void parts_of_one_node(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 32)), values[3];
  values[0] = BUILD(graph, tanh, x), values[1] = BUILD(graph, sin, values[0]), values[2] = BUILD(graph, cos, values[1]);
  ValueId joined = build_concat(graph, 3, values, 1),
          square = BUILD(graph, contract, joined, build_swap(graph, joined, 0, 1));
  name_output(&small, square);
  fuse_graph(graph, small.arena);
  Schedule *schedule;
  const StorageTable *table = table_with_parts(&small, &schedule);
  const Storage *storage = storage_of(table, values[0]);
  assert_int_equal(storage->bytes, 3 * 512);
  assert_string_equal(storage->name, "concat parts");
  for (int i = 0; i < 3; i++) {
    const Layout *layout = &table->layouts[values[i]];
    assert_ptr_equal(storage_of(table, values[i]), storage);
    assert_int_equal(layout->view.offset, 32 * i);
    assert_int_equal(layout->view.strides[0], 96);
    assert_int_equal(layout->view.strides[1], 1);
  }
  assert_true(permitted(table, values[1], joined));
  MemoryMap *map = plan_memory(graph, table, schedule, -1, 0, small.arena);
  assert_int_equal(map->offsets[table->layouts[joined].storage], map->offsets[table->layouts[values[0]].storage]);
  assert_null(check_memory(graph, table, schedule, map, small.arena));
  small_graph_destroy(&small);
}

/* A product, seen turned and with an axis more, goes to its slice of a stack. */
static void parts_behind_views(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(8, 8)), product = BUILD(graph, contract, x, x);
  ValueId stacked[] = {build_reshape(graph, x, SHAPE(8, 8, 1)),
                       build_reshape(graph, build_swap(graph, product, 0, 1), SHAPE(8, 8, 1))};
  ValueId turned[] = {build_reshape(graph, x, SHAPE(1, 8, 8)),
                      build_reshape(graph, BUILD(graph, contract, x, x), SHAPE(1, 8, 8))};
  ValueId apart = build_concat(graph, 2, stacked, 2), together = build_concat(graph, 2, turned, 0);
  name_output(&small, BUILD(graph, tanh, apart));
  name_output(&small, BUILD(graph, tanh, together));
  Schedule *schedule;
  const StorageTable *table = table_with_parts(&small, &schedule);
  assert_false(permitted(table, product, apart)); /* every second element: no rows of a product */
  assert_true(permitted(table, turned[1], together));
  assert_int_equal(table->layouts[turned[1]].view.offset, 64);
  small_graph_destroy(&small);
}

/* Kernels and reductions write densely, so their parts are contiguous and aligned. */
static void contiguous_parts(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 32)), narrow = small_input(&small, F32, SHAPE(1, 8));
  ValueId values[4], joined[4];
  values[0] = BUILD(graph, softmax_rows, x);
  joined[0] = build_concat(graph, 2, (ValueId[]){x, values[0]}, 0);
  values[1] = BUILD(graph, softmax_rows, x);
  joined[1] = build_concat(graph, 2, (ValueId[]){x, values[1]}, 1);
  values[2] = BUILD(graph, softmax_rows, narrow);
  joined[2] = build_concat(graph, 2, (ValueId[]){narrow, values[2]}, 0);
  values[3] = build_reduce(graph, OP_max, x, 1, (int64_t[]){0}, true);
  joined[3] = build_concat(graph, 2, (ValueId[]){x, values[3]}, 0);
  for (int i = 0; i < 4; i++) name_output(&small, BUILD(graph, abs, joined[i]));
  Schedule *schedule;
  const StorageTable *table = table_with_parts(&small, &schedule);
  assert_true(permitted(table, values[0], joined[0]));
  assert_false(permitted(table, values[1], joined[1])); /* every second row */
  assert_false(permitted(table, values[2], joined[2])); /* 32 bytes into the storage */
  assert_true(permitted(table, values[3], joined[3]));
  assert_int_equal(table->layouts[values[3]].view.offset, 4 * 32);
  small_graph_destroy(&small);
}

/* What others read too, what is named, what is repeated. */
static void no_parts(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(4, 32)), a = BUILD(graph, tanh, x), b = BUILD(graph, sin, x);
  ValueId c = BUILD(graph, cos, x);
  ValueId read_twice = build_concat(graph, 2, (ValueId[]){a, x}, 0);
  ValueId of_named = build_concat(graph, 2, (ValueId[]){b, x}, 0),
          repeated = build_concat(graph, 2, (ValueId[]){c, c}, 0);
  ValueId early = BUILD(graph, exp, x), wide = BUILD(graph, contract, build_swap(graph, x, 0, 1), x);
  name_output(&small, BUILD(graph, contract, wide, wide));
  ValueId joined = build_concat(graph, 2, (ValueId[]){early, x}, 0);
  name_output(&small, b);
  name_output(&small, BUILD(graph, square, a));
  ValueId results[] = {read_twice, of_named, repeated, joined};
  for (int i = 0; i < 4; i++) name_output(&small, BUILD(graph, abs, results[i]));
  Schedule *schedule;
  const StorageTable *table = table_with_parts(&small, &schedule);
  assert_false(permitted(table, a, read_twice));
  assert_false(permitted(table, b, of_named));
  assert_false(permitted(table, c, repeated));
  assert_false(permitted(table, early, joined)); /* the output's bytes would be held while the others are made */
  small_graph_destroy(&small);
}

/* Inserts a clone of node `original` before node `before` and lets that read the clone's result. */
static ValueId insert_clone(SmallGraph *small, NodeId original, NodeId before) {
  Graph *graph = small->graph;
  Node clone = *graph_node(graph, original);
  ValueId old = clone.outputs[0], again = graph_new_value(graph, *value_type(graph, old), NULL, clone.location);
  clone.original = original;
  clone.outputs = NEW(small->arena, ValueId);
  clone.outputs[0] = again;
  Node *reader = graph_node(graph, before);
  for (int i = 0; i < reader->input_count; i++)
    if (reader->inputs[i] == old) reader->inputs[i] = again;
  array_push(small->arena, &graph->nodes, clone);
  for (int64_t i = graph->nodes.count - 1; i > before; i--) graph->nodes.items[i] = graph->nodes.items[i - 1];
  graph->nodes.items[before] = clone;
  graph_index(graph);
  return again;
}

static void clones_change_nothing_else(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  ValueId a = BUILD(graph, contract, x, x), b = BUILD(graph, contract, a, a), c = BUILD(graph, contract, b, b);
  graph->phase = PHASE_BACKWARD;
  ValueId d = BUILD(graph, contract, c, a), e = BUILD(graph, contract, d, b);
  GraphOutput output = {.name = "e", .value = e, .denominator = NO_VALUE};
  array_push(small.arena, &graph->outputs, output);
  const StorageTable *before = table_of(&small);
  ValueId again = insert_clone(&small, graph_value(graph, b)->producer, graph_value(graph, e)->producer);
  assert_null(graph_verify(small.arena, graph));
  const StorageTable *after = table_of(&small);
  assert_int_equal(after->storages.count, before->storages.count + 1);
  for (int64_t i = 0; i < before->storages.count; i++) {
    const Storage *old = &before->storages.items[i], *new = &after->storages.items[i];
    assert_string_equal(old->name, new->name);
    assert_int_equal(old->bytes, new->bytes);
    assert_int_equal(old->class, new->class);
    assert_int_equal(old->root, new->root);
  }
  assert_string_equal(storage_of(after, again)->name, "contract#2 again");
  assert_int_equal(storage_of(after, again)->class, STORAGE_ACTIVATION);
  Schedule *schedule = order_graph(graph, after, small.arena);
  assert_null(replay_schedule(graph, after, schedule, NULL, small.arena));
  small_graph_destroy(&small);
}

/* What only a clone reads late is kept for it. */
static void clones_keep_activations(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(3, 3));
  ValueId a = BUILD(graph, contract, x, x), b = BUILD(graph, contract, a, a);
  graph->phase = PHASE_BACKWARD;
  ValueId c = BUILD(graph, contract, b, x);
  assert_int_equal(storage_of(table_of(&small), a)->class, STORAGE_TEMPORARY);
  insert_clone(&small, graph_value(graph, b)->producer, graph_value(graph, c)->producer);
  assert_int_equal(storage_of(table_of(&small), a)->class, STORAGE_ACTIVATION);
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(persistents_come_first),
      cmocka_unit_test(views_share_bytes),
      cmocka_unit_test(classes_and_names),
      cmocka_unit_test(inplace_permissions),
      cmocka_unit_test(recompute_blocks),
      cmocka_unit_test(clones_change_nothing_else),
      cmocka_unit_test(clones_keep_activations),
      cmocka_unit_test(parts_of_one_node),
      cmocka_unit_test(parts_behind_views),
      cmocka_unit_test(contiguous_parts),
      cmocka_unit_test(no_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
