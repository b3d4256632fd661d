/* The verifier: sound graphs pass, and each planted fault is found and named. */
#include "small_graph.h"

/* A graph with something of everything: y = gelu(x w + b), loss = sum(y²), s <- s + 1, a draw, an update of w. */
typedef struct Specimen {
  SmallGraph small;
  ValueId x, w, s, product, y, loss;
} Specimen;

static Node *node_of(Graph *graph, ValueId value) { return graph_node(graph, graph_value(graph, value)->producer); }
static Node *last_node(Graph *graph) { return graph_node(graph, (NodeId)graph->nodes.count - 1); }

static Specimen specimen(void) {
  Specimen t = {.small = small_graph()};
  Graph *graph = t.small.graph;
  graph->module_path = "h.0";
  t.x = small_input(&t.small, F32, SHAPE(4, 3));
  t.w = small_parameter(&t.small, "w", 0, SHAPE(3, 5));
  t.s = small_parameter(&t.small, "s", 0, SCALAR);
  t.product = BUILD(graph, contract, t.x, t.w);
  Attribute p = attribute_float(0.5);
  ValueId dropped = build_apply(graph, OP_drop, &p, 1, (ValueId[]){t.product});
  t.y = BUILD(graph, gelu, dropped);
  t.loss = build_reduce(graph, OP_sum, BUILD(graph, square, t.y), -1, NULL, false);
  graph->loss.value = t.loss;
  build_assign(graph, t.s, BUILD(graph, add, t.s, build_constant(graph, F32, 1)));
  graph->phase = PHASE_UPDATE;
  build_assign(graph, t.w, BUILD(graph, add, t.w, t.w));
  return t;
}

static void expect_sound(const Specimen *t) {
  const char *fault = graph_verify(t->small.arena, t->small.graph);
  if (fault) fail_msg("%s", fault);
}

/* The fault must be found and say `words`. */
static void expect_fault(Specimen *t, const char *words) {
  const char *fault = graph_verify(t->small.arena, t->small.graph);
  if (!fault) fail_msg("not found: %s", words);
  if (!strstr(fault, words)) fail_msg("expected '%s', found '%s'", words, fault);
  diag_reset();
  memory_arena_destroy(t->small.arena);
}

static void test_sound_graph(void **state) {
  (void)state;
  Specimen t = specimen();
  expect_sound(&t);
  small_graph_destroy(&t.small);
}

static void test_message_names_node_and_place(void **state) {
  (void)state;
  Specimen t = specimen();
  const Source source = {"m.rp", "ab\ncd", 5};
  Node *node = node_of(t.small.graph, t.product);
  node->location = (Location){&source, 4, 1};
  node->inputs[1] = t.y;
  expect_fault(&t, "node 0 (contract in h.0 at m.rp:2:2): input 1 is value");
}

static void test_order_and_ids(void **state) {
  (void)state;
  Specimen t = specimen();
  Node first = *graph_node(t.small.graph, 0);
  *graph_node(t.small.graph, 0) = *graph_node(t.small.graph, 1);
  *graph_node(t.small.graph, 1) = first;
  graph_index(t.small.graph);
  expect_fault(&t, "nothing has made yet");

  t = specimen();
  node_of(t.small.graph, t.y)->inputs[0] = 1000;
  expect_fault(&t, "value 1000, which does not exist");

  t = specimen();
  node_of(t.small.graph, t.y)->outputs[0] = t.product;
  expect_fault(&t, "is made twice");

  t = specimen();
  graph_value(t.small.graph, t.y)->producer = 0;
  expect_fault(&t, "records output 0 of node 0 as its origin");

  t = specimen();
  node_of(t.small.graph, t.y)->outputs[0] = t.x;
  expect_fault(&t, "is an input or a persistent");
}

static void test_arity_and_operators(void **state) {
  (void)state;
  Specimen t = specimen();
  node_of(t.small.graph, t.product)->input_count = 1;
  expect_fault(&t, "takes 2 inputs, has 1");

  t = specimen();
  node_of(t.small.graph, t.product)->inputs[1] = NO_VALUE;
  expect_fault(&t, "input 1 is missing");

  t = specimen();
  node_of(t.small.graph, t.y)->op = OP_softmax;
  expect_fault(&t, "cannot stand in a graph");

  t = specimen();
  node_of(t.small.graph, t.y)->op = OP_COUNT;
  expect_fault(&t, "no such operator");

  t = specimen();
  last_node(t.small.graph)->write_count = 0;
  expect_fault(&t, "makes 1 outputs, has 0 and 0 writes");

  t = specimen();
  node_of(t.small.graph, t.y)->attributes[0].integer = 2;
  expect_fault(&t, "attribute 'approximate' is none of its choices");

  t = specimen();
  node_of(t.small.graph, t.loss)->attributes[0].list[0] = 2;
  expect_fault(&t, "axes are not ascending");
}

