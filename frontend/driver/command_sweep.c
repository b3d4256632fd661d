/* frontend/driver/command_sweep.c - `reprise sweep`: overhead against budget for every strategy.
 *
 * Budgets are solved from the smallest up, and a plan that fits a smaller budget is handed on to the next: no curve
 * rises with more memory, after packing too. */
#include <jansson.h>
#include <stdlib.h>

#include "frontend/driver/commands.h"
#include "frontend/driver/planning.h"

enum { DEFAULT_POINTS = 8 };

/* One strategy at one budget; plan NULL: nothing fits. */
typedef struct SweepPoint {
  int64_t budget, arena_bytes;
  const Plan *plan;
  const char *note;
} SweepPoint;

typedef struct Sweep {
  Planning *planning;
  int64_t count; /* budgets, ascending */
  int64_t *budgets;
  SweepPoint *points; /* [strategy * count + budget] */
} Sweep;

static double overhead(const Plan *plan) { return plan->base_cost > 0 ? 100 * (plan->cost / plan->base_cost - 1) : 0; }

/* From the smallest budget for which a plan is known to that of keeping everything, evenly spaced. */
static void choose_budgets(Sweep *sweep, const Options *options) {
  const Planning *planning = sweep->planning;
  PlanView least = solve_planning(sweep->planning, 1, PLAN_STRATEGY_ILP, NULL);
  int64_t low = least.answer.smallest ? least.answer.smallest->peak : planning->keep_all->peak;
  int64_t high = least.keep_all_arena > 0 ? least.keep_all_arena : planning->keep_all->peak;
  if (low > high) low = high;
  sweep->count = low == high ? 1 : options->points ? options->points : DEFAULT_POINTS;
  sweep->budgets = NEW_ARRAY(options->arena, int64_t, sweep->count);
  for (int64_t i = 0; i < sweep->count; i++)
    sweep->budgets[i] =
        i + 1 == sweep->count ? high : low + (int64_t)((double)(high - low) * (double)i / (double)(sweep->count - 1));
}

static void solve_curve(Sweep *sweep, PlanStrategy strategy) {
  SweepPoint *points = &sweep->points[strategy * sweep->count];
  const SweepPoint *best = NULL; /* the cheapest that fits a smaller budget */
  for (int64_t i = 0; i < sweep->count; i++) {
    PlanView view = solve_planning(sweep->planning, sweep->budgets[i], strategy, best ? best->plan : NULL);
    points[i] = (SweepPoint){.budget = sweep->budgets[i], .arena_bytes = -1, .note = view.answer.note};
    if (planning_fits(&view)) points[i].plan = view.answer.plan, points[i].arena_bytes = view.arena_bytes;
    bool worse = best && (!points[i].plan || points[i].plan->cost > best->plan->cost);
    if (worse) points[i].plan = best->plan, points[i].arena_bytes = best->arena_bytes;
    if (points[i].plan) best = &points[i];
  }
}

static int64_t recomputed(MemoryArena *arena, const Sweep *sweep, const Plan *plan) {
  return plan_runs(arena, plan).count - sweep->planning->graph->nodes.count;
}

static void print_table(MemoryArena *arena, const Sweep *sweep) {
  printf("%s: extra time in percent by budget\n%16s", sweep->planning->name, "budget");
  for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) printf(" %9s", plan_strategy_name((PlanStrategy)s));
  printf(" %9s\n", "bound");
  for (int64_t i = 0; i < sweep->count; i++) {
    printf("%16s", format_count(arena, sweep->budgets[i]));
    for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) {
      const Plan *plan = sweep->points[s * sweep->count + i].plan;
      printf(" %9s", plan ? memory_format(arena, "%.2f", overhead(plan)) : "-");
    }
    const Plan *best = sweep->points[PLAN_STRATEGY_ILP * sweep->count + i].plan;
    if (best && best->base_cost > 0) printf(" %9.2f", 100 * (best->lower_bound / best->base_cost - 1));
    putchar('\n');
  }
}

static char *sweep_csv(MemoryArena *arena, const Sweep *sweep) {
  char *text = memory_string(arena, "strategy,budget,peak,arena,cost,overhead_percent,extra_runs,lower_bound\n");
  for (int64_t p = 0; p < PLAN_STRATEGY_COUNT * sweep->count; p++) {
    const SweepPoint *point = &sweep->points[p];
    text = memory_format(arena, "%s%s,%lld,", text, plan_strategy_name((PlanStrategy)(p / sweep->count)),
                         (long long)point->budget);
    if (!point->plan) {
      text = memory_format(arena, "%s,,,,,\n", text);
      continue;
    }
    char *packed =
        point->arena_bytes < 0 ? memory_string(arena, "") : memory_format(arena, "%lld", (long long)point->arena_bytes);
    text = memory_format(arena, "%s%lld,%s,%.17g,%.6f,%lld,%.17g\n", text, (long long)point->plan->peak, packed,
                         point->plan->cost, overhead(point->plan), (long long)recomputed(arena, sweep, point->plan),
                         point->plan->lower_bound);
  }
  return text;
}

static void print_sweep_json(MemoryArena *arena, const Sweep *sweep) {
  json_t *points = json_array();
  for (int64_t p = 0; p < PLAN_STRATEGY_COUNT * sweep->count; p++) {
    const SweepPoint *point = &sweep->points[p];
    json_t *object = json_pack("{s:s, s:I}", "strategy", plan_strategy_name((PlanStrategy)(p / sweep->count)), "budget",
                               (json_int_t)point->budget);
    if (point->plan)
      json_object_update_new(
          object, json_pack("{s:I, s:I, s:f, s:f, s:I, s:f}", "peak", (json_int_t)point->plan->peak, "arena",
                            (json_int_t)point->arena_bytes, "cost", point->plan->cost, "overhead_percent",
                            overhead(point->plan), "extra_runs", (json_int_t)recomputed(arena, sweep, point->plan),
                            "lower_bound", point->plan->lower_bound));
    json_array_append_new(points, object);
  }
  json_t *root = json_pack("{s:s, s:I, s:o}", "name", sweep->planning->name, "keep_all_peak",
                           (json_int_t)sweep->planning->keep_all->peak, "points", points);
  json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
  putchar('\n');
  json_decref(root);
}

int sweep_command(const Options *options) {
  int code;
  Sweep sweep = {.planning = open_planning(options, &code)};
  if (!sweep.planning) return code;
  choose_budgets(&sweep, options);
  sweep.points = NEW_ARRAY(options->arena, SweepPoint, PLAN_STRATEGY_COUNT * sweep.count);
  for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) solve_curve(&sweep, (PlanStrategy)s);
  if (options->csv_output && (code = write_text(options, options->csv_output, sweep_csv(options->arena, &sweep))))
    return code;
  if (options->json)
    print_sweep_json(options->arena, &sweep);
  else if (!options->quiet && !(options->csv_output && string_equal(options->csv_output, "-")))
    print_table(options->arena, &sweep);
  return EXIT_OK;
}
