/* Pictures against the plans they show: numbers parsed back from DOT and SVG, golden files, odd names, large graphs.
 * With PICTURES_WRITE_GOLDEN set, golden files are written anew. */
#include <graphviz/cgraph.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "codegen/pictures/decision_groups.h"
#include "codegen/pictures/report.h"
#include "passes/planner/strategies.h"

#include <cmocka.h>

static MemoryArena *arena;

static int create_arena(void **state) {
  (void)state;
  arena = memory_arena_create();
  return 0;
}

static int destroy_arena(void **state) {
  (void)state;
  memory_arena_destroy(arena);
  return 0;
}

/* ---- graphs ---- */

/* A chain of `length` layers, forward and backward, in modules "prefix.0.layer" ... (prefix NULL: none). */
static PlanGraph *chain(const char *name, const char *prefix, int length) {
  PlanGraph *graph = plan_graph_create(arena, 1);
  graph->name = name;
  int32_t last = plan_graph_add_tensor(graph, "x", 0, PLAN_ROLE_INPUTS), *made = NEW_ARRAY(arena, int32_t, length);
  for (int i = 0; i < length; i++) {
    const char *module = prefix ? memory_format(arena, "%s.%d.layer", prefix, i) : NULL;
    PlanNode node = {.id = memory_format(arena, "f%d", i),
                     .cost = 1,
                     .inputs = &last,
                     .input_count = 1,
                     .recompute = true,
                     .phase = PLAN_PHASE_FORWARD,
                     .op = "layer",
                     .module = module};
    int32_t index = plan_graph_add_node(graph, &node);
    last = made[i] = plan_graph_add_output(graph, index, memory_format(arena, "h%d", i), 1 << 20, PLAN_FREE_CHOICE);
    graph->storages.items[last].role = PLAN_ROLE_ACTIVATIONS;
  }
  for (int i = length - 1; i >= 0; i--) {
    const char *module = prefix ? memory_format(arena, "%s.%d.layer", prefix, i) : NULL;
    int32_t inputs[2] = {made[i], last};
    PlanNode node = {.id = memory_format(arena, "b%d", i),
                     .cost = 1,
                     .inputs = inputs,
                     .input_count = i == length - 1 ? 1 : 2,
                     .phase = PLAN_PHASE_BACKWARD,
                     .op = "layer_backward",
                     .module = module};
    int32_t index = plan_graph_add_node(graph, &node);
    last = plan_graph_add_output(graph, index, memory_format(arena, "g%d", i), 1 << 20, PLAN_FREE_CHOICE);
    graph->storages.items[last].role = PLAN_ROLE_GRADIENTS;
  }
  plan_graph_add_result(graph, last);
  plan_graph_finish(graph);
  return graph;
}

static Picture *picture_with(const PlanGraph *graph, PlanStrategy strategy, int64_t budget) {
  const char *error = NULL;
  bool usage;
  Plan *plan = plan_by_strategy(arena, graph, strategy, budget, &error, &usage);
  if (!plan) fail_msg("no plan: %s", error);
  return picture_create(arena, graph->name ? graph->name : "graph", graph, plan, plan_keep_all(arena, graph), budget,
                        -1);
}

static Picture *picture_of_file(const char *name, PlanStrategy strategy, int64_t budget) {
  PlanGraph *graph = plan_graph_read(arena, memory_format(arena, "%s/graphs/%s.json", PICTURE_TESTS, name));
  assert_non_null(graph);
  return picture_with(graph, strategy, budget);
}

static Picture *digits(void) { return picture_of_file("digits", PLAN_STRATEGY_GREEDY, 174080); }
static Picture *trace(void) { return picture_of_file("trace", PLAN_STRATEGY_GREEDY, 1 << 20); }
static Picture *chain8(void) { return picture_with(chain("chain8", NULL, 8), PLAN_STRATEGY_SQRT, 6 << 20); }

/* ---- golden files ---- */

