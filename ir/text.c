/* ir/text.c - prints a module.
 *
 * One item a line: the module, its inputs and persistents, how it is trained, then each graph: shared values, nodes in
 * order, results. text_parse.c reads it back. A node:
 *
 *   7: backward %12: f32[8, 64] "h" keep = gelu(%3, %4; approximate=tanh) writes %5 random 81 clone 2 in "h.0" at
 * "m.rp:3:9" over [8, 64] { t0: f32 = add($0, $1) t1: f32 = gelu(t0; approximate=tanh) results t1
 *     }
 *
 * "%12" is a value by its id, "-" an input left out, "$1" an input of a body, "t1" an instruction. Attributes that are
 * not given are not printed. Numbers are the shortest decimals that read back to the same bits. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "ir/text_words.h"
#include "runtime/scalar_math.h"

typedef struct Printer {
  MemoryArena *arena;
  ARRAY(char) text;
  const Source *indexed; /* whose line starts are known */
  ARRAY(int32_t) line_starts;
  bool *printed; /* by value id: printed as gone */
} Printer;

static void put(Printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(Printer *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char small[256];
  int length = vsnprintf(small, sizeof small, format, arguments);
  va_end(arguments);
  ASSERT(length >= 0 && length < (int)sizeof small);
  for (int i = 0; i < length; i++) array_push(p->arena, &p->text, small[i]);
}

/* ---- words ---- */

static void put_string(Printer *p, const char *string) {
  array_push(p->arena, &p->text, '"');
  for (; *string; string++) {
    unsigned char c = (unsigned char)*string;
    if (c == '"' || c == '\\')
      put(p, "\\%c", c);
    else if (c < 32 || c == 127)
      put(p, "\\x%02x", c);
    else
      array_push(p->arena, &p->text, *string);
  }
  array_push(p->arena, &p->text, '"');
}

static void put_number(Printer *p, double value) {
  if (isnan(value)) {
    put(p, "nan");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (digits < 17 && strtod(text, NULL) != value) continue;
    put(p, "%s", text);
    return;
  }
}

static void put_integers(Printer *p, int64_t count, const int64_t *values) {
  put(p, "[");
  for (int64_t i = 0; i < count; i++) put(p, "%s%" PRId64, i ? ", " : "", values[i]);
  put(p, "]");
}

static void put_type(Printer *p, const Type *type) {
  put(p, "%s", dtype_name(type->dtype));
  put_integers(p, type->rank, type->dims);
}

static void put_values(Printer *p, int count, const ValueId *values) {
  for (int i = 0; i < count; i++) {
    put(p, i ? ", " : "");
    put(p, values[i] == NO_VALUE ? "-" : "%%%d", values[i]);
  }
}

/* The line starts of the source asked about last: most locations of a module are in one file. */
static void index_lines(Printer *p, const Source *source) {
  if (p->indexed == source) return;
  p->indexed = source;
  p->line_starts.count = 0;
  array_push(p->arena, &p->line_starts, 0);
  for (int64_t i = 0; i < source->length; i++)
    if (source->text[i] == '\n') array_push(p->arena, &p->line_starts, (int32_t)(i + 1));
}

static void put_location(Printer *p, Location location) {
  if (!location.source) return;
  index_lines(p, location.source);
  int64_t low = 0, high = p->line_starts.count;
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    if (p->line_starts.items[middle] <= location.start)
      low = middle;
    else
      high = middle;
  }
  const char *suffix = memory_format(p->arena, "%s:%" PRId64 ":%d", location.source->path, low + 1,
                                     location.start - p->line_starts.items[low] + 1);
  put(p, " at ");
  put_string(p, suffix);
}

/* ---- attributes ---- */

static void put_attribute(Printer *p, const AttributeInfo *info, const Attribute *attribute) {
  put(p, "%s=", info->name);
  switch (info->kind) {
    case ATTRIBUTE_INT:
      put(p, "%" PRId64, attribute->integer);
      break;
    case ATTRIBUTE_FLOAT:
      put_number(p, attribute->number);
      break;
    case ATTRIBUTE_NUMBER:
      put_number(p, attribute->number);
      if (attribute->integer != rp_float_to_integer(attribute->number, INT64_MIN, INT64_MAX))
        put(p, "|%" PRId64, attribute->integer);
      break;
    case ATTRIBUTE_BOOL:
      put(p, attribute->integer ? "true" : "false");
      break;
    case ATTRIBUTE_CHOICE:
      put(p, "%s", info->choices[attribute->integer]);
      break;
    case ATTRIBUTE_DTYPE:
      put(p, "%s", dtype_name((DataType)attribute->integer));
      break;
    case ATTRIBUTE_INTS:
      put_integers(p, attribute->count, attribute->list);
      break;
    case ATTRIBUTE_FLOATS:
      put(p, "[");
      for (int i = 0; i < attribute->count; i++) {
        put(p, i ? ", " : "");
        put_number(p, attribute->numbers[i]);
      }
      put(p, "]");
  }
}

