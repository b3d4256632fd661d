/* ir/text_parse.c - reads the text form of ir/text.c back into a module.
 *
 * Checks what it needs to build a module in which every id means something; whether the graphs make sense is
 * graph_verify's business. */
#include "ir/text_reader.h"
#include "ir/text_words.h"
#include "runtime/scalar_math.h"

/* The graph being read. Ids of values may have gaps: declared says which exist. */
typedef struct GraphText {
  Graph *graph;
  ARRAY(bool) declared;
} GraphText;

enum { MOST_INSTRUCTIONS = 1 << 24, MOST_READER_INPUTS = 64 };

static Type read_type(TextReader *r) {
  Type type = {0};
  int64_t start = text_position(r);
  if (!dtype_from_name(text_word(r), &type.dtype)) {
    if (!r->failed) r->at = start;
    text_fail(r, "expected a type such as f32[2, 3]");
  }
  type.rank = text_integers(r, MAX_RANK, type.dims);
  for (int i = 0; i < type.rank; i++)
    if (type.dims[i] < 1) text_fail(r, "a dimension must be at least 1");
  if (!r->failed && !type_check_size(&type)) text_fail(r, "the type has more bytes than a 64-bit size can count");
  return r->failed ? type_scalar(F32) : type;
}

/* ---- attributes ---- */

static Attribute read_attribute(TextReader *r, const AttributeInfo *info) {
  static const char *const booleans[] = {"false", "true", NULL};
  Attribute attribute = {.kind = info->kind, .given = true};
  DataType dtype = F32;
  switch (info->kind) {
    case ATTRIBUTE_INT:
      attribute.integer = text_integer(r, INT64_MIN, INT64_MAX);
      break;
    case ATTRIBUTE_FLOAT:
      attribute.number = text_number(r);
      break;
    case ATTRIBUTE_NUMBER:
      attribute.number = text_number(r);
      attribute.integer = rp_float_to_integer(attribute.number, INT64_MIN, INT64_MAX);
      if (text_accept(r, "|")) attribute.integer = text_integer(r, INT64_MIN, INT64_MAX);
      break;
    case ATTRIBUTE_BOOL:
      attribute.integer = text_choice(r, booleans, "true or false");
      break;
    case ATTRIBUTE_CHOICE:
      attribute.integer = text_choice(r, info->choices, "a choice of this attribute");
      break;
    case ATTRIBUTE_DTYPE:
      if (!dtype_from_name(text_word(r), &dtype)) text_fail(r, "expected a data type such as f32");
      attribute.integer = dtype;
      break;
    case ATTRIBUTE_INTS:
      attribute.count = text_integers(r, MAX_RANK, attribute.list);
      break;
    case ATTRIBUTE_FLOATS:
      attribute.count = text_numbers(r, MAX_RANK, attribute.numbers);
      break;
  }
  return attribute;
}

/* name=value, … up to and with ")" */
static Attribute *read_attributes(TextReader *r, Op op) {
  const OpInfo *info = op_info(op);
  Attribute *attributes = NEW_ARRAY(r->arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) attributes[i] = attribute_none(info->attributes[i].kind);
  if (text_accept(r, ")")) return attributes;
  do {
    const char *name = text_word(r);
    int index = r->failed ? -1 : op_attribute_index(op, name);
    if (index < 0) text_fail(r, "'%s' has no attribute '%s'", info->name, name);
    text_expect(r, "=");
    if (r->failed) return attributes;
    if (attributes[index].given) text_fail(r, "attribute '%s' is given twice", name);
    attributes[index] = read_attribute(r, &info->attributes[index]);
  } while (text_accept(r, ","));
  text_expect(r, ")");
  return attributes;
}

static Op read_op(TextReader *r, bool (*allowed)(OpKind kind), const char *what) {
  int64_t start = text_position(r);
  const char *name = text_word(r);
  Op op = op_find(name);
  if (op != OP_NONE && allowed(op_kind(op))) return op;
  if (!r->failed) r->at = start;
  text_fail(r, "expected %s, found '%s'", what, name);
  return OP_NONE;
}

static bool in_graphs(OpKind kind) { return kind != KIND_COMPOSITE && kind != KIND_OPTIMIZER; }
static bool in_bodies(OpKind kind) { return kind == KIND_POINTWISE; }
static bool in_training(OpKind kind) { return kind == KIND_OPTIMIZER; }

