/* passes/storage_names.c - names of storages, for people: unique, and the same whatever clones there are. */
#include "passes/storage.h"

static const char *unique_name(StorageBuilder *b, StringMap *taken, const char *wanted) {
  const char *name = wanted;
  int64_t *count = string_map_find(taken, wanted), ordinal = count ? *count : 0;
  do {
    if (ordinal++) name = memory_format(b->arena, "%s#%lld", wanted, (long long)ordinal);
  } while (string_map_find(taken, name));
  string_map_set(taken, wanted, ordinal);
  if (name != wanted) string_map_set(taken, name, 1);
  return name;
}

static const char *named_in(StorageBuilder *b, const Node *node, const char *name) {
  return *node->module ? memory_format(b->arena, "%s.%s", node->module, name) : name;
}

static const char *wanted_name(StorageBuilder *b, const Storage *storage) {
  const Node *node = graph_node(b->graph, storage->producer);
  const char *own = graph_value(b->graph, storage->root)->name;
  const Part *part = part_of(b, node, graph_value(b->graph, storage->root)->output);
  if (part) return named_in(b, node, memory_format(b->arena, "%s parts", part->name));
  if (!own) own = op_info(node->op)->name;
  if (node->output_count > 1 && !node->body && !graph_value(b->graph, storage->root)->name)
    own = memory_format(b->arena, "%s.%d", own, graph_value(b->graph, storage->root)->output);
  return named_in(b, node, own);
}

static const char *clone_name(StorageBuilder *b, const Storage *storage) {
  const Node *original = graph_node(b->graph, graph_node(b->graph, storage->producer)->original);
  ValueId value = original->outputs[graph_value(b->graph, storage->root)->output];
  const char *name = b->table->storages.items[b->table->layouts[value].storage].name;
  return memory_format(b->arena, "%s again", name);
}

void name_storages(StorageBuilder *b) {
  StringMap taken = {.arena = b->scratch};
  for (int64_t s = 0; s < b->table->storages.count; s++) {
    Storage *storage = &b->table->storages.items[s];
    const char *wanted = storage->name;
    if (!wanted) {
      bool clone = graph_node(b->graph, storage->producer)->original != NO_NODE;
      wanted = clone ? clone_name(b, storage) : wanted_name(b, storage);
    }
    storage->name = unique_name(b, &taken, wanted);
  }
}
