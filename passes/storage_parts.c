/* passes/storage_parts.c - assemblies whose inputs are made where they belong, so that nothing is copied.
 *
 * Inputs of one assembly that one node makes are parts: they share a storage as large as the assembly's output, each in
 * its slice, and the assembly may take that storage's bytes like any node that overwrites its input. Where it does,
 * only the inputs of other nodes are copied; where it does not (a plan keeps the parts for a second run), all are. So
 * parts need no rule of their own: to schedule, planner, replay and memory map they are one output and one in-place
 * pair.
 *
 * The storage lives from the making of the parts, so it must not be made early. Parts are chosen where, in the schedule
 * that keeps everything, no step from their making to the assembly holds more than the most that one of them held
 * before. Where the assembly follows at once, that may rise (outputs that took the bytes of inputs have bytes of their
 * own now), but neither above the peak of the schedule nor, what bounds the smallest budget, the bytes that the making
 * node alone works on above those of the largest node. Pointwise nodes and contractions make parts anywhere;
 * hand-made kernels and reductions write densely, so only where the slice is contiguous. */
#include "passes/facts.h"
#include "passes/storage.h"

typedef ARRAY(NodeId) NodeList;

/* An input of an assembly that can be made where it belongs. */
typedef struct PartInput {
  ValueId root;    /* what is made; the input may be a view of it */
  NodeId producer; /* NO_NODE: it cannot */
  ViewLayout view; /* where the root has to lie in the assembly's output */
} PartInput;

typedef struct Chooser {
  const Graph *graph;
  const StorageTable *table;
  const Schedule *schedule;
  MemoryArena *scratch;
  Part *parts; /* per value */
  int groups;
  int *uses;           /* per value */
  bool *named;         /* per value */
  int64_t *run_step;   /* per node: its step */
  int64_t *live_bytes; /* per step, with the parts chosen so far */
  int64_t largest_set; /* the most bytes that one node works on */
  PartInput *inputs;   /* of the assembly at hand */
} Chooser;

/* Inputs of an assembly that one node makes. */
typedef struct Candidate {
  NodeId producer, assembly;
  int64_t bytes; /* of their storages */
} Candidate;

static int64_t storage_bytes(const Chooser *c, ValueId value) {
  return c->table->storages.items[c->table->layouts[value].storage].bytes;
}

static bool covers_output(const Graph *graph, const Node *node) {
  int64_t covered = 0;
  for (int i = 0; i < node->input_count; i++) covered += type_elements(value_type(graph, node->inputs[i]));
  return covered == type_elements(value_type(graph, node->outputs[0]));
}

/* Is the value there for one reader only? */
static bool is_private(const Chooser *c, ValueId id) {
  const Value *value = graph_value(c->graph, id);
  return value->kind == VALUE_RESULT && c->uses[id] == 1 && !c->named[id] && value->constraint == CONSTRAINT_NONE;
}

/* What the layout of a root has to be for a view of all its elements to lie at `target`, where the view only permutes
 * axes and adds or drops axes of size 1. `view` is its layout when the root is dense. */
static bool invert_view(const Type *root, const ViewLayout *view, const ViewLayout *target, ViewLayout *layout) {
  const ViewLayout dense = layout_dense(root);
  int left = 0;
  *layout = dense;
  layout->offset = target->offset;
  for (int a = 0; a < dense.rank; a++) left += dense.dims[a] != 1;
  for (int i = 0; i < view->rank; i++) {
    int a = 0;
    if (view->dims[i] == 1) continue;
    while (a < dense.rank && !(dense.dims[a] == view->dims[i] && dense.strides[a] == view->strides[i])) a++;
    if (a == dense.rank) return false;
    layout->strides[a] = target->strides[i];
    left--;
  }
  return left == 0 && view->offset == 0;
}

/* Follows views from an input of an assembly up to the value that they show; their nodes are appended to `chain`. */
static ValueId find_root(const Chooser *c, ValueId id, NodeList *chain) {
  while (is_private(c, id) && node_is_view(graph_node(c->graph, graph_value(c->graph, id)->producer))) {
    array_push(c->scratch, chain, graph_value(c->graph, id)->producer);
    id = graph_node(c->graph, graph_value(c->graph, id)->producer)->inputs[0];
  }
  return id;
}

/* The layout of the end of a chain of views of a value that lies at `layout`; false where a view would need a copy. */
static bool show_through(const Chooser *c, const NodeList *chain, ViewLayout layout, ViewLayout *shown) {
  *shown = layout;
  for (int64_t i = chain->count; i-- > 0;) {
    const Node *view = graph_node(c->graph, chain->items[i]);
    layout = *shown;
    if (!op_info(view->op)->layout(c->graph, view, &layout, shown)) return false;
  }
  return true;
}

