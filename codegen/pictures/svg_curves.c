/* codegen/pictures/svg_curves.c - the curves of budget against time lost. */
#include "codegen/pictures/curves.h"

#include <math.h>

#include "codegen/pictures/svg_axis.h"

enum { WIDTH = 960, HEIGHT = 460, LEFT = 70, RIGHT = 24, TOP = 84, BOTTOM = 60 };

/* Overhead that is shown in full: so many times the worst of the optimal strategy. What is above leaves the plot. */
static const double headroom = 8;

typedef struct Chart {
  MemoryArena *arena;
  const Curves *curves;
  Axis budget, overhead;
  Text svg;
} Chart;

static const CurvePoint *point_at(const Curves *curves, int strategy, int64_t i) {
  return &curves->points[strategy * curves->count + i];
}

int64_t curve_knee(const Curves *curves) {
  int64_t first = 0, last = curves->count - 1, best = -1;
  while (first < last && !point_at(curves, PLAN_STRATEGY_ILP, first)->plan) first++;
  if (last - first < 2) return -1;
  double top = picture_overhead(point_at(curves, PLAN_STRATEGY_ILP, first)->plan);
  double bottom = picture_overhead(point_at(curves, PLAN_STRATEGY_ILP, last)->plan);
  double range = (double)(curves->budgets[last] - curves->budgets[first]), farthest = 0.02;
  for (int64_t i = first + 1; i < last && top > bottom; i++) {
    double x = (double)(curves->budgets[i] - curves->budgets[first]) / range;
    double y = (picture_overhead(point_at(curves, PLAN_STRATEGY_ILP, i)->plan) - bottom) / (top - bottom);
    if (1 - x - y > farthest) farthest = 1 - x - y, best = i;
  }
  return best;
}

char *shadow_price_text(MemoryArena *arena, const Curves *curves) {
  const char *more = isnan(curves->saved)
                         ? "more: no plan found"
                         : memory_format(arena, "more saves %s", format_cost(arena, curves->graph, curves->saved));
  const char *less = isnan(curves->added)
                         ? "less: nothing fits"
                         : memory_format(arena, "less costs %s", format_cost(arena, curves->graph, curves->added));
  return memory_format(arena, "%s %s; %s", format_bytes(arena, curves->step), more, less);
}

static double x_of(const Chart *chart, int64_t budget) { return axis_place(&chart->budget, (double)budget); }
static double y_of(const Chart *chart, double overhead) {
  double y = axis_place(&chart->overhead, overhead);
  return y < TOP ? TOP : y;
}

static void choose_scales(Chart *chart) {
  const Curves *curves = chart->curves;
  double most = 0, optimal = 0;
  for (int64_t p = 0; p < PLAN_STRATEGY_COUNT * curves->count; p++) {
    if (!curves->points[p].plan) continue;
    double overhead = picture_overhead(curves->points[p].plan);
    most = fmax(most, overhead);
    if (p < curves->count) optimal = fmax(optimal, overhead);
  }
  most = fmax(1, fmin(most, fmax(headroom * optimal, 10)));
  int64_t low = curves->budgets[0], high = curves->budgets[curves->count - 1];
  if (curves->largest_impossible >= 0 && curves->largest_impossible < low) low = curves->largest_impossible;
  if (curves->chosen >= 0 && curves->chosen > high && curves->chosen < 2 * high) high = curves->chosen;
  double margin = high > low ? 0.07 * (double)(high - low) : 0.1 * (double)high;
  chart->budget = (Axis){fmax(0, (double)low - margin), (double)high + margin, LEFT, WIDTH - RIGHT};
  chart->overhead = (Axis){0, 1.05 * most, HEIGHT - BOTTOM, TOP};
}

static void draw_grid(Chart *chart) {
  Text *svg = &chart->svg;
  double step = decimal_step(chart->overhead.to, 6);
  for (int64_t i = 0; (double)i * step <= chart->overhead.to; i++) {
    double y = y_of(chart, (double)i * step);
    text_append(svg, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, y, y);
    text_append(svg, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">+%g %%</text>\n", LEFT - 8, y + 4,
                (double)i * step);
  }
  int64_t from = (int64_t)chart->budget.from, tick = byte_step((int64_t)(chart->budget.to - chart->budget.from), 7);
  for (int64_t bytes = (from + tick - 1) / tick * tick; (double)bytes <= chart->budget.to; bytes += tick) {
    double x = x_of(chart, bytes);
    text_append(svg, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 4);
    text_append(svg, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                HEIGHT - BOTTOM + 18, format_tick(chart->arena, bytes));
  }
  text_append(svg, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">memory budget</text>\n", WIDTH - RIGHT,
              HEIGHT - BOTTOM + 38);
}

