/* tests/planner/test_client.c - whatever the planner program does, the answer is a valid plan that says so, or a code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "passes/planner/client.h"
#include "passes/planner/memory_limit.h"
#include "passes/planner/replay.h"
#include "tests/planner/sample_graphs.h"

/* A shell script as planner; the text may use $1 (the graph file) and the other arguments. */
static const char *fake_planner(MemoryArena *arena, const char *text) {
  char *path = memory_string(arena, "fake-planner-XXXXXX");
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  FILE *file = fdopen(descriptor, "w");
  fprintf(file, "#!/bin/sh\n%s\n", text);
  fclose(file);
  chmod(path, 0755);
  return memory_format(arena, "./%s", path);
}

static void check_valid(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, int64_t budget) {
  assert_non_null(plan);
  Replay *replay = replay_plan(arena, graph, plan);
  replay_check_claims(arena, graph, plan, replay);
  if (replay->faults.count) fail_msg("%s", replay->faults.items[0]);
  assert_true(replay->peak <= budget);
}

static PlanAnswer ask(MemoryArena *arena, const PlanGraph *graph, const char *script, double patience) {
  const char *planner = fake_planner(arena, script);
  PlanRequest request = {.budget = 7 << 20, .strategy = PLAN_STRATEGY_ILP, .planner = planner, .patience = patience};
  PlanAnswer answer = plan_request(arena, graph, &request);
  unlink(planner);
  return answer;
}

/* The planner prints `script`'s output; the answer must be valid, explain itself, and name `word`. */
static void check_survives_for(double patience, const char *script, const char *word) {
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  PlanAnswer answer = ask(arena, graph, script, patience);
  assert_int_equal(answer.exit, EXIT_OK);
  check_valid(arena, graph, answer.plan, 7 << 20);
  assert_non_null(answer.note);
  if (!strstr(answer.note, word)) fail_msg("\"%s\" does not say \"%s\"", answer.note, word);
  assert_string_equal(answer.plan->stopped_by, answer.note);
  memory_arena_destroy(arena);
}

static void check_survives(const char *script, const char *word) { check_survives_for(1, script, word); }

static void test_faulty_planners(void **state) {
  (void)state;
  check_survives("exit 9", "exit code 9");
  check_survives("kill -9 $$", "signal 9");
  check_survives("kill -SEGV $$", "signal 11");
  check_survives("sleep 60", "in time");
  check_survives("trap '' TERM; echo nonsense; while :; do sleep 1; done", "in time");
  check_survives("echo nonsense; echo '{\"event\": \"end\", \"reason\": \"done\"}'", "not an event");
  check_survives("echo '{\"event\": \"plan\", \"plan\": 7}'; echo '{\"event\": \"end\"}'", "invalid plan");
  check_survives("echo '{\"event\":'", "early");
  check_survives("head -c 100000 /dev/zero", "early");
}

static void test_missing_planner(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  PlanRequest request = {.budget = 7 << 20, .strategy = PLAN_STRATEGY_ILP, .planner = "./no-such-planner 2>/dev/null"};
  PlanAnswer answer = plan_request(arena, graph, &request);
  assert_int_equal(answer.exit, EXIT_OK);
  check_valid(arena, graph, answer.plan, 7 << 20);
  assert_non_null(strstr(answer.note, "could not be run"));
  request.budget = 3 << 20;
  answer = plan_request(arena, graph, &request);
  assert_int_equal(answer.exit, EXIT_NO_PLAN);
  assert_null(answer.plan);
  assert_non_null(answer.smallest);
  memory_arena_destroy(arena);
}

/* Plans that lie about their peak, exceed the budget or break the rules are not believed; a good one before them is. */
static void test_lying_planner(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  const char *error;
  bool usage;
  Plan *good = plan_by_strategy(arena, graph, PLAN_STRATEGY_GREEDY, 7 << 20, &error, &usage);
  Plan lie = *plan_keep_all(arena, graph), broken = *good;
  lie.peak = 1 << 20;
  broken.steps.count--;
  const char *script = memory_format(
      arena,
      "cat <<'END'\n{\"event\": \"plan\", \"plan\": %s}\n{\"event\": \"plan\", \"plan\": %s}\n{\"event\": \"plan\", "
      "\"plan\": %s}\nEND\nkill -9 $$",
      plan_text(arena, graph, &lie, true), plan_text(arena, graph, good, true), plan_text(arena, graph, &broken, true));
  PlanAnswer answer = ask(arena, graph, script, 5);
  assert_int_equal(answer.exit, EXIT_OK);
  check_valid(arena, graph, answer.plan, 7 << 20);
  assert_true(answer.plan->cost == good->cost);
  assert_non_null(strstr(answer.note, "best that it had found"));
  memory_arena_destroy(arena);
}

