/* codegen/body.c - scalar bodies. */
#include "codegen/body.h"

#include <ctype.h>
#include <inttypes.h>

Type node_iteration(const Graph *graph, const Node *node) {
  if (node->body) return node->iteration;
  if (op_kind(node->op) == KIND_REDUCTION) return *value_type(graph, node->inputs[0]);
  return *value_type(graph, node->output_count ? node->outputs[0] : node->writes[0]);
}

/* ---- what is read ---- */

/* Whether an expression mentions a name. */
static bool mentions(const char *expression, const char *name) {
  size_t length = strlen(name);
  for (const char *at = strstr(expression, name); at; at = strstr(at + 1, name)) {
    bool starts = at == expression || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
    bool ends = !(isalnum((unsigned char)at[length]) || at[length] == '_');
    if (starts && ends) return true;
  }
  return false;
}

static bool uses_operand(const Instruction *instruction, int operand) {
  static const char *const names[MAX_POINTWISE_INPUTS] = {"x0", "x1", "x2", "x3"};
  return mentions(op_info(instruction->op)->expression, names[operand]);
}

/* Index into used, invariant and texts. */
static int operand_slot(const BodyText *text, int operand) {
  return operand >= 0 ? operand : text->body.instruction_count + ~operand;
}

static void mark_used(BodyText *text) {
  for (int i = 0; i < text->body.result_count; i++) text->used[text->body.results[i]] = true;
  for (int i = text->body.instruction_count - 1; i >= 0; i--) {
    const Instruction *instruction = &text->body.instructions[i];
    for (int k = 0; text->used[i] && k < instruction->operand_count; k++)
      if (uses_operand(instruction, k)) text->used[operand_slot(text, instruction->operands[k])] = true;
  }
}

static void mark_invariant(BodyText *text) {
  int instructions = text->body.instruction_count;
  for (int i = 0; i < text->node->input_count; i++)
    text->invariant[instructions + i] = nest_is_uniform(text->nest, text->target_count + i);
  for (int i = 0; i < instructions; i++) {
    const Instruction *instruction = &text->body.instructions[i];
    text->invariant[i] = !op_has(instruction->op, OP_INDEXED) && !op_has(instruction->op, OP_RANDOM);
    for (int k = 0; k < instruction->operand_count; k++)
      if (!text->invariant[operand_slot(text, instruction->operands[k])]) text->invariant[i] = false;
  }
}

static void find_needs(BodyText *text) {
  for (int i = 0; i < text->body.instruction_count; i++) {
    Op op = text->body.instructions[i].op;
    if (!text->used[i]) continue;
    if (op_has(op, OP_INDEXED) || op_has(op, OP_RANDOM)) text->reads_index = true;
    if (op_has(op, OP_READS_CONTROL) || op_has(op, OP_RANDOM)) text->reads_control = true;
    if (op_has(op, OP_RANDOM)) text->random_count++;
  }
}

/* A reduction without a body reduces its input itself: a body without instructions, whose result is read from
 * texts[0], the input. */
static Body reduction_body(MemoryArena *arena, const Graph *graph, const Node *node) {
  if (node->body || op_kind(node->op) == KIND_POINTWISE) return node_body(arena, graph, node);
  Body body = {.result_count = 1};
  body.results = NEW(arena, int);
  return body;
}

static InstructionText instruction_text(const BodyText *text, int i, int random) {
  const Instruction *instruction = &text->body.instructions[i];
  const Graph *graph = text->graph->compiled->graph;
  InstructionText result = {.instruction = instruction, .index = "index"};
  result.random_id = memory_format(text->graph->emission->arena, "id%d", random);
  for (int k = 0; k < instruction->operand_count; k++) {
    int operand = instruction->operands[k];
    result.operands[k] = text->texts[operand_slot(text, operand)];
    result.operand_types[k] =
        operand >= 0 ? text->body.instructions[operand].dtype : value_type(graph, text->node->inputs[~operand])->dtype;
  }
  return result;
}

BodyText body_create(GraphEmission *graph, const Node *node, LoopNest *nest, int target_count) {
  MemoryArena *arena = graph->emission->arena;
  BodyText text = {.graph = graph, .node = node, .nest = nest, .target_count = target_count, .vectorises = true};
  text.body = reduction_body(arena, graph->compiled->graph, node);
  int slots = text.body.instruction_count + node->input_count;
  text.used = NEW_ARRAY(arena, bool, slots);
  text.invariant = NEW_ARRAY(arena, bool, slots);
  text.texts = NEW_ARRAY(arena, const char *, slots);
  mark_used(&text);
  for (int i = 0; i < node->input_count; i++)
    if (text.used[text.body.instruction_count + i])
      nest_set_view(nest, target_count + i, &value_layout(graph, node->inputs[i])->view);
  find_needs(&text);
  if (text.reads_index) nest_set_index(nest, target_count + node->input_count);
  nest_collapse(nest);
  mark_invariant(&text);
  for (int i = 0; i < text.body.instruction_count; i++) {
    InstructionText instruction = instruction_text(&text, i, 0);
    if (text.used[i] && !text.invariant[i] && !instruction_vectorises(&instruction)) text.vectorises = false;
  }
  return text;
}

