/* frontend/driver/command_sweep.c - `reprise sweep`: overhead against budget for every strategy. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "codegen/text.h"
#include "frontend/driver/commands.h"
#include "frontend/driver/picture_output.h"
#include "frontend/driver/sweep.h"

static int64_t recomputed(MemoryArena *arena, const Curves *curves, const Plan *plan) {
  return plan_runs(arena, plan).count - curves->graph->nodes.count;
}

static void print_chosen(MemoryArena *arena, const Curves *curves) {
  const char *budget = format_bytes(arena, curves->chosen);
  if (!curves->chosen_plan) {
    printf("%s: nothing fits\n", budget);
    return;
  }
  printf("%s: +%.2f %%; %s\n", budget, picture_overhead(curves->chosen_plan), shadow_price_text(arena, curves));
}

static void print_table(MemoryArena *arena, const Curves *curves) {
  printf("%s: extra time in percent by budget\n%16s", curves->name, "budget");
  for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) printf(" %9s", plan_strategy_name((PlanStrategy)s));
  printf(" %9s\n", "bound");
  for (int64_t i = 0; i < curves->count; i++) {
    printf("%16s", format_count(arena, curves->budgets[i]));
    for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) {
      const Plan *plan = curves->points[s * curves->count + i].plan;
      printf(" %9s", plan ? memory_format(arena, "%.2f", picture_overhead(plan)) : "-");
    }
    const Plan *best = curves->points[PLAN_STRATEGY_ILP * curves->count + i].plan;
    if (best && best->base_cost > 0) printf(" %9.2f", 100 * (best->lower_bound / best->base_cost - 1));
    putchar('\n');
  }
  if (curves->chosen >= 0) print_chosen(arena, curves);
}

static char *sweep_csv(MemoryArena *arena, const Curves *curves) {
  Text text = {.arena = arena};
  text_append(&text, "strategy,budget,peak,arena,cost,overhead_percent,extra_runs,lower_bound\n");
  for (int64_t p = 0; p < PLAN_STRATEGY_COUNT * curves->count; p++) {
    const CurvePoint *point = &curves->points[p];
    text_append(&text, "%s,%lld,", plan_strategy_name((PlanStrategy)(p / curves->count)), (long long)point->budget);
    if (!point->plan) {
      text_append(&text, ",,,,,\n");
      continue;
    }
    char *packed =
        point->arena_bytes < 0 ? memory_string(arena, "") : memory_format(arena, "%lld", (long long)point->arena_bytes);
    text_append(&text, "%lld,%s,%.17g,%.6f,%lld,%.17g\n", (long long)point->plan->peak, packed, point->plan->cost,
                picture_overhead(point->plan), (long long)recomputed(arena, curves, point->plan),
                point->plan->lower_bound);
  }
  return memory_string(arena, text_bytes(&text));
}

static void print_sweep_json(MemoryArena *arena, const Curves *curves) {
  json_t *points = json_array();
  for (int64_t p = 0; p < PLAN_STRATEGY_COUNT * curves->count; p++) {
    const CurvePoint *point = &curves->points[p];
    json_t *object = json_pack("{s:s, s:I}", "strategy", plan_strategy_name((PlanStrategy)(p / curves->count)),
                               "budget", (json_int_t)point->budget);
    if (point->plan)
      json_object_update_new(object, json_pack("{s:I, s:I, s:f, s:f, s:I, s:f}", "peak", (json_int_t)point->plan->peak,
                                               "arena", (json_int_t)point->arena_bytes, "cost", point->plan->cost,
                                               "overhead_percent", picture_overhead(point->plan), "extra_runs",
                                               (json_int_t)recomputed(arena, curves, point->plan), "lower_bound",
                                               point->plan->lower_bound));
    json_array_append_new(points, object);
  }
  json_t *root = json_pack("{s:s, s:I, s:o}", "name", curves->name, "keep_all_peak", (json_int_t)curves->keep_all_peak,
                           "points", points);
  if (curves->chosen_plan)
    json_object_set_new(root, "chosen",
                        json_pack("{s:I, s:f, s:I, s:o, s:o}", "budget", (json_int_t)curves->chosen, "cost",
                                  curves->chosen_plan->cost, "step", (json_int_t)curves->step, "saved",
                                  isnan(curves->saved) ? json_null() : json_real(curves->saved), "added",
                                  isnan(curves->added) ? json_null() : json_real(curves->added)));
  json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
  putchar('\n');
  json_decref(root);
}

/* The budget of the options with what one percent of it is worth. */
static void add_chosen_budget(Planning *planning, Curves *curves) {
  const Options *options = planning->options;
  if (options->budget < 0) return;
  PlanView view = solve_planning(planning, options->budget, options->strategy, NULL);
  if (!planning_fits(&view)) {
    choose_budget(curves, &view, NULL);
    return;
  }
  ShadowPrice price = find_shadow_price(planning, &view);
  choose_budget(curves, &view, &price);
}

static bool takes_output(const char *path) { return path && string_equal(path, "-"); }

int sweep_command(const Options *options) {
  int code;
  Planning *planning = open_planning(options, &code);
  if (!planning) return code;
  Curves *curves = sweep_budgets(planning, options->points ? options->points : DEFAULT_POINTS);
  add_chosen_budget(planning, curves);
  if (options->csv_output && (code = write_text(options, options->csv_output, sweep_csv(options->arena, curves))))
    return code;
  if (options->svg_output &&
      (code = write_text(options, options->svg_output, curves_svg(options->arena, curves, false))))
    return code;
  if (options->json)
    print_sweep_json(options->arena, curves);
  else if (!options->quiet && !takes_output(options->csv_output) && !takes_output(options->svg_output))
    print_table(options->arena, curves);
  return EXIT_OK;
}
