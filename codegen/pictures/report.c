/* codegen/pictures/report.c - the HTML report. */
#include "codegen/pictures/report.h"

#include <stdlib.h>

#include "codegen/pictures/report_style.h"

static void append_figure(Text *html, const char *name, const char *value, const char *detail) {
  text_append(html, "<div><dt>%s</dt><dd>%s<small>%s</small></dd></div>\n", name, value, detail);
}

static void append_figures(Text *html, const Report *report) {
  const Picture *picture = report->picture;
  const Plan *plan = picture->plan;
  MemoryArena *arena = html->arena;
  text_append(html, "<dl>\n");
  append_figure(html, "budget", picture->budget >= 0 ? format_bytes(arena, picture->budget) : "none",
                picture->budget >= 0 ? format_bytes_exact(arena, picture->budget) : "");
  append_figure(html, "live peak", format_bytes(arena, plan->peak), format_bytes_exact(arena, plan->peak));
  if (picture->arena_bytes >= 0)
    append_figure(html, "arena", format_bytes(arena, picture->arena_bytes),
                  format_bytes_exact(arena, picture->arena_bytes));
  append_figure(html, "keeping everything", format_bytes(arena, picture->keep_all->peak),
                format_bytes_exact(arena, picture->keep_all->peak));
  append_figure(html, "time", memory_format(arena, "+%.2f %%", picture_overhead(plan)),
                escape_markup(arena, memory_format(arena, "%s, keeping everything %s",
                                                   format_cost(arena, picture->graph, plan->cost),
                                                   format_cost(arena, picture->graph, plan->base_cost))));
  append_figure(
      html, "proof",
      plan->status == PLAN_STATUS_OPTIMAL ? "optimal" : memory_format(arena, "within %.2f %%", picture_gap(plan)),
      escape_markup(arena,
                    memory_format(arena, "at least %s for %s", format_cost(arena, picture->graph, plan->lower_bound),
                                  plan->scope == PLAN_SCOPE_ORDER ? "this order of nodes" : "any order of nodes")));
  append_figure(
      html, "recomputed",
      memory_format(arena, "%lld of %lld", (long long)picture->recomputed_count, (long long)picture->decisions.count),
      "activations that the backward pass reads");
  if (plan->stopped_by) append_figure(html, "search stopped by", escape_markup(arena, plan->stopped_by), "");
  text_append(html, "</dl>\n");
}

/* ---- anatomy ---- */

static void append_bar(Text *html, const char *name, const int64_t *anatomy, int64_t peak, int64_t whole) {
  text_append(html, "<tr><td>%s</td><td><div class=\"bar\">", name);
  for (int role = 0; role < PLAN_ROLE_COUNT && whole > 0; role++)
    if (anatomy[role])
      text_append(html, "<span style=\"width:%.3f%%;background:var(--%s)\" title=\"%s: %s\"></span>",
                  100 * (double)anatomy[role] / (double)whole, plan_role_name((PlanRole)role),
                  plan_role_name((PlanRole)role), format_bytes_exact(html->arena, anatomy[role]));
  text_append(html, "</div></td><td class=\"num\">%s</td></tr>\n", format_bytes(html->arena, peak));
}

static void append_anatomy(Text *html, const Picture *picture) {
  const Plan *plan = picture->plan, *keep_all = picture->keep_all;
  int64_t whole = plan->peak > keep_all->peak ? plan->peak : keep_all->peak;
  text_append(html, "<div class=\"picture\"><table class=\"bars\"><tbody>\n");
  append_bar(html, "all kept", keep_all->anatomy, keep_all->peak, whole);
  append_bar(html, "this plan", plan->anatomy, plan->peak, whole);
  text_append(html,
              "</tbody></table>\n<div class=\"scroll\"><table><thead><tr><th>bytes at the peak</th><th class=\"num\">"
              "everything kept</th><th class=\"num\">this plan</th></tr></thead><tbody>\n");
  for (int role = 0; role < PLAN_ROLE_COUNT; role++) {
    if (!plan->anatomy[role] && !keep_all->anatomy[role]) continue;
    const char *name = plan_role_name((PlanRole)role);
    text_append(html,
                "<tr><td><span class=\"swatch\" style=\"background:var(--%s)\"></span>%s</td><td class=\"num\">%s</td>"
                "<td class=\"num\">%s</td></tr>\n",
                name, name, format_bytes_exact(html->arena, keep_all->anatomy[role]),
                format_bytes_exact(html->arena, plan->anatomy[role]));
  }
  text_append(html, "</tbody></table></div></div>\n");
}

