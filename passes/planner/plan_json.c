/* passes/planner/plan_json.c - plan files: writing and reading. */
#include "passes/planner/plan_json.h"
#include "ir/diagnostics.h"
#include "passes/planner/json_text.h"

/* ---- writing ---- */

static void write_storage_id(JsonText *text, const PlanGraph *graph, int32_t storage) {
  json_text_string(text, graph->storages.items[storage].id);
}

static void write_how(JsonText *text, const PlanGraph *graph, const PlanStep *step) {
  json_text_format(text, ", {");
  for (int32_t i = 0; i < step->into_count; i++) {
    json_text_format(text, i ? ", " : "\"into\": {");
    write_storage_id(text, graph, step->into[i].output);
    json_text_format(text, ": ");
    write_storage_id(text, graph, step->into[i].host);
  }
  if (step->into_count) json_text_format(text, step->drop_count ? "}, " : "}");
  for (int32_t i = 0; i < step->drop_count; i++) {
    json_text_format(text, i ? ", " : "\"drop\": [");
    write_storage_id(text, graph, step->drops[i]);
  }
  json_text_format(text, step->drop_count ? "]}" : "}");
}

static void write_step(JsonText *text, const PlanGraph *graph, const PlanStep *step) {
  if (step->kind == PLAN_FREE) {
    json_text_format(text, "[\"free\", ");
    write_storage_id(text, graph, step->target);
  } else {
    json_text_format(text, "[\"run\", ");
    json_text_string(text, graph->nodes.items[step->target].id);
    if (step->into_count || step->drop_count) write_how(text, graph, step);
  }
  json_text_format(text, "]");
}

static void write_figures(JsonText *text, const PlanGraph *graph, const Plan *plan, const char *newline) {
  json_text_format(text, "{\"format\": \"reprise-plan\", \"version\": 1,%s", newline);
  if (graph->name) {
    json_text_format(text, " \"graph\": ");
    json_text_string(text, graph->name);
    json_text_format(text, ",%s", newline);
  }
  json_text_format(text, " \"peak\": %lld, \"cost\": ", (long long)plan->peak);
  json_text_number(text, plan->cost);
  json_text_format(text, ", \"base_cost\": ");
  json_text_number(text, plan->base_cost);
  json_text_format(text, ", \"lower_bound\": ");
  json_text_number(text, plan->lower_bound);
  json_text_format(text, ", \"bound_scope\": \"%s\", \"status\": \"%s\"",
                   plan->scope == PLAN_SCOPE_ANY ? "any" : "order",
                   plan->status == PLAN_STATUS_OPTIMAL ? "optimal" : "feasible");
  if (plan->stopped_by) {
    json_text_format(text, ", \"stopped_by\": ");
    json_text_string(text, plan->stopped_by);
  }
  if (plan->strategy) {
    json_text_format(text, ", \"strategy\": ");
    json_text_string(text, plan->strategy);
  }
  if (plan->budget) json_text_format(text, ", \"budget\": %lld", (long long)plan->budget);
  json_text_format(text, ",%s \"anatomy\": {", newline);
  for (int i = 0; i < PLAN_ROLE_COUNT; i++)
    json_text_format(text, "%s\"%s\": %lld", i ? ", " : "", plan_role_name((PlanRole)i), (long long)plan->anatomy[i]);
  json_text_format(text, "}");
}

static void write_decisions(JsonText *text, const PlanGraph *graph, const Plan *plan, const char *newline) {
  DecisionList list = plan_decisions(text->arena, graph, plan);
  json_text_format(text, ",%s \"decisions\": [", newline);
  for (int64_t i = 0; i < list.count; i++) {
    const StorageDecision *decision = &list.items[i];
    json_text_format(text, "%s%s  {\"storage\": ", i ? "," : "", newline);
    write_storage_id(text, graph, decision->storage);
    json_text_format(text, ", \"bytes\": %lld, \"decision\": \"%s\", \"runs\": %d}",
                     (long long)graph->storages.items[decision->storage].bytes, decision->kept ? "keep" : "recompute",
                     decision->times_run);
  }
  json_text_format(text, "]");
}

