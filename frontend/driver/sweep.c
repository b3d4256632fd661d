/* frontend/driver/sweep.c - solves for curves. */
#include "frontend/driver/sweep.h"

#include <math.h>

#include "frontend/driver/commands.h"

static void place_budgets(Curves *curves, Planning *planning, int64_t count) {
  PlanView least = solve_planning(planning, 1, PLAN_STRATEGY_ILP, NULL);
  int64_t low = least.answer.smallest ? least.answer.smallest->peak : planning->keep_all->peak;
  int64_t high = least.keep_all_arena > 0 ? least.keep_all_arena : planning->keep_all->peak;
  if (low < least.evaluation_bytes) low = least.evaluation_bytes;
  if (high < least.evaluation_bytes) high = least.evaluation_bytes;
  if (low > high) low = high;
  curves->smallest = low;
  curves->largest_impossible = least.answer.largest_impossible;
  curves->count = low == high ? 1 : count;
  curves->budgets = NEW_ARRAY(planning->options->arena, int64_t, curves->count);
  for (int64_t i = 0; i < curves->count; i++)
    curves->budgets[i] =
        i + 1 == curves->count ? high : low + (int64_t)((double)(high - low) * (double)i / (double)(curves->count - 1));
}

static void solve_curve(Curves *curves, Planning *planning, PlanStrategy strategy) {
  CurvePoint *points = &curves->points[strategy * curves->count];
  const CurvePoint *best = NULL; /* the cheapest that fits a smaller budget */
  for (int64_t i = 0; i < curves->count; i++) {
    PlanView view = solve_planning(planning, curves->budgets[i], strategy, best ? best->plan : NULL);
    points[i] = (CurvePoint){.budget = curves->budgets[i], .arena_bytes = -1, .note = view.answer.note};
    if (planning_fits(&view)) points[i].plan = view.answer.plan, points[i].arena_bytes = view.arena_bytes;
    bool worse = best && (!points[i].plan || points[i].plan->cost > best->plan->cost);
    if (worse) points[i].plan = best->plan, points[i].arena_bytes = best->arena_bytes;
    if (points[i].plan) best = &points[i];
  }
}

Curves *sweep_budgets(Planning *planning, int64_t count) {
  MemoryArena *arena = planning->options->arena;
  Curves *curves = NEW(arena, Curves);
  *curves = (Curves){.name = planning->name,
                     .graph = planning->graph,
                     .keep_all_peak = planning->keep_all->peak,
                     .chosen = -1,
                     .saved = NAN,
                     .added = NAN};
  place_budgets(curves, planning, count);
  curves->points = NEW_ARRAY(arena, CurvePoint, PLAN_STRATEGY_COUNT * curves->count);
  for (int s = 0; s < PLAN_STRATEGY_COUNT; s++) solve_curve(curves, planning, (PlanStrategy)s);
  return curves;
}

ShadowPrice find_shadow_price(Planning *planning, const PlanView *view) {
  ShadowPrice price = {.step = view->budget / 100, .saved = NAN, .added = NAN};
  PlanView more = solve_planning(planning, view->budget + price.step, planning->options->strategy, view->answer.plan);
  PlanView less = solve_planning(planning, view->budget - price.step, planning->options->strategy, NULL);
  double cost = view->answer.plan->cost;
  if (planning_fits(&more)) price.saved = fmax(0, cost - more.answer.plan->cost);
  if (planning_fits(&less)) price.added = fmax(0, less.answer.plan->cost - cost);
  return price;
}

void choose_budget(Curves *curves, const PlanView *view, const ShadowPrice *price) {
  curves->chosen = view->budget;
  curves->chosen_plan = planning_fits(view) ? view->answer.plan : NULL;
  if (!price) return;
  curves->step = price->step;
  curves->saved = price->saved;
  curves->added = price->added;
}