/* ---- text ---- */

void body_parameters(BodyText *text, Text *parameters, Text *arguments) {
  const Graph *graph = text->graph->compiled->graph;
  int instructions = text->body.instruction_count, count = 0;
  for (int i = 0; i < text->node->input_count; i++) {
    if (!text->used[instructions + i]) continue;
    ValueId value = text->node->inputs[i];
    text->texts[instructions + i] = memory_format(text->graph->emission->arena, "x%d", count);
    text_append(parameters, ", const %s *in%d", c_storage_type(value_type(graph, value)->dtype), count++);
    text_append(arguments, ", %s", value_pointer(text->graph, value));
  }
  if (text->reads_control) {
    text_append(parameters, ", const RpControl *control");
    text_append(arguments, ", control");
  }
  int random = 0;
  for (int i = 0; i < instructions; i++) {
    const Instruction *instruction = &text->body.instructions[i];
    if (!text->used[i] || !op_has(instruction->op, OP_RANDOM)) continue;
    text_append(parameters, ", uint64_t id%d", random++);
    text_append(arguments, ", UINT64_C(0x%016" PRIx64 ")", instruction->random_id);
  }
}

/* "x3" reads "in3". */
static void write_load(BodyText *text, Text *out, int input, const char *const *names) {
  MemoryArena *arena = text->graph->emission->arena;
  const char *name = text->texts[text->body.instruction_count + input];
  DataType dtype = value_type(text->graph->compiled->graph, text->node->inputs[input])->dtype;
  if (text->loads && text->loads[input])
    text_line(out, "const %s %s = %s;", c_compute_type(dtype), name, text->loads[input]);
  else
    text_line(out, "const %s %s = in%s[%s];", c_compute_type(dtype), name, name + 1,
              nest_offset(arena, text->nest, text->target_count + input, names));
}

static bool is_name(const char *expression) {
  for (const char *at = expression; *at; at++)
    if (!isalnum((unsigned char)*at) && *at != '_') return false;
  return !isdigit((unsigned char)expression[0]);
}

static void write_instruction(BodyText *text, Text *out, int i, int random) {
  MemoryArena *arena = text->graph->emission->arena;
  const Instruction *instruction = &text->body.instructions[i];
  InstructionText source = instruction_text(text, i, random);
  char *expression = instruction_write(arena, &source);
  const Body *body = &text->body;
  bool last = i + 1 == body->instruction_count && body->result_count == 1 && body->results[0] == i;
  bool name = instruction->operand_count && is_name(expression); /* an operand that is passed on */
  text->texts[i] = expression;
  if (name || op_has(instruction->op, OP_UNIFORM) || (last && !text->invariant[i])) return;
  text->texts[i] = memory_format(arena, "t%d", i);
  text_line(out, "const %s t%d = %s;", c_compute_type(instruction->dtype), i, expression);
}

/* Loads and instructions that are, or are not, invariant. */
static void write_part(BodyText *text, Text *out, bool invariant, const char *const *names) {
  int instructions = text->body.instruction_count, random = 0;
  for (int i = 0; i < text->node->input_count; i++)
    if (text->used[instructions + i] && text->invariant[instructions + i] == invariant) write_load(text, out, i, names);
  for (int i = 0; i < instructions; i++) {
    if (text->used[i] && text->invariant[i] == invariant) write_instruction(text, out, i, random);
    if (text->used[i] && op_has(text->body.instructions[i].op, OP_RANDOM)) random++;
  }
}

void body_write_invariants(BodyText *text, Text *out) {
  const char *names[MAX_RANK + 1] = {NULL};
  if (text->random_count)
    text_line(out, "const uint64_t seed = control->seed, micro_step = (uint64_t)control->micro_step;");
  write_part(text, out, true, names);
}

void body_write_element(BodyText *text, Text *out, const char *const *names) {
  if (text->reads_index) {
    bool narrow = nest_elements(text->nest) <= INT32_MAX;
    char *offset =
        nest_offset(text->graph->emission->arena, text->nest, text->target_count + text->node->input_count, names);
    text_line(out, narrow ? "const int32_t index = (int32_t)(%s);" : "const int64_t index = %s;", offset);
  }
  write_part(text, out, false, names);
}

const char *body_result(const BodyText *text, int result) { return text->texts[text->body.results[result]]; }
