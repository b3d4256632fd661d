/* codegen/pictures/svg_timeline.c - live bytes over one training step, stacked by role. */
#include <math.h>

#include "codegen/pictures/svg_axis.h"

enum { WIDTH = 960, HEIGHT = 460, LEFT = 78, RIGHT = 104, TOP = 96, BOTTOM = 66, MOST_COLUMNS = 720 };
enum { STRIP_GAP = 5, STRIP_HEIGHT = 9 };

/* From the bottom of the stack up: first what stays through the step. */
static const PlanRole stack_order[PLAN_ROLE_COUNT] = {
    PLAN_ROLE_WEIGHTS,     PLAN_ROLE_OPTIMIZER_STATE, PLAN_ROLE_GRADIENTS, PLAN_ROLE_INPUTS,
    PLAN_ROLE_ACTIVATIONS, PLAN_ROLE_TEMPORARIES,     PLAN_ROLE_WORKSPACE};

/* A stretch of time drawn as one: the run with the most bytes in it stands for all. */
typedef struct Column {
  double start, end;
  const PictureRun *run;
  int64_t runs, clones;
} Column;

typedef ARRAY(Column) ColumnList;

typedef struct Timeline {
  const Picture *picture;
  Axis time, bytes;
  bool by_count; /* nothing costs anything: runs are counted instead */
  ColumnList planned, kept;
  Text svg;
} Timeline;

static double run_start(const Timeline *timeline, const PictureRuns *runs, int64_t r) {
  if (timeline->by_count) return (double)r;
  return r < runs->runs.count ? runs->runs.items[r].start : runs->cost;
}

static ColumnList cut_columns(Timeline *timeline, const PictureRuns *runs, double whole) {
  ColumnList columns = {0};
  double least = whole / MOST_COLUMNS;
  for (int64_t r = 0; r < runs->runs.count; r++) {
    const PictureRun *run = &runs->runs.items[r];
    Column *last = columns.count ? &columns.items[columns.count - 1] : NULL;
    double start = run_start(timeline, runs, r), end = run_start(timeline, runs, r + 1);
    if (!last || last->end - last->start >= least) {
      array_push(timeline->picture->arena, &columns, ((Column){.start = start, .run = run}));
      last = &columns.items[columns.count - 1];
    }
    last->end = end;
    last->runs++;
    last->clones += run->ordinal > 0;
    if (run->total > last->run->total) last->run = run;
  }
  return columns;
}

static double x_of(const Timeline *timeline, double time) { return axis_place(&timeline->time, time); }
static double y_of(const Timeline *timeline, int64_t bytes) { return axis_place(&timeline->bytes, (double)bytes); }

static void draw_grid(Timeline *timeline, double top_value) {
  MemoryArena *arena = timeline->picture->arena;
  Text *svg = &timeline->svg;
  int64_t step = byte_step((int64_t)top_value, 9);
  for (int64_t bytes = 0; (double)bytes <= top_value; bytes += step) {
    double y = y_of(timeline, bytes);
    text_append(svg, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, y, y);
    text_append(svg, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 4,
                format_tick(arena, bytes));
  }
  double whole = timeline->time.to, tick = decimal_step(whole, 8);
  for (int64_t i = 0; (double)i * tick <= whole * 1.0001; i++) {
    double x = x_of(timeline, (double)i * tick);
    char *label = timeline->by_count ? memory_format(arena, "%lld", (long long)((double)i * tick))
                                     : format_cost_tick(arena, timeline->picture->graph, (double)i * tick, whole);
    text_append(svg, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x,
                HEIGHT - BOTTOM + 2 * STRIP_GAP + STRIP_HEIGHT, HEIGHT - BOTTOM + 2 * STRIP_GAP + STRIP_HEIGHT + 4);
    text_append(svg, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                HEIGHT - BOTTOM + 2 * STRIP_GAP + STRIP_HEIGHT + 18, label);
  }
}

/* The outline of stacked values, there along the top and back along the bottom. below[i], above[i]: bytes. */
static void draw_area(Timeline *timeline, const ColumnList *columns, const char *class, const char *fill,
                      const int64_t *below, const int64_t *above) {
  Text *svg = &timeline->svg;
  text_append(svg, "<path class=\"%s\"%s d=\"", class, fill);
  for (int64_t i = 0; i < columns->count; i++)
    text_append(svg, "%s%.1f %.1fH%.1f", i ? "L" : "M", x_of(timeline, columns->items[i].start),
                y_of(timeline, above[i]), x_of(timeline, columns->items[i].end));
  for (int64_t i = columns->count - 1; i >= 0; i--)
    text_append(svg, "L%.1f %.1fH%.1f", x_of(timeline, columns->items[i].end), y_of(timeline, below[i]),
                x_of(timeline, columns->items[i].start));
  text_append(svg, "Z\"/>\n");
}

static void draw_keep_all(Timeline *timeline) {
  const ColumnList *columns = &timeline->kept;
  int64_t *zero = NEW_ARRAY(timeline->picture->arena, int64_t, columns->count);
  int64_t *total = NEW_ARRAY(timeline->picture->arena, int64_t, columns->count);
  for (int64_t i = 0; i < columns->count; i++) total[i] = columns->items[i].run->total;
  draw_area(timeline, columns, "keepall", "", zero, total);
}

