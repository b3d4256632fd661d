/* codegen/pictures/dot.c - a drawing as DOT. The one file that sees libcgraph, whose header defines TRUE, NIL and NOT
 * and whose functions take char * before version 12. */
#include <graphviz/cgraph.h>
#include <math.h>
#include <stdlib.h>

#include "codegen/pictures/decision_groups.h"
#include "codegen/pictures/pictures.h"
#include "codegen/text.h"

enum { LONGEST_NAME = 30, MOST_OUTPUTS_SHOWN = 3 };

typedef struct DotWriter {
  MemoryArena *arena;
  const Drawing *drawing;
  Agraph_t *root;
  Agnode_t **nodes;
  StringMap clusters; /* path of a unit -> index into cluster_graphs */
  ARRAY(Agraph_t *) cluster_graphs;
} DotWriter;

static void set(void *object, const char *name, const char *value) {
  agsafeset(object, (char *)(uintptr_t)name, (char *)(uintptr_t)value, (char *)(uintptr_t) "");
}

static void set_cost(DotWriter *writer, void *object, const char *name, double value) {
  set(object, name, exact_number(writer->arena, value));
}

static void set_size(DotWriter *writer, void *object, const char *name, int64_t value) {
  set(object, name, memory_format(writer->arena, "%lld", (long long)value));
}

/* In labels backslashes start escapes and ampersands references. */
static char *label_text(MemoryArena *arena, const char *name) {
  Text text = {.arena = arena};
  for (const char *at = escape_markup(arena, name); *at; at++) text_append(&text, *at == '\\' ? "\\\\" : "%c", *at);
  return memory_string(arena, text_bytes(&text));
}

static char *short_label(DotWriter *writer, const char *name) {
  return label_text(writer->arena, shorten_text(writer->arena, name, LONGEST_NAME));
}

/* ---- appearance ---- */

typedef struct Look {
  const char *class, *shape, *style, *fill, *line;
} Look;

static const Look fate_looks[FATE_COUNT] = {
    [FATE_KEPT] = {"kept", "box", "filled", "#cfe3f7", "#2b6cb0"},
    [FATE_RECOMPUTED] = {"recomputed", "hexagon", "filled", "#ffe0bd", "#c05621"},
    [FATE_FREED] = {"freed", "ellipse", "filled", "#f1f1f1", "#7a7a7a"},
    [FATE_OTHER] = {"freed", "ellipse", "filled", "#f1f1f1", "#7a7a7a"},
};
static const Look class_looks[RUN_CLASS_COUNT] = {
    [RUN_CLONE] = {"clone", "hexagon", "filled,dashed", "#fff3e4", "#c05621"},
    [RUN_BACKWARD] = {"backward", "box", "filled,rounded", "#e9e4f5", "#6b46c1"},
    [RUN_UPDATE] = {"update", "folder", "filled", "#dcefdc", "#2f7d4f"},
};

static const Look *look_of(const DrawnNode *box) {
  return box->class == RUN_FORWARD ? &fate_looks[box->fate] : &class_looks[box->class];
}

static void set_look(void *node, const Look *look) {
  set(node, "class", look->class);
  set(node, "shape", look->shape);
  set(node, "style", look->style);
  set(node, "fillcolor", look->fill);
  set(node, "color", look->line);
}

/* ---- boxes ---- */

static void append_cost(DotWriter *writer, Text *label, const DrawnNode *box) {
  const PlanGraph *graph = writer->drawing->picture->graph;
  double each = box->cost / (double)box->times;
  text_append(label, "%s%s", graph->cost_unit ? "" : "cost ", format_cost(writer->arena, graph, each));
  if (box->times > 1) text_append(label, " each");
}