/* ---- values ---- */

static bool is_declared(const GraphText *g, int64_t id) { return id < g->declared.count && g->declared.items[id]; }

/* No more ids than bytes of text, so that a short text cannot ask for much memory. */
static ValueId read_id(TextReader *r) {
  if (!text_take(r, '%')) text_fail(r, "expected a value such as %%0");
  return (ValueId)text_integer(r, 0, r->source->length < INT32_MAX ? r->source->length : INT32_MAX);
}

static ValueId read_known(TextReader *r, const GraphText *g) {
  ValueId id = read_id(r);
  if (!r->failed && !is_declared(g, id)) text_fail(r, "value %%%d is not declared before", id);
  return r->failed ? NO_VALUE : id;
}

/* Declares a value: "%1: f32[2] "name" keep block 1 at …". placed: it says where it is, or "nowhere". */
static ValueId read_value(TextReader *r, GraphText *g, ValueKind kind, int index, bool *placed) {
  ValueId id = read_id(r);
  Value value = {.kind = kind, .index = index, .producer = NO_NODE};
  text_expect(r, ":");
  value.type = read_type(r);
  if (text_at_character(r, '"')) value.name = text_string(r);
  for (int i = CONSTRAINT_KEEP; i <= CONSTRAINT_RECOMPUTE; i++)
    if (text_accept(r, text_constraints[i])) value.constraint = (Constraint)i;
  if (text_accept(r, "block")) value.recompute_block = (int32_t)text_integer(r, 1, g->graph->recompute_block_count);
  *placed = text_accept(r, "nowhere") || text_at_word(r, "at");
  value.location = text_location(r);
  if (!r->failed && is_declared(g, id)) text_fail(r, "value %%%d is declared twice", id);
  if (r->failed) return NO_VALUE;
  Value unused = {.kind = VALUE_RESULT, .producer = NO_NODE, .type = type_scalar(F32)};
  while (g->declared.count <= id) {
    array_push(r->arena, &g->declared, false);
    array_push(r->arena, &g->graph->values, unused);
  }
  g->declared.items[id] = true;
  g->graph->values.items[id] = value;
  return id;
}

static void read_shared(TextReader *r, GraphText *g, ValueKind kind, int64_t count, ValueIds *ids) {
  bool placed;
  int index = (int)text_integer(r, 0, count - 1);
  ValueId id = read_value(r, g, kind, index, &placed);
  if (r->failed) return;
  while (ids->count <= index) array_push(r->arena, ids, 0);
  if (ids->items[index]) text_fail(r, "there is a value for it already");
  ids->items[index] = id + 1;
}

static void read_known_list(TextReader *r, const GraphText *g, ValueIds *ids) {
  do {
    ValueId id = text_accept(r, "-") ? NO_VALUE : read_known(r, g);
    array_push(r->arena, ids, id);
  } while (text_accept(r, ","));
}

/* ---- nodes ---- */

/* What follows the operands of a call: "; name=value, …)" or ")". */
static Attribute *read_call_end(TextReader *r, Op op) {
  if (text_accept(r, ";")) return read_attributes(r, op);
  text_expect(r, ")");
  Attribute *attributes = NEW_ARRAY(r->arena, Attribute, op_info(op)->attribute_count);
  for (int i = 0; i < op_info(op)->attribute_count; i++)
    attributes[i] = attribute_none(op_info(op)->attributes[i].kind);
  return attributes;
}

static bool at_call_end(TextReader *r) { return text_at_character(r, ')') || text_at_character(r, ';'); }

static int read_operand(TextReader *r, const Node *node, int64_t instructions) {
  if (text_take(r, '$')) return ~(int)text_integer(r, 0, node->input_count - 1);
  if (!text_take(r, 't')) text_fail(r, "expected an operand such as $0 or t0");
  return (int)text_integer(r, 0, instructions - 1);
}

