/* Random training graphs: every pass keeps every bit of every result, the schedule obeys the counting rules, the memory
 * map holds, and running from the arena by schedule and offsets, freed bytes poisoned, gives the same bits again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_run.h"
#include "passes/passes.h"
#include "random_graph.h"

enum { GRAPHS = 400 };

static void verify(MemoryArena *scratch, const Graph *graph, const char *pass, uint64_t seed) {
  const char *fault = graph_verify(scratch, graph);
  if (fault) fail_msg("seed %llu, after %s: %s", (unsigned long long)seed, pass, fault);
}

static void check_pass(MemoryArena *arena, Graph *graph, void (*pass)(Graph *, MemoryArena *), const char *name,
                       uint64_t seed, const Results *expected) {
  MemoryArena *scratch = memory_arena_create();
  pass(graph, scratch);
  verify(scratch, graph, name, seed);
  Results found = evaluate_graph(arena, graph);
  if (!results_equal(expected, &found)) fail_msg("seed %llu: %s changed a result", (unsigned long long)seed, name);
  memory_arena_destroy(scratch);
}

static int parts; /* graphs that have some */

static void check_memory_map(MemoryArena *arena, Graph *graph, uint64_t seed, const Results *expected) {
  StorageTable *table = assign_storages(graph, 64, arena);
  Schedule *schedule = order_graph(graph, table, arena);
  int64_t peak = schedule->live_peak;
  table = place_parts(graph, table, &schedule, arena);
  assert_true(schedule->live_peak <= peak);
  parts += table->parts != NULL;
  MemoryMap *map = plan_memory(graph, table, schedule, -1, 0, arena);
  const char *fault = check_memory(graph, table, schedule, map, arena);
  if (fault) fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
  assert_true(map->arena_bytes >= schedule->live_peak);
  assert_true((double)map->arena_bytes <= 1.02 * (double)schedule->live_peak);
  Results found = run_from_arena(arena, graph, table, schedule, map);
  if (!results_equal(expected, &found)) fail_msg("seed %llu: results differ in the arena", (unsigned long long)seed);
}

static void random_graphs(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
    MemoryArena *arena = memory_arena_create();
    Graph *graph = random_module(arena, seed, 10 + (int)(seed % 50))->train;
    if (diag_error_count()) diag_print(stderr, false);
    assert_int_equal(diag_error_count(), 0);
    verify(arena, graph, "construction", seed);
    Results expected = evaluate_graph(arena, graph);
    check_pass(arena, graph, simplify_graph, "simplify", seed, &expected);
    check_pass(arena, graph, fuse_graph, "fuse", seed, &expected);
    check_pass(arena, graph, choose_kernels, "kernels", seed, &expected);
    check_memory_map(arena, graph, seed, &expected);
    diag_reset();
    memory_arena_destroy(arena);
  }
  assert_true(parts > GRAPHS / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
