/* ir/verify.c - what must hold of every graph between passes.
 *
 * The first fault ends the check. Messages name the node, its operator, module path and place in the source. Each check
 * relies on those before it: ids, then definitions, then arity and attributes, then types, then effects and clones. */
#include <stdlib.h>

#include "ir/ir.h"

typedef struct Verifier {
  MemoryArena *arena;
  Graph *graph;    /* not changed; row functions take it so */
  bool *defined;   /* by value id: read from here on */
  ValueId *root;   /* by value id: what it is a view of, or itself */
  NodeId *writers; /* by persistent of the module, for each of the two programs: who has written it, or NO_NODE */
  const char *fault;
} Verifier;

/* ---- messages; every check returns false after setting one ---- */

static bool fault(Verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fault(Verifier *v, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  v->fault = memory_format_list(v->arena, format, arguments);
  va_end(arguments);
  return false;
}

static bool node_fault(Verifier *v, const Node *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool node_fault(Verifier *v, const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = memory_format_list(v->arena, format, arguments), *place = location_text(v->arena, node->location);
  va_end(arguments);
  bool named = node->op > OP_NONE && node->op < OP_COUNT;
  return fault(v, "node %lld (%s%s%s%s%s): %s", (long long)(node - v->graph->nodes.items),
               named ? op_info(node->op)->name : "?", node->module && *node->module ? " in " : "",
               node->module ? node->module : "", *place ? " at " : "", place, text);
}

static const char *last_diagnostic(void) {
  const char *message = "";
  for (int64_t i = 0; diag_get(i); i++) message = diag_get(i)->message;
  return message;
}

static const char *type_words(Verifier *v, const Type *type) { return type_text(v->arena, type); }

/* ---- values ---- */

static bool known_value(const Verifier *v, ValueId id) { return id >= 0 && id < v->graph->values.count; }

static bool check_type(Verifier *v, int64_t id, const Type *type) {
  if (type->dtype >= DATA_TYPE_COUNT || type->rank < 0 || type->rank > MAX_RANK)
    return fault(v, "value %lld has no valid type", (long long)id);
  for (int i = 0; i < type->rank; i++)
    if (type->dims[i] < 1)
      return fault(v, "value %lld has a dimension of %lld", (long long)id, (long long)type->dims[i]);
  return type_check_size(type) || fault(v, "value %lld has more bytes than int64 counts", (long long)id);
}

static bool check_value(Verifier *v, int64_t id) {
  const Value *value = &v->graph->values.items[id];
  const Module *module = v->graph->module;
  const Type *declared = NULL;
  if (!check_type(v, id, &value->type)) return false;
  v->root[id] = (ValueId)id;
  if (value->kind == VALUE_RESULT) return true;
  if (value->kind == VALUE_INPUT && value->index >= 0 && value->index < module->inputs.count)
    declared = &module->inputs.items[value->index].type;
  if (value->kind == VALUE_PERSISTENT && value->index >= 0 && value->index < module->persistents.count)
    declared = &module->persistents.items[value->index].type;
  if (!declared) return fault(v, "value %lld names no input or persistent of the module", (long long)id);
  v->defined[id] = true;
  return type_equal(declared, &value->type) ||
         fault(v, "value %lld is %s, its input or persistent is %s", (long long)id, type_words(v, &value->type),
               type_words(v, declared));
}

/* ---- structure of a node ---- */

static bool check_operator(Verifier *v, const Node *node) {
  if (node->op <= OP_NONE || node->op >= OP_COUNT) return node_fault(v, node, "no such operator");
  const OpInfo *info = op_info(node->op);
  if (info->kind == KIND_COMPOSITE || info->kind == KIND_OPTIMIZER)
    return node_fault(v, node, "expands when it is built and cannot stand in a graph");
  if (node->body && info->kind != KIND_POINTWISE && info->kind != KIND_REDUCTION)
    return node_fault(v, node, "only pointwise nodes and reductions have a body");
  if (!node->module) return node_fault(v, node, "no module path");
  return node->phase <= PHASE_UPDATE || node_fault(v, node, "no such phase");
}

static bool check_counts(Verifier *v, const Node *node) {
  const OpInfo *info = op_info(node->op);
  if (node->input_count < 0 || node->output_count < 0 || node->write_count < 0)
    return node_fault(v, node, "a negative count");
  if (node->body) {
    int results = info->kind == KIND_REDUCTION ? 1 : node->body->result_count;
    if (node->body->result_count != results || node->output_count + node->write_count != results || !results)
      return node_fault(v, node, "%d results for %d outputs and %d writes", node->body->result_count,
                        node->output_count, node->write_count);
    return info->kind == KIND_POINTWISE || !node->write_count || node_fault(v, node, "a reduction writes nothing");
  }
  bool variadic = info->input_count && info->inputs[info->input_count - 1].variadic,
       effect = info->properties & OP_EFFECT;
  if (variadic ? node->input_count < info->input_count : node->input_count != info->input_count)
    return node_fault(v, node, "takes %d inputs, has %d", info->input_count, node->input_count);
  if (node->output_count != (effect ? 0 : info->output_count) || node->write_count != (effect ? 1 : 0))
    return node_fault(v, node, "makes %d outputs, has %d and %d writes", info->output_count, node->output_count,
                      node->write_count);
  return true;
}

static bool check_inputs(Verifier *v, const Node *node) {
  const OpInfo *info = op_info(node->op);
  for (int i = 0; i < node->input_count; i++) {
    ValueId id = node->inputs[i];
    if (id == NO_VALUE) {
      if (node->body || i >= info->input_count || !info->inputs[i].optional)
        return node_fault(v, node, "input %d is missing", i);
      continue;
    }
    if (!known_value(v, id)) return node_fault(v, node, "input %d is value %d, which does not exist", i, id);
    if (!v->defined[id]) return node_fault(v, node, "input %d is value %d, which nothing has made yet", i, id);
    const Value *value = graph_value(v->graph, id);
    if (value->kind != VALUE_RESULT || node->original != NO_NODE) continue;
    if (graph_node(v->graph, value->producer)->phase > node->phase)
      return node_fault(v, node, "input %d is made in a later phase, by node %d", i, value->producer);
  }
  return true;
}

static bool check_outputs(Verifier *v, const Node *node, NodeId id) {
  for (int i = 0; i < node->output_count; i++) {
    ValueId output = node->outputs[i];
    if (!known_value(v, output)) return node_fault(v, node, "output %d is value %d, which does not exist", i, output);
    const Value *value = graph_value(v->graph, output);
    if (value->kind != VALUE_RESULT) return node_fault(v, node, "output %d is an input or a persistent", i);
    if (v->defined[output]) return node_fault(v, node, "output %d, value %d, is made twice", i, output);
    if (value->producer != id || value->output != i)
      return node_fault(v, node, "value %d records output %d of node %d as its origin", output, value->output,
                        value->producer);
  }
  return true;
}

static bool check_attribute(Verifier *v, const Node *node, const AttributeInfo *info, const Attribute *attribute) {
  if (attribute->kind != info->kind) return node_fault(v, node, "attribute '%s' is of another kind", info->name);
  if (!attribute->given) return !info->required || node_fault(v, node, "attribute '%s' is missing", info->name);
  if (attribute->count < 0 || attribute->count > MAX_RANK)
    return node_fault(v, node, "attribute '%s' is too long", info->name);
  if (info->kind == ATTRIBUTE_DTYPE && (attribute->integer < 0 || attribute->integer >= DATA_TYPE_COUNT))
    return node_fault(v, node, "attribute '%s' is no data type", info->name);
  if (info->kind != ATTRIBUTE_CHOICE) return true;
  for (int64_t i = 0; info->choices[i]; i++)
    if (i == attribute->integer) return true;
  return node_fault(v, node, "attribute '%s' is none of its choices", info->name);
}

static bool check_attributes(Verifier *v, const Node *node, Op op, const Attribute *attributes) {
  const OpInfo *info = op_info(op);
  if (info->attribute_count && !attributes) return node_fault(v, node, "%s has no attributes", info->name);
  for (int i = 0; i < info->attribute_count; i++)
    if (!check_attribute(v, node, &info->attributes[i], &attributes[i])) return false;
  return true;
}

/* Reductions name their axes, ascending, within the iteration shape. */
static bool check_axes(Verifier *v, const Node *node, int rank) {
  const Attribute *axes = node_attribute(node, "axis");
  if (!axes->given) return node_fault(v, node, "the axes are not spelled out");
  for (int i = 0; i < axes->count; i++)
    if (axes->list[i] < (i ? axes->list[i - 1] + 1 : 0) || axes->list[i] >= rank)
      return node_fault(v, node, "axes are not ascending axes of a tensor of rank %d", rank);
  return true;
}

/* ---- types ---- */

/* What the table says a node makes of its inputs, against its outputs. */
static bool check_inferred(Verifier *v, const Node *node, Graph *graph, const Node *asked) {
  Type types[MAX_OP_OUTPUTS];
  if (!op_info(asked->op)->infer(graph, asked, types))
    return node_fault(v, node, "types do not fit: %s", last_diagnostic());
  for (int i = 0; i < node->output_count; i++) {
    const Type *type = value_type(v->graph, node->outputs[i]);
    if (!type_equal(type, &types[i]))
      return node_fault(v, node, "output %d is %s, the operator makes %s", i, type_words(v, type),
                        type_words(v, &types[i]));
  }
  return true;
}

/* A graph that only holds values of these types, to ask row functions about. */
static Graph *scratch_graph(Verifier *v, int count, const Type *types) {
  Graph *graph = NEW(v->arena, Graph);
  graph->module = v->graph->module;
  graph->module_path = "";
  for (int i = 0; i < count; i++)
    array_push(v->arena, &graph->values, ((Value){.type = types[i], .producer = NO_NODE}));
  return graph;
}

static bool check_instruction(Verifier *v, const Node *node, int index) {
  const Instruction *instruction = &node->body->instructions[index];
  if (instruction->op <= OP_NONE || instruction->op >= OP_COUNT || op_kind(instruction->op) != KIND_POINTWISE)
    return node_fault(v, node, "instruction %d is not pointwise", index);
  const OpInfo *info = op_info(instruction->op);
  if (instruction->operand_count != info->input_count)
    return node_fault(v, node, "instruction %d (%s) takes %d operands, has %d", index, info->name, info->input_count,
                      instruction->operand_count);
  Type types[MAX_POINTWISE_INPUTS], result;
  ValueId operands[MAX_POINTWISE_INPUTS];
  for (int i = 0; i < instruction->operand_count; i++) {
    int operand = instruction->operands[i];
    if (operand >= index || (operand < 0 && ~operand >= node->input_count))
      return node_fault(v, node, "operand %d of instruction %d (%s) does not exist yet", i, index, info->name);
    operands[i] = i;
    types[i] = type_scalar(operand >= 0 ? node->body->instructions[operand].dtype
                                        : value_type(v->graph, node->inputs[~operand])->dtype);
  }
  if (!check_attributes(v, node, instruction->op, instruction->attributes)) return false;
  Node single = {.op = instruction->op,
                 .input_count = instruction->operand_count,
                 .inputs = operands,
                 .attributes = (Attribute *)instruction->attributes};
  if (!info->infer(scratch_graph(v, instruction->operand_count, types), &single, &result))
    return node_fault(v, node, "instruction %d (%s): %s", index, info->name, last_diagnostic());
  return result.dtype == instruction->dtype ||
         node_fault(v, node, "instruction %d (%s) is %s, the operator makes %s", index, info->name,
                    instruction->dtype < DATA_TYPE_COUNT ? dtype_name(instruction->dtype) : "?",
                    dtype_name(result.dtype));
}

static bool broadcasts_to(const Type *from, const Type *shape) {
  if (from->rank > shape->rank) return false;
  for (int i = 1; i <= from->rank; i++)
    if (from->dims[from->rank - i] != 1 && from->dims[from->rank - i] != shape->dims[shape->rank - i]) return false;
  return true;
}

static bool check_result(Verifier *v, const Node *node, int result) {
  bool output = result < node->output_count;
  const Type *type = value_type(v->graph, output ? node->outputs[result] : node->writes[result - node->output_count]);
  Type made = node->iteration;
  made.dtype = node->body->instructions[node->body->results[result]].dtype;
  return type_equal(type, &made) ||
         node_fault(v, node, "result %d is %s, the body makes %s", result, type_words(v, type), type_words(v, &made));
}

static bool check_body(Verifier *v, const Node *node) {
  const Body *body = node->body;
  Type iteration = node->iteration;
  iteration.dtype = F32;
  if (!check_type(v, NO_VALUE, &iteration)) return node_fault(v, node, "the iteration shape is not valid");
  for (int i = 0; i < node->input_count; i++)
    if (!broadcasts_to(value_type(v->graph, node->inputs[i]), &iteration))
      return node_fault(v, node, "input %d, %s, does not broadcast to the iteration shape of %s", i,
                        type_words(v, value_type(v->graph, node->inputs[i])), type_words(v, &iteration));
  for (int i = 0; i < body->instruction_count; i++)
    if (!check_instruction(v, node, i)) return false;
  for (int i = 0; i < body->result_count; i++)
    if (body->results[i] < 0 || body->results[i] >= body->instruction_count)
      return node_fault(v, node, "result %d is no instruction", i);
  if (op_kind(node->op) == KIND_REDUCTION) {
    Node plain = *node;
    plain.body = NULL;
    plain.input_count = 1;
    plain.inputs = &(ValueId){0};
    iteration.dtype = body->instructions[body->results[0]].dtype;
    return check_axes(v, node, iteration.rank) && check_inferred(v, node, scratch_graph(v, 1, &iteration), &plain);
  }
  for (int i = 0; i < body->result_count; i++)
    if (!check_result(v, node, i)) return false;
  return true;
}

static bool check_types(Verifier *v, const Node *node) {
  if (!check_attributes(v, node, node->op, node->attributes)) return false;
  if (node->body) return check_body(v, node);
  if (op_kind(node->op) == KIND_REDUCTION && !check_axes(v, node, value_type(v->graph, node->inputs[0])->rank))
    return false;
  return check_inferred(v, node, v->graph, node);
}

/* ---- effects ---- */

/* A step of a module that accumulates is two programs: micro-steps, then the update. */
static int program_of(const Verifier *v, const Node *node) {
  return v->graph->module->training.accumulate > 1 && node->phase == PHASE_UPDATE;
}

static NodeId *writer_of(const Verifier *v, const Node *node, ValueId persistent) {
  return &v->writers[2 * graph_value(v->graph, persistent)->index + program_of(v, node)];
}

/* Updates overwrite what they update: nothing behind one may read the old value, not through a view either. Where a
 * model's state is written is up to the schedule, so reads behind those are in order. */
static bool check_reads(Verifier *v, const Node *node) {
  for (int i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == NO_VALUE) continue;
    ValueId root = v->root[node->inputs[i]];
    if (graph_value(v->graph, root)->kind != VALUE_PERSISTENT) continue;
    NodeId writer = *writer_of(v, node, root);
    if (writer != NO_NODE && graph_node(v->graph, writer)->phase == PHASE_UPDATE)
      return node_fault(v, node, "reads the old value of '%s' after node %d has overwritten it",
                        v->graph->module->persistents.items[graph_value(v->graph, root)->index].name, writer);
  }
  return true;
}

static bool is_input(const Node *node, ValueId value) {
  for (int i = 0; i < node->input_count; i++)
    if (node->inputs[i] == value) return true;
  return false;
}

static bool check_writes(Verifier *v, const Node *node, NodeId id) {
  if (node->write_count && v->graph->evaluation) return node_fault(v, node, "writes in an evaluation graph");
  for (int i = 0; i < node->write_count; i++) {
    ValueId value = node->writes[i];
    if (!known_value(v, value) || graph_value(v->graph, value)->kind != VALUE_PERSISTENT)
      return node_fault(v, node, "write %d is not to a persistent", i);
    if (!is_input(node, value)) return node_fault(v, node, "write %d is not among the inputs", i);
    NodeId *writer = writer_of(v, node, value);
    const char *name = v->graph->module->persistents.items[graph_value(v->graph, value)->index].name;
    if (*writer != NO_NODE) return node_fault(v, node, "'%s' was written before, by node %d", name, *writer);
    *writer = id;
  }
  return true;
}

/* ---- clones and random numbers ---- */

static bool equal_attribute(const Attribute *a, const Attribute *b) {
  return a->given == b->given && a->integer == b->integer && a->count == b->count &&
         memcmp(&a->number, &b->number, sizeof a->number) == 0 && memcmp(a->list, b->list, sizeof a->list) == 0 &&
         memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

static bool equal_attributes(Op op, const Attribute *a, const Attribute *b) {
  for (int i = 0; i < op_info(op)->attribute_count; i++)
    if (!equal_attribute(&a[i], &b[i])) return false;
  return true;
}

static bool equal_bodies(const Body *a, const Body *b) {
  if (!a || !b) return a == b;
  if (a->instruction_count != b->instruction_count || a->result_count != b->result_count) return false;
  for (int i = 0; i < a->result_count; i++)
    if (a->results[i] != b->results[i]) return false;
  for (int i = 0; i < a->instruction_count; i++) {
    const Instruction *x = &a->instructions[i], *y = &b->instructions[i];
    if (x->op != y->op || x->dtype != y->dtype || x->random_id != y->random_id) return false;
    if (memcmp(x->operands, y->operands, (size_t)x->operand_count * sizeof *x->operands)) return false;
    if (!equal_attributes(x->op, x->attributes, y->attributes)) return false;
  }
  return true;
}

/* The node that a run is one of: itself, or what it is a clone of. */
static NodeId original_of(const Verifier *v, NodeId node) {
  NodeId original = graph_node(v->graph, node)->original;
  return original == NO_NODE ? node : original;
}

/* The same value, or the same output of another run of the node: a first run may read a clone too. */
static bool same_source(const Verifier *v, ValueId clone_input, ValueId input) {
  if (clone_input == input) return true;
  if (clone_input == NO_VALUE || input == NO_VALUE) return false;
  const Value *a = graph_value(v->graph, clone_input), *b = graph_value(v->graph, input);
  return a->kind == VALUE_RESULT && b->kind == VALUE_RESULT && a->output == b->output &&
         original_of(v, a->producer) == original_of(v, b->producer);
}

static bool check_clone(Verifier *v, const Node *node) {
  if (node->original == NO_NODE) return true;
  if (node->original < 0 || node->original >= v->graph->nodes.count)
    return node_fault(v, node, "is a clone of no node");
  const Node *original = graph_node(v->graph, node->original);
  if (original == node || original->original != NO_NODE) return node_fault(v, node, "is a clone of a clone");
  if (node->write_count || op_has(node->op, OP_EFFECT)) return node_fault(v, node, "a clone must not have effects");
  if (node->random_id != original->random_id)
    return node_fault(v, node, "draws other random numbers than its original");
  if (node->op != original->op || node->input_count != original->input_count ||
      node->output_count != original->output_count ||
      !equal_attributes(node->op, node->attributes, original->attributes) || !equal_bodies(node->body, original->body))
    return node_fault(v, node, "differs from its original, node %d", node->original);
  for (int i = 0; i < node->input_count; i++)
    if (!same_source(v, node->inputs[i], original->inputs[i]))
      return node_fault(v, node, "input %d is not what node %d, its original, reads", i, node->original);
  return true;
}

typedef struct Draw {
  uint64_t random_id;
  NodeId node;
} Draw;

static int compare_draws(const void *left, const void *right) {
  const Draw *a = left, *b = right;
  if (a->random_id != b->random_id) return a->random_id < b->random_id ? -1 : 1;
  return a->node - b->node;
}

/* No two forward operators share random numbers; gradients and clones draw those of their operator again. */
static bool check_draws(Verifier *v) {
  ARRAY(Draw) draws = {0};
  for (int64_t id = 0; id < v->graph->nodes.count; id++) {
    const Node *node = &v->graph->nodes.items[id];
    if (node->phase != PHASE_FORWARD || node->original != NO_NODE) continue;
    if (!node->body && op_has(node->op, OP_RANDOM)) array_push(v->arena, &draws, ((Draw){node->random_id, (NodeId)id}));
    for (int i = 0; node->body && i < node->body->instruction_count; i++)
      if (op_has(node->body->instructions[i].op, OP_RANDOM))
        array_push(v->arena, &draws, ((Draw){node->body->instructions[i].random_id, (NodeId)id}));
  }
  if (draws.count) qsort(draws.items, (size_t)draws.count, sizeof *draws.items, compare_draws);
  for (int64_t i = 1; i < draws.count; i++)
    if (draws.items[i].random_id == draws.items[i - 1].random_id)
      return node_fault(v, graph_node(v->graph, draws.items[i].node), "draws the random numbers of node %d",
                        draws.items[i - 1].node);
  return true;
}

/* ---- the whole ---- */

static bool check_node(Verifier *v, NodeId id) {
  const Node *node = graph_node(v->graph, id);
  if (!check_operator(v, node) || !check_counts(v, node) || !check_inputs(v, node) || !check_outputs(v, node, id))
    return false;
  if (!check_reads(v, node) || !check_writes(v, node, id) || !check_types(v, node)) return false;
  if (v->graph->evaluation && node->phase != PHASE_FORWARD)
    return node_fault(v, node, "is no forward node in an evaluation graph");
  for (int i = 0; i < node->output_count; i++) {
    v->defined[node->outputs[i]] = true;
    if (op_kind(node->op) == KIND_VIEW) v->root[node->outputs[i]] = v->root[node->inputs[0]];
  }
  return true;
}

static bool check_named(Verifier *v, const char *what, const char *name, ValueId value) {
  if (known_value(v, value) && v->defined[value]) return true;
  return fault(v, "%s '%s' is value %d, which nothing makes", what, name ? name : "", value);
}

static bool check_results(Verifier *v) {
  const Graph *graph = v->graph;
  if (graph->loss.value != NO_VALUE) {
    if (!check_named(v, "the loss", graph->loss.name, graph->loss.value)) return false;
    const Type *type = value_type(graph, graph->loss.value);
    if (type->rank || dtype_class(type->dtype) != CLASS_REAL)
      return fault(v, "the loss is %s, no real scalar", type_words(v, type));
    if (graph->loss.denominator != NO_VALUE &&
        !check_named(v, "the denominator of", graph->loss.name, graph->loss.denominator))
      return false;
  }
  for (int64_t i = 0; i < graph->outputs.count; i++) {
    const GraphOutput *output = &graph->outputs.items[i];
    if (!check_named(v, "output", output->name, output->value)) return false;
    if (output->denominator != NO_VALUE && !check_named(v, "the denominator of", output->name, output->denominator))
      return false;
  }
  for (int64_t i = 0; i < graph->gradients.count; i++) {
    const GraphGradient *gradient = &graph->gradients.items[i];
    if (!check_named(v, "the gradient of", gradient->name, gradient->gradient)) return false;
    if (gradient->divisor != NO_VALUE && !check_named(v, "the divisor of", gradient->name, gradient->divisor))
      return false;
    if (!known_value(v, gradient->of) ||
        !type_equal(value_type(graph, gradient->of), value_type(graph, gradient->gradient)))
      return fault(v, "the gradient of '%s' is of another type than what it is of", gradient->name);
  }
  return true;
}

const char *graph_verify(MemoryArena *arena, const Graph *graph) {
  Verifier v = {.arena = arena, .graph = (Graph *)graph};
  v.defined = NEW_ARRAY(arena, bool, graph->values.count);
  v.root = NEW_ARRAY(arena, ValueId, graph->values.count);
  v.writers = NEW_ARRAY(arena, NodeId, 2 * graph->module->persistents.count);
  for (int64_t i = 0; i < 2 * graph->module->persistents.count; i++) v.writers[i] = NO_NODE;
  for (int64_t id = 0; id < graph->values.count; id++)
    if (!check_value(&v, id)) return v.fault;
  for (int64_t id = 0; id < graph->nodes.count; id++)
    if (!check_node(&v, (NodeId)id)) return v.fault;
  for (int64_t id = 0; id < graph->nodes.count; id++)
    if (!check_clone(&v, &graph->nodes.items[id])) return v.fault;
  if (!check_draws(&v) || !check_results(&v)) return v.fault;
  return NULL;
}
