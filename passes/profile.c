/* passes/profile.c - signatures of kernels and the file of their measured times. */
#include "passes/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* ---- signatures ---- */

static void put_type(FILE *text, const Graph *graph, const StorageTable *table, ValueId value) {
  if (value == NO_VALUE) {
    fputs(" none", text);
    return;
  }
  const Type *type = value_type(graph, value);
  const ViewLayout *view = &table->layouts[value].view;
  fprintf(text, " %s[", dtype_name(type->dtype));
  for (int i = 0; i < type->rank; i++) fprintf(text, "%s%lld", i ? ", " : "", (long long)type->dims[i]);
  fputs("]{", text);
  for (int i = 0; i < type->rank; i++) fprintf(text, "%s%lld", i ? ", " : "", (long long)view->strides[i]);
  fputc('}', text);
}

static void put_attributes(FILE *text, Op op, const Attribute *attributes) {
  for (int i = 0; i < op_info(op)->attribute_count; i++) {
    const Attribute *attribute = &attributes[i];
    fprintf(text, " %s=%lld,%.17g", op_info(op)->attributes[i].name, (long long)attribute->integer, attribute->number);
    for (int k = 0; k < attribute->count; k++)
      fprintf(text, ",%lld,%.17g", (long long)attribute->list[k], attribute->numbers[k]);
  }
}

static void put_body(FILE *text, const Body *body) {
  fputs(" (", text);
  for (int i = 0; i < body->instruction_count; i++) {
    const Instruction *instruction = &body->instructions[i];
    fprintf(text, "%s%s", i ? "; " : "", op_info(instruction->op)->name);
    for (int k = 0; k < instruction->operand_count; k++) fprintf(text, " %d", instruction->operands[k]);
    put_attributes(text, instruction->op, instruction->attributes);
  }
  fputs(")", text);
}

char *node_signature(MemoryArena *arena, const Graph *graph, const StorageTable *table, const Node *node) {
  char *bytes;
  size_t length;
  FILE *text = open_memstream(&bytes, &length);
  if (!text) die_out_of_memory(0);
  fputs(op_info(node->op)->name, text);
  put_attributes(text, node->op, node->attributes);
  if (node->body) put_body(text, node->body);
  for (int i = 0; i < node->input_count; i++) put_type(text, graph, table, node->inputs[i]);
  fputs(" ->", text);
  for (int i = 0; i < node->output_count; i++) put_type(text, graph, table, node->outputs[i]);
  for (int i = 0; i < node->write_count; i++) put_type(text, graph, table, node->writes[i]);
  if (fclose(text) != 0) die_out_of_memory(0);
  char *signature = memory_string_range(arena, bytes, (int64_t)length);
  free(bytes);
  return signature;
}

/* ---- the file ---- */

Profile *profile_create(MemoryArena *arena) {
  Profile *profile = NEW(arena, Profile);
  profile->arena = profile->index.arena = arena;
  return profile;
}

void profile_add(Profile *profile, const char *signature, double microseconds) {
  int64_t *known = string_map_find(&profile->index, signature);
  if (known) {
    double *time = &profile->times.items[*known];
    if (microseconds < *time) *time = microseconds;
    return;
  }
  string_map_set(&profile->index, signature, profile->times.count);
  array_push(profile->arena, &profile->times, microseconds);
}

static Profile *read_kernels(MemoryArena *arena, const char *path, json_t *root) {
  Profile *profile = profile_create(arena);
  const char *format = json_string_value(json_object_get(root, "format")), *signature;
  json_t *kernels = json_object_get(root, "kernels"), *time;
  if (!format || !string_equal(format, "reprise-profile") || !json_is_object(kernels)) {
    diag_error((Location){0}, "%s: expected a profile, {\"format\": \"reprise-profile\", \"kernels\": {...}}", path);
    return NULL;
  }
  json_object_foreach(kernels, signature, time) {
    double value = json_number_value(time);
    if (!json_is_number(time) || !isfinite(value) || value < 0) {
      diag_error((Location){0}, "%s: kernel '%s': expected microseconds, a number of at least 0", path, signature);
      return NULL;
    }
    profile_add(profile, signature, value);
  }
  return profile;
}

Profile *profile_read(MemoryArena *arena, const char *path, const char **io_error) {
  int64_t length;
  json_error_t fault;
  *io_error = NULL;
  char *text = file_read(arena, path, &length, io_error);
  if (!text) return NULL;
  json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &fault);
  if (!root) {
    diag_error((Location){0}, "%s:%d:%d: %s", path, fault.line, fault.column, fault.text);
    return NULL;
  }
  Profile *profile = read_kernels(arena, path, root);
  json_decref(root);
  return profile;
}

char *profile_text(const Profile *profile) {
  json_t *kernels = json_object();
  for (int64_t i = 0; i < profile->index.count; i++)
    json_object_set_new(kernels, profile->index.keys[i], json_real(profile->times.items[profile->index.values[i]]));
  json_t *root = json_pack("{s:s, s:i, s:o}", "format", "reprise-profile", "version", 1, "kernels", kernels);
  char *dumped = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
  if (!dumped) die_out_of_memory(0);
  char *text = memory_format(profile->arena, "%s\n", dumped);
  free(dumped);
  json_decref(root);
  return text;
}

double *profile_costs(const Profile *profile, const Graph *graph, const StorageTable *table, int64_t *missing,
                      MemoryArena *arena) {
  double *costs = NEW_ARRAY(arena, double, graph->nodes.count + 1);
  *missing = 0;
  for (int64_t id = 0; id < graph->nodes.count; id++) {
    const Node *node = graph_node(graph, (NodeId)id);
    if (op_kind(node->op) == KIND_VIEW) continue;
    int64_t *index = string_map_find(&profile->index, node_signature(arena, graph, table, node));
    if (index)
      costs[id] = profile->times.items[*index];
    else
      ++*missing;
  }
  return costs;
}
