/* codegen/pictures/report_table.c - the rows of the report: storages, and source lines with their decisions. */
#include <stdlib.h>

#include "codegen/pictures/decision_groups.h"
#include "codegen/pictures/report.h"
#include "passes/planner/replay.h"

/* ---- storages ---- */

static const char *decision_class(const Picture *picture, int32_t storage) {
  if (picture->graph->storages.items[storage].persistent) return "persistent";
  static const char *const classes[FATE_COUNT] = {"kept", "recomputed", "freed", "transient"};
  return classes[picture->fates[storage]];
}

static void append_row(Text *html, const Picture *picture, int32_t index, bool at_peak) {
  const PlanGraph *graph = picture->graph;
  const PlanStorage *storage = &graph->storages.items[index];
  const PlanNode *node = storage->producer < 0 ? NULL : &graph->nodes.items[storage->producer];
  MemoryArena *arena = html->arena;
  const char *class = decision_class(picture, index);
  int runs = node ? picture->times_run[storage->producer] : 0;
  text_append(html, "<tr class=\"%s\"><td>%s</td>", class, escape_markup(arena, storage->id));
  text_append(html, "<td class=\"num\" data-value=\"%lld\">%s</td><td><span class=\"mark\">%s</span></td>",
              (long long)storage->bytes, format_bytes(arena, storage->bytes),
              string_equal(class, "freed") ? "freed early" : class);
  text_append(html, "<td class=\"num\" data-value=\"%d\">%s</td>", runs, runs ? memory_format(arena, "%d", runs) : "");
  text_append(html, "<td class=\"num\" data-value=\"%s\">%s</td>", node ? exact_number(arena, node->cost) : "0",
              node ? format_cost(arena, graph, node->cost) : "");
  text_append(html, "<td>%s</td><td>%s</td>", plan_role_name(storage->role), at_peak ? "yes" : "");
  text_append(html, "<td>%s</td><td>%s</td>", node && node->op ? escape_markup(arena, node->op) : "",
              node && node->module ? escape_markup(arena, node->module) : "");
  text_append(html, "<td>%s</td></tr>\n", escape_markup(arena, source_of_storage(graph, index)));
}

void append_storage_table(Text *html, const Picture *picture) {
  static const char *const heads[] = {"storage", "bytes",   "decision", "runs",   "time each",
                                      "role",    "at peak", "operator", "module", "source"};
  const Replay *replay = replay_plan(html->arena, picture->graph, picture->plan);
  text_append(html, "<div class=\"scroll tall\"><table id=\"storages\"><thead><tr>");
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_append(html, "<th scope=\"col\">%s</th>", heads[i]);
  text_append(html, "</tr></thead><tbody>\n");
  for (int persistent = 0; persistent < 2; persistent++) /* what a plan decides about comes first */
    for (int32_t s = 0; s < picture->graph->storages.count; s++)
      if (picture->graph->storages.items[s].persistent == (persistent == 1))
        append_row(html, picture, s, replay->live_at_peak[s]);
  text_append(html, "</tbody></table></div>\n");
}

/* ---- source lines ---- */

bool split_source(MemoryArena *arena, const char *source, const char **path, int *line) {
  const char *column = strrchr(source, ':'), *number = column;
  while (number && number > source && number[-1] != ':') number--;
  if (!column || number - 1 <= source || number == column || !column[1]) return false;
  if (strspn(column + 1, "0123456789") != strlen(column + 1)) return false;
  char *end;
  long value = strtol(number, &end, 10);
  if (end != column || value < 1 || value > INT32_MAX) return false;
  *line = (int)value;
  *path = memory_string_range(arena, source, number - 1 - source);
  return true;
}

typedef struct LineMarks {
  int64_t kept, recomputed, kept_bytes, recomputed_bytes;
} LineMarks;

static int64_t count_lines(const char *text) {
  int64_t lines = 1;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

/* Marks of line 1.. at index 1... */
static LineMarks *collect_marks(MemoryArena *arena, const Picture *picture, const ReportSource *file, int64_t lines) {
  LineMarks *marks = NEW_ARRAY(arena, LineMarks, lines + 1);
  for (int64_t i = 0; i < picture->decisions.count; i++) {
    const StorageDecision *decision = &picture->decisions.items[i];
    const char *path;
    int line;
    int64_t bytes = picture->graph->storages.items[decision->storage].bytes;
    if (!split_source(arena, source_of_storage(picture->graph, decision->storage), &path, &line)) continue;
    if (!string_equal(path, file->path) || line > lines) continue;
    *(decision->kept ? &marks[line].kept : &marks[line].recomputed) += 1;
    *(decision->kept ? &marks[line].kept_bytes : &marks[line].recomputed_bytes) += bytes;
  }
  return marks;
}

static void append_margin(Text *html, const LineMarks *mark) {
  MemoryArena *arena = html->arena;
  text_append(html, "<td class=\"margin\">");
  if (mark->kept)
    text_append(html, "<span class=\"kept\"><span class=\"mark\" title=\"kept: %s\">kept %lld</span></span>",
                format_bytes_exact(arena, mark->kept_bytes), (long long)mark->kept);
  if (mark->recomputed)
    text_append(html,
                "<span class=\"recomputed\"><span class=\"mark\" title=\"recomputed: %s\">again %lld</span></span>",
                format_bytes_exact(arena, mark->recomputed_bytes), (long long)mark->recomputed);
  text_append(html, "</td>");
}

static void append_file(Text *html, const Picture *picture, const ReportSource *file) {
  int64_t lines = count_lines(file->text), number = 0;
  const LineMarks *marks = collect_marks(html->arena, picture, file, lines);
  text_append(html, "<h3>%s</h3>\n<div class=\"scroll\"><table class=\"source\"><tbody>\n",
              escape_markup(html->arena, file->path));
  for (const char *at = file->text; *at;) {
    int64_t length = (int64_t)strcspn(at, "\n");
    char *line = memory_string_range(html->arena, at, length);
    text_append(html, "<tr>");
    append_margin(html, &marks[++number]);
    text_append(html, "<td class=\"num\">%lld</td><td><code>%s</code></td></tr>\n", (long long)number,
                escape_markup(html->arena, line));
    at += length + (at[length] == '\n');
  }
  text_append(html, "</tbody></table></div>\n");
}

void append_sources(Text *html, const Report *report) {
  for (int64_t i = 0; i < report->sources.count; i++) append_file(html, report->picture, &report->sources.items[i]);
}