static void put_attributes(Printer *p, Op op, const Attribute *attributes, const char *before) {
  const OpInfo *info = op_info(op);
  for (int i = 0; attributes && i < info->attribute_count; i++) {
    if (!attributes[i].given) continue;
    put(p, "%s", before);
    put_attribute(p, &info->attributes[i], &attributes[i]);
    before = ", ";
  }
}

/* ---- graphs ---- */

/* usual: where the value lies unless said otherwise. */
static void put_value(Printer *p, const Graph *graph, ValueId id, Location usual) {
  const Value *value = graph_value(graph, id);
  put(p, "%%%d: ", id);
  put_type(p, &value->type);
  if (value->name) {
    put(p, " ");
    put_string(p, value->name);
  }
  if (value->constraint) put(p, " %s", text_constraints[value->constraint]);
  if (value->recompute_block) put(p, " block %d", value->recompute_block);
  if (value->location.source == usual.source && value->location.start == usual.start) return;
  if (!value->location.source) put(p, " nowhere");
  put_location(p, value->location);
}

static void put_shared_values(Printer *p, const Graph *graph) {
  for (int64_t id = 0; id < graph->values.count; id++) {
    const Value *value = &graph->values.items[id];
    if (value->kind == VALUE_RESULT) continue;
    put(p, "  %s %d ", value->kind == VALUE_INPUT ? "input" : "persistent", value->index);
    put_value(p, graph, (ValueId)id, (Location){0});
    put(p, "\n");
  }
}

/* Values that passes have dissolved and that results still speak of. */
static void put_gone(Printer *p, const Graph *graph, ValueId id) {
  const Value *value = graph_value(graph, id);
  if (value->kind != VALUE_RESULT || value->producer != NO_NODE || p->printed[id]) return;
  p->printed[id] = true;
  put(p, "  gone ");
  put_value(p, graph, id, (Location){0});
  put(p, "\n");
}

static void put_gone_values(Printer *p, const Graph *graph) {
  p->printed = NEW_ARRAY(p->arena, bool, graph->values.count);
  for (int64_t i = 0; i < graph->gradient_requests.count; i++)
    put_gone(p, graph, graph->gradient_requests.items[i].value);
  for (int64_t i = 0; i < graph->gradients.count; i++) put_gone(p, graph, graph->gradients.items[i].of);
}

static void put_body(Printer *p, const Node *node) {
  const Body *body = node->body;
  put(p, "\n    over ");
  put_integers(p, node->iteration.rank, node->iteration.dims);
  put(p, " {\n");
  for (int i = 0; i < body->instruction_count; i++) {
    const Instruction *instruction = &body->instructions[i];
    put(p, "      t%d: %s = %s(", i, dtype_name(instruction->dtype), op_info(instruction->op)->name);
    for (int k = 0; k < instruction->operand_count; k++) {
      int operand = instruction->operands[k];
      put(p, "%s%c%d", k ? ", " : "", operand >= 0 ? 't' : '$', operand >= 0 ? operand : ~operand);
    }
    put_attributes(p, instruction->op, instruction->attributes, "; ");
    put(p, ")");
    if (instruction->random_id) put(p, " random %" PRIu64, instruction->random_id);
    put(p, "\n");
  }
  put(p, "      results");
  for (int i = 0; i < body->result_count; i++) put(p, "%s t%d", i ? "," : "", body->results[i]);
  put(p, "\n    }");
}

static void put_node(Printer *p, const Graph *graph, NodeId id) {
  const Node *node = graph_node(graph, id);
  put(p, "  %d: %s ", id, text_phases[node->phase]);
  for (int i = 0; i < node->output_count; i++) {
    put(p, i ? ", " : "");
    put_value(p, graph, node->outputs[i], node->location);
  }
  put(p, "%s%s(", node->output_count ? " = " : "", op_info(node->op)->name);
  put_values(p, node->input_count, node->inputs);
  put_attributes(p, node->op, node->attributes, "; ");
  put(p, ")");
  if (node->write_count) {
    put(p, " writes ");
    put_values(p, node->write_count, node->writes);
  }
  if (node->random_id) put(p, " random %" PRIu64, node->random_id);
  if (node->workspace) put(p, " workspace %" PRId64, node->workspace);
  if (node->original != NO_NODE) put(p, " clone %d", node->original);
  if (*node->module) {
    put(p, " in ");
    put_string(p, node->module);
  }
  put_location(p, node->location);
  if (node->body) put_body(p, node);
  put(p, "\n");
}

static void put_output(Printer *p, const char *word, const GraphOutput *output) {
  put(p, "  %s %%%d", word, output->value);
  if (output->name) {
    put(p, " ");
    put_string(p, output->name);
  }
  if (output->denominator != NO_VALUE) put(p, " per %%%d", output->denominator);
  put_location(p, output->location);
  put(p, "\n");
}

static void put_gradient(Printer *p, const GraphGradient *gradient) {
  put(p, "  gradient %%%d of %%%d", gradient->gradient, gradient->of);
  if (gradient->name) {
    put(p, " ");
    put_string(p, gradient->name);
  }
  if (gradient->divisor != NO_VALUE) put(p, " per %%%d", gradient->divisor);
  put(p, "\n");
}

