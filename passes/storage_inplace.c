/* passes/storage_inplace.c - which outputs may take the bytes of which inputs. */
#include "passes/facts.h"
#include "passes/storage.h"

/* Does the value fill its whole storage, element k at place k? */
static bool fills_storage(const StorageBuilder *b, ValueId value) {
  const Layout *layout = &b->table->layouts[value];
  return layout->view.offset == 0 && layout_is_dense(&layout->view) &&
         type_elements(value_type(b->graph, value)) == b->table->storages.items[layout->storage].elements;
}

/* May its bytes be taken at all? */
static bool is_given_away(const StorageBuilder *b, ValueId value) {
  const Storage *storage = &b->table->storages.items[b->table->layouts[value].storage];
  return !storage->persistent && !storage->result;
}

/* Same number of elements of the same type: element k of one has the bytes of element k of the other. */
static bool elements_match(const StorageBuilder *b, ValueId input, ValueId output) {
  const Type *from = value_type(b->graph, input), *to = value_type(b->graph, output);
  return from->dtype == to->dtype && type_elements(from) == type_elements(to);
}

/* Is the storage of input i read through this input alone, or only by inputs that read it the same way? */
static bool read_one_way(const StorageBuilder *b, const Node *node, int input, bool again) {
  int storage = b->table->layouts[node->inputs[input]].storage;
  for (int i = 0; i < node->input_count; i++) {
    if (i == input || node->inputs[i] == NO_VALUE || b->table->layouts[node->inputs[i]].storage != storage) continue;
    if (!again || !fills_storage(b, node->inputs[i]) || !elements_match(b, node->inputs[i], node->inputs[input]))
      return false;
  }
  return true;
}

bool input_is_assembled(const Graph *graph, const StorageTable *table, const Node *node, int input) {
  const Layout *from = &table->layouts[node->inputs[input]], *to = &table->layouts[node->outputs[0]];
  ViewLayout slice = assembly_slice_view(graph, node, input, &to->view);
  return !table->storages.items[from->storage].persistent &&
         table->storages.items[from->storage].elements == table->storages.items[to->storage].elements &&
         layout_equal(&slice, &from->view);
}

/* Does the storage of an assembly's input hold nothing that the assembly reads but inputs in their places? Those it
 * copies must not overwrite others, so all of the output must come from inputs: a fill would come first. */
static bool holds_parts(const StorageBuilder *b, const Node *node, int input) {
  int storage = b->table->layouts[node->inputs[input]].storage;
  int64_t covered = 0;
  for (int i = 0; i < node->input_count; i++) {
    covered += type_elements(value_type(b->graph, node->inputs[i]));
    if (b->table->layouts[node->inputs[i]].storage == storage && !input_is_assembled(b->graph, b->table, node, i))
      return false;
  }
  return covered == type_elements(value_type(b->graph, node->outputs[0]));
}

static bool permits(const StorageBuilder *b, const Node *node, int input, int output) {
  ValueId from = node->inputs[input], to = node->outputs[output];
  if (from == NO_VALUE || !is_given_away(b, from) || !fills_storage(b, to)) return false;
  if (op_kind(node->op) == KIND_ASSEMBLY) return holds_parts(b, node, input);
  if (!fills_storage(b, from) || !elements_match(b, from, to)) return false;
  switch (op_kind(node->op)) {
    case KIND_POINTWISE:
      return read_one_way(b, node, input, true);
    case KIND_KERNEL:
      return (op_info(node->op)->inplace >> (4 * input + output) & 1) && read_one_way(b, node, input, false);
    default:
      return false;
  }
}

static bool listed(const StorageTable *table, InplacePair pair) {
  for (int64_t i = table->inplace.count; i-- > 0 && table->inplace.items[i].node == pair.node;)
    if (table->inplace.items[i].host == pair.host && table->inplace.items[i].output == pair.output) return true;
  return false;
}

void list_inplace_pairs(StorageBuilder *b) {
  StorageTable *table = b->table;
  for (NodeId id = 0; id < b->graph->nodes.count; id++) {
    const Node *node = graph_node(b->graph, id);
    for (int output = 0; output < node->output_count && !node_is_view(node); output++)
      for (int input = 0; input < node->input_count; input++) {
        if (!permits(b, node, input, output)) continue;
        InplacePair pair = {id, table->layouts[node->inputs[input]].storage,
                            table->layouts[node->outputs[output]].storage};
        if (!listed(table, pair)) array_push(b->arena, &table->inplace, pair);
      }
  }
}