static void draw_region(Chart *chart, double from, double to, const char *opacity, const char *title) {
  if (to - from < 0.5) return;
  text_append(&chart->svg,
              "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" style=\"fill:var(--budget);fill-opacity:%s\">"
              "<title>%s</title></rect>\n",
              from, TOP, to - from, HEIGHT - BOTTOM - TOP, opacity, title);
}

static void draw_impossible(Chart *chart) {
  const Curves *curves = chart->curves;
  double start = LEFT, known = x_of(chart, curves->smallest);
  double proven = curves->largest_impossible >= 0 ? x_of(chart, curves->largest_impossible) : start;
  draw_region(chart, start, proven, ".22",
              memory_format(chart->arena, "proven impossible up to %s",
                            format_bytes_exact(chart->arena, curves->largest_impossible)));
  draw_region(
      chart, proven > start ? proven : start, known, ".09",
      memory_format(chart->arena, "no plan is known below %s", format_bytes_exact(chart->arena, curves->smallest)));
}

static void draw_marker(Text *svg, int strategy, double x, double y) {
  static const char *const shapes[PLAN_STRATEGY_COUNT] = {
      "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
      "M-4 -4H4V4H-4Z",
      "M0 -5L5 4H-5Z",
      "M0 -6L5 0L0 6L-5 0Z",
      "M0 5L5 -4H-5Z",
      "M-5 -1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
  };
  text_append(svg, "<path transform=\"translate(%.1f %.1f)\" d=\"%s\" style=\"fill:var(--s%d)\"", x, y,
              shapes[strategy], strategy);
}

static void draw_curve(Chart *chart, int strategy) {
  const Curves *curves = chart->curves;
  Text *svg = &chart->svg;
  double before = 0;
  bool started = false;
  text_append(svg, "<path style=\"fill:none;stroke:var(--s%d);stroke-width:%s\" d=\"", strategy,
              strategy == PLAN_STRATEGY_ILP ? "2.5" : "1.2");
  for (int64_t i = 0; i < curves->count; i++) {
    const Plan *plan = point_at(curves, strategy, i)->plan;
    if (!plan) continue;
    double x = x_of(chart, curves->budgets[i]), y = y_of(chart, picture_overhead(plan));
    if (started)
      text_append(svg, "H%.1fV%.1f", x, y);
    else
      text_append(svg, "M%.1f %.1f", x, y);
    started = true;
    before = y;
  }
  text_append(svg, started ? "H%.1f\"/>\n" : "M0 %.1f\"/>\n", started ? (double)(WIDTH - RIGHT) : before);
}

/* A strategy whose first point lies above the plot says there how high it is. */
static void label_clipped(Chart *chart, const CurvePoint *point) {
  double overhead = picture_overhead(point->plan);
  if (overhead <= chart->overhead.to) return;
  text_append(&chart->svg, "<text class=\"soft\" x=\"%.1f\" y=\"%d\">\xE2\x86\x91 +%.0f %%</text>\n",
              x_of(chart, point->budget) + 8, TOP + 13, overhead);
}

static void draw_points(Chart *chart, int strategy) {
  const Curves *curves = chart->curves;
  bool first = true;
  for (int64_t i = 0; i < curves->count; i++) {
    const CurvePoint *point = point_at(curves, strategy, i);
    if (!point->plan) continue;
    double overhead = picture_overhead(point->plan);
    if (first) label_clipped(chart, point);
    first = false;
    draw_marker(&chart->svg, strategy, x_of(chart, point->budget), y_of(chart, overhead));
    text_append(
        &chart->svg,
        " data-strategy=\"%s\" data-budget=\"%lld\" data-peak=\"%lld\" data-cost=\"%s\"><title>%s at %s\n+%.2f %% "
        "time, live peak %s%s</title></path>\n",
        plan_strategy_name((PlanStrategy)strategy), (long long)point->budget, (long long)point->plan->peak,
        exact_number(chart->arena, point->plan->cost), plan_strategy_name((PlanStrategy)strategy),
        format_bytes_exact(chart->arena, point->budget), overhead, format_bytes_exact(chart->arena, point->plan->peak),
        overhead > chart->overhead.to ? "\n(above the picture)" : "");
  }
}

/* The proven lower bound of the optimal strategy, dotted. */
static void draw_bound(Chart *chart) {
  const Curves *curves = chart->curves;
  bool started = false;
  Text path = {.arena = chart->arena};
  for (int64_t i = 0; i < curves->count; i++) {
    const Plan *plan = point_at(curves, PLAN_STRATEGY_ILP, i)->plan;
    if (!plan || !(plan->base_cost > 0)) continue;
    double x = x_of(chart, curves->budgets[i]);
    text_append(&path, "%s%.1f %.1f", started ? "L" : "M", x,
                y_of(chart, 100 * (plan->lower_bound / plan->base_cost - 1)));
    started = true;
  }
  if (started)
    text_append(&chart->svg,
                "<path style=\"fill:none;stroke:var(--s0);stroke-width:1;stroke-dasharray:1.5 4\" d=\"%s\"/>\n",
                text_bytes(&path));
}