/* Pointwise nodes write any layout; rows of a product are dense and do not overlap; the others write densely, to where
 * a storage might begin. */
static bool may_write(const Chooser *c, const Node *producer, DataType dtype, const ViewLayout *layout) {
  int last = layout->rank - 1;
  switch (op_kind(producer->op)) {
    case KIND_POINTWISE:
      return true;
    case KIND_CONTRACTION:
      return (layout->dims[last] == 1 || layout->strides[last] == 1) &&
             (layout->dims[last - 1] == 1 || layout->strides[last - 1] >= layout->dims[last]);
    case KIND_KERNEL:
    case KIND_REDUCTION:
      return layout_is_dense(layout) && layout->offset * dtype_bytes(dtype) % c->table->alignment == 0;
    default:
      return false;
  }
}

/* The value that would have to be made elsewhere so that the input lies in its slice, and where. */
static PartInput find_part(const Chooser *c, const Node *assembly, int input) {
  const PartInput none = {.root = NO_VALUE, .producer = NO_NODE};
  NodeList chain = {0};
  PartInput part;
  ViewLayout dense = layout_dense(value_type(c->graph, assembly->outputs[0])), view, shown;
  ViewLayout slice = assembly_slice_view(c->graph, assembly, input, &dense);
  part.root = find_root(c, assembly->inputs[input], &chain);
  if (!is_private(c, part.root)) return none;
  part.producer = graph_value(c->graph, part.root)->producer;
  const Node *producer = graph_node(c->graph, part.producer);
  const Type *type = value_type(c->graph, part.root);
  bool lies_there = producer->phase == assembly->phase && show_through(c, &chain, layout_dense(type), &view) &&
                    invert_view(type, &view, &slice, &part.view) && show_through(c, &chain, part.view, &shown) &&
                    layout_equal(&shown, &slice) && may_write(c, producer, type->dtype, &part.view);
  return lies_there ? part : none;
}

static bool is_part_of(const Chooser *c, const Candidate *candidate, int input) {
  return c->inputs[input].producer == candidate->producer;
}

/* Bytes of parts that took those of an input so far. */
static int64_t bytes_in_place(const Chooser *c, const Candidate *candidate) {
  const Step *step = &c->schedule->steps.items[c->run_step[candidate->producer]];
  const Node *assembly = graph_node(c->graph, candidate->assembly);
  int64_t bytes = 0;
  for (int i = 0; i < assembly->input_count; i++)
    for (int k = 0; k < step->into_count; k++)
      if (is_part_of(c, candidate, i) && step->into_outputs[k] == c->table->layouts[assembly->inputs[i]].storage)
        bytes += storage_bytes(c, assembly->inputs[i]);
  return bytes;
}

/* What parts change about the live bytes of a step between the run that makes them and that of the assembly. */
static int64_t change_at(const Chooser *c, const Candidate *candidate, int64_t step) {
  int64_t whole = storage_bytes(c, graph_node(c->graph, candidate->assembly)->outputs[0]);
  if (step == c->run_step[candidate->assembly]) return -candidate->bytes;
  int64_t lost = step == c->run_step[candidate->producer] ? bytes_in_place(c, candidate) : 0;
  return whole - candidate->bytes + lost;
}

/* The most bytes live from the making of the parts to the assembly, without and with them. */
static void measure_window(const Chooser *c, const Candidate *candidate, int64_t *before, int64_t *after) {
  *before = *after = 0;
  for (int64_t step = c->run_step[candidate->producer]; step <= c->run_step[candidate->assembly]; step++) {
    int64_t live = c->live_bytes[step], changed = live + change_at(c, candidate, step);
    if (live > *before) *before = live;
    if (changed > *after) *after = changed;
  }
}

static bool follows_at_once(const Chooser *c, const Candidate *candidate) {
  for (int64_t step = c->run_step[candidate->producer] + 1; step < c->run_step[candidate->assembly]; step++)
    if (c->schedule->steps.items[step].run) return false;
  return true;
}

