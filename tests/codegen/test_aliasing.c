/* Every in-place permission of the op table, by operator and operand: a compiled program in which the output is forced
 * to take that operand's bytes computes what the interpreter does. The cases come from the table, so a new row is
 * covered without writing one. What the table does not permit is forced as well, to see that the test could fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/build.h"
#include "tests/codegen/emitted.h"

/* Elements along an axis: f32 with enough for loops that threads share. */
enum { LARGE = 130, SMALL = 24 };

/* One node, one of whose outputs is to take the bytes of one of its inputs. */
typedef struct Case {
  Op op;
  DataType dtype;
  int input, output;
  bool permitted;
  ValueId host, result; /* operand and output */
  NodeId node;
} Case;

typedef struct Cases {
  MemoryArena *memory;
  Module *module;
  Graph *graph;
  ARRAY(Case) items;
  Part *parts; /* per value: operands of assemblies that are made in their slices */
  int64_t part_count;
} Cases;

/* Operands of a node. */
typedef struct Operands {
  int count;
  Type types[MAX_OP_INPUTS];
} Operands;

static int64_t axis_size(DataType dtype) { return dtype == F32 ? LARGE : SMALL; }

static Type matrix_of(DataType dtype) { return type_make(dtype, 2, (int64_t[]){axis_size(dtype), axis_size(dtype)}); }

/* ---- nodes ---- */

/* Values for attributes without a default. */
static Attribute *required_attributes(MemoryArena *memory, const OpInfo *info, DataType dtype) {
  Attribute *attributes = NEW_ARRAY(memory, Attribute, info->attribute_count);
  int64_t size = axis_size(dtype) * (info->kind == KIND_ASSEMBLY ? 2 : 1); /* of a whole: more than its part */
  for (int i = 0; i < info->attribute_count; i++) {
    const char *name = info->attributes[i].name;
    bool zero = string_equal(name, "axis") || string_equal(name, "start"), one = string_equal(name, "step");
    attributes[i] = info->attributes[i].initial;
    if (!info->attributes[i].required) continue;
    switch (info->attributes[i].kind) {
      case ATTRIBUTE_INT:
        attributes[i] = attribute_int(zero ? 0 : one ? 1 : size);
        break;
      case ATTRIBUTE_DTYPE:
        attributes[i] = attribute_dtype(dtype);
        break;
      case ATTRIBUTE_FLOAT:
        attributes[i] = attribute_float(0.25);
        break;
      default:
        fail_msg("%s: no value for attribute %s of this kind", info->name, name);
    }
  }
  return attributes;
}

static bool applies(Op op, DataType dtype, const Operands *operands) {
  MemoryArena *memory = memory_arena_create();
  Module *module = module_create(memory, "", "");
  Graph *graph = graph_create(module, true);
  ValueId inputs[MAX_OP_INPUTS];
  for (int i = 0; i < operands->count; i++)
    inputs[i] = graph_input(graph, module_add_input(module, (ModelInput){.name = "x", .type = operands->types[i]}));
  Attribute *attributes = required_attributes(memory, op_info(op), dtype);
  bool made = graph_apply(graph, op, operands->count, inputs, attributes, NULL) != NO_VALUE;
  diag_reset();
  memory_arena_destroy(memory);
  return made;
}

static bool is_index(const InputInfo *input) {
  return string_equal(input->name, "target") || string_equal(input->name, "indices");
}

/* Kernels take rows of f32, one number per row or per column, and indices: the first combination that infers. */
static bool find_kernel_operands(Op op, Operands *operands) {
  enum { SHAPES = 3 };
  const OpInfo *info = op_info(op);
  int choices = 1;
  operands->count = info->input_count;
  for (int i = 0; i < info->input_count; i++) choices *= SHAPES;
  for (int choice = 0; choice < choices; choice++) {
    for (int i = 0, rest = choice; i < info->input_count; i++, rest /= SHAPES) {
      Type shapes[SHAPES] = {matrix_of(F32), type_make(F32, 1, (int64_t[]){LARGE}),
                             type_make(F32, 2, (int64_t[]){LARGE, 1})};
      operands->types[i] = is_index(&info->inputs[i]) ? type_make(I32, 1, (int64_t[]){LARGE}) : shapes[rest % SHAPES];
    }
    if (applies(op, F32, operands)) return true;
  }
  return false;
}

/* False where the operator has no node on this data type, or none without effects. */
static bool find_operands(Op op, DataType dtype, Operands *operands) {
  const OpInfo *info = op_info(op);
  bool kernel = info->kind == KIND_KERNEL;
  if (info->kind == KIND_NONE || info->kind == KIND_VIEW || info->kind >= KIND_COMPOSITE) return false;
  if ((info->properties & OP_EFFECT) || !info->input_count || (kernel && dtype != F32)) return false;
  if (kernel) return find_kernel_operands(op, operands);
  operands->count = info->inputs[0].variadic ? 3 : info->input_count;
  for (int i = 0; i < operands->count; i++) operands->types[i] = matrix_of(dtype);
  return applies(op, dtype, operands);
}