static void check_golden(const char *name, const char *text) {
  char *path = memory_format(arena, "%s/golden/%s", PICTURE_TESTS, name);
  const char *error;
  int64_t length;
  if (getenv("PICTURES_WRITE_GOLDEN")) {
    assert_true(file_write(arena, path, text, (int64_t)strlen(text), &error));
    return;
  }
  char *golden = file_read(arena, path, &length, &error);
  if (!golden) fail_msg("%s", error);
  assert_string_equal(golden, text);
}

static void small_graphs_are_drawn_as_before(void **state) {
  (void)state;
  check_golden("chain8.dot", dot_text(arena, chain8(), DETAIL_AUTOMATIC));
  check_golden("chain8.svg", timeline_svg(arena, chain8(), false));
  check_golden("trace.dot", dot_text(arena, trace(), DETAIL_AUTOMATIC));
  check_golden("trace.svg", timeline_svg(arena, trace(), false));
  check_golden("digits.dot", dot_text(arena, digits(), DETAIL_AUTOMATIC));
  check_golden("digits.svg", timeline_svg(arena, digits(), false));
}

/* ---- numbers, parsed back ---- */

static double number_of(void *object, const char *name) {
  char *value = agget(object, (char *)(uintptr_t)name);
  return value && *value ? strtod(value, NULL) : 0;
}

typedef struct Sums {
  double cost, runs, bytes;
  double kept_nodes, clones;
} Sums;

static Sums sum_boxes(Agraph_t *graph) {
  Sums sums = {0};
  for (Agnode_t *node = agfstnode(graph); node; node = agnxtnode(graph, node)) {
    sums.cost += number_of(node, "cost");
    sums.runs += number_of(node, "runs");
    sums.bytes += number_of(node, "bytes");
    sums.clones += string_equal(agget(node, "class"), "clone") ? number_of(node, "runs") : 0;
  }
  return sums;
}

static double made_bytes(const Picture *picture) {
  double bytes = 0;
  for (int64_t r = 0; r < picture->planned.runs.count; r++) {
    const PlanNode *node = &picture->graph->nodes.items[picture->planned.runs.items[r].node];
    for (int32_t o = 0; o < node->output_count; o++)
      bytes += (double)picture->graph->storages.items[node->outputs[o]].bytes;
  }
  return bytes;
}

static void check_dot(const Picture *picture, Detail detail) {
  char *text = dot_text(arena, picture, detail);
  Agraph_t *graph = agmemread(text);
  assert_non_null(graph);
  assert_true(number_of(graph, "peak") == (double)picture->plan->peak);
  assert_true(number_of(graph, "keep_all_peak") == (double)picture->keep_all->peak);
  assert_true(number_of(graph, "cost") == picture->plan->cost);
  assert_true(number_of(graph, "lower_bound") == picture->plan->lower_bound);
  if (picture->budget >= 0) assert_true(number_of(graph, "budget") == (double)picture->budget);
  Sums sums = sum_boxes(graph);
  assert_true(sums.runs == (double)picture->planned.runs.count);
  assert_true(sums.clones == (double)(picture->planned.runs.count - picture->graph->nodes.count));
  assert_true(sums.bytes == made_bytes(picture));
  assert_float_equal(sums.cost, picture->plan->cost, 1e-9 * picture->plan->cost);
  agclose(graph);
  assert_string_equal(text, dot_text(arena, picture, detail)); /* stable */
}

static void dot_shows_the_plans_numbers(void **state) {
  (void)state;
  Picture *const pictures[] = {chain8(), digits(), trace(),
                               picture_with(chain("blocks", "h", 12), PLAN_STRATEGY_SQRT, 9 << 20)};
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
    for (int detail = DETAIL_AUTOMATIC; detail <= DETAIL_MODULE; detail++) check_dot(pictures[i], (Detail)detail);
}