static void label_run(DotWriter *writer, Text *label, const DrawnNode *box) {
  const Picture *picture = writer->drawing->picture;
  const PictureRun *run = &picture->planned.runs.items[box->first_run];
  const PlanNode *node = &picture->graph->nodes.items[run->node];
  text_append(label, "%s%s\\n", run->ordinal ? "again: " : "", short_label(writer, node->id));
  if (node->op && !strstr(node->id, node->op)) text_append(label, "%s\\n", short_label(writer, node->op));
  for (int32_t o = 0; o < node->output_count; o++) {
    const PlanStorage *output = &picture->graph->storages.items[node->outputs[o]];
    if (o == MOST_OUTPUTS_SHOWN) {
      text_append(label, "and %d more\\n", node->output_count - o);
      break;
    }
    text_append(label, "%s  %s", short_label(writer, local_id(node->module, output->id)),
                format_bytes(writer->arena, output->bytes));
    if (run_drops(run, node->outputs[o]))
      text_append(label, " dropped");
    else if (!run->ordinal && picture->fates[node->outputs[o]] != FATE_OTHER)
      text_append(label, " %s", fate_name(picture->fates[node->outputs[o]]));
    text_append(label, "\\n");
  }
  append_cost(writer, label, box);
  if (!run->ordinal && picture->times_run[run->node] > 1)
    text_append(label, ", runs %d times", picture->times_run[run->node]);
}

static void label_summary(DotWriter *writer, Text *label, const DrawnNode *box) {
  static const char *const words[RUN_CLASS_COUNT] = {"forward", "played again", "backward", "update"};
  const Picture *picture = writer->drawing->picture;
  long long runs = (long long)(box->runs / box->times);
  text_append(label, "%s\\n%lld run%s, ", words[box->class], runs, runs == 1 ? "" : "s");
  append_cost(writer, label, box);
  if (box->class == RUN_UPDATE && writer->drawing->gradient_bytes)
    text_append(label, "\\nreads %s of gradients", format_bytes(picture->arena, writer->drawing->gradient_bytes));
  for (int fate = 0; fate < FATE_OTHER; fate++)
    if (box->bytes[fate] && box->class == RUN_FORWARD)
      text_append(label, "\\n%s %s", fate_name((Fate)fate),
                  format_bytes(picture->arena, box->bytes[fate] / box->times));
}

static int64_t all_bytes(const DrawnNode *box) {
  int64_t bytes = 0;
  for (int fate = 0; fate < FATE_COUNT; fate++) bytes += box->bytes[fate];
  return bytes;
}

static char *box_tooltip(DotWriter *writer, const DrawnNode *box) {
  const Picture *picture = writer->drawing->picture;
  const PlanNode *node = &picture->graph->nodes.items[picture->planned.runs.items[box->first_run].node];
  Text text = {.arena = writer->arena};
  text_append(&text, "%s", label_text(writer->arena, node->id));
  if (node->module && *node->module) text_append(&text, " in %s", label_text(writer->arena, node->module));
  if (node->source) text_append(&text, ", %s", label_text(writer->arena, node->source));
  text_append(&text, ": %s in %lld run%s", format_bytes_exact(writer->arena, all_bytes(box)), (long long)box->runs,
              box->runs == 1 ? "" : "s");
  return memory_string(writer->arena, text_bytes(&text));
}

/* ---- clusters ---- */

static Agraph_t *new_cluster(DotWriter *writer, Agraph_t *parent, const char *label) {
  char *name = memory_format(writer->arena, "cluster_%lld", (long long)writer->cluster_graphs.count);
  Agraph_t *cluster = agsubg(parent, name, 1);
  set(cluster, "label", label);
  set(cluster, "fontsize", "11");
  array_push(writer->arena, &writer->cluster_graphs, cluster);
  return cluster;
}

/* Where the last part of a path begins: "h.0" is one part, so are "attn" and "c_proj" after it. */
static int64_t parent_length(const char *path) {
  int64_t block = block_length(path), length = (int64_t)strlen(path);
  if (length == block) return 0;
  while (length > 0 && path[length - 1] != '.') length--;
  return length > 0 ? length - 1 : 0;
}