/* A circle around the knee; its name stands below the ticks. */
static void draw_knee(Chart *chart) {
  const Curves *curves = chart->curves;
  int64_t knee = curve_knee(curves);
  if (knee < 0) return;
  double overhead = picture_overhead(point_at(curves, PLAN_STRATEGY_ILP, knee)->plan);
  double x = x_of(chart, curves->budgets[knee]), y = y_of(chart, overhead);
  double label = x < LEFT + 80 ? LEFT + 80 : x > WIDTH - RIGHT - 190 ? WIDTH - RIGHT - 190 : x;
  text_append(&chart->svg, "<circle class=\"leader\" cx=\"%.1f\" cy=\"%.1f\" r=\"10\"/>", x, y);
  text_append(&chart->svg, "<path class=\"leader\" d=\"M%.1f %.1fV%d\"/>", x, y + 10, HEIGHT - BOTTOM + 24);
  text_append(&chart->svg,
              "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" data-knee=\"%lld\">knee: %s, +%.2f %%</text>\n", label,
              HEIGHT - BOTTOM + 38, (long long)curves->budgets[knee], format_bytes(chart->arena, curves->budgets[knee]),
              overhead);
}

/* The chosen budget with its shadow price, in two lines above the plot. */
static void draw_chosen(Chart *chart) {
  const Curves *curves = chart->curves;
  if (curves->chosen < 0) return;
  double x = x_of(chart, curves->chosen);
  if (x < LEFT || x > WIDTH - RIGHT) return;
  const char *anchor = x < LEFT + 200 ? "start" : x > WIDTH - RIGHT - 200 ? "end" : "middle";
  text_append(&chart->svg, "<path class=\"budget\" d=\"M%.1f %dV%d\"/>", x, TOP - 4, HEIGHT - BOTTOM);
  text_append(&chart->svg, "<text class=\"budget-text\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s%s</text>\n", x,
              TOP - 9, anchor, memory_format(chart->arena, "budget %s: ", format_bytes(chart->arena, curves->chosen)),
              curves->chosen_plan ? shadow_price_text(chart->arena, curves) : "nothing fits");
}

static void draw_legend(Chart *chart) {
  double x = LEFT;
  for (int strategy = 0; strategy < PLAN_STRATEGY_COUNT; strategy++) {
    const char *name = plan_strategy_name((PlanStrategy)strategy);
    bool any = false;
    for (int64_t i = 0; i < chart->curves->count; i++) any |= point_at(chart->curves, strategy, i)->plan != NULL;
    draw_marker(&chart->svg, strategy, x + 5, 46);
    text_append(&chart->svg, "/><text x=\"%.0f\" y=\"50\"%s>%s%s</text>\n", x + 15, any ? "" : " class=\"soft\"", name,
                any ? "" : " (no plan)");
    x += 15 + 6.6 * (double)(strlen(name) + (any ? 0 : 10)) + 18;
  }
  text_append(&chart->svg,
              "<path style=\"stroke:var(--s0);stroke-dasharray:1.5 4\" d=\"M%.0f 46h22\"/><text x=\"%.0f\" "
              "y=\"50\">proven lower bound</text>\n",
              x, x + 28);
}

char *curves_svg(MemoryArena *arena, const Curves *curves, bool embedded) {
  Chart chart = {.arena = arena, .curves = curves, .svg = {.arena = arena}};
  choose_scales(&chart);
  char *title = memory_format(arena, "%s: time lost against memory budget", curves->name);
  char *extra = memory_format(arena, " data-smallest=\"%lld\" data-impossible=\"%lld\"", (long long)curves->smallest,
                              (long long)curves->largest_impossible);
  svg_open(&chart.svg, WIDTH, HEIGHT, embedded, title, extra);
  text_append(&chart.svg, "<text class=\"title\" x=\"%d\" y=\"24\">%s</text>\n", LEFT,
              escape_markup(arena, shorten_text(arena, title, 110)));
  draw_impossible(&chart);
  draw_grid(&chart);
  draw_bound(&chart);
  for (int strategy = PLAN_STRATEGY_COUNT - 1; strategy >= 0; strategy--) draw_curve(&chart, strategy);
  for (int strategy = PLAN_STRATEGY_COUNT - 1; strategy >= 0; strategy--) draw_points(&chart, strategy);
  draw_knee(&chart);
  draw_chosen(&chart);
  draw_legend(&chart);
  svg_close(&chart.svg);
  return memory_string(arena, text_bytes(&chart.svg));
}
