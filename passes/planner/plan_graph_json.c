/* passes/planner/plan_graph_json.c - reprise-graph files: reading with every fault reported, and writing.
 *
 * Reading goes in two passes over the parsed file: check_*() report all faults with the JSON path of the element; only
 * a file without faults is built into a PlanGraph. */
#include <jansson.h>
#include <math.h>

#include "ir/diagnostics.h"
#include "passes/planner/json_text.h"
#include "passes/planner/plan_graph.h"

typedef struct Reader {
  MemoryArena *arena;
  const char *path;
  json_t *root;
  int64_t alignment;
  int64_t total;        /* bytes so far, to find an overflow */
  StringMap storages;   /* id -> index of the node that makes it, -1 for a tensor */
  StringMap nodes;      /* id -> index */
  StringMap made_later; /* every output's id -> index of its node, to tell a wrong order from an unknown name */
} Reader;

static void fault(Reader *reader, const char *where, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fault(Reader *reader, const char *where, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = memory_format_list(reader->arena, format, arguments);
  va_end(arguments);
  diag_error((Location){0}, "%s: %s: %s", reader->path, where, message);
}

static const char *at(Reader *reader, const char *where, const char *key, int64_t index) {
  if (index < 0) return memory_format(reader->arena, "%s%s%s", where, *where ? "." : "", key);
  return memory_format(reader->arena, "%s%s%s[%lld]", where, *where ? "." : "", key, (long long)index);
}

static const char *found(Reader *reader, const json_t *value) {
  if (!value) return "nothing";
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  const char *copy = text ? memory_format(reader->arena, "%.60s", text) : "something else";
  free(text);
  return copy;
}

/* An array under a key; absent counts as empty unless required. */
static json_t *check_array(Reader *reader, json_t *object, const char *where, const char *key, bool required) {
  json_t *value = json_object_get(object, key);
  if (json_is_array(value)) return value;
  if (value || required) fault(reader, at(reader, where, key, -1), "expected an array, found %s", found(reader, value));
  return NULL;
}

static const char *check_id(Reader *reader, json_t *object, const char *where) {
  json_t *id = json_is_object(object) ? json_object_get(object, "id") : NULL;
  if (!json_is_object(object))
    fault(reader, where, "expected an object, found %s", found(reader, object));
  else if (!json_is_string(id))
    fault(reader, at(reader, where, "id", -1), "expected a string, found %s", found(reader, id));
  else
    return json_string_value(id);
  return NULL;
}

static void check_bytes(Reader *reader, json_t *object, const char *where, const char *key, bool required) {
  json_t *value = json_object_get(object, key);
  int64_t aligned, total;
  if (!value && !required) return;
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    fault(reader, at(reader, where, key, -1), "expected a whole number of bytes, 0 or more, found %s",
          found(reader, value));
  else if (!checked_align(json_integer_value(value), reader->alignment, &aligned) ||
           !checked_add(reader->total, aligned, &total))
    fault(reader, at(reader, where, key, -1), "the sum of all bytes up to here exceeds 2^63 - 1");
  else
    reader->total = total;
}

static void check_choice(Reader *reader, json_t *object, const char *where, const char *key, const char *const *names) {
  json_t *value = json_object_get(object, key);
  if (!value) return;
  const char *text = json_string_value(value), *list = "";
  for (int i = 0; names[i]; i++) {
    if (text && string_equal(text, names[i])) return;
    list = memory_format(reader->arena, "%s%s\"%s\"", list, i ? ", " : "", names[i]);
  }
  fault(reader, at(reader, where, key, -1), "expected one of %s, found %s", list, found(reader, value));
}

static void check_storage(Reader *reader, json_t *object, const char *where, int64_t node) {
  static const char *const decisions[] = {"free", "keep", "recompute", NULL};
  const char *roles[PLAN_ROLE_COUNT + 1] = {NULL};
  for (int r = 0; r < PLAN_ROLE_COUNT; r++) roles[r] = plan_role_name((PlanRole)r);
  const char *id = check_id(reader, object, where);
  if (!json_is_object(object)) return;
  check_bytes(reader, object, where, "bytes", true);
  check_choice(reader, object, where, "role", roles);
  if (node >= 0) check_choice(reader, object, where, "decision", decisions);
  if (!id) return;
  if (string_map_find(&reader->storages, id))
    fault(reader, at(reader, where, "id", -1), "a second storage named \"%s\"; each needs an id of its own", id);
  else
    string_map_set(&reader->storages, id, node);
}

/* A name of a storage made before this point. */
static void check_name(Reader *reader, json_t *value, const char *where, int64_t node) {
  const char *name = json_string_value(value);
  if (!name) {
    fault(reader, where, "expected the id of a storage, found %s", found(reader, value));
    return;
  }
  if (string_map_find(&reader->storages, name)) return;
  const int64_t *later = string_map_find(&reader->made_later, name);
  if (later && *later == node)
    fault(reader, where, "the node reads \"%s\", which it makes itself: a cycle", name);
  else if (later)
    fault(reader, where,
          "\"%s\" is made by a later node, nodes[%lld]; nodes must stand in a topological order without cycles", name,
          (long long)*later);
  else
    fault(reader, where, "no tensor and no node before this one makes \"%s\"", name);
}

static void check_names(Reader *reader, json_t *node, const char *where, const char *key, int64_t index) {
  json_t *list = check_array(reader, node, where, key, string_equal(key, "inputs"));
  for (size_t i = 0; i < json_array_size(list); i++)
    check_name(reader, json_array_get(list, i), at(reader, where, key, (int64_t)i), index);
}

static void check_writes(Reader *reader, json_t *node, const char *where, int64_t index) {
  check_names(reader, node, where, "writes", index);
  json_t *list = json_object_get(node, "writes");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name = json_string_value(json_array_get(list, i));
    const int64_t *producer = name ? string_map_find(&reader->storages, name) : NULL;
    if (producer && *producer >= 0)
      fault(reader, at(reader, where, "writes", (int64_t)i),
            "\"%s\" is not persistent; only storages listed under \"tensors\" can be written", name);
  }
}

