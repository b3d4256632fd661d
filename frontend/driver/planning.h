/* frontend/driver/planning.h - planning problems of the command line: of model files, which are packed too, and of
 * graph files. */
#ifndef REPRISE_FRONTEND_DRIVER_PLANNING_H
#define REPRISE_FRONTEND_DRIVER_PLANNING_H

#include "frontend/driver/plan_report.h"
#include "frontend/driver/produce.h"

typedef struct Planning {
  const Options *options;
  const char *name;
  const PlanGraph *graph;
  const Plan *keep_all;
  const Plan *incumbent;          /* --plan-in, or NULL */
  const Compilation *compilation; /* of a model; NULL for a graph file */
  const Produced *produced;       /* kernels for the report; NULL: none were compiled */
} Planning;

/* Reads the file of the options: a model (.rp) or a graph file. NULL after errors were reported, with the exit code. */
Planning *open_planning(const Options *options, int *code);
/* One budget (-1: none) and strategy. The view's plan fits when planning_fits(). */
PlanView solve_planning(Planning *planning, int64_t budget, PlanStrategy strategy, const Plan *incumbent);
/* There is a plan, within the budget after packing, and evaluation is too. */
bool planning_fits(const PlanView *view);
/* The planning of a model that has been compiled for the options' budget already. */
Planning planning_of_compilation(const Options *options, const Compilation *compilation);
/* command_plan.c: says on stderr why nothing fits, or why no plan was found; returns the exit code. */
int fail_planning(const Options *options, const PlanView *view);
/* What a compilation's checkpoint pass decided. */
PlanView view_of_compilation(const Compilation *compilation);

#endif