static void draw_stack(Timeline *timeline) {
  MemoryArena *arena = timeline->picture->arena;
  const ColumnList *columns = &timeline->planned;
  int64_t *below = NEW_ARRAY(arena, int64_t, columns->count), *above = NEW_ARRAY(arena, int64_t, columns->count);
  for (int role = 0; role < PLAN_ROLE_COUNT; role++) {
    int64_t most = 0;
    for (int64_t i = 0; i < columns->count; i++) {
      int64_t live = columns->items[i].run->live[stack_order[role]];
      above[i] = below[i] + live;
      most = live > most ? live : most;
    }
    const char *name = plan_role_name(stack_order[role]);
    if (most) draw_area(timeline, columns, name, memory_format(arena, " style=\"fill:var(--%s)\"", name), below, above);
    memcpy(below, above, (size_t)columns->count * sizeof *below);
  }
}

/* Under the plot: forward, backward and update, and clones in their own colour. */
static void draw_strip(Timeline *timeline) {
  const Picture *picture = timeline->picture;
  Text *svg = &timeline->svg;
  int y = HEIGHT - BOTTOM + STRIP_GAP;
  for (int64_t i = 0; i < timeline->planned.count; i++) {
    const Column *column = &timeline->planned.items[i];
    double x = x_of(timeline, column->start), width = x_of(timeline, column->end) - x;
    PlanPhase phase = picture_phase(picture->graph, column->run->node);
    text_append(svg, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" style=\"fill:var(--%s)\"/>", x, y,
                width + 0.3, STRIP_HEIGHT, column->clones ? "clone" : phase_name(phase));
  }
  text_append(svg, "\n");
}

static char *column_title(const Timeline *timeline, const Column *column) {
  const Picture *picture = timeline->picture;
  MemoryArena *arena = picture->arena;
  const PlanNode *node = &picture->graph->nodes.items[column->run->node];
  Text text = {.arena = arena};
  text_append(&text, "%s%s", node->id, column->run->ordinal ? " (clone: played again)" : "");
  if (node->module && *node->module) text_append(&text, " in %s", node->module);
  if (column->runs > 1)
    text_append(&text, "\nthe most of %lld runs, %lld of them clones", (long long)column->runs,
                (long long)column->clones);
  text_append(&text, "\nlive %s", format_bytes_exact(arena, column->run->total));
  for (int role = 0; role < PLAN_ROLE_COUNT; role++)
    if (column->run->live[role])
      text_append(&text, "\n%s %s", plan_role_name((PlanRole)role), format_bytes(arena, column->run->live[role]));
  text_append(&text, "\nat %s, takes %s", format_cost(arena, picture->graph, column->run->start),
              format_cost(arena, picture->graph, node->cost));
  return escape_markup(arena, text_bytes(&text));
}

static void draw_tooltips(Timeline *timeline) {
  Text *svg = &timeline->svg;
  for (int64_t i = 0; i < timeline->planned.count; i++) {
    const Column *column = &timeline->planned.items[i];
    double x = x_of(timeline, column->start), width = x_of(timeline, column->end) - x;
    text_append(svg,
                "<rect class=\"hit\" data-live=\"%lld\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                "height=\"%d\"><title>%s</title></rect>\n",
                (long long)column->run->total, x, TOP, width < 0.5 ? 0.5 : width,
                HEIGHT - BOTTOM - TOP + STRIP_GAP + STRIP_HEIGHT, column_title(timeline, column));
  }
}

