/* tests/planner/test_updates.c - a clone that would read a weight after its update is impossible, for each optimizer.
 *
 * In a gated layer exp(h w) (h v) the product h v is read after v's gradient is known, and the update of v runs as soon
 * as it can: making h v again at that point would be cheap and wrong. The planted plans are the optimal ones of the
 * same problem with the writes left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/elaborate.h"
#include "frontend/parser.h"
#include "ir/diagnostics.h"
#include "passes/checkpoint.h"
#include "passes/planner/exact.h"
#include "passes/planner/replay.h"
#include "passes/planner/solver.h"
#include "tests/frontend/support.h"

enum { EXACT_STATES = 200000, BUDGETS = 24 };

static const char model_text[] =
    "dim B = 256\n"
    "model Gated(x: [B, 16]) {\n"
    "  h = x\n"
    "  for i in 0..2 {\n"
    "    param w.{i}: [16, 16] = normal(0.1)\n"
    "    param v.{i}: [16, 16] = normal(0.1)\n"
    "    h = exp(h @ w.{i}) * (h @ v.{i})\n"
    "  }\n"
    "  loss mean(h)\n"
    "}\n"
    "train Gated { data x = csv(\"data.csv\"); optimizer %s }\n";

typedef struct Case {
  MemoryArena *arena;
  CompiledGraph keep_all;
  double *costs; /* 1 per node */
  PlanningProblem *problem;
  PlanGraph *unwritten; /* the same without writes */
} Case;

static PlanningProblem *state(const Case *test) {
  const CompiledGraph *graph = &test->keep_all;
  return state_problem(graph->graph, graph->table, graph->schedule, test->costs, test->arena);
}

static Case open_case(const char *optimizer) {
  Case test = {.arena = memory_arena_create()};
  const char *text = memory_format(test.arena, model_text, optimizer);
  Module *module =
      elaborate_file(test.arena, parse_source(test.arena, source_from(test.arena, "case.rp", text)), NULL, 0);
  assert_non_null(module);
  PipelineOptions options = {.alignment = 64, .budget = -1};
  Compilation *compilation = compile_module(module, &options);
  assert_non_null(compilation);
  test.keep_all = compilation->keep_all;
  test.costs = NEW_ARRAY(test.arena, double, test.keep_all.graph->nodes.count);
  for (int64_t n = 0; n < test.keep_all.graph->nodes.count; n++) test.costs[n] = 1;
  test.problem = state(&test);
  test.unwritten = state(&test)->plan_graph;
  for (int64_t n = 0; n < test.unwritten->nodes.count; n++) test.unwritten->nodes.items[n].write_count = 0;
  for (int64_t s = 0; s < test.unwritten->storages.count; s++) test.unwritten->storages.items[s].writer_count = 0;
  return test;
}

/* Runs that read a persistent storage after a later node of the graph has written it, by a walk of its own. */
static int count_late_reads(const PlanGraph *graph, const Plan *plan) {
  int late = 0;
  for (int64_t i = 0; i < plan->steps.count; i++) {
    if (plan->steps.items[i].kind != PLAN_RUN) continue;
    const PlanNode *writer = &graph->nodes.items[plan->steps.items[i].target];
    for (int64_t k = i + 1; k < plan->steps.count && writer->write_count; k++) {
      const PlanStep *step = &plan->steps.items[k];
      if (step->kind != PLAN_RUN || step->target >= plan->steps.items[i].target) continue;
      const PlanNode *reader = &graph->nodes.items[step->target];
      for (int32_t r = 0; r < reader->input_count; r++)
        for (int32_t w = 0; w < writer->write_count; w++) late += reader->inputs[r] == writer->writes[w];
    }
  }
  return late;
}

/* ---- what the planner does ---- */

static void ignore_plan(void *context, const Plan *plan) { (void)context, (void)plan; }
static void ignore_bound(void *context, double bound, PlanScope scope) { (void)context, (void)bound, (void)scope; }
static void ignore_progress(void *context, const char *what) { (void)context, (void)what; }
static bool never(void *context) {
  (void)context;
  return false;
}