/* ---- the graph: each case with operands of its own, so that they end with it ---- */

static ValueId make_operand(Cases *cases, const Type *type, int ordinal) {
  char *name = memory_format(cases->memory, "%s.%d", type_text(cases->memory, type), ordinal);
  for (int64_t i = 0; i < cases->module->inputs.count; i++)
    if (string_equal(cases->module->inputs.items[i].name, name))
      return build_copy(cases->graph, graph_input(cases->graph, (int)i));
  int index = module_add_input(cases->module, (ModelInput){.name = name, .type = *type});
  return build_copy(cases->graph, graph_input(cases->graph, index));
}

static void add_case(Cases *cases, Op op, DataType dtype, const Operands *operands, int input, int output,
                     bool turned) {
  ValueId inputs[MAX_OP_INPUTS], outputs[MAX_OP_OUTPUTS];
  Graph *graph = cases->graph;
  for (int i = 0; i < operands->count; i++) inputs[i] = make_operand(cases, &operands->types[i], i);
  if (turned) inputs[1 - input] = build_swap(graph, inputs[input], 0, 1);
  Attribute *attributes = required_attributes(cases->memory, op_info(op), dtype);
  graph_apply(graph, op, operands->count, inputs, attributes, outputs);
  assert_int_equal(diag_error_count(), 0);
  Case made = {op, dtype, input, output, false, inputs[input], outputs[output], (NodeId)graph->nodes.count - 1};
  array_push(cases->memory, &cases->items, made);
  char *name = memory_format(cases->memory, "%s %s %d %d", op_info(op)->name, dtype_name(dtype), input, output);
  GraphOutput named = {.name = name, .value = outputs[output], .denominator = NO_VALUE};
  array_push(cases->memory, &graph->outputs, named);
}

/* Could the output lie where the input does at all? An assembly's output is larger than its inputs. */
static bool sizes_match(Op op, DataType dtype, const Operands *operands, int input, int output) {
  MemoryArena *memory = memory_arena_create();
  Cases trial = {.memory = memory, .module = module_create(memory, "", "")};
  trial.graph = graph_create(trial.module, true);
  add_case(&trial, op, dtype, operands, input, output, false);
  const Type *from = &operands->types[input], *to = value_type(trial.graph, trial.items.items[0].result);
  bool match = from->dtype == to->dtype && (op_kind(op) == KIND_ASSEMBLY || type_elements(from) == type_elements(to));
  memory_arena_destroy(memory);
  return match;
}

static void add_operator(Cases *cases, Op op, DataType dtype) {
  Operands operands;
  if (!find_operands(op, dtype, &operands)) return;
  for (int input = 0; input < operands.count; input++)
    for (int output = 0; output < op_info(op)->output_count; output++)
      if (sizes_match(op, dtype, &operands, input, output)) add_case(cases, op, dtype, &operands, input, output, false);
  /* an operand that is read in two ways: x and its transpose */
  if (dtype == F32 && op_has(op, OP_COMMUTES) && sizes_match(op, dtype, &operands, 0, 0))
    for (int input = 0; input < 2; input++) add_case(cases, op, dtype, &operands, input, 0, true);
}

/* The operand of every case of an assembly is made in its slice. */
static void choose_parts(Cases *cases) {
  cases->part_count = cases->graph->values.count;
  cases->parts = NEW_ARRAY(cases->memory, Part, cases->part_count);
  for (int64_t i = 0; i < cases->items.count; i++) {
    const Case *c = &cases->items.items[i];
    if (op_kind(c->op) != KIND_ASSEMBLY) continue;
    Part part = {.group = 1, .whole = *value_type(cases->graph, c->result)};
    ViewLayout whole = {.rank = part.whole.rank};
    int64_t stride = 1;
    for (int axis = whole.rank; axis-- > 0; stride *= whole.dims[axis]) {
      whole.dims[axis] = part.whole.dims[axis];
      whole.strides[axis] = stride;
    }
    Placement placement = {0};
    op_info(c->op)->place(cases->graph, graph_node(cases->graph, c->node), c->input, &placement);
    part.view = whole;
    part.view.offset = placement.start * whole.strides[placement.axis];
    part.view.strides[placement.axis] *= placement.step;
    part.view.dims[placement.axis] = value_type(cases->graph, c->host)->dims[placement.axis];
    cases->parts[c->host] = part;
  }
}

