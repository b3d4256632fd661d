/* frontend/driver/picture_output.c - files that show a plan. */
#include "frontend/driver/picture_output.h"

#include "codegen/pictures/report.h"
#include "frontend/driver/sweep.h"

enum { LAYOUT_SECONDS = 20, REPORT_POINTS = 5 };

Picture *picture_of_view(MemoryArena *arena, const PlanView *view) {
  return picture_create(arena, view->name, view->graph, view->answer.plan, view->keep_all, view->budget,
                        view->arena_bytes);
}

static int count_on_output(const Options *options) {
  const char *const files[] = {options->dot_output, options->svg_output, options->report_output};
  int count = 0;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) count += files[i] && string_equal(files[i], "-");
  return count;
}

bool pictures_take_output(const Options *options) { return count_on_output(options) > 0; }

int check_picture_options(const Options *options) {
  const char *fault = NULL;
  if (options->points && !options->report_output) fault = "'--points' goes with '--report=FILE' or '--emit=report'";
  if (options->dot_detail && !options->dot_output && !options->report_output)
    fault = "'--dot-detail' goes with '--dot=FILE' or '--report=FILE'";
  bool plan = options->plan_output && string_equal(options->plan_output, "-");
  if (count_on_output(options) + plan + options->json > 1) fault = "only one result can go to standard output";
  if (!fault) return EXIT_OK;
  fprintf(stderr, "reprise %s: %s\n(see 'reprise %s --help')\n", options->command, fault, options->command);
  return EXIT_USAGE;
}

static bool has_source(const Report *report, const char *path) {
  for (int64_t i = 0; i < report->sources.count; i++)
    if (string_equal(report->sources.items[i].path, path)) return true;
  return false;
}

/* The files of a model. What a graph file of others calls its source is not opened. */
static void read_sources(MemoryArena *arena, Report *report) {
  const PlanGraph *graph = report->picture->graph;
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    const char *path, *error, *source = graph->nodes.items[n].source;
    int line;
    int64_t length;
    if (!source || !split_source(arena, source, &path, &line) || has_source(report, path)) continue;
    const char *text = string_ends(path, ".rp") ? file_read(arena, path, &length, &error) : NULL;
    if (text) array_push(arena, &report->sources, ((ReportSource){path, text}));
  }
}

static char *make_report(Planning *planning, const Picture *picture, const PlanView *view, const ShadowPrice *price) {
  const Options *options = planning->options;
  MemoryArena *arena = options->arena;
  Report report = {.picture = picture};
  Curves *curves = sweep_budgets(planning, options->points ? options->points : REPORT_POINTS);
  if (view->budget >= 0) choose_budget(curves, view, price);
  report.curves = curves;
  report.graph = layout_graph(arena, dot_text(arena, picture, options->dot_detail), LAYOUT_SECONDS, &report.graph_note);
  if (planning->compilation) read_sources(arena, &report);
  if (planning->produced) report.cuda = planning->produced->cuda, report.images = &planning->produced->images;
  return report_html(arena, &report);
}

int write_pictures(Planning *planning, const PlanView *view, const ShadowPrice *price) {
  const Options *options = planning->options;
  MemoryArena *arena = options->arena;
  int code = EXIT_OK;
  if (!options->dot_output && !options->svg_output && !options->report_output) return EXIT_OK;
  Picture *picture = picture_of_view(arena, view);
  if (options->dot_output)
    code = write_text(options, options->dot_output, dot_text(arena, picture, options->dot_detail));
  if (code == EXIT_OK && options->svg_output)
    code = write_text(options, options->svg_output, timeline_svg(arena, picture, false));
  if (code == EXIT_OK && options->report_output)
    code = write_text(options, options->report_output, make_report(planning, picture, view, price));
  return code;
}