/* The planner's plan, or NULL: valid, without a late read, and a graph with clones comes out of it. */
static const Plan *plan_at(const Case *test, int64_t budget) {
  const PlanGraph *graph = test->problem->plan_graph;
  SolveOptions options = {.budget = budget};
  SolveEvents events = {NULL, ignore_plan, ignore_bound, ignore_progress, never};
  const Plan *plan = solve_plan(test->arena, graph, &options, &events).best;
  if (!plan) return NULL;
  Replay *replay = replay_plan(test->arena, graph, plan);
  replay_check_claims(test->arena, graph, plan, replay);
  if (replay->faults.count) fail_msg("%s", replay->faults.items[0]);
  assert_int_equal(count_late_reads(graph, plan), 0);
  CompiledGraph compiled = insert_clones(test->keep_all.graph, test->keep_all.table, test->problem, plan, test->arena);
  assert_int_equal(compiled.schedule->live_peak, plan->peak);
  return plan;
}

/* ---- what is done with a planted plan ---- */

static void check_replay_refuses(const Case *test, const Plan *planted) {
  Replay *replay = replay_plan(test->arena, test->problem->plan_graph, planted);
  assert_true(replay->faults.count > 0);
  for (int64_t f = 0; f < replay->faults.count; f++)
    assert_non_null(strstr(replay->faults.items[f], "as it was before"));
}

/* As --plan-in: an error that says why, and no graph. */
static void check_pass_refuses(const Case *test, const Plan *planted, int64_t budget) {
  char path[] = "planted-plan-XXXXXX";
  FILE *file = fdopen(mkstemp(path), "w");
  assert_non_null(file);
  fputs(plan_text(test->arena, test->problem->plan_graph, planted, false), file);
  fclose(file);
  CheckpointOptions options = {.request = {.strategy = PLAN_STRATEGY_ILP}, .plan_input = path};
  assert_null(checkpoint_graph(&test->keep_all, test->costs, budget, &options, test->arena));
  assert_int_equal(diag_error_count(), 1);
  diag_reset();
  unlink(path);
}

/* A plan that nobody judged does not become a program: the replay of the graph with clones ends the compiler. */
static void check_clones_refused(const Case *test, const Plan *planted) {
  int ends[2], status;
  char said[1024];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    insert_clones(test->keep_all.graph, test->keep_all.table, test->problem, planted, test->arena);
    _exit(0);
  }
  close(ends[1]);
  ssize_t length = 0;
  for (ssize_t got; (got = read(ends[0], said + length, sizeof said - 1 - (size_t)length)) > 0;) length += got;
  said[length] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_INTERNAL);
  if (!strstr(said, "as it was before")) fail_msg("insert_clones says: %s", said);
}

/* From keep-everything down to what the cheap plans need: where those are cheaper than the planner's, they read too
 * late, and are refused. */
static void check_optimizer(const char *optimizer) {
  Case test = open_case(optimizer);
  int64_t high = plan_keep_all(test.arena, test.unwritten)->peak, low;
  assert_int_equal(exact_smallest(test.arena, test.unwritten, EXACT_STATES, &low).status, EXACT_OPTIMAL);
  int planted_count = 0;
  for (int i = 0; i <= BUDGETS; i++) {
    int64_t budget = low + (high - low) * i / BUDGETS;
    ExactResult cheap = exact_plan(test.arena, test.unwritten, budget, EXACT_STATES);
    assert_int_equal(cheap.status, EXACT_OPTIMAL);
    const Plan *plan = plan_at(&test, budget);
    const Plan *planted = plan_from_runs(test.arena, test.unwritten, cheap.runs.items, cheap.runs.count);
    if (plan && plan->cost <= planted->cost) continue;
    planted_count++;
    assert_true(count_late_reads(test.problem->plan_graph, planted) > 0);
    check_replay_refuses(&test, planted);
    check_pass_refuses(&test, planted, budget);
    if (planted_count == 1) check_clones_refused(&test, planted);
  }
  print_message("%s: %d planted plans refused\n", optimizer, planted_count);
  assert_true(planted_count > 0);
  memory_arena_destroy(test.arena);
}

static void test_sgd(void **state) {
  (void)state;
  check_optimizer("sgd(lr=0.1)");
  check_optimizer("sgd(lr=0.1, momentum=0.9, nesterov=true)");
}

static void test_adam(void **state) {
  (void)state;
  check_optimizer("adam(lr=1e-3)");
}

static void test_adamw(void **state) {
  (void)state;
  check_optimizer("adamw(lr=1e-3, wd=0.1)");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sgd), cmocka_unit_test(test_adam),
                                     cmocka_unit_test(test_adamw)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