/* ---- the page ---- */

/* Is the picture of `dot` narrow enough to be scaled to the page and still be read? */
static bool fits_page(const char *svg) {
  enum { WIDEST_POINTS = 1300 };
  const char *width = strstr(svg, "width=\"");
  return width && atof(width + strlen("width=\"")) <= WIDEST_POINTS;
}

static void append_graph(Text *html, const Report *report) {
  text_append(html, "<h2 id=\"graph\">Graph</h2>\n");
  if (!report->graph) {
    text_append(html, "<p class=\"soft\">No graph here: %s. <code>--dot=FILE</code> writes it.</p>\n",
                escape_markup(html->arena, report->graph_note));
    return;
  }
  text_append(
      html,
      "<p class=\"soft\">Forward runs downwards, backward upwards beside it. Arrows are as wide as the bytes they "
      "hand on; point at a box for more.</p>\n<div class=\"scroll tall drawing%s\">%s</div>\n",
      fits_page(report->graph) ? " fits" : "", report->graph);
}

static void append_head(Text *html, const Report *report) {
  MemoryArena *arena = html->arena;
  char *name = escape_markup(arena, report->picture->name);
  text_append(
      html,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>%s: memory plan</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s%s</style>\n</head>\n<body>\n",
      name, report_style, picture_style());
  text_append(html, "<h1>%s</h1>\n<nav><a href=\"#anatomy\">anatomy</a><a href=\"#timeline\">timeline</a>",
              escape_markup(arena, picture_title(report->picture)));
  if (report->curves) text_append(html, "<a href=\"#curve\">curve</a>");
  text_append(html, "<a href=\"#graph\">graph</a>");
  if (report->sources.count) text_append(html, "<a href=\"#source\">source</a>");
  if (report->cuda) text_append(html, "<a href=\"#kernels\">kernels</a>");
  text_append(html, "<a href=\"#table\">storages</a></nav>\n");
}

char *report_html(MemoryArena *arena, const Report *report) {
  Text html = {.arena = arena};
  append_head(&html, report);
  append_figures(&html, report);
  text_append(&html, "<h2 id=\"anatomy\">Anatomy</h2>\n");
  append_anatomy(&html, report->picture);
  text_append(&html, "<h2 id=\"timeline\">Memory over one step</h2>\n<div class=\"scroll\">%s</div>\n",
              timeline_svg(arena, report->picture, true));
  if (report->curves)
    text_append(&html, "<h2 id=\"curve\">Budget against time</h2>\n<div class=\"scroll\">%s</div>\n",
                curves_svg(arena, report->curves, true));
  append_graph(&html, report);
  if (report->sources.count) text_append(&html, "<h2 id=\"source\">Source</h2>\n");
  append_sources(&html, report);
  if (report->cuda) {
    text_append(&html,
                "<h2 id=\"kernels\">Kernels</h2>\n<p class=\"soft\">As the assembler says of each; the node is the "
                "first that launches it. Matrix products of floats are cuBLAS's.</p>\n");
    append_kernel_table(&html, report->cuda, report->images);
  }
  text_append(&html, "<h2 id=\"table\">Storages</h2>\n");
  append_storage_table(&html, report->picture);
  text_append(&html, "<script>\n%s</script>\n</body>\n</html>\n", report_script);
  return memory_string(arena, text_bytes(&html));
}
