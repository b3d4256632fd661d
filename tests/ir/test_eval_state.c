/* Writes to persistents, random numbers, initial values, phases, finite differences. */
#include "small_graph.h"

#include "runtime/initial.h"

static void test_reads_see_the_old_value(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w = small_parameter(&small, "w", 2, SHAPE(3));
  build_assign(graph, w, build_constant(graph, F32, 7)); /* broadcast */
  ValueId after = BUILD(graph, add, w, w);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  eval_fill_initial(e, 0);
  small_run(e);
  EXPECT(e, after, 0, 4, 4, 4);
  assert_true(e->was_written[0] && e->written[0].real[2] == 7 && e->persistents[0].real[2] == 2);
  eval_commit(e);
  assert_false(e->was_written[0]);
  small_run(e);
  EXPECT(e, after, 0, 14, 14, 14);
  small_graph_destroy(&small);
}

static void test_phases_run_apart(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId w = small_parameter(&small, "w", 2, SCALAR), x = BUILD(graph, square, w);
  graph->phase = PHASE_UPDATE;
  build_assign(graph, w, x);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  eval_fill_initial(e, 0);
  assert_true(eval_run_phases(e, PHASE_FORWARD, PHASE_BACKWARD));
  EXPECT(e, x, 0, 4);
  assert_false(e->was_written[0]);
  assert_true(eval_run_phases(e, PHASE_UPDATE, PHASE_UPDATE));
  assert_true(e->was_written[0] && e->written[0].real[0] == 4);
  small_graph_destroy(&small);
}

static int64_t count_kept(const EvalTensor *tensor) {
  int64_t kept = 0;
  for (int64_t i = 0; i < type_elements(&tensor->type); i++) kept += tensor->real[i] != 0;
  return kept;
}

/* 100,000 draws with p = 0.3: kept within six standard deviations (145 each) of 70,000; kept ones are scaled by 1 /
 * 0.7. */
static void test_dropout_statistics(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  Graph *graph = small.graph;
  ValueId x = small_input(&small, F32, SHAPE(100, 1000));
  Attribute p = attribute_float(0.3);
  ValueId first = build_apply(graph, OP_drop, &p, 1, &x), second = build_apply(graph, OP_drop, &p, 1, &x);
  Evaluation *e = eval_create(small.arena, graph, EVAL_F32);
  for (int i = 0; i < 100000; i++) e->inputs[0].real[i] = 1;
  small_run(e);
  const double *a = eval_value(e, first)->real, *b = eval_value(e, second)->real;
  double *before = NEW_ARRAY(small.arena, double, 100000);
  memcpy(before, a, 100000 * sizeof(double));
  int64_t both = 0, stayed = 0;
  for (int i = 0; i < 100000; i++) {
    assert_true(a[i] == 0 || a[i] == (double)(1.0f / (1.0f - 0.3f)));
    both += a[i] != 0 && b[i] != 0;
  }
  assert_in_range(count_kept(eval_value(e, first)), 70000 - 870, 70000 + 870);
  assert_in_range(count_kept(eval_value(e, second)), 70000 - 870, 70000 + 870);
  assert_in_range(both, 49000 - 960, 49000 + 960); /* independent */
  small_run(e);
  assert_memory_equal(a, before, 100000 * sizeof(double));
  e->control.micro_step = 1;
  small_run(e);
  for (int i = 0; i < 100000; i++) stayed += a[i] != 0 && before[i] != 0;
  assert_in_range(stayed, 49000 - 960, 49000 + 960);
  small_graph_destroy(&small);
}

/* The same bits as the runtime's, for every kind. */
static void test_initial_values(void **state) {
  (void)state;
  SmallGraph small = small_graph();
  const Initial initials[] = {{INITIAL_CONSTANT, 0.1, 0},
                              {INITIAL_UNIFORM, 0.5, 0},
                              {INITIAL_NORMAL, 0.02, 1},
                              {INITIAL_TRUNCATED_NORMAL, 3, -1}};
  float values[1000];
  for (int k = 0; k < 4; k++) {
    char *name = memory_format(small.arena, "layer.%d", k);
    module_add_persistent(small.module,
                          (Persistent){.name = name, .type = type_make(F32, SHAPE(1000)), .initial = initials[k]});
  }
  Evaluation *e = eval_create(small.arena, small.graph, EVAL_F32);
  eval_fill_initial(e, 1337);
  small_run(e);
  for (int k = 0; k < 4; k++) {
    RpPersistent persistent = {
        .tensor = {.name = small.module->persistents.items[k].name, .type = RP_F32, .rank = 1, .dims = {1000}},
        .initial = {(RpInitialKind)initials[k].kind, initials[k].value, initials[k].mean}};
    rp_initialise(&persistent, 1337, values);
    for (int i = 0; i < 1000; i++) assert_true(e->persistents[k].real[i] == (double)values[i]);
  }
  small_graph_destroy(&small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_see_the_old_value),
      cmocka_unit_test(test_phases_run_apart),
      cmocka_unit_test(test_dropout_statistics),
      cmocka_unit_test(test_initial_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