/* The cluster of a module path, inside those of the modules around it. name: as shown; its last part is the label. */
static Agraph_t *cluster_of(DotWriter *writer, const char *path, const char *name, int64_t times) {
  const int64_t *known = string_map_find(&writer->clusters, path);
  if (known) return writer->cluster_graphs.items[*known];
  int64_t above = parent_length(path);
  Agraph_t *parent = writer->root;
  if (above > 0) {
    char *outer = memory_string_range(writer->arena, name, strlen(name) - (strlen(path) - (size_t)above));
    parent = cluster_of(writer, memory_string_range(writer->arena, path, above), outer, times);
  }
  const char *part = above > 0 ? path + above + 1 : name;
  char *label = short_label(writer, part);
  if (times > 1 && !above) label = memory_format(writer->arena, "%s  (\xC3\x97%lld)", label, (long long)times);
  string_map_set(&writer->clusters, path, writer->cluster_graphs.count);
  return new_cluster(writer, parent, label);
}

static Agraph_t *graph_of_box(DotWriter *writer, const DrawnNode *box) {
  const Unit *unit = &writer->drawing->units.items[box->unit];
  if (!unit->path[0] || box->class == RUN_UPDATE) return writer->root;
  if (writer->drawing->detail == DETAIL_MODULE) {
    const int64_t *known = string_map_find(&writer->clusters, unit->name);
    if (known) return writer->cluster_graphs.items[*known];
    char *label = short_label(writer, unit->name);
    if (unit->times > 1) label = memory_format(writer->arena, "%s  (\xC3\x97%lld)", label, (long long)unit->times);
    string_map_set(&writer->clusters, unit->name, writer->cluster_graphs.count);
    return new_cluster(writer, writer->root, label);
  }
  return cluster_of(writer, unit->path, unit->name, unit->times);
}

/* ---- the graph ---- */

static void write_boxes(DotWriter *writer) {
  const Drawing *drawing = writer->drawing;
  writer->nodes = NEW_ARRAY(writer->arena, Agnode_t *, drawing->nodes.count);
  for (int64_t i = 0; i < drawing->nodes.count; i++) {
    const DrawnNode *box = &drawing->nodes.items[i];
    bool summary = drawing->detail == DETAIL_MODULE || (box->class == RUN_UPDATE && drawing->detail == DETAIL_BLOCK);
    Text label = {.arena = writer->arena};
    char *name = memory_format(writer->arena, "n%lld", (long long)i);
    Agnode_t *node = agnode(graph_of_box(writer, box), name, 1);
    if (summary)
      label_summary(writer, &label, box);
    else
      label_run(writer, &label, box);
    set(node, "label", text_bytes(&label));
    set_look(node, look_of(box));
    set(node, "tooltip", box_tooltip(writer, box));
    set_size(writer, node, "bytes", all_bytes(box));
    set_cost(writer, node, "cost", box->cost);
    set_size(writer, node, "runs", box->runs);
    writer->nodes[i] = node;
  }
}

/* From 0.5 points for nothing to 4 for the largest, by the square root, so that small ones are still told apart. */
static double edge_width(int64_t bytes, int64_t most) {
  return 0.5 + (most ? 3.5 * sqrt((double)bytes / (double)most) : 0);
}

static void style_edge(DotWriter *writer, void *edge, const DrawnEdge *drawn, int64_t most) {
  static const char *const colours[] = {"#4a5568", "#2b6cb0", "#6b46c1", "#2f7d4f", "#c05621"};
  static const char *const classes[] = {"forward", "saved", "backward", "update", "again"};
  set(edge, "class", classes[drawn->kind]);
  set(edge, "color", colours[drawn->kind]);
  if (drawn->kind == EDGE_AGAIN) {
    set(edge, "style", "dashed");
    set(edge, "arrowhead", "none");
    set(edge, "tooltip", "the same computation again");
    return;
  }
  double width = edge_width(drawn->bytes, most);
  set(edge, "penwidth", memory_format(writer->arena, "%.2f", width));
  if (width > 1.5) set(edge, "arrowsize", memory_format(writer->arena, "%.2f", 0.9 / width));
  set_size(writer, edge, "bytes", drawn->bytes);
  char *tooltip = memory_format(writer->arena, "%s: %s", label_text(writer->arena, drawn->example),
                                format_bytes_exact(writer->arena, drawn->bytes));
  if (drawn->storages > 1)
    tooltip = memory_format(writer->arena, "%s and %lld more: %s", label_text(writer->arena, drawn->example),
                            (long long)drawn->storages - 1, format_bytes_exact(writer->arena, drawn->bytes));
  set(edge, "tooltip", tooltip);
}