/* "t0: f32 = add($0, $1) random 7", the t taken */
static Instruction read_instruction(TextReader *r, const Node *node, int64_t index) {
  Instruction instruction = {0};
  if (text_integer(r, 0, MOST_INSTRUCTIONS) != index) text_fail(r, "expected instruction t%lld", (long long)index);
  text_expect(r, ":");
  if (!dtype_from_name(text_word(r), &instruction.dtype)) text_fail(r, "expected a data type such as f32");
  text_expect(r, "=");
  instruction.op = read_op(r, in_bodies, "a pointwise operator");
  text_expect(r, "(");
  while (!r->failed && !at_call_end(r)) {
    if (instruction.operand_count) text_expect(r, ",");
    if (instruction.operand_count == MAX_POINTWISE_INPUTS) text_fail(r, "too many operands");
    if (!r->failed) instruction.operands[instruction.operand_count++] = read_operand(r, node, index);
  }
  instruction.attributes = read_call_end(r, instruction.op);
  if (text_accept(r, "random")) instruction.random_id = text_unsigned(r);
  return instruction;
}

/* "over [2, 3] { t0: … results t0, t1 }" */
static void read_body(TextReader *r, Node *node) {
  ARRAY(Instruction) instructions = {0};
  ARRAY(int) results = {0};
  node->iteration.rank = text_integers(r, MAX_RANK, node->iteration.dims);
  text_expect(r, "{");
  while (!r->failed && text_take(r, 't')) {
    Instruction instruction = read_instruction(r, node, instructions.count);
    array_push(r->arena, &instructions, instruction);
  }
  text_expect(r, "results");
  do {
    if (!text_take(r, 't')) text_fail(r, "expected a result such as t0");
    int result = (int)text_integer(r, 0, instructions.count - 1);
    array_push(r->arena, &results, result);
  } while (text_accept(r, ","));
  text_expect(r, "}");
  node->body = NEW(r->arena, Body);
  *node->body = (Body){(int)instructions.count, (int)results.count, instructions.items, results.items};
}

/* unplaced: those that lie where the node does. */
static void read_outputs(TextReader *r, GraphText *g, Node *node, ValueIds *unplaced) {
  ValueIds outputs = {0};
  if (!text_at_character(r, '%')) return;
  do {
    bool placed;
    ValueId id = read_value(r, g, VALUE_RESULT, 0, &placed);
    array_push(r->arena, &outputs, id);
    if (!placed && !r->failed) array_push(r->arena, unplaced, id);
  } while (text_accept(r, ","));
  text_expect(r, "=");
  node->outputs = outputs.items;
  node->output_count = (int)outputs.count;
}

static void read_node(TextReader *r, GraphText *g) {
  Node node = {.original = NO_NODE, .module = ""};
  ValueIds inputs = {0}, writes = {0}, unplaced = {0};
  if (text_integer(r, 0, INT32_MAX) != g->graph->nodes.count)
    text_fail(r, "expected node %lld", (long long)g->graph->nodes.count);
  text_expect(r, ":");
  node.phase = (Phase)text_choice(r, text_phases, "forward, backward or update");
  read_outputs(r, g, &node, &unplaced);
  node.op = read_op(r, in_graphs, "an operator");
  text_expect(r, "(");
  if (!at_call_end(r)) read_known_list(r, g, &inputs);
  node.attributes = read_call_end(r, node.op);
  if (text_accept(r, "writes")) read_known_list(r, g, &writes);
  if (text_accept(r, "random")) node.random_id = text_unsigned(r);
  if (text_accept(r, "workspace")) node.workspace = text_integer(r, 1, INT64_MAX);
  if (text_accept(r, "clone")) node.original = (NodeId)text_integer(r, 0, INT32_MAX);
  if (text_accept(r, "in")) node.module = text_string(r);
  node.location = text_location(r);
  for (int64_t i = 0; i < unplaced.count; i++) graph_value(g->graph, unplaced.items[i])->location = node.location;
  node.inputs = inputs.items;
  node.input_count = (int)inputs.count;
  node.writes = writes.items;
  node.write_count = (int)writes.count;
  if (text_accept(r, "over")) read_body(r, &node);
  if (!r->failed) graph_append(g->graph, node);
}

/* ---- graphs ---- */

static GraphOutput read_output(TextReader *r, const GraphText *g) {
  GraphOutput output = {.value = read_known(r, g), .denominator = NO_VALUE};
  if (text_at_character(r, '"')) output.name = text_string(r);
  if (text_accept(r, "per")) output.denominator = read_known(r, g);
  output.location = text_location(r);
  return output;
}

static GraphGradient read_gradient(TextReader *r, const GraphText *g) {
  GraphGradient gradient = {.gradient = read_known(r, g), .divisor = NO_VALUE};
  text_expect(r, "of");
  gradient.of = read_known(r, g);
  if (text_at_character(r, '"')) gradient.name = text_string(r);
  if (text_accept(r, "per")) gradient.divisor = read_known(r, g);
  return gradient;
}