/* The largest value of an attribute, and its sum over all elements; count of elements with it. */
static int64_t attribute(const char *svg, const char *name, int64_t *most) {
  int64_t count = 0;
  char *key = memory_format(arena, " %s=\"", name);
  *most = -1;
  for (const char *at = svg; (at = strstr(at, key)); count++) {
    at += strlen(key);
    int64_t value = strtoll(at, NULL, 10);
    if (value > *most) *most = value;
  }
  return count;
}

static void timeline_shows_the_plans_numbers(void **state) {
  (void)state;
  Picture *const pictures[] = {chain8(), digits(), trace()};
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    char *svg = timeline_svg(arena, pictures[i], false);
    int64_t most;
    assert_int_equal(attribute(svg, "data-peak", &most), 1);
    assert_int_equal(most, pictures[i]->plan->peak);
    assert_int_equal(attribute(svg, "data-keep-all-peak", &most), 1);
    assert_int_equal(most, pictures[i]->keep_all->peak);
    attribute(svg, "data-budget", &most);
    assert_int_equal(most, pictures[i]->budget);
    assert_true(attribute(svg, "data-live", &most) > 0);
    assert_int_equal(most, pictures[i]->plan->peak);
  }
}

static void live_bytes_by_role_are_the_plans_anatomy(void **state) {
  (void)state;
  Picture *const pictures[] = {chain8(), digits(), trace()};
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    const PictureRuns *runs = &pictures[i]->planned;
    assert_memory_equal(runs->runs.items[runs->peak_run].live, pictures[i]->plan->anatomy,
                        sizeof pictures[i]->plan->anatomy);
  }
}

/* ---- blocks ---- */

static void equal_blocks_are_drawn_once(void **state) {
  (void)state;
  Picture *picture = picture_with(chain("blocks", "h", 40), PLAN_STRATEGY_NONE, 0);
  Drawing *full = drawing_create(picture, DETAIL_FULL), *block = drawing_create(picture, DETAIL_BLOCK);
  assert_int_equal(full->nodes.count, 80);
  assert_true(block->nodes.count <= 6); /* the last block starts the backward pass and reads less */
  int64_t times = 0;
  for (int64_t u = 0; u < block->units.count; u++) times += block->units.items[u].times;
  assert_int_equal(times, 40);
  const char *text = dot_text(arena, picture, DETAIL_BLOCK);
  assert_non_null(strstr(text, "h.0 … h.3"));
  assert_non_null(strstr(text, "×"));
}

static void decisions_of_equal_blocks_are_told_once(void **state) {
  (void)state;
  Picture *picture = picture_with(chain("blocks", "h", 12), PLAN_STRATEGY_SQRT, 9 << 20);
  DecisionGroupList groups = group_decisions(picture);
  assert_int_equal(groups.count, 1);
  assert_string_equal(groups.items[0].module, "h.*.layer");
  assert_string_equal(groups.items[0].name, "h*");
  assert_int_equal(groups.items[0].kept + groups.items[0].recomputed, 12);
  assert_int_equal(groups.items[0].recomputed, picture->recomputed_count);
}

/* ---- names ---- */

static const char *const odd_names[] = {"quote\"quote", "back\\slash\\n", "<b>&amp;</b>", "größe→∆", "broken\xff\xc3",
                                        "tab\there",    "}{|]",           "<>",           "\\",      "\"",
                                        "a'b"};
enum { ODD_NAMES = sizeof odd_names / sizeof *odd_names };

static PlanGraph *oddly_named(void) {
  PlanGraph *graph = plan_graph_create(arena, 1);
  graph->name = "\"<&\\größe";
  int32_t last = plan_graph_add_tensor(graph, "x", 8, PLAN_ROLE_INPUTS);
  for (int i = 0; i < ODD_NAMES; i++) {
    PlanNode node = {.id = odd_names[i],
                     .cost = 1,
                     .inputs = &last,
                     .input_count = 1,
                     .recompute = true,
                     .phase = PLAN_PHASE_FORWARD,
                     .op = odd_names[i],
                     .module = odd_names[i],
                     .source = odd_names[i]};
    last = plan_graph_add_output(graph, plan_graph_add_node(graph, &node), memory_format(arena, "%s.out", odd_names[i]),
                                 64, PLAN_FREE_CHOICE);
  }
  plan_graph_add_result(graph, last);
  plan_graph_finish(graph);
  return graph;
}