static void draw_budget(Timeline *timeline) {
  const Picture *picture = timeline->picture;
  Text *svg = &timeline->svg;
  if (picture->budget < 0 || (double)picture->budget > timeline->bytes.to) return;
  double y = y_of(timeline, picture->budget);
  text_append(svg, "<path class=\"budget\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
  text_append(svg, "<text class=\"budget-text\" x=\"%d\" y=\"%.1f\">budget</text>", WIDTH - RIGHT + 6, y - 2);
  text_append(svg, "<text class=\"budget-text\" x=\"%d\" y=\"%.1f\">%s</text>\n", WIDTH - RIGHT + 6, y + 12,
              format_bytes(picture->arena, picture->budget));
}

/* A dot at the peak and a line up to its name, which stands above the plot. */
static void draw_peak(Timeline *timeline) {
  const Picture *picture = timeline->picture;
  Text *svg = &timeline->svg;
  if (!picture->planned.runs.count) return;
  int64_t r = picture->planned.peak_run;
  double x = (x_of(timeline, run_start(timeline, &picture->planned, r)) +
              x_of(timeline, run_start(timeline, &picture->planned, r + 1))) /
             2;
  double y = y_of(timeline, picture->planned.peak);
  const char *id = picture->graph->nodes.items[picture->planned.runs.items[r].node].id;
  const char *anchor = x < LEFT + 160 ? "start" : x > WIDTH - RIGHT - 160 ? "end" : "middle";
  text_append(svg,
              "<path class=\"leader\" d=\"M%.1f %.1fV%d\"/><circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>",
              x, y, TOP - 6, x, y);
  text_append(svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">peak %s in %s</text>\n", x, TOP - 10, anchor,
              format_bytes(picture->arena, picture->planned.peak),
              escape_markup(picture->arena, shorten_text(picture->arena, id, 36)));
}

static void draw_keep_all_label(Timeline *timeline) {
  const Picture *picture = timeline->picture;
  double y = y_of(timeline, picture->kept.peak);
  if (picture->plan->cost <= picture->plan->base_cost) return;
  double budget = picture->budget >= 0 ? y_of(timeline, picture->budget) : -1e9;
  if (fabs(y - budget) < 30) y = budget - 34;
  text_append(&timeline->svg, "<text class=\"soft\" x=\"%d\" y=\"%.1f\">all kept:</text>", WIDTH - RIGHT + 6, y + 4);
  text_append(&timeline->svg, "<text class=\"soft\" x=\"%d\" y=\"%.1f\">%s</text>\n", WIDTH - RIGHT + 6, y + 18,
              format_bytes(picture->arena, picture->kept.peak));
}

static void draw_swatch(Text *svg, double *x, int y, const char *colour, const char *label) {
  text_append(svg, "<rect x=\"%.0f\" y=\"%d\" width=\"11\" height=\"11\" style=\"fill:var(--%s)\"/>", *x, y - 10,
              colour);
  text_append(svg, "<text x=\"%.0f\" y=\"%d\">%s</text>", *x + 15, y, label);
  *x += 15 + 6.2 * (double)strlen(label) + 14;
}

static void draw_legend(Timeline *timeline) {
  Text *svg = &timeline->svg;
  double x = LEFT;
  for (int role = PLAN_ROLE_COUNT - 1; role >= 0; role--) {
    bool present = false;
    for (int64_t i = 0; i < timeline->planned.count; i++)
      present |= timeline->planned.items[i].run->live[stack_order[role]] > 0;
    const char *name = plan_role_name(stack_order[role]);
    if (present) draw_swatch(svg, &x, 50, name, string_equal(name, "optimizer_state") ? "optimizer state" : name);
  }
  if (timeline->picture->plan->cost > timeline->picture->plan->base_cost) {
    text_append(svg,
                "<rect class=\"keepall\" x=\"%.0f\" y=\"40\" width=\"11\" height=\"11\"/><text x=\"%.0f\" "
                "y=\"50\">everything kept</text>\n",
                x, x + 15);
  }
  x = LEFT;
  int y = HEIGHT - 12;
  static const char *const phases[] = {"forward", "backward", "update"};
  for (int i = 0; i < 3; i++) draw_swatch(svg, &x, y, phases[i], phases[i]);
  draw_swatch(svg, &x, y, "clone", "clones: played again");
  text_append(svg, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", WIDTH - RIGHT, y,
              timeline->by_count ? "runs" : "time");
}

char *timeline_svg(MemoryArena *arena, const Picture *picture, bool embedded) {
  Timeline timeline = {.picture = picture, .svg = {.arena = arena}};
  timeline.by_count = !(picture->planned.cost > 0);
  double whole = timeline.by_count ? (double)picture->planned.runs.count : picture->planned.cost;
  double most = (double)(picture->kept.peak > picture->planned.peak ? picture->kept.peak : picture->planned.peak);
  if (picture->budget >= 0 && (double)picture->budget > most && (double)picture->budget < 1.5 * most)
    most = (double)picture->budget;
  timeline.time = (Axis){0, whole, LEFT, WIDTH - RIGHT};
  timeline.bytes = (Axis){0, most > 0 ? 1.03 * most : 1, HEIGHT - BOTTOM, TOP};
  timeline.planned = cut_columns(&timeline, &picture->planned, whole);
  timeline.kept = cut_columns(&timeline, &picture->kept, whole);
  char *extra =
      memory_format(arena, " data-peak=\"%lld\" data-keep-all-peak=\"%lld\" data-budget=\"%lld\" data-cost=\"%s\"",
                    (long long)picture->planned.peak, (long long)picture->kept.peak, (long long)picture->budget,
                    exact_number(arena, picture->planned.cost));
  svg_open(&timeline.svg, WIDTH, HEIGHT, embedded, picture_title(picture), extra);
  text_append(&timeline.svg, "<text class=\"title\" x=\"%d\" y=\"24\">%s</text>\n", LEFT,
              escape_markup(arena, shorten_text(arena, picture_title(picture), 110)));
  draw_grid(&timeline, timeline.bytes.to);
  draw_keep_all(&timeline);
  draw_stack(&timeline);
  draw_strip(&timeline);
  draw_tooltips(&timeline);
  draw_budget(&timeline);
  draw_keep_all_label(&timeline);
  draw_peak(&timeline);
  draw_legend(&timeline);
  svg_close(&timeline.svg);
  return memory_string(arena, text_bytes(&timeline.svg));
}