static void read_blocks(TextReader *r, Graph *graph) {
  text_expect(r, "[");
  do {
    int64_t parent = text_integer(r, 0, graph->recompute_parents.count);
    array_push(r->arena, &graph->recompute_parents, parent);
  } while (text_accept(r, ","));
  text_expect(r, "]");
  graph->recompute_block_count = (int32_t)graph->recompute_parents.count;
}

static void read_drawn(TextReader *r, Graph *graph) {
  int64_t count = text_integer(r, 0, INT64_MAX);
  text_expect(r, "in");
  string_map_set(&graph->random_ordinals, text_string(r), count);
}

static void read_graph_item(TextReader *r, GraphText *g) {
  Graph *graph = g->graph;
  const Module *module = graph->module;
  bool placed;
  if (text_at_digit(r))
    read_node(r, g);
  else if (text_accept(r, "blocks"))
    read_blocks(r, graph);
  else if (text_accept(r, "drawn"))
    read_drawn(r, graph);
  else if (text_accept(r, "input"))
    read_shared(r, g, VALUE_INPUT, module->inputs.count, &graph->input_values);
  else if (text_accept(r, "persistent"))
    read_shared(r, g, VALUE_PERSISTENT, module->persistents.count, &graph->persistent_values);
  else if (text_accept(r, "gone"))
    read_value(r, g, VALUE_RESULT, 0, &placed);
  else if (text_accept(r, "loss"))
    graph->loss = read_output(r, g);
  else if (text_accept(r, "output"))
    array_push(r->arena, &graph->outputs, read_output(r, g));
  else if (text_accept(r, "request"))
    array_push(r->arena, &graph->gradient_requests, read_output(r, g));
  else if (text_accept(r, "gradient"))
    array_push(r->arena, &graph->gradients, read_gradient(r, g));
  else
    text_fail(r, "expected a node or an item of a graph");
}

static void read_graph(TextReader *r, Module *module) {
  static const char *const kinds[] = {"train", "evaluation", NULL};
  bool evaluation = text_choice(r, kinds, "train or evaluation");
  Graph **place = evaluation ? &module->evaluation : &module->train;
  if (*place) text_fail(r, "there is a graph of this kind already");
  GraphText g = {.graph = graph_create(module, evaluation)};
  text_expect(r, "{");
  while (!r->failed && !text_accept(r, "}")) read_graph_item(r, &g);
  *place = g.graph;
}

/* ---- the module ---- */

static Reader read_reader(TextReader *r) {
  Reader reader = {.kind = (ReaderKind)text_choice(r, text_readers, "a kind of reader")};
  int64_t inputs[MOST_READER_INPUTS];
  if (text_at_character(r, '"')) reader.path = text_string(r);
  text_expect(r, "inputs");
  int count = text_integers(r, MOST_READER_INPUTS, inputs);
  for (int i = 0; i < count; i++) array_push(r->arena, &reader.inputs, inputs[i]);
  text_expect(r, "records");
  reader.first = text_integer(r, INT64_MIN, INT64_MAX);
  reader.last = text_integer(r, INT64_MIN, INT64_MAX);
  text_expect(r, "value");
  reader.value = text_number(r);
  reader.header = text_accept(r, "header");
  text_expect(r, "vocabulary");
  reader.vocabulary = text_integer(r, INT64_MIN, INT64_MAX);
  reader.location = text_location(r);
  return reader;
}

static int64_t read_named_integer(TextReader *r, const char *name) {
  text_expect(r, name);
  return text_integer(r, INT64_MIN, INT64_MAX);
}

static double read_named_number(TextReader *r, const char *name) {
  text_expect(r, name);
  return text_number(r);
}

static Attribute *read_settings(TextReader *r, Op optimizer) {
  text_expect(r, "(");
  return read_attributes(r, optimizer);
}

