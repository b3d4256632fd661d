/* codegen/pictures/svg_axis.c - scales, ticks and the style sheet of our charts. */
#include "codegen/pictures/svg_axis.h"

#include <math.h>

double axis_place(const Axis *axis, double value) {
  double range = axis->to - axis->from;
  return range > 0 ? axis->start + (axis->end - axis->start) * (value - axis->from) / range : axis->start;
}

double decimal_step(double range, int count) {
  if (!(range > 0)) return 1;
  double rough = range / count, power = pow(10, floor(log10(rough))), rest = rough / power;
  return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

int64_t byte_step(int64_t range, int count) {
  int64_t step = 1;
  while (step < range / count) step *= 2;
  return step;
}

char *format_tick(MemoryArena *arena, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = (double)bytes;
  for (; value >= 1024; unit++) value /= 1024;
  return memory_format(arena, "%.4g %s", value, units[unit]);
}

char *format_cost_tick(MemoryArena *arena, const PlanGraph *graph, double cost, double whole) {
  if (!graph->cost_unit) return memory_format(arena, "%.6g", cost);
  if (!string_equal(graph->cost_unit, "us")) return memory_format(arena, "%.6g %s", cost, graph->cost_unit);
  if (whole >= 1e6) return memory_format(arena, "%.6g s", cost / 1e6);
  return whole >= 1e3 ? memory_format(arena, "%.6g ms", cost / 1e3) : memory_format(arena, "%.6g us", cost);
}

/* Roles are told apart by hue and lightness: what stays is blue and grey, what a plan can change is green and warm. */
const char *picture_style(void) {
  return ".picture{--ink:#1f2430;--soft:#667085;--grid:#e4e7ec;--paper:#ffffff;--budget:#c22f3d;--clone:#d9730d;"
         "--weights:#40598c;--gradients:#8c6bb1;--optimizer_state:#7f9bc8;--activations:#2a9d8f;--temporaries:#e3b341;"
         "--workspace:#d1695a;--inputs:#a3abb5;--forward:#b9cbe6;--backward:#cdbfe6;--update:#b7d9c0;"
         "--s0:#c22f3d;--s1:#667085;--s2:#2563b0;--s3:#2a8c50;--s4:#8250b4;--s5:#b7791f}"
         "@media (prefers-color-scheme:dark){.picture{--ink:#e6e9ef;--soft:#9aa4b2;--grid:#333a45;--paper:#14171c;"
         "--budget:#ff7b86;--clone:#ff9d42;--weights:#5f7fbf;--gradients:#a98bd0;--optimizer_state:#93aedb;"
         "--activations:#3bb3a5;--temporaries:#d9ab3f;--workspace:#dd7a6b;--inputs:#7d8692;--forward:#3d5275;"
         "--backward:#57487a;--update:#3a6648;--s0:#ff7b86;--s1:#9aa4b2;--s2:#6ea8ff;--s3:#58c27d;--s4:#c09bf0;"
         "--s5:#e0a94a}}"
         ".picture text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:var(--ink)}"
         ".picture .title{font-size:14px;font-weight:bold}.picture .soft{fill:var(--soft)}"
         ".picture .grid{stroke:var(--grid);stroke-width:1}.picture .axis{stroke:var(--soft);stroke-width:1}"
         ".picture .paper{fill:var(--paper)}.picture .hit{fill:transparent}"
         ".picture .hit:hover{fill:var(--ink);fill-opacity:.12}"
         ".picture .budget{stroke:var(--budget);stroke-width:1.5;stroke-dasharray:7 4;fill:none}"
         ".picture .budget-text{fill:var(--budget)}"
         ".picture .keepall{stroke:var(--soft);fill:var(--soft);fill-opacity:.10;stroke-width:1}"
         ".picture .peak{stroke:var(--ink);fill:var(--ink)}.picture "
         ".leader{stroke:var(--ink);stroke-width:1;fill:none}";
}

void svg_open(Text *svg, int width, int height, bool embedded, const char *title, const char *extra) {
  text_append(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 %d %d\"", width, height);
  if (!embedded) text_append(svg, " width=\"%d\" height=\"%d\"", width, height);
  text_append(svg, " role=\"img\"%s>\n<title>%s</title>\n", extra, escape_markup(svg->arena, title));
  if (!embedded) text_append(svg, "<style>%s</style>\n", picture_style());
  text_append(svg, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void svg_close(Text *svg) { text_append(svg, "</svg>\n"); }