/* A stream's bounds and its last word belong to the plan, whatever the plan said when it was printed. */
static void check_settled(const char *bound, const char *ending, PlanStatus status, const char *stopped_by) {
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  const char *error;
  bool usage;
  Plan *plan = plan_by_strategy(arena, graph, PLAN_STRATEGY_GREEDY, 7 << 20, &error, &usage);
  plan->stopped_by = "still searching";
  PlanAnswer answer = ask(arena, graph,
                          memory_format(arena,
                                        "cat <<'END'\n{\"event\": \"plan\", \"plan\": %s}\n{\"event\": \"bound\", "
                                        "\"scope\": \"order\", \"lower_bound\": %s}\nEND\n%s",
                                        plan_text(arena, graph, plan, true), bound, ending),
                          5);
  check_valid(arena, graph, answer.plan, 7 << 20);
  assert_int_equal(answer.plan->status, status);
  if (stopped_by)
    assert_string_equal(answer.plan->stopped_by, stopped_by);
  else
    assert_null(answer.plan->stopped_by);
  memory_arena_destroy(arena);
}

static void test_settled_plans(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  const char *error, *cost;
  bool usage;
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  cost = memory_format(arena, "%.17g",
                       plan_by_strategy(arena, graph, PLAN_STRATEGY_GREEDY, 7 << 20, &error, &usage)->cost);
  const char *end = "echo '{\"event\": \"end\", \"reason\": \"work limit\"}'";
  check_settled(cost, end, PLAN_STATUS_OPTIMAL, NULL);
  check_settled(cost, "kill -9 $$", PLAN_STATUS_OPTIMAL, NULL);
  check_settled("16.5", end, PLAN_STATUS_FEASIBLE, "work limit");
  memory_arena_destroy(arena);
}

/* A planner that claims infeasibility is reported as such. */
static void test_infeasible(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  PlanAnswer answer =
      ask(arena, graph,
          "echo '{\"event\": \"end\", \"reason\": \"infeasible\", \"largest_impossible\": 3145727}'; exit 3", 5);
  assert_int_equal(answer.exit, EXIT_BUDGET_INFEASIBLE);
  assert_null(answer.plan);
  assert_int_equal(answer.largest_impossible, 3145727);
  memory_arena_destroy(arena);
}

static void test_real_planner(void **state) {
  (void)state;
#ifdef TEST_PLANNER
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, true, NULL, NULL);
  PlanRequest request = {.budget = 3 << 20, .strategy = PLAN_STRATEGY_ILP, .planner = TEST_PLANNER};
  PlanAnswer answer = plan_request(arena, graph, &request);
  assert_int_equal(answer.exit, EXIT_OK);
  check_valid(arena, graph, answer.plan, 3 << 20);
  assert_null(answer.note);
  assert_int_equal(answer.plan->status, PLAN_STATUS_OPTIMAL);
  assert_true(answer.plan->cost == 26);
  request.budget = (3 << 20) - 1;
  answer = plan_request(arena, graph, &request);
  assert_int_equal(answer.exit, EXIT_BUDGET_INFEASIBLE);
  assert_int_equal(answer.smallest->peak, 3 << 20);
  assert_int_equal(answer.largest_impossible, (3 << 20) - 1);
  /* A plan given as incumbent is never made worse, however little the planner may do. */
  request.budget = 6 << 20;
  Plan *before = plan_request(arena, graph, &request).plan;
  request.incumbent = before;
  request.budget = 7 << 20;
  request.nodes = 1;
  assert_true(plan_request(arena, graph, &request).plan->cost <= before->cost);
  /* So little memory that the planner cannot work: the plan comes from elsewhere or the planner managed, but it is
   * valid. */
  request.incumbent = NULL;
  request.memory = 8 << 20;
  answer = plan_request(arena, graph, &request);
  check_valid(arena, graph, answer.plan, 7 << 20);
  memory_arena_destroy(arena);
#else
  skip();
#endif
}

/* ---- the real planner, killed ---- */

#ifdef TEST_PLANNER
/* Every plan that the client takes must be valid, and the answer must say what happened to the planner. */
static void check_killed(MemoryArena *arena, const PlanGraph *graph, int64_t budget, const char *script,
                         const char *word) {
  const char *planner = fake_planner(arena, script);
  PlanRequest request = {.budget = budget, .strategy = PLAN_STRATEGY_ILP, .planner = planner, .patience = 60};
  PlanAnswer answer = plan_request(arena, graph, &request);
  unlink(planner);
  assert_non_null(answer.note);
  if (!strstr(answer.note, word)) fail_msg("\"%s\" does not say \"%s\"", answer.note, word);
  if (answer.plan) {
    check_valid(arena, graph, answer.plan, budget);
    assert_int_equal(answer.exit, EXIT_OK);
    if (answer.plan->status != PLAN_STATUS_OPTIMAL) assert_string_equal(answer.plan->stopped_by, answer.note);
  } else {
    assert_int_equal(answer.exit, EXIT_NO_PLAN);
  }
}

