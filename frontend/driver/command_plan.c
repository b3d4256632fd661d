/* frontend/driver/command_plan.c - `reprise plan` for model files and graph files. */
#include "frontend/driver/commands.h"
#include "frontend/driver/picture_output.h"
#include "frontend/driver/sweep.h"

int fail_planning(const Options *options, const PlanView *view) {
  bool interrupted = view->answer.exit == EXIT_INTERRUPTED;
  ExitCode code = view->answer.plan && !interrupted ? EXIT_BUDGET_INFEASIBLE : view->answer.exit;
  if (code == EXIT_BUDGET_INFEASIBLE || (code == EXIT_NO_PLAN && view->budget >= 0)) {
    print_infeasible(stderr, options->arena, view);
    if (options->json) fputs(infeasible_json(options->arena, view), stdout);
  } else
    fprintf(stderr, "reprise: %s\n", view->answer.note ? view->answer.note : "no plan was found within the limits");
  return code;
}

int report_plan_faults(const Options *options, const Compilation *compilation) {
  PlanView view = view_of_compilation(compilation);
  if (compilation->checkpoint->compiled.graph && view.answer.exit != EXIT_INTERRUPTED) {
    if (view.answer.note) fprintf(stderr, "reprise: %s\n", view.answer.note);
    if (planning_fits(&view)) return EXIT_OK;
  }
  return fail_planning(options, &view);
}

int plan_command(const Options *options) {
  int code = check_picture_options(options);
  if (code) return code;
  Planning *planning = open_planning(options, &code);
  if (!planning) return code;
  PlanView view = solve_planning(planning, options->budget, options->strategy, planning->incumbent);
  if (!planning_fits(&view)) return fail_planning(options, &view);
  if (options->plan_output &&
      (code = write_text(options, options->plan_output, view_plan_text(options->arena, &view, false))))
    return code;
  ShadowPrice price, *shown = NULL;
  bool told = !options->quiet || options->report_output;
  if (options->budget >= 0 && told) price = find_shadow_price(planning, &view), shown = &price;
  if ((code = write_pictures(planning, &view, shown))) return code;
  if (options->json)
    fputs(plan_report_json(options->arena, &view, shown), stdout);
  else if (!options->quiet && !(options->plan_output && string_equal(options->plan_output, "-")) &&
           !pictures_take_output(options))
    print_plan(stdout, options->arena, &view, shown, options->verbose);
  return EXIT_OK;
}