static void read_training(TextReader *r, Training *training) {
  static const char *const presence[] = {"absent", "present", NULL};
  training->present = text_choice(r, presence, "absent or present");
  text_expect(r, "{");
  training->has_optimizer = text_accept(r, "optimizer");
  if (training->has_optimizer) {
    training->optimizer = read_op(r, in_training, "an optimizer");
    training->optimizer_settings = read_settings(r, training->optimizer);
  }
  while (text_accept(r, "reader")) array_push(r->arena, &training->readers, read_reader(r));
  while (text_accept(r, "test")) array_push(r->arena, &training->test_readers, read_reader(r));
  text_expect(r, "schedule");
  training->schedule = (ScheduleKind)text_choice(r, text_schedules, "a kind of schedule");
  training->warmup = read_named_integer(r, "warmup");
  training->schedule_steps = read_named_integer(r, "steps");
  training->every = read_named_integer(r, "every");
  training->final = read_named_number(r, "final");
  training->factor = read_named_number(r, "factor");
  training->clip = read_named_number(r, "clip");
  training->accumulate = read_named_integer(r, "accumulate");
  training->steps = read_named_integer(r, "steps");
  training->epochs = read_named_integer(r, "epochs");
  text_expect(r, "seed");
  training->seed = text_unsigned(r);
  training->shuffle = text_accept(r, "shuffle");
  text_expect(r, "}");
}

static ModelInput read_input(TextReader *r) {
  ModelInput input = {.name = text_string(r), .type = read_type(r)};
  input.location = text_location(r);
  return input;
}

static Persistent read_persistent(TextReader *r, const Training *training) {
  Persistent persistent = {.name = text_string(r)};
  persistent.type = read_type(r);
  persistent.role = (PersistentRole)text_choice(r, text_roles, "a role");
  persistent.initial.kind = (InitialKind)text_choice(r, text_initials, "a kind of initial value");
  persistent.initial.value = text_number(r);
  persistent.initial.mean = read_named_number(r, "mean");
  persistent.trainable = text_accept(r, "trainable");
  if (text_accept(r, "settings")) {
    if (!training->has_optimizer) text_fail(r, "settings without an optimizer");
    persistent.optimizer_settings = read_settings(r, training->optimizer);
  }
  persistent.location = text_location(r);
  return persistent;
}

static void read_module_item(TextReader *r, Module *module) {
  if (text_accept(r, "training"))
    read_training(r, &module->training);
  else if (text_accept(r, "input"))
    module_add_input(module, read_input(r));
  else if (text_accept(r, "persistent"))
    module_add_persistent(module, read_persistent(r, &module->training));
  else if (text_accept(r, "graph"))
    read_graph(r, module);
  else
    text_fail(r, "expected training, input, persistent or graph");
}

/* ---- places ---- */

static void resolve_outputs(const TextReader *r, GraphOutput *outputs, int64_t count) {
  for (int64_t i = 0; i < count; i++) text_resolve(r, &outputs[i].location);
}

static void resolve_graph(const TextReader *r, Graph *graph) {
  for (int64_t i = 0; i < graph->values.count; i++) text_resolve(r, &graph->values.items[i].location);
  for (int64_t i = 0; i < graph->nodes.count; i++) text_resolve(r, &graph->nodes.items[i].location);
  resolve_outputs(r, &graph->loss, 1);
  resolve_outputs(r, graph->outputs.items, graph->outputs.count);
  resolve_outputs(r, graph->gradient_requests.items, graph->gradient_requests.count);
}

static void resolve_readers(const TextReader *r, Reader *readers, int64_t count) {
  for (int64_t i = 0; i < count; i++) text_resolve(r, &readers[i].location);
}

static void resolve_module(const TextReader *r, Module *module) {
  for (int64_t i = 0; i < module->inputs.count; i++) text_resolve(r, &module->inputs.items[i].location);
  for (int64_t i = 0; i < module->persistents.count; i++) text_resolve(r, &module->persistents.items[i].location);
  resolve_readers(r, module->training.readers.items, module->training.readers.count);
  resolve_readers(r, module->training.test_readers.items, module->training.test_readers.count);
  if (module->train) resolve_graph(r, module->train);
  if (module->evaluation) resolve_graph(r, module->evaluation);
}

Module *module_parse(MemoryArena *arena, const Source *source) {
  TextReader reader = {.arena = arena, .source = source}, *r = &reader;
  text_expect(r, "module");
  const char *name = text_string(r);
  text_expect(r, "from");
  Module *module = module_create(arena, name, text_string(r));
  while (!text_at_end(r)) read_module_item(r, module);
  text_make_files(r);
  if (r->failed) return NULL;
  resolve_module(r, module);
  return module;
}