/* Writes what the planner prints for a graph to a file and returns the number of lines. */
static int record_stream(MemoryArena *arena, const PlanGraph *graph, int64_t budget, const char *stream) {
  const char *planner = fake_planner(arena, memory_format(arena, "'%s' \"$@\" | tee %s", TEST_PLANNER, stream));
  PlanRequest request = {.budget = budget, .strategy = PLAN_STRATEGY_ILP, .planner = planner};
  PlanAnswer answer = plan_request(arena, graph, &request);
  unlink(planner);
  assert_non_null(answer.plan);
  int64_t length;
  const char *error, *text = file_read(arena, stream, &length, &error);
  assert_non_null(text);
  int lines = 0;
  for (int64_t i = 0; i < length; i++) lines += text[i] == '\n';
  return lines;
}
#endif

/* Killed after each line, and in the middle of it: with plans that only nested recomputation finds, too. */
static void test_killed_after_each_line(void **state) {
  (void)state;
#ifdef TEST_PLANNER
  for (int64_t mib = 4; mib <= 7; mib += 3) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = chain_graph(arena, 40, false, NULL, NULL);
    int64_t budget = 3 * mib << 20;
    char *stream = memory_string(arena, "stream-XXXXXX");
    close(mkstemp(stream));
    int lines = record_stream(arena, graph, budget, stream);
    assert_true(lines >= 4);
    for (int line = 0; line < lines; line++) {
      check_killed(arena, graph, budget, memory_format(arena, "head -n %d %s; kill -9 $$", line, stream), "signal 9");
      check_killed(arena, graph, budget,
                   memory_format(arena, "head -n %d %s; tail -n +%d %s | head -n 1 | head -c 30; kill -9 $$", line,
                                 stream, line + 1, stream),
                   "signal 9");
      check_killed(arena, graph, budget, memory_format(arena, "head -n %d %s; echo '{\"event'; exit 0", line, stream),
                   "early");
    }
    unlink(stream);
    memory_arena_destroy(arena);
  }
#else
  skip();
#endif
}

/* Killed at some moment of its work; the process that computes its bounds must not keep the stream open. */
static void test_killed_at_work(void **state) {
  (void)state;
#ifdef TEST_PLANNER
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 90, false, NULL, NULL);
  for (int hundredths = 1; hundredths <= 61; hundredths += 12)
    check_killed(arena, graph, 9 << 20,
                 memory_format(arena, "'%s' \"$@\" & child=$!; sleep %d.%02d; kill -9 $child; kill -9 $$", TEST_PLANNER,
                               hundredths / 100, hundredths % 100),
                 "signal 9");
  memory_arena_destroy(arena);
#else
  skip();
#endif
}

/* With any amount of memory, from none that a program could start with to plenty. */
static void test_little_memory(void **state) {
  (void)state;
#ifdef TEST_PLANNER
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 30, false, NULL, NULL);
  int failed = 0;
  for (int64_t memory = 1 << 16; memory <= 1 << 26; memory += memory / 3) {
    PlanRequest request = {.budget = 20 << 20, .strategy = PLAN_STRATEGY_ILP, .planner = TEST_PLANNER};
    request.memory = memory;
    PlanAnswer answer = plan_request(arena, graph, &request);
    check_valid(arena, graph, answer.plan, 20 << 20);
    assert_int_equal(answer.exit, EXIT_OK);
    if (answer.note && answer.plan->status != PLAN_STATUS_OPTIMAL)
      assert_string_equal(answer.plan->stopped_by, answer.note);
    failed += answer.note != NULL;
  }
#ifdef REPRISE_RESERVES_ADDRESSES
  (void)failed;
#else
  assert_true(failed > 0);
#endif
  memory_arena_destroy(arena);
#else
  skip();
#endif
}

/* Lines that are too long to be anything, with and without an end. */
static void test_gigantic_lines(void **state) {
  (void)state;
  check_survives_for(20, "head -c 3000000 /dev/zero; echo; echo '{\"event\": \"end\"}'", "not an event");
  check_survives_for(20, "head -c 3000000 /dev/zero | tr '\\0' '['; echo; echo '{\"event\": \"end\"}'", "not an event");
  check_survives_for(60, "exec cat /dev/zero", "line without end");
  check_survives("yes '{\"event\": \"progress\", \"what\": 7}'", "in time");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faulty_planners),
                                     cmocka_unit_test(test_missing_planner),
                                     cmocka_unit_test(test_lying_planner),
                                     cmocka_unit_test(test_settled_plans),
                                     cmocka_unit_test(test_infeasible),
                                     cmocka_unit_test(test_real_planner),
                                     cmocka_unit_test(test_killed_after_each_line),
                                     cmocka_unit_test(test_killed_at_work),
                                     cmocka_unit_test(test_little_memory),
                                     cmocka_unit_test(test_gigantic_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