/* Inputs, outputs and workspace of a node. */
static int64_t working_set(const Chooser *c, NodeId id) {
  const Node *node = graph_node(c->graph, id);
  int64_t bytes = align_size(node->workspace, c->table->alignment);
  for (int i = 0; i < node->output_count; i++) bytes = add_sizes(bytes, storage_bytes(c, node->outputs[i]));
  for (int i = 0; i < node->input_count; i++) {
    bool counted = node->inputs[i] == NO_VALUE;
    for (int k = 0; k < i && !counted; k++)
      counted = node->inputs[k] != NO_VALUE &&
                c->table->layouts[node->inputs[k]].storage == c->table->layouts[node->inputs[i]].storage;
    if (!counted) bytes = add_sizes(bytes, storage_bytes(c, node->inputs[i]));
  }
  return bytes;
}

static bool is_worthwhile(const Chooser *c, const Candidate *candidate) {
  int64_t before, after, whole = storage_bytes(c, graph_node(c->graph, candidate->assembly)->outputs[0]);
  measure_window(c, candidate, &before, &after);
  return after <= before || (follows_at_once(c, candidate) && after <= c->schedule->live_peak &&
                             working_set(c, candidate->producer) - candidate->bytes + whole <= c->largest_set);
}

static Candidate candidate_of(const Chooser *c, NodeId assembly, int input) {
  const Node *node = graph_node(c->graph, assembly);
  Candidate candidate = {.producer = c->inputs[input].producer, .assembly = assembly};
  for (int i = 0; i < node->input_count && candidate.producer != NO_NODE; i++)
    if (is_part_of(c, &candidate, i)) candidate.bytes += storage_bytes(c, node->inputs[i]);
  return candidate;
}

static void make_parts(Chooser *c, const Candidate *candidate) {
  const Node *assembly = graph_node(c->graph, candidate->assembly);
  const Value *whole = graph_value(c->graph, assembly->outputs[0]);
  const char *name = whole->name ? whole->name : op_info(assembly->op)->name;
  c->groups++;
  for (int i = 0; i < assembly->input_count; i++) {
    const PartInput *input = &c->inputs[i];
    if (is_part_of(c, candidate, i))
      c->parts[input->root] = (Part){.group = c->groups, .whole = whole->type, .view = input->view, .name = name};
  }
  for (int64_t step = c->run_step[candidate->producer]; step <= c->run_step[candidate->assembly]; step++)
    c->live_bytes[step] += change_at(c, candidate, step);
}

/* The node that makes most of the assembly, of equals the last one. */
static void choose_parts(Chooser *c, NodeId assembly) {
  const Node *node = graph_node(c->graph, assembly);
  Candidate best = {.producer = NO_NODE};
  if (!covers_output(c->graph, node)) return;
  c->inputs = NEW_ARRAY(c->scratch, PartInput, node->input_count);
  for (int i = 0; i < node->input_count; i++) c->inputs[i] = find_part(c, node, i);
  for (int i = 0; i < node->input_count; i++) {
    Candidate candidate = candidate_of(c, assembly, i);
    bool larger = candidate.bytes > best.bytes ||
                  (candidate.bytes == best.bytes && c->run_step[candidate.producer] > c->run_step[best.producer]);
    if (candidate.producer != NO_NODE && (best.producer == NO_NODE || larger) && is_worthwhile(c, &candidate))
      best = candidate;
  }
  if (best.producer != NO_NODE) make_parts(c, &best);
}

Part *find_parts(const Graph *graph, const StorageTable *table, Schedule *schedule, MemoryArena *arena) {
  Chooser c = {.graph = graph, .table = table, .schedule = schedule, .scratch = memory_arena_create()};
  c.parts = NEW_ARRAY(arena, Part, graph->values.count);
  c.uses = graph_count_uses(c.scratch, graph);
  c.named = graph_named_values(c.scratch, graph);
  c.run_step = NEW_ARRAY(c.scratch, int64_t, graph->nodes.count);
  c.live_bytes = NEW_ARRAY(c.scratch, int64_t, schedule->steps.count);
  const char *fault = replay_schedule(graph, table, schedule, c.live_bytes, c.scratch);
  if (fault) die("parts: %s", fault);
  for (int64_t i = 0; i < schedule->steps.count; i++)
    if (schedule->steps.items[i].run) c.run_step[schedule->steps.items[i].node] = i;
  for (NodeId id = 0; id < graph->nodes.count; id++) {
    int64_t bytes = node_is_view(graph_node(graph, id)) ? 0 : working_set(&c, id);
    if (bytes > c.largest_set) c.largest_set = bytes;
  }
  for (NodeId id = 0; id < graph->nodes.count; id++)
    if (op_kind(graph_node(graph, id)->op) == KIND_ASSEMBLY) choose_parts(&c, id);
  memory_arena_destroy(c.scratch);
  return c.groups ? c.parts : NULL;
}
