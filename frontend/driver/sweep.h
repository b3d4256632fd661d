/* frontend/driver/sweep.h - the curves of budget against time. */
#ifndef REPRISE_FRONTEND_DRIVER_SWEEP_H
#define REPRISE_FRONTEND_DRIVER_SWEEP_H

#include "codegen/pictures/curves.h"
#include "frontend/driver/planning.h"

enum { DEFAULT_POINTS = 8 };

/* Solves every strategy at `count` budgets (one where keeping everything is the smallest), from the smallest for which
 * a plan is known to that of keeping everything. Plans that fit a smaller budget are handed on to the next, so no curve
 * rises with more memory, after packing too. chosen is left at -1. */
Curves *sweep_budgets(Planning *planning, int64_t count);
/* Time that one percent more and less memory than the view's budget is worth, from two neighbouring solves. */
ShadowPrice find_shadow_price(Planning *planning, const PlanView *view);
/* Enters the options' budget into the curves, with its plan (NULL: nothing fits) and shadow price. */
void choose_budget(Curves *curves, const PlanView *view, const ShadowPrice *price);

#endif
