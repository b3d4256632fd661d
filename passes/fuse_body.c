/* passes/fuse_body.c - the body of a fused node. */
#include "passes/facts.h"
#include "passes/fuse.h"

typedef struct BodyBuilder {
  const Graph *graph;
  MemoryArena *arena;
  Body *body;
  Node *node;
  struct Known {
    ValueId value;
    int operand;
  } * known; /* operand of every value read or made so far, by open addressing */
  int known_size;
} BodyBuilder;

static struct Known *known_slot(const BodyBuilder *b, ValueId value) {
  int slot = (int)((uint32_t)value * 2654435761u & (uint32_t)(b->known_size - 1));
  while (b->known[slot].value != NO_VALUE && b->known[slot].value != value) slot = (slot + 1) & (b->known_size - 1);
  return &b->known[slot];
}

static int push_instruction(BodyBuilder *b, Instruction instruction) {
  b->body->instructions[b->body->instruction_count] = instruction;
  return b->body->instruction_count++;
}

/* A constant of whatever shape: its shape says nothing within a body, and equal bodies should look equal. */
static int push_constant(BodyBuilder *b, ValueId value) {
  const Node *node = graph_node(b->graph, graph_value(b->graph, value)->producer);
  int count = op_info(node->op)->attribute_count;
  Attribute *attributes = NEW_ARRAY(b->arena, Attribute, count);
  for (int i = 0; i < count; i++) {
    attributes[i] = node->attributes[i];
    if (attributes[i].kind == ATTRIBUTE_INTS) attributes[i] = attribute_ints(0, NULL);
  }
  return push_instruction(
      b, (Instruction){.op = node->op, .dtype = value_type(b->graph, value)->dtype, .attributes = attributes});
}

static int operand_of(BodyBuilder *b, ValueId value) {
  struct Known *known = known_slot(b, value);
  if (known->value == value) return known->operand;
  known->value = value;
  if (value_is_uniform(b->graph, value)) {
    known->operand = push_constant(b, value);
  } else {
    b->node->inputs[b->node->input_count] = value;
    known->operand = ~b->node->input_count++;
  }
  return known->operand;
}

static int push_member(BodyBuilder *b, const Node *member) {
  ValueId result = member->output_count ? member->outputs[0] : member->writes[0];
  Instruction instruction = {.op = member->op,
                             .dtype = value_type(b->graph, result)->dtype,
                             .attributes = member->attributes,
                             .random_id = member->random_id,
                             .operand_count = member->input_count};
  for (int i = 0; i < member->input_count; i++) instruction.operands[i] = operand_of(b, member->inputs[i]);
  int index = push_instruction(b, instruction);
  if (member->output_count) *known_slot(b, result) = (struct Known){result, index};
  return index;
}

static BodyBuilder start_body(const Graph *graph, const Group *group, Node *node) {
  BodyBuilder b = {.graph = graph, .arena = graph->module->arena, .node = node, .known_size = 64};
  b.body = NEW(b.arena, Body);
  b.body->instructions = NEW_ARRAY(b.arena, Instruction, group->instruction_count);
  b.body->results = NEW_ARRAY(b.arena, int, group->unread_count + group->write_count + 1);
  node->inputs = NEW_ARRAY(b.arena, ValueId, group->input_count + 1);
  node->outputs = NEW_ARRAY(b.arena, ValueId, group->unread_count + 1);
  node->writes = NEW_ARRAY(b.arena, ValueId, group->write_count + 1);
  node->input_count = node->output_count = node->write_count = 0;
  node->body = b.body;
  node->iteration = group->shape;
  while (b.known_size < 2 * (group->instruction_count + group->input_count)) b.known_size *= 2;
  b.known = NEW_ARRAY(b.arena, struct Known, b.known_size);
  for (int i = 0; i < b.known_size; i++) b.known[i].value = NO_VALUE;
  return b;
}

/* The member after which the node is called: the last one that makes a value, else the last. */
static const Node *leading_member(int member_count, const Node **members) {
  for (int i = member_count - 1; i >= 0; i--)
    if (members[i]->output_count) return members[i];
  return members[member_count - 1];
}

Node build_fused(const Graph *graph, const Group *group, int member_count, const Node **members, const Node *reduction,
                 const int *remaining) {
  Node node = reduction ? *reduction : *leading_member(member_count, members);
  BodyBuilder b = start_body(graph, group, &node);
  int *written = NEW_ARRAY(b.arena, int, group->write_count + 1);
  for (int i = 0; i < member_count; i++) {
    int index = push_member(&b, members[i]);
    if (!members[i]->output_count) {
      written[node.write_count] = index;
      node.writes[node.write_count++] = members[i]->writes[0];
    } else if (remaining[members[i]->outputs[0]] > 0) {
      b.body->results[b.body->result_count++] = index;
      node.outputs[node.output_count++] = members[i]->outputs[0];
    }
  }
  for (int i = 0; i < node.write_count; i++) b.body->results[b.body->result_count++] = written[i];
  if (!reduction) return node;
  ASSERT(node.output_count == 1 && node.outputs[0] == reduction->inputs[0]);
  node.outputs[0] = reduction->outputs[0];
  return node;
}