static StorageTable *table_of(const Cases *cases) {
  StorageTable like = {
      .alignment = emitted_pipeline().alignment, .parts = cases->parts, .part_count = cases->part_count};
  return assign_storages_like(cases->graph, &like, cases->memory);
}

static bool is_pair_of(const StorageTable *table, const InplacePair *pair, const Case *c) {
  return pair->node == c->node && pair->host == table->layouts[c->host].storage &&
         pair->output == table->layouts[c->result].storage;
}

static Cases all_cases(MemoryArena *memory) {
  static const DataType dtypes[] = {F32, F64, I32, I64, U8, BOOL};
  Cases cases = {.memory = memory, .module = module_create(memory, "Aliasing", "aliasing.rp")};
  cases.graph = cases.module->evaluation = graph_create(cases.module, true);
  cases.graph->loss = (GraphOutput){.value = NO_VALUE, .denominator = NO_VALUE};
  for (int op = OP_NONE + 1; op < OP_COUNT; op++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) add_operator(&cases, (Op)op, dtypes[d]);
  choose_parts(&cases);
  PipelineOptions pipeline = emitted_pipeline();
  for (NodeId id = 0; pipeline.workspace && id < cases.graph->nodes.count; id++) {
    Node *node = graph_node(cases.graph, id);
    node->workspace = pipeline.workspace(pipeline.workspace_context, cases.graph, node);
  }
  const StorageTable *table = table_of(&cases);
  for (int64_t i = 0, pair = 0; i < cases.items.count; i++) {
    Case *c = &cases.items.items[i];
    for (; pair < table->inplace.count && table->inplace.items[pair].node <= c->node; pair++)
      c->permitted = c->permitted || is_pair_of(table, &table->inplace.items[pair], c);
  }
  return cases;
}

/* ---- programs ---- */

typedef enum Forced { FORCE_NOTHING, FORCE_PERMITTED, FORCE_FORBIDDEN } Forced;

static void force(const Cases *cases, StorageTable *table, Forced forced) {
  table->inplace.count = 0;
  for (int64_t i = 0; i < cases->items.count; i++) {
    const Case *c = &cases->items.items[i];
    if (forced == FORCE_NOTHING || c->permitted != (forced == FORCE_PERMITTED)) continue;
    InplacePair pair = {c->node, table->layouts[c->host].storage, table->layouts[c->result].storage};
    array_push(cases->memory, &table->inplace, pair);
  }
}

static int64_t count_taken(const Schedule *schedule) {
  int64_t count = 0;
  for (int64_t i = 0; i < schedule->steps.count; i++) count += schedule->steps.items[i].into_count;
  return count;
}

static void fill(Evaluation *evaluation) {
  for (int64_t k = 0; k < evaluation->graph->module->inputs.count; k++) {
    EvalTensor *tensor = &evaluation->inputs[k];
    for (int64_t i = 0; i < type_elements(&tensor->type); i++) {
      double wave = sin(1.7 * (double)i + (double)k);
      bool truth = tensor->type.dtype == BOOL;
      eval_tensor_set(tensor, i, tensor->real ? (double)(float)(1.5 * wave) : truth ? wave > 0 : 5 + floor(4 * wave));
    }
  }
}

/* The cases' results, in order: each the bytes of one observable. */
static char **run(const Cases *cases, Forced forced, Evaluation *evaluation, const RpPhase **phase) {
  StorageTable *table = table_of(cases);
  force(cases, table, forced);
  Schedule *schedule = order_graph(cases->graph, table, cases->memory);
  assert_int_equal(count_taken(schedule), table->inplace.count);
  Compilation compilation = {.module = cases->module, .alignment = table->alignment, .budget = -1};
  compilation.evaluation = (CompiledGraph){cases->graph, table, schedule, NULL};
  compilation.evaluation.map = plan_memory(cases->graph, table, schedule, -1, 0, cases->memory);
  compilation.arena_bytes = compilation.evaluation.map->arena_bytes;
  Emitted *emitted = emitted_load(cases->memory, &compilation);
  *phase = &emitted->program->evaluation;
  assert_int_equal((*phase)->observable_count, cases->items.count);
  emitted->set_threads(3);
  emitted_fill(emitted, evaluation);
  emitted_run(emitted, *phase);
  free(emitted->arena);
  return emitted->observed;
}

static bool is_close(double found, double wanted, double tolerance) {
  return found == wanted || (isnan(found) && isnan(wanted)) || fabs(found - wanted) <= tolerance * (1 + fabs(wanted));
}

static bool equal_results(const RpTensor *tensor, const char *a, const char *b) {
  for (int64_t i = 0; i < emitted_elements(tensor); i++)
    if (!is_close(emitted_element(tensor, a, i), emitted_element(tensor, b, i), 0)) return false;
  return true;
}