/* Backward edges are given upside down, saved ones may be level: so `dot` gets one direction for everything, and ranks
 * forward and backward of a module side by side. Boxes of one module are level, so that modules stand below each other.
 */
static void write_edges(DotWriter *writer) {
  const Drawing *drawing = writer->drawing;
  int64_t most = 0;
  for (int64_t i = 0; i < drawing->edges.count; i++)
    if (drawing->edges.items[i].bytes > most) most = drawing->edges.items[i].bytes;
  for (int64_t i = 0; i < drawing->edges.count; i++) {
    const DrawnEdge *drawn = &drawing->edges.items[i];
    bool turned = drawn->kind == EDGE_BACKWARD;
    Agnode_t *tail = writer->nodes[turned ? drawn->to : drawn->from];
    Agnode_t *head = writer->nodes[turned ? drawn->from : drawn->to];
    Agedge_t *edge = agedge(writer->root, tail, head, NULL, 1);
    style_edge(writer, edge, drawn, most);
    if (turned) set(edge, "dir", "back");
    bool one_unit = drawing->nodes.items[drawn->from].unit == drawing->nodes.items[drawn->to].unit;
    bool level = drawn->kind == EDGE_SAVED || drawn->kind == EDGE_AGAIN;
    if (level || (one_unit && drawing->detail == DETAIL_MODULE)) set(edge, "minlen", "0");
    if (!drawn->ranked) set(edge, "constraint", "false");
  }
}

/* Title and legend are the label of the graph, which takes no part in the layout. */
static void write_label(DotWriter *writer) {
  static const struct {
    const char *text;
    const Look *look;
  } cells[] = {{"box: kept", &fate_looks[FATE_KEPT]},
               {"hexagon: recomputed", &fate_looks[FATE_RECOMPUTED]},
               {"ellipse: freed early", &fate_looks[FATE_FREED]},
               {"dashed: clone, played again", &class_looks[RUN_CLONE]},
               {"rounded: backward", &class_looks[RUN_BACKWARD]},
               {"folder: update", &class_looks[RUN_UPDATE]}};
  enum { CELLS = sizeof cells / sizeof *cells };
  Text label = {.arena = writer->arena};
  text_append(
      &label,
      "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"4\"><TR><TD COLSPAN=\"%d\" ALIGN=\"LEFT\">%s</TD></TR><TR>",
      CELLS + 1, escape_markup(writer->arena, picture_title(writer->drawing->picture)));
  for (int i = 0; i < CELLS; i++)
    text_append(&label, "<TD BGCOLOR=\"%s\"><FONT POINT-SIZE=\"10\" COLOR=\"#1f2430\">%s</FONT></TD>",
                cells[i].look->fill, cells[i].text);
  text_append(&label, "<TD><FONT POINT-SIZE=\"10\">arrows: wide for many bytes</FONT></TD></TR></TABLE>");
  char *html = agstrdup_html(writer->root, (char *)(uintptr_t)text_bytes(&label));
  set(writer->root, "label", html);
  agstrfree(writer->root, html);
}

