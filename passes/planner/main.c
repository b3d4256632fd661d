/* passes/planner/main.c - reprise-planner: a graph file in, a stream of JSON lines out.
 *
 * Lines on stdout: {"event": "plan", "plan": {…}}, {"event": "bound", "lower_bound": x, "scope": "order" | "any"},
 * {"event": "progress", "what": "…"}, and last {"event": "end", "reason": "…", …}. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/diagnostics.h"
#include "passes/planner/json_text.h"
#include "passes/planner/memory_limit.h"
#include "passes/planner/replay.h"
#include "passes/planner/solver.h"
#include "passes/planner/strategies.h"

static const char usage_text[] =
    "usage: reprise-planner GRAPH.json --budget=SIZE [options]\n"
    "  --budget=SIZE        bytes the plan may use (64MiB, 64MB, 67108864)\n"
    "  --strategy=NAME      ilp (default), none, blocks, sqrt, selective, greedy\n"
    "  --incumbent=FILE     a plan file to start from\n"
    "  --nodes=N            branch-and-bound nodes per integer program\n"
    "  --memory=SIZE        limit of the planner's own memory\n"
    "  --time=SECONDS       wall-clock limit, a last resort: plans then depend on the machine's speed\n"
    "GRAPH.json may be - for standard input.\n";

typedef struct Arguments {
  const char *graph, *incumbent;
  PlanStrategy strategy;
  int64_t budget, nodes, memory;
  double seconds;
} Arguments;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

static _Noreturn void usage_error(const char *message, const char *argument) {
  fprintf(stderr, "reprise-planner: %s: '%s'\n%s", message, argument, usage_text);
  exit(EXIT_USAGE);
}

static int64_t read_size(const char *text, const char *argument) {
  int64_t bytes;
  const char *error;
  if (!parse_size(text, &bytes, &error)) usage_error(error, argument);
  return bytes;
}

static double read_positive(const char *text, const char *argument, bool whole) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  bool good =
      end != text && !*end && !errno && value > 0 && value < 1e15 && (!whole || value == (double)(int64_t)value);
  if (!good) usage_error(whole ? "expected a whole number above 0" : "expected a number above 0", argument);
  return value;
}

static void read_option(Arguments *arguments, const char *argument) {
  const char *value = strchr(argument, '=');
  if (!value) usage_error("unknown option", argument);
  value++;
  if (string_starts(argument, "--budget="))
    arguments->budget = read_size(value, argument);
  else if (string_starts(argument, "--memory="))
    arguments->memory = read_size(value, argument);
  else if (string_starts(argument, "--nodes="))
    arguments->nodes = (int64_t)read_positive(value, argument, true);
  else if (string_starts(argument, "--time="))
    arguments->seconds = read_positive(value, argument, false);
  else if (string_starts(argument, "--incumbent="))
    arguments->incumbent = value;
  else if (!string_starts(argument, "--strategy="))
    usage_error("unknown option", argument);
  else if (!plan_strategy_parse(value, &arguments->strategy))
    usage_error("expected ilp, none, blocks, sqrt, selective or greedy", argument);
}

static Arguments read_arguments(int count, char **values) {
  Arguments arguments = {.strategy = PLAN_STRATEGY_ILP};
  for (int i = 1; i < count; i++) {
    if (string_equal(values[i], "--help")) {
      fputs(usage_text, stdout);
      exit(EXIT_OK);
    }
    if (string_starts(values[i], "--"))
      read_option(&arguments, values[i]);
    else if (arguments.graph)
      usage_error("a second graph file", values[i]);
    else
      arguments.graph = values[i];
  }
  if (!arguments.graph) usage_error("expected a graph file", "");
  if (!arguments.budget) usage_error("expected --budget=SIZE", "");
  return arguments;
}

/* ---- the stream ---- */

typedef struct Stream {
  MemoryArena *arena;
  const PlanGraph *graph;
} Stream;

static void emit_plan(void *context, const Plan *plan) {
  Stream *stream = context;
  MemoryArena *scratch = memory_arena_create();
  printf("{\"event\": \"plan\", \"plan\": %s}\n", plan_text(scratch, stream->graph, plan, true));
  fflush(stdout);
  memory_arena_destroy(scratch);
}