/* Expressions are shared with the interpreter; hand-made kernels and products round otherwise. */
static bool agrees(const Case *c, const RpTensor *tensor, const char *bytes, const EvalTensor *expected) {
  bool exact = (op_kind(c->op) == KIND_POINTWISE && emitted_is_exact()) || op_kind(c->op) == KIND_ASSEMBLY;
  double tolerance = exact ? 0 : c->dtype == F64 ? 1e-10 : 2e-4;
  for (int64_t i = 0; i < emitted_elements(tensor); i++)
    if (!is_close(emitted_element(tensor, bytes, i), eval_tensor_get(expected, i), tolerance)) return false;
  return true;
}

static Evaluation *interpret(const Cases *cases) {
  Evaluation *evaluation = eval_create(cases->memory, cases->graph, EVAL_F32);
  evaluation->control.seed = 7;
  fill(evaluation);
  if (!eval_run(evaluation)) fail_msg("%s", evaluation->fault);
  return evaluation;
}

static void permitted_pairs_change_nothing(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  Cases cases = all_cases(memory);
  Evaluation *evaluation = interpret(&cases);
  const RpPhase *phase;
  char **apart = run(&cases, FORCE_NOTHING, evaluation, &phase),
       **aliased = run(&cases, FORCE_PERMITTED, evaluation, &phase);
  for (int64_t i = 0; i < cases.items.count; i++) {
    const Case *c = &cases.items.items[i];
    const RpTensor *tensor = &phase->observables[i].tensor;
    if (!agrees(c, tensor, apart[i], eval_value(evaluation, c->result)))
      fail_msg("%s: not what the interpreter has", tensor->name);
    if (!agrees(c, tensor, aliased[i], eval_value(evaluation, c->result)) ||
        !equal_results(tensor, apart[i], aliased[i]))
      fail_msg("%s: in the bytes of operand %d the result differs", tensor->name, c->input);
  }
  memory_arena_destroy(memory);
}

/* The test can fail: where the table permits nothing, forcing it shows. Products of both operands, and x + xᵀ. */
static void forbidden_pairs_show(void **state) {
  (void)state;
  if (emitted_pipeline().workspace) skip(); /* the emulated device ends a program with such a race at once */
  MemoryArena *memory = memory_arena_create();
  Cases cases = all_cases(memory);
  Evaluation *evaluation = interpret(&cases);
  const RpPhase *phase;
  char **aliased = run(&cases, FORCE_FORBIDDEN, evaluation, &phase);
  int products = 0, assemblies = 0, turned = 0;
  for (int64_t i = 0; i < cases.items.count; i++) {
    const Case *c = &cases.items.items[i];
    if (c->permitted || agrees(c, &phase->observables[i].tensor, aliased[i], eval_value(evaluation, c->result)))
      continue;
    products += op_kind(c->op) == KIND_CONTRACTION && c->dtype == F32;
    assemblies += op_kind(c->op) == KIND_ASSEMBLY && c->dtype == F32;
    turned += op_has(c->op, OP_COMMUTES);
  }
  assert_int_equal(products, 2);
  assert_true(assemblies > 0); /* a fill would overwrite the part */
  assert_true(turned > 0);
  memory_arena_destroy(memory);
}

/* Each row of the table that can have a permission has a case of it; so has each pair of a kernel's row. */
static void every_row_has_a_case(void **state) {
  (void)state;
  MemoryArena *memory = memory_arena_create();
  Cases cases = all_cases(memory);
  unsigned permitted[OP_COUNT] = {0}; /* bit 4 * input + output */
  for (int64_t i = 0; i < cases.items.count; i++) {
    const Case *c = &cases.items.items[i];
    if (c->permitted) permitted[c->op] |= 1u << (4 * c->input + c->output);
  }
  for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info((Op)op);
    unsigned wanted = info->kind == KIND_KERNEL ? info->inplace : 0;
    bool numbers_become_bools = info->kind == KIND_POINTWISE && info->operands == NUMBERS_TO_BOOL;
    for (int i = 0; info->kind == KIND_POINTWISE && i < info->input_count && !numbers_become_bools; i++)
      if (!(info->properties & OP_EFFECT)) wanted |= 1u << (4 * i);
    if (permitted[op] != wanted && info->kind != KIND_ASSEMBLY)
      fail_msg("%s: permissions 0x%x, cases 0x%x", info->name, wanted, permitted[op]);
  }
  assert_int_equal(permitted[op_find("concat")], 0x111);
  memory_arena_destroy(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_has_a_case),
      cmocka_unit_test(permitted_pairs_change_nothing),
      cmocka_unit_test(forbidden_pairs_show),
  };
  return cmocka_run_group_tests_name("codegen: aliasing", tests, NULL, NULL);
}