/* No raw < & or quote of a name in markup: every '<' starts a tag or comment of ours, every '&' a reference. */
static void check_markup(const char *text) {
  for (const char *at = text; *at; at++) {
    if (*at == '<') assert_non_null(strchr("/!?abcdefghijklmnopqrstuvwxyz", at[1]));
    if (*at == '&') {
      size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz0123456789#");
      assert_true(length > 0 && at[1 + length] == ';');
    }
    assert_true((unsigned char)*at != 0xff);
  }
}

static void odd_names_are_escaped(void **state) {
  (void)state;
  Picture *picture = picture_with(oddly_named(), PLAN_STRATEGY_NONE, 0);
  for (int detail = DETAIL_FULL; detail <= DETAIL_MODULE; detail++) check_dot(picture, (Detail)detail);
  char *svg = timeline_svg(arena, picture, false);
  check_markup(svg);
  assert_non_null(strstr(svg, "größe→∆"));
  assert_non_null(strstr(svg, "&lt;b&gt;&amp;amp;&lt;/b&gt;"));
  assert_null(strstr(svg, "<b>"));
  Report report = {.picture = picture, .graph_note = "<none>"};
  assert_null(strstr(report_html(arena, &report), "<b>"));
  assert_null(strstr(report_html(arena, &report), "<none>"));
}

static void texts_are_cut_between_code_points(void **state) {
  (void)state;
  assert_string_equal(shorten_text(arena, "größe→∆", 7), "größe→∆");
  assert_string_equal(shorten_text(arena, "größe→∆", 5), "gr…→∆");
  assert_int_equal(text_width("größe→∆"), 7);
  assert_int_equal(text_width("a\xff"
                              "b"),
                   3);
  assert_string_equal(escape_markup(arena, "\xed\xa0\x80"), "���"); /* a surrogate */
}

/* ---- sizes ---- */

static void large_graphs_are_summed_up(void **state) {
  (void)state;
  static const int lengths[] = {1000, 5000};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (int modules = 0; modules < 2; modules++) {
      Picture *picture = picture_with(chain("long", modules ? "h" : NULL, lengths[i]), PLAN_STRATEGY_SQRT, 0);
      Drawing *drawing = drawing_create(picture, DETAIL_AUTOMATIC);
      assert_true(drawing->nodes.count <= 600);
      check_dot(picture, DETAIL_AUTOMATIC);
      assert_true(strlen(timeline_svg(arena, picture, false)) < 600000);
    }
  }
}

/* ---- sources ---- */

static void sources_are_split(void **state) {
  (void)state;
  const char *path;
  int line;
  assert_true(split_source(arena, "a:b/c.rp:31:9", &path, &line));
  assert_string_equal(path, "a:b/c.rp");
  assert_int_equal(line, 31);
  static const char *const wrong[] = {"", ":", "::", "file", "file:3", "file:x:3", "file::3", ":3:4", "file:0:1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(split_source(arena, wrong[i], &path, &line));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(small_graphs_are_drawn_as_before, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(dot_shows_the_plans_numbers, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(timeline_shows_the_plans_numbers, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(live_bytes_by_role_are_the_plans_anatomy, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(equal_blocks_are_drawn_once, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(decisions_of_equal_blocks_are_told_once, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(odd_names_are_escaped, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(texts_are_cut_between_code_points, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(large_graphs_are_summed_up, create_arena, destroy_arena),
      cmocka_unit_test_setup_teardown(sources_are_split, create_arena, destroy_arena),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