char *plan_text(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, bool compact) {
  JsonText text = {.arena = arena};
  const char *newline = compact ? "" : "\n";
  write_figures(&text, graph, plan, newline);
  write_decisions(&text, graph, plan, newline);
  json_text_format(&text, ",%s \"schedule\": [", newline);
  for (int64_t i = 0; i < plan->steps.count; i++) {
    json_text_format(&text, "%s%s%s", i ? "," : "", newline, compact ? "" : "  ");
    write_step(&text, graph, &plan->steps.items[i]);
  }
  json_text_format(&text, "]}%s", newline);
  return json_text_finish(&text);
}

/* ---- reading ---- */

typedef struct Reader {
  MemoryArena *arena;
  const PlanGraph *graph;
  const char *error; /* the first fault */
} Reader;

static void fault(Reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault(Reader *reader, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = memory_format_list(reader->arena, format, arguments);
  va_end(arguments);
  if (!reader->error) reader->error = message;
}

static int32_t read_storage(Reader *reader, size_t step, const json_t *value) {
  const char *name = json_string_value(value);
  int32_t storage = name ? plan_graph_storage(reader->graph, name) : -1;
  if (storage < 0)
    fault(reader, "schedule[%zu]: \"%s\" is not a storage of the graph", step, name ? name : "(no name)");
  return storage;
}

static void read_how(Reader *reader, size_t index, json_t *how, PlanStep *step) {
  json_t *into = json_object_get(how, "into"), *drops = json_object_get(how, "drop"), *host;
  if (!json_is_object(how) || (into && !json_is_object(into)) || (drops && !json_is_array(drops))) {
    fault(reader, "schedule[%zu]: expected {\"into\": {output: input}, \"drop\": [outputs]}", index);
    return;
  }
  const char *output;
  step->into = NEW_ARRAY(reader->arena, PlanInplace, json_object_size(into));
  step->drops = NEW_ARRAY(reader->arena, int32_t, json_array_size(drops));
  json_object_foreach(into, output, host) {
    int32_t made = plan_graph_storage(reader->graph, output);
    if (made < 0) fault(reader, "schedule[%zu]: \"%s\" is not a storage of the graph", index, output);
    step->into[step->into_count++] = (PlanInplace){.host = read_storage(reader, index, host), .output = made};
  }
  for (size_t i = 0; i < json_array_size(drops); i++)
    step->drops[step->drop_count++] = read_storage(reader, index, json_array_get(drops, i));
}

static void read_step(Reader *reader, size_t index, json_t *json, Plan *plan) {
  const char *what = json_string_value(json_array_get(json, 0)), *name = json_string_value(json_array_get(json, 1));
  size_t size = json_array_size(json);
  PlanStep step = {.kind = PLAN_RUN};
  if (!what || !name || size > 3 || (!string_equal(what, "run") && !string_equal(what, "free"))) {
    fault(reader, "schedule[%zu]: expected [\"run\", node], [\"run\", node, how] or [\"free\", storage]", index);
    return;
  }
  if (string_equal(what, "free")) {
    step.kind = PLAN_FREE;
    step.target = read_storage(reader, index, json_array_get(json, 1));
  } else {
    step.target = plan_graph_node(reader->graph, name);
    if (step.target < 0) fault(reader, "schedule[%zu]: \"%s\" is not a node of the graph", index, name);
    if (size == 3) read_how(reader, index, json_array_get(json, 2), &step);
  }
  if (!reader->error) array_push(reader->arena, &plan->steps, step);
}

static double read_number(Reader *reader, json_t *root, const char *key) {
  json_t *value = json_object_get(root, key);
  if (!json_is_number(value)) fault(reader, "%s: expected a number", key);
  return json_number_value(value);
}

static int64_t read_bytes(Reader *reader, json_t *root, const char *key, bool required) {
  json_t *value = json_object_get(root, key);
  if (!value && !required) return 0;
  if (!json_is_integer(value) || json_integer_value(value) < 0)
    fault(reader, "%s: expected a whole number of bytes, 0 or more", key);
  return json_integer_value(value);
}

/* Both keys may be missing: a schedule and its figures are enough. */
static void check_format(Reader *reader, json_t *root) {
  json_t *format = json_object_get(root, "format"), *version = json_object_get(root, "version");
  const char *name = json_string_value(format);
  if (format && (!name || !string_equal(name, "reprise-plan")))
    fault(reader, "format: expected \"reprise-plan\", found \"%s\"", name ? name : "something else");
  if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
    fault(reader, "version: this program reads version 1 of plan files");
}

static void read_figures(Reader *reader, json_t *root, Plan *plan) {
  plan->peak = read_bytes(reader, root, "peak", true);
  plan->budget = read_bytes(reader, root, "budget", false);
  plan->cost = read_number(reader, root, "cost");
  plan->base_cost = read_number(reader, root, "base_cost");
  plan->lower_bound = read_number(reader, root, "lower_bound");
  const char *scope = json_string_value(json_object_get(root, "bound_scope"));
  const char *status = json_string_value(json_object_get(root, "status"));
  const char *stopped = json_string_value(json_object_get(root, "stopped_by"));
  const char *strategy = json_string_value(json_object_get(root, "strategy"));
  plan->scope = scope && string_equal(scope, "any") ? PLAN_SCOPE_ANY : PLAN_SCOPE_ORDER;
  if (!status || (!string_equal(status, "optimal") && !string_equal(status, "feasible")))
    fault(reader, "status: expected \"optimal\" or \"feasible\", found \"%s\"", status ? status : "nothing");
  else
    plan->status = string_equal(status, "optimal") ? PLAN_STATUS_OPTIMAL : PLAN_STATUS_FEASIBLE;
  plan->stopped_by = stopped ? memory_string(reader->arena, stopped) : NULL;
  plan->strategy = strategy ? memory_string(reader->arena, strategy) : NULL;
  json_t *anatomy = json_object_get(root, "anatomy");
  for (int i = 0; i < PLAN_ROLE_COUNT; i++)
    plan->anatomy[i] = json_integer_value(json_object_get(anatomy, plan_role_name((PlanRole)i)));
}

Plan *plan_from_json(MemoryArena *arena, const PlanGraph *graph, json_t *root, const char **error) {
  Reader reader = {.arena = arena, .graph = graph};
  Plan *plan = NEW(arena, Plan);
  json_t *schedule = json_object_get(root, "schedule");
  if (!json_is_object(root)) fault(&reader, "expected an object with a schedule");
  check_format(&reader, root);
  if (!json_is_array(schedule)) fault(&reader, "schedule: expected an array of steps");
  read_figures(&reader, root, plan);
  for (size_t i = 0; i < json_array_size(schedule); i++) read_step(&reader, i, json_array_get(schedule, i), plan);
  *error = reader.error;
  return reader.error ? NULL : plan;
}

Plan *plan_parse(MemoryArena *arena, const PlanGraph *graph, const char *text, int64_t length, const char **error) {
  json_error_t fault_at;
  json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &fault_at);
  if (!root) {
    *error = memory_format(arena, "line %d, column %d: not JSON: %s", fault_at.line, fault_at.column, fault_at.text);
    return NULL;
  }
  Plan *plan = plan_from_json(arena, graph, root, error);
  json_decref(root);
  return plan;
}

Plan *plan_read(MemoryArena *arena, const PlanGraph *graph, const char *path) {
  int64_t length = 0;
  const char *error = NULL;
  const char *text = file_read(arena, path, &length, &error);
  Plan *plan = text ? plan_parse(arena, graph, text, length, &error) : NULL;
  if (!text)
    diag_error((Location){0}, "%s", error);
  else if (!plan)
    diag_error((Location){0}, "%s: not a plan for this graph: %s", path, error);
  return plan;
}