static bool list_holds(const json_t *list, const char *name) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *item = json_array_get(list, i);
    const char *id = json_string_value(json_is_object(item) ? json_object_get(item, "id") : item);
    if (id && string_equal(id, name)) return true;
  }
  return false;
}

static void check_inplace(Reader *reader, json_t *node, const char *where) {
  json_t *pairs = check_array(reader, node, where, "inplace", false);
  for (size_t i = 0; i < json_array_size(pairs); i++) {
    json_t *pair = json_array_get(pairs, i);
    const char *here = at(reader, where, "inplace", (int64_t)i);
    const char *host = json_string_value(json_array_get(pair, 0)), *output = json_string_value(json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || !host || !output)
      fault(reader, here, "expected [input, output], found %s", found(reader, pair));
    else if (!list_holds(json_object_get(node, "inputs"), host))
      fault(reader, here, "\"%s\" is not an input of the node", host);
    else if (!list_holds(json_object_get(node, "outputs"), output))
      fault(reader, here, "\"%s\" is not an output of the node", output);
  }
}

static void check_text(Reader *reader, json_t *object, const char *where, const char *key) {
  json_t *value = json_object_get(object, key);
  if (value && !json_is_string(value) && !json_is_null(value))
    fault(reader, at(reader, where, key, -1), "expected a string, found %s", found(reader, value));
}