static void write_head(DotWriter *writer) {
  static const char *const defaults[][3] = {{"graph", "linelength", "0"},
                                            {"graph", "rankdir", "TB"},
                                            {"graph", "labelloc", "t"},
                                            {"graph", "labeljust", "l"},
                                            {"graph", "fontname", "Helvetica"},
                                            {"graph", "fontsize", "14"},
                                            {"graph", "nodesep", "0.15"},
                                            {"graph", "ranksep", "0.3"},
                                            {"graph", "style", "rounded"},
                                            {"graph", "color", "#b0b0b0"},
                                            {"graph", "label", ""},
                                            {"node", "fontname", "Helvetica"},
                                            {"node", "fontsize", "10"},
                                            {"node", "margin", "0.08,0.04"},
                                            {"node", "height", "0.2"},
                                            {"edge", "arrowsize", "0.6"},
                                            {"edge", "fontname", "Helvetica"}};
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
    int kind = defaults[i][0][0] == 'g' ? AGRAPH : defaults[i][0][0] == 'n' ? AGNODE : AGEDGE;
    agattr(writer->root, kind, (char *)(uintptr_t)defaults[i][1], (char *)(uintptr_t)defaults[i][2]);
  }
  const Picture *picture = writer->drawing->picture;
  write_label(writer);
  if (picture->budget >= 0) set_size(writer, writer->root, "budget", picture->budget);
  set_size(writer, writer->root, "peak", picture->plan->peak);
  set_size(writer, writer->root, "keep_all_peak", picture->keep_all->peak);
  set_cost(writer, writer->root, "cost", picture->plan->cost);
  set_cost(writer, writer->root, "base_cost", picture->plan->base_cost);
  set_cost(writer, writer->root, "lower_bound", picture->plan->lower_bound);
}

static char *graph_text(DotWriter *writer) {
  char *bytes = NULL, *text;
  size_t length;
  FILE *file = open_memstream(&bytes, &length);
  if (!file) die_out_of_memory(0);
  if (agwrite(writer->root, file) != 0 || fclose(file) != 0) die("a graph could not be written to memory");
  text = memory_string(writer->arena, bytes);
  free(bytes);
  return text;
}

/* ---- ids ---- */

/* The library's own ids of names are addresses of strings, and clusters are written in the order of ids. These count
 * names instead (even ids) and objects without one (odd ids), so that the text does not depend on where memory lies. */
typedef struct IdSource {
  StringMap names; /* name -> its place in names.keys */
  uint64_t nameless;
} IdSource;

static IdSource *id_source; /* of the graph that is being written: the library hands its services nothing of ours */

static void *open_ids(Agraph_t *graph, Agdisc_t *services) {
  (void)graph, (void)services;
  return id_source;
}

static long id_of_name(void *state, int kind, char *name, IDTYPE *id, int create) {
  IdSource *source = state;
  (void)kind;
  if (!name) {
    if (create) *id = 2 * source->nameless++ + 1;
    return create;
  }
  const int64_t *known = string_map_find(&source->names, name);
  if (!known && !create) return 0;
  if (!known) string_map_set(&source->names, name, source->names.count);
  *id = 2 * (uint64_t)(known ? *known : source->names.count - 1);
  return 1;
}

static long accept_id(void *state, int kind, IDTYPE id) {
  (void)state, (void)kind, (void)id;
  return 1;
}

static void release_id(void *state, int kind, IDTYPE id) { (void)state, (void)kind, (void)id; }

static char *name_of_id(void *state, int kind, IDTYPE id) {
  IdSource *source = state;
  (void)kind;
  return id % 2 ? NULL : (char *)(uintptr_t)source->names.keys[id / 2];
}

static void close_ids(void *state) { (void)state; }

static void register_object(void *state, int kind, void *object) { (void)state, (void)kind, (void)object; }

static Agiddisc_t counted_ids = {open_ids, id_of_name, accept_id, release_id, name_of_id, close_ids, register_object};

char *dot_text(MemoryArena *arena, const Picture *picture, Detail detail) {
  DotWriter writer = {.arena = arena, .clusters = {.arena = arena}};
  writer.drawing = drawing_create(picture, detail);
  IdSource ids = {.names = {.arena = arena}};
  Agdisc_t services = {.id = &counted_ids, .io = &AgIoDisc};
  id_source = &ids;
  writer.root = agopen((char *)(uintptr_t) "plan", Agdirected, &services);
  write_head(&writer);
  write_boxes(&writer);
  write_edges(&writer);
  char *text = graph_text(&writer);
  agclose(writer.root);
  return text;
}