static void test_types(void **state) {
  (void)state;
  Specimen t = specimen();
  graph_value(t.small.graph, t.y)->type.dims[1] = 6;
  expect_fault(&t, "output 0 is f32[4, 6], the operator makes f32[4, 5]");

  t = specimen();
  graph_value(t.small.graph, t.product)->type.dtype = F64;
  expect_fault(&t, "output 0 is f64[4, 5]");

  t = specimen();
  graph_value(t.small.graph, t.x)->type.dims[0] = 2;
  expect_fault(&t, "its input or persistent is f32[4, 3]");

  t = specimen();
  t.small.module->inputs.items[0].type.dims[1] = 2;
  graph_value(t.small.graph, t.x)->type.dims[1] = 2;
  expect_fault(&t, "types do not fit: dimension mismatch");

  t = specimen();
  graph_value(t.small.graph, t.y)->type.dims[0] = 0;
  expect_fault(&t, "has a dimension of 0");
}

static void test_phases(void **state) {
  (void)state;
  Specimen t = specimen();
  node_of(t.small.graph, t.product)->phase = PHASE_BACKWARD;
  expect_fault(&t, "made in a later phase, by node 0");

  t = specimen();
  t.small.graph->evaluation = true;
  expect_fault(&t, "writes in an evaluation graph");
}

static void test_effects(void **state) {
  (void)state;
  Specimen t = specimen();
  build_assign(t.small.graph, t.w, t.w);
  expect_fault(&t, "reads the old value of 'w' after node");

  t = specimen();
  build_assign(t.small.graph, t.s, build_constant(t.small.graph, F32, 0));
  expect_fault(&t, "'s' was written before, by node");

  t = specimen();
  last_node(t.small.graph)->writes[0] = t.y;
  expect_fault(&t, "is not to a persistent");

  t = specimen();
  last_node(t.small.graph)->writes[0] = t.s;
  expect_fault(&t, "is not among the inputs");

  t = specimen(); /* through a view made before the write */
  Node update = *last_node(t.small.graph);
  t.small.graph->nodes.count--;
  ValueId view = build_reshape(t.small.graph, t.w, SHAPE(15));
  graph_append(t.small.graph, update);
  BUILD(t.small.graph, negate, view);
  expect_fault(&t, "reads the old value of 'w'");

  t = specimen(); /* state may be read behind its write: the schedule orders them */
  BUILD(t.small.graph, negate, t.s);
  expect_sound(&t);
  small_graph_destroy(&t.small);

  t = specimen(); /* accumulators are written in both programs */
  t.small.module->training.accumulate = 2;
  build_assign(t.small.graph, t.s, build_constant(t.small.graph, F32, 0));
  expect_sound(&t);
  small_graph_destroy(&t.small);
}

/* A clone of the node that makes `value`, reading `inputs`. */
static Node *append_clone(Specimen *t, ValueId value, ValueId input, ValueId *made) {
  Graph *graph = t->small.graph;
  Node clone = *node_of(graph, value);
  clone.original = graph_value(graph, value)->producer;
  clone.inputs = NEW_ARRAY(t->small.arena, ValueId, clone.input_count);
  memcpy(clone.inputs, node_of(graph, value)->inputs, (size_t)clone.input_count * sizeof *clone.inputs);
  if (input != NO_VALUE) clone.inputs[0] = input;
  clone.outputs = NEW(t->small.arena, ValueId);
  *made = clone.outputs[0] = graph_new_value(graph, *value_type(graph, value), NULL, (Location){0});
  return graph_node(graph, graph_append(graph, clone));
}

static void test_clones(void **state) {
  (void)state;
  ValueId dropped, again, y_again;
  Specimen t = specimen();
  dropped = node_of(t.small.graph, t.y)->inputs[0];
  append_clone(&t, dropped, NO_VALUE, &again);
  append_clone(&t, t.y, again, &y_again);
  expect_sound(&t);
  small_graph_destroy(&t.small);

  t = specimen();
  append_clone(&t, dropped, NO_VALUE, &again)->random_id++;
  expect_fault(&t, "draws other random numbers than its original");

  t = specimen();
  append_clone(&t, t.y, t.product, &again);
  expect_fault(&t, "input 0 is not what node");

  t = specimen();
  append_clone(&t, t.y, NO_VALUE, &again)->op = OP_relu;
  expect_fault(&t, "differs from its original");

  t = specimen();
  append_clone(&t, t.y, NO_VALUE, &again)->original = 100;
  expect_fault(&t, "is a clone of no node");

  t = specimen();
  t.small.module->training.accumulate = 2; /* s may be written in the update program too */
  NodeId assigned = (NodeId)t.small.graph->nodes.count - 3;
  while (op_kind(graph_node(t.small.graph, assigned)->op) != KIND_POINTWISE ||
         !graph_node(t.small.graph, assigned)->write_count)
    assigned--;
  Node clone = *graph_node(t.small.graph, assigned);
  clone.original = assigned;
  clone.phase = PHASE_UPDATE;
  graph_append(t.small.graph, clone);
  expect_fault(&t, "a clone must not have effects");

  t = specimen(); /* two draws that are no clones of each other */
  append_clone(&t, dropped, NO_VALUE, &again)->original = NO_NODE;
  expect_fault(&t, "draws the random numbers of node");
}