static void check_node(Reader *reader, json_t *node, const char *where, int64_t index) {
  const char *id = check_id(reader, node, where);
  if (!json_is_object(node)) return;
  if (id && string_map_find(&reader->nodes, id))
    fault(reader, at(reader, where, "id", -1), "a second node named \"%s\"; each needs an id of its own", id);
  else if (id)
    string_map_set(&reader->nodes, id, index);
  json_t *cost = json_object_get(node, "cost"), *recompute = json_object_get(node, "recompute");
  if (!json_is_number(cost) || !isfinite(json_number_value(cost)) || json_number_value(cost) < 0)
    fault(reader, at(reader, where, "cost", -1), "expected a finite cost, 0 or more, found %s", found(reader, cost));
  if (recompute && !json_is_boolean(recompute))
    fault(reader, at(reader, where, "recompute", -1), "expected true or false, found %s", found(reader, recompute));
  check_bytes(reader, node, where, "workspace", false);
  check_names(reader, node, where, "inputs", index);
  check_writes(reader, node, where, index);
  json_t *outputs = check_array(reader, node, where, "outputs", true);
  for (size_t i = 0; i < json_array_size(outputs); i++)
    check_storage(reader, json_array_get(outputs, i), at(reader, where, "outputs", (int64_t)i), index);
  check_inplace(reader, node, where);
  static const char *const texts[] = {"phase", "op", "module", "source"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_text(reader, node, where, texts[i]);
}

static void collect_outputs(Reader *reader, json_t *nodes) {
  for (size_t n = 0; n < json_array_size(nodes); n++) {
    json_t *outputs = json_object_get(json_array_get(nodes, n), "outputs");
    for (size_t i = 0; i < json_array_size(outputs); i++) {
      const char *id = json_string_value(json_object_get(json_array_get(outputs, i), "id"));
      if (id && !string_map_find(&reader->made_later, id)) string_map_set(&reader->made_later, id, (int64_t)n);
    }
  }
}

static void check_header(Reader *reader) {
  json_t *format = json_object_get(reader->root, "format"), *version = json_object_get(reader->root, "version");
  json_t *alignment = json_object_get(reader->root, "alignment");
  if (!json_is_string(format) || !string_equal(json_string_value(format), "reprise-graph"))
    fault(reader, "format", "expected \"reprise-graph\", found %s", found(reader, format));
  if (!json_is_integer(version) || json_integer_value(version) != 1)
    fault(reader, "version", "expected 1, found %s", found(reader, version));
  if (alignment && (!json_is_integer(alignment) || json_integer_value(alignment) < 1))
    fault(reader, "alignment", "expected a whole number of bytes, 1 or more, found %s", found(reader, alignment));
  else if (alignment)
    reader->alignment = json_integer_value(alignment);
  check_text(reader, reader->root, "", "name");
  check_text(reader, reader->root, "", "cost_unit");
}

static void check_file(Reader *reader) {
  check_header(reader);
  json_t *tensors = check_array(reader, reader->root, "", "tensors", false);
  for (size_t i = 0; i < json_array_size(tensors); i++)
    check_storage(reader, json_array_get(tensors, i), at(reader, "", "tensors", (int64_t)i), -1);
  json_t *nodes = check_array(reader, reader->root, "", "nodes", true);
  collect_outputs(reader, nodes);
  for (size_t i = 0; i < json_array_size(nodes); i++)
    check_node(reader, json_array_get(nodes, i), at(reader, "", "nodes", (int64_t)i), (int64_t)i);
  check_names(reader, reader->root, "", "results", (int64_t)json_array_size(nodes));
}

/* ---- building; the file has no faults ---- */

static const char *text_of(json_t *object, const char *key) { return json_string_value(json_object_get(object, key)); }

static PlanPhase phase_of(json_t *node) {
  const char *phase = text_of(node, "phase");
  if (!phase) return PLAN_PHASE_NONE;
  if (string_equal(phase, "backward")) return PLAN_PHASE_BACKWARD;
  return string_equal(phase, "update") ? PLAN_PHASE_UPDATE : PLAN_PHASE_FORWARD;
}

static PlanDecision decision_of(json_t *output) {
  const char *decision = text_of(output, "decision");
  if (!decision || string_equal(decision, "free")) return PLAN_FREE_CHOICE;
  return string_equal(decision, "keep") ? PLAN_KEEP : PLAN_RECOMPUTE;
}

static int32_t *storages_of(PlanGraph *graph, json_t *list, int32_t *count) {
  *count = (int32_t)json_array_size(list);
  int32_t *items = NEW_ARRAY(graph->arena, int32_t, *count);
  for (int32_t i = 0; i < *count; i++)
    items[i] = plan_graph_storage(graph, json_string_value(json_array_get(list, (size_t)i)));
  return items;
}

static void build_outputs(PlanGraph *graph, json_t *node, int32_t index) {
  json_t *outputs = json_object_get(node, "outputs"), *pairs = json_object_get(node, "inplace");
  for (size_t i = 0; i < json_array_size(outputs); i++) {
    json_t *output = json_array_get(outputs, i);
    int64_t bytes = json_integer_value(json_object_get(output, "bytes"));
    int32_t storage = plan_graph_add_output(graph, index, text_of(output, "id"), bytes, decision_of(output));
    if (text_of(output, "role")) plan_role_parse(text_of(output, "role"), &graph->storages.items[storage].role);
  }
  for (size_t i = 0; i < json_array_size(pairs); i++) {
    json_t *pair = json_array_get(pairs, i);
    plan_graph_add_inplace(graph, index, plan_graph_storage(graph, json_string_value(json_array_get(pair, 0))),
                           plan_graph_storage(graph, json_string_value(json_array_get(pair, 1))));
  }
}

static void build_node(PlanGraph *graph, json_t *json) {
  json_t *recompute = json_object_get(json, "recompute");
  PlanNode node = {.id = text_of(json, "id"),
                   .cost = json_number_value(json_object_get(json, "cost")),
                   .workspace = json_integer_value(json_object_get(json, "workspace")),
                   .recompute = !recompute || json_is_true(recompute),
                   .phase = phase_of(json),
                   .op = text_of(json, "op"),
                   .module = text_of(json, "module"),
                   .source = text_of(json, "source")};
  node.inputs = storages_of(graph, json_object_get(json, "inputs"), &node.input_count);
  node.writes = storages_of(graph, json_object_get(json, "writes"), &node.write_count);
  build_outputs(graph, json, plan_graph_add_node(graph, &node));
}

static PlanGraph *build_graph(Reader *reader) {
  PlanGraph *graph = plan_graph_create(reader->arena, reader->alignment);
  const char *name = text_of(reader->root, "name"), *unit = text_of(reader->root, "cost_unit");
  graph->name = name ? memory_string(reader->arena, name) : NULL;
  graph->cost_unit = unit ? memory_string(reader->arena, unit) : NULL;
  json_t *tensors = json_object_get(reader->root, "tensors"), *nodes = json_object_get(reader->root, "nodes");
  for (size_t i = 0; i < json_array_size(tensors); i++) {
    json_t *tensor = json_array_get(tensors, i);
    PlanRole role = PLAN_ROLE_WEIGHTS;
    if (text_of(tensor, "role")) plan_role_parse(text_of(tensor, "role"), &role);
    plan_graph_add_tensor(graph, text_of(tensor, "id"), json_integer_value(json_object_get(tensor, "bytes")), role);
  }
  for (size_t i = 0; i < json_array_size(nodes); i++) build_node(graph, json_array_get(nodes, i));
  json_t *results = json_object_get(reader->root, "results");
  for (size_t i = 0; i < json_array_size(results); i++)
    plan_graph_add_result(graph, plan_graph_storage(graph, json_string_value(json_array_get(results, i))));
  plan_graph_finish(graph);
  return graph;
}

PlanGraph *plan_graph_parse(MemoryArena *arena, const char *path, const char *text, int64_t length) {
  json_error_t error;
  Reader reader = {.arena = arena, .path = path, .alignment = 1};
  reader.storages.arena = reader.nodes.arena = reader.made_later.arena = arena;
  reader.root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (!reader.root) {
    diag_error((Location){0}, "%s:%d:%d: not a JSON file: %s", path, error.line, error.column, error.text);
    return NULL;
  }
  int errors = diag_error_count();
  if (json_is_object(reader.root))
    check_file(&reader);
  else
    fault(&reader, "top level", "expected an object with \"format\": \"reprise-graph\"");
  PlanGraph *graph = diag_error_count() == errors ? build_graph(&reader) : NULL;
  json_decref(reader.root);
  return graph;
}

PlanGraph *plan_graph_read(MemoryArena *arena, const char *path) {
  int64_t length = 0;
  const char *error = NULL;
  const char *text = file_read(arena, path, &length, &error);
  if (text) return plan_graph_parse(arena, path, text, length);
  diag_error((Location){0}, "%s", error);
  return NULL;
}

/* ---- writing ---- */

static void write_ids(JsonText *text, const PlanGraph *graph, const char *key, const int32_t *items, int32_t count) {
  json_text_format(text, ", \"%s\": [", key);
  for (int32_t i = 0; i < count; i++) {
    if (i) json_text_format(text, ", ");
    json_text_string(text, graph->storages.items[items[i]].id);
  }
  json_text_format(text, "]");
}

static void write_text(JsonText *text, const char *key, const char *value) {
  if (!value) return;
  json_text_format(text, ", \"%s\": ", key);
  json_text_string(text, value);
}

static void write_storage(JsonText *text, const PlanStorage *storage) {
  static const char *const decisions[] = {NULL, "keep", "recompute"};
  json_text_format(text, "{\"id\": ");
  json_text_string(text, storage->id);
  json_text_format(text, ", \"bytes\": %lld", (long long)storage->bytes);
  write_text(text, "role", plan_role_name(storage->role));
  write_text(text, "decision", decisions[storage->decision]);
  json_text_format(text, "}");
}

static void write_node(JsonText *text, const PlanGraph *graph, const PlanNode *node) {
  static const char *const phases[] = {NULL, "forward", "backward", "update"};
  json_text_format(text, "  {\"id\": ");
  json_text_string(text, node->id);
  json_text_format(text, ", \"cost\": ");
  json_text_number(text, node->cost);
  write_ids(text, graph, "inputs", node->inputs, node->input_count);
  json_text_format(text, ", \"outputs\": [");
  for (int32_t i = 0; i < node->output_count; i++) {
    if (i) json_text_format(text, ", ");
    write_storage(text, &graph->storages.items[node->outputs[i]]);
  }
  json_text_format(text, "]");
  if (node->workspace) json_text_format(text, ", \"workspace\": %lld", (long long)node->workspace);
  if (!node->recompute) json_text_format(text, ", \"recompute\": false");
  for (int32_t i = 0; i < node->inplace_count; i++) {
    json_text_format(text, i ? ", [" : ", \"inplace\": [[");
    json_text_string(text, graph->storages.items[node->inplace[i].host].id);
    json_text_format(text, ", ");
    json_text_string(text, graph->storages.items[node->inplace[i].output].id);
    json_text_format(text, "]");
  }
  if (node->inplace_count) json_text_format(text, "]");
  if (node->write_count) write_ids(text, graph, "writes", node->writes, node->write_count);
  write_text(text, "phase", phases[node->phase]);
  write_text(text, "op", node->op);
  write_text(text, "module", node->module);
  write_text(text, "source", node->source);
  json_text_format(text, "}");
}

char *plan_graph_text(MemoryArena *arena, const PlanGraph *graph) {
  JsonText text = {.arena = arena};
  json_text_format(&text, "{\"format\": \"reprise-graph\", \"version\": 1, \"alignment\": %lld",
                   (long long)graph->alignment);
  write_text(&text, "name", graph->name);
  write_text(&text, "cost_unit", graph->cost_unit);
  json_text_format(&text, ",\n \"tensors\": [");
  const char *separator = "\n  ";
  for (int64_t s = 0; s < graph->storages.count; s++) {
    if (!graph->storages.items[s].persistent) continue;
    json_text_format(&text, "%s", separator);
    write_storage(&text, &graph->storages.items[s]);
    separator = ",\n  ";
  }
  json_text_format(&text, "],\n \"nodes\": [\n");
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    write_node(&text, graph, &graph->nodes.items[n]);
    json_text_format(&text, n + 1 < graph->nodes.count ? ",\n" : "\n");
  }
  json_text_format(&text, " ],\n \"results\": [");
  separator = "";
  for (int64_t s = 0; s < graph->storages.count; s++) {
    if (!graph->storages.items[s].result) continue;
    json_text_format(&text, "%s", separator);
    json_text_string(&text, graph->storages.items[s].id);
    separator = ", ";
  }
  json_text_format(&text, "]}\n");
  return json_text_finish(&text);
}