static void emit_bound(void *context, double bound, PlanScope scope) {
  (void)context;
  printf("{\"event\": \"bound\", \"lower_bound\": %.17g, \"scope\": \"%s\"}\n", bound,
         scope == PLAN_SCOPE_ANY ? "any" : "order");
  fflush(stdout);
}

static void emit_text(Stream *stream, const char *event, const char *key, const char *text) {
  JsonText line = {.arena = stream->arena};
  json_text_format(&line, "{\"event\": \"%s\", \"%s\": ", event, key);
  json_text_string(&line, text);
  printf("%s", json_text_finish(&line));
}

static void emit_progress(void *context, const char *what) {
  emit_text(context, "progress", "what", what);
  puts("}");
  fflush(stdout);
}

static bool is_interrupted(void *context) {
  (void)context;
  return interrupted;
}

static int emit_end(Stream *stream, const SolveResult *result) {
  if (result->smallest) emit_plan(stream, result->smallest);
  emit_text(stream, "end", "reason", result->reason);
  if (result->largest_impossible > 0) printf(", \"largest_impossible\": %lld", (long long)result->largest_impossible);
  if (result->smallest) printf(", \"smallest_budget\": %lld", (long long)result->smallest->peak);
  puts("}");
  fflush(stdout);
  if (result->best) return interrupted ? EXIT_INTERRUPTED : EXIT_OK;
  return result->proven_infeasible ? EXIT_BUDGET_INFEASIBLE : EXIT_NO_PLAN;
}

/* ---- the two kinds of run ---- */

static int run_simple(Stream *stream, const Arguments *arguments) {
  const char *error;
  bool usage;
  Plan *plan = plan_by_strategy(stream->arena, stream->graph, arguments->strategy, arguments->budget, &error, &usage);
  if (!plan) {
    fprintf(stderr, "reprise-planner: %s: %s\n", arguments->graph, error);
    return usage ? EXIT_USAGE : EXIT_BUDGET_INFEASIBLE;
  }
  SolveResult result = {.reason = "the strategy does not search", .largest_impossible = -1};
  if (plan->peak <= arguments->budget) {
    result.best = plan;
    emit_plan(stream, plan);
  } else {
    plan->budget = 0;
    result.smallest = plan;
    result.reason = "the strategy has no plan within the budget";
  }
  return emit_end(stream, &result);
}

static Plan *read_incumbent(Stream *stream, const Arguments *arguments) {
  if (!arguments->incumbent) return NULL;
  Plan *plan = plan_read(stream->arena, stream->graph, arguments->incumbent);
  if (!plan) return NULL;
  Replay *replay = replay_plan(stream->arena, stream->graph, plan);
  if (replay->faults.count)
    diag_error((Location){0}, "%s: not a valid plan for this graph: %s", arguments->incumbent, replay->faults.items[0]);
  return plan;
}

static int run_ilp(Stream *stream, const Arguments *arguments) {
  SolveOptions options = {.budget = arguments->budget, .node_limit = arguments->nodes, .seconds = arguments->seconds};
  options.incumbent = read_incumbent(stream, arguments);
  if (diag_error_count()) return EXIT_SOURCE_ERROR;
  SolveEvents events = {.context = stream,
                        .plan = emit_plan,
                        .bound = emit_bound,
                        .progress = emit_progress,
                        .interrupted = is_interrupted};
  SolveResult result = solve_plan(stream->arena, stream->graph, &options, &events);
  return emit_end(stream, &result);
}

int main(int count, char **values) {
  Arguments arguments = read_arguments(count, values);
  limit_address_space(arguments.memory);
  struct sigaction action = {.sa_handler = on_interrupt};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  MemoryArena *arena = memory_arena_create();
  Stream stream = {.arena = arena, .graph = plan_graph_read(arena, arguments.graph)};
  bool readable = string_equal(arguments.graph, "-") || access(arguments.graph, R_OK) == 0;
  int status = readable ? EXIT_SOURCE_ERROR : EXIT_IO;
  if (stream.graph)
    status = arguments.strategy == PLAN_STRATEGY_ILP ? run_ilp(&stream, &arguments) : run_simple(&stream, &arguments);
  diag_print(stderr, false);
  diag_reset();
  memory_arena_destroy(arena);
  return status;
}