/* y = x², as a body, and its sum, as a reduction with a body */
static void append_fused(Specimen *t, Op op, Type type, Body **body) {
  MemoryArena *arena = t->small.arena;
  ValueId y = graph_new_value(t->small.graph, type, NULL, (Location){0});
  Instruction *instructions = NEW_ARRAY(arena, Instruction, 2);
  instructions[0] = (Instruction){.op = OP_square, .dtype = F32, .operand_count = 1, .operands = {~0}};
  instructions[1] = (Instruction){.op = OP_add, .dtype = F32, .operand_count = 2, .operands = {0, ~0}};
  *body = NEW(arena, Body);
  int *results = NEW(arena, int);
  *results = 1;
  **body = (Body){2, 1, instructions, results};
  Node node = {.op = op,
               .phase = PHASE_UPDATE,
               .input_count = 1,
               .output_count = 1,
               .body = *body,
               .original = NO_NODE,
               .module = "",
               .iteration = type_make(F32, SHAPE(4, 3))};
  node.inputs = NEW(arena, ValueId);
  node.outputs = NEW(arena, ValueId);
  node.attributes = NEW_ARRAY(arena, Attribute, 2);
  node.attributes[0] = attribute_ints(SHAPE(1));
  node.attributes[1] = attribute_bool(false);
  node.inputs[0] = t->x;
  node.outputs[0] = y;
  graph_append(t->small.graph, node);
}

static void test_bodies(void **state) {
  (void)state;
  Body *body;
  Specimen t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  append_fused(&t, OP_sum, type_make(F32, SHAPE(4)), &body);
  expect_sound(&t);
  small_graph_destroy(&t.small);

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->instructions[1].operands[1] = 1;
  expect_fault(&t, "operand 1 of instruction 1 (add) does not exist yet");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->instructions[0].operands[0] = ~1;
  expect_fault(&t, "operand 0 of instruction 0 (square) does not exist yet");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->instructions[0].dtype = F64;
  expect_fault(&t, "instruction 0 (square) is f64, the operator makes f32");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->instructions[0].op = OP_sum;
  expect_fault(&t, "instruction 0 is not pointwise");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->results[0] = 2;
  expect_fault(&t, "result 0 is no instruction");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  body->result_count = 2;
  expect_fault(&t, "2 results for 1 outputs and 0 writes");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4, 3)), &body);
  last_node(t.small.graph)->iteration.dims[0] = 2;
  expect_fault(&t, "does not broadcast to the iteration shape");

  t = specimen();
  append_fused(&t, OP_add, type_make(F32, SHAPE(4)), &body);
  expect_fault(&t, "result 0 is f32[4], the body makes f32[4, 3]");

  t = specimen();
  append_fused(&t, OP_sum, type_make(F32, SHAPE(3)), &body);
  expect_fault(&t, "output 0 is f32[3], the operator makes f32[4]");

  t = specimen();
  append_fused(&t, OP_contract, type_make(F32, SHAPE(4, 3)), &body);
  expect_fault(&t, "only pointwise nodes and reductions have a body");
}

static void test_results(void **state) {
  (void)state;
  Specimen t = specimen();
  t.small.graph->loss.value = t.y;
  expect_fault(&t, "the loss is f32[4, 5], no real scalar");

  t = specimen();
  ValueId unmade = graph_new_value(t.small.graph, type_scalar(F32), NULL, (Location){0});
  GraphOutput output = {.name = "accuracy", .value = unmade, .denominator = NO_VALUE};
  array_push(t.small.arena, &t.small.graph->outputs, output);
  expect_fault(&t, "output 'accuracy' is value");

  t = specimen();
  GraphGradient gradient = {.name = "w", .of = t.w, .gradient = t.y, .divisor = NO_VALUE};
  array_push(t.small.arena, &t.small.graph->gradients, gradient);
  expect_fault(&t, "the gradient of 'w' is of another type");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sound_graph),   cmocka_unit_test(test_message_names_node_and_place),
      cmocka_unit_test(test_order_and_ids), cmocka_unit_test(test_arity_and_operators),
      cmocka_unit_test(test_types),         cmocka_unit_test(test_phases),
      cmocka_unit_test(test_effects),       cmocka_unit_test(test_clones),
      cmocka_unit_test(test_bodies),        cmocka_unit_test(test_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
