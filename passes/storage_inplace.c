/* passes/storage_inplace.c - which outputs may take the bytes of which inputs. */
#include "passes/facts.h"
#include "passes/storage.h"

/* Does the value cover its whole storage, element k at place k, and is it neither persistent nor a result? */
static bool covers_storage(const StorageBuilder *b, ValueId value) {
  const Layout *layout = &b->table->layouts[value];
  const Storage *storage = &b->table->storages.items[layout->storage];
  return !storage->persistent && !storage->result && layout->view.offset == 0 && layout_is_dense(&layout->view) &&
         type_elements(value_type(b->graph, value)) == type_elements(value_type(b->graph, storage->root));
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
    if (!again || !covers_storage(b, node->inputs[i]) || !elements_match(b, node->inputs[i], node->inputs[input]))
      return false;
  }
  return true;
}

static bool permits(const StorageBuilder *b, const Node *node, int input, int output) {
  ValueId from = node->inputs[input], to = node->outputs[output];
  if (from == NO_VALUE || !covers_storage(b, from) || !elements_match(b, from, to)) return false;
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