static void put_graph(Printer *p, const Graph *graph) {
  put(p, "\ngraph %s {\n", graph->evaluation ? "evaluation" : "train");
  if (graph->recompute_parents.count) {
    put(p, "  blocks ");
    put_integers(p, graph->recompute_parents.count, graph->recompute_parents.items);
    put(p, "\n");
  }
  for (int64_t i = 0; i < graph->random_ordinals.count; i++) {
    put(p, "  drawn %" PRId64 " in ", graph->random_ordinals.values[i]);
    put_string(p, graph->random_ordinals.keys[i]);
    put(p, "\n");
  }
  put_shared_values(p, graph);
  put_gone_values(p, graph);
  for (int64_t id = 0; id < graph->nodes.count; id++) put_node(p, graph, (NodeId)id);
  if (graph->loss.value != NO_VALUE) put_output(p, "loss", &graph->loss);
  for (int64_t i = 0; i < graph->outputs.count; i++) put_output(p, "output", &graph->outputs.items[i]);
  for (int64_t i = 0; i < graph->gradient_requests.count; i++)
    put_output(p, "request", &graph->gradient_requests.items[i]);
  for (int64_t i = 0; i < graph->gradients.count; i++) put_gradient(p, &graph->gradients.items[i]);
  put(p, "}\n");
}

/* ---- the module ---- */

static void put_settings(Printer *p, const Training *training, const Attribute *settings) {
  put(p, "(");
  put_attributes(p, training->optimizer, settings, "");
  put(p, ")");
}

static void put_persistent(Printer *p, const Training *training, const Persistent *persistent) {
  put(p, "persistent ");
  put_string(p, persistent->name);
  put(p, " ");
  put_type(p, &persistent->type);
  put(p, " %s %s ", text_roles[persistent->role], text_initials[persistent->initial.kind]);
  put_number(p, persistent->initial.value);
  put(p, " mean ");
  put_number(p, persistent->initial.mean);
  if (persistent->trainable) put(p, " trainable");
  if (persistent->optimizer_settings && training->has_optimizer) {
    put(p, " settings ");
    put_settings(p, training, persistent->optimizer_settings);
  }
  put_location(p, persistent->location);
  put(p, "\n");
}

static void put_reader(Printer *p, const char *word, const Reader *reader) {
  put(p, "  %s %s", word, text_readers[reader->kind]);
  if (reader->path) {
    put(p, " ");
    put_string(p, reader->path);
  }
  put(p, " inputs ");
  put_integers(p, reader->inputs.count, reader->inputs.items);
  put(p, " records %" PRId64 " %" PRId64 " value ", reader->first, reader->last);
  put_number(p, reader->value);
  if (reader->header) put(p, " header");
  put(p, " vocabulary %" PRId64, reader->vocabulary);
  put_location(p, reader->location);
  put(p, "\n");
}

static void put_training(Printer *p, const Training *training) {
  put(p, "\ntraining %s {\n", training->present ? "present" : "absent");
  if (training->has_optimizer) {
    put(p, "  optimizer %s", op_info(training->optimizer)->name);
    put_settings(p, training, training->optimizer_settings);
    put(p, "\n");
  }
  for (int64_t i = 0; i < training->readers.count; i++) put_reader(p, "reader", &training->readers.items[i]);
  for (int64_t i = 0; i < training->test_readers.count; i++) put_reader(p, "test", &training->test_readers.items[i]);
  put(p, "  schedule %s warmup %" PRId64 " steps %" PRId64 " every %" PRId64 " final ",
      text_schedules[training->schedule], training->warmup, training->schedule_steps, training->every);
  put_number(p, training->final);
  put(p, " factor ");
  put_number(p, training->factor);
  put(p, "\n  clip ");
  put_number(p, training->clip);
  put(p, " accumulate %" PRId64 " steps %" PRId64 " epochs %" PRId64 " seed %" PRIu64 "%s\n}\n", training->accumulate,
      training->steps, training->epochs, training->seed, training->shuffle ? " shuffle" : "");
}

char *module_print(MemoryArena *arena, const Module *module) {
  Printer p = {.arena = arena};
  put(&p, "module ");
  put_string(&p, module->name);
  put(&p, " from ");
  put_string(&p, module->path);
  put(&p, "\n");
  put_training(&p, &module->training);
  put(&p, "\n");
  for (int64_t i = 0; i < module->inputs.count; i++) {
    const ModelInput *input = &module->inputs.items[i];
    put(&p, "input ");
    put_string(&p, input->name);
    put(&p, " ");
    put_type(&p, &input->type);
    put_location(&p, input->location);
    put(&p, "\n");
  }
  for (int64_t i = 0; i < module->persistents.count; i++)
    put_persistent(&p, &module->training, &module->persistents.items[i]);
  if (module->train) put_graph(&p, module->train);
  if (module->evaluation) put_graph(&p, module->evaluation);
  array_push(arena, &p.text, '\0');
  return p.text.items;
}
