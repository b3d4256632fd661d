/* passes/merge.c - a table of nodes by what they compute. */
#include "passes/merge.h"

static bool swaps(const Node *node) { return node->input_count == 2 && op_has(node->op, OP_COMMUTES); }

static uint64_t hash_integer(uint64_t hash, int64_t value) { return hash_bytes(hash, &value, sizeof value); }

static uint64_t hash_attribute(uint64_t hash, const Attribute *attribute) {
  hash = hash_integer(hash, attribute->given);
  hash = hash_integer(hash, attribute->integer);
  hash = hash_bytes(hash, &attribute->number, sizeof attribute->number);
  hash = hash_bytes(hash, attribute->list, attribute->count * (int64_t)sizeof *attribute->list);
  return hash_bytes(hash, attribute->numbers, attribute->count * (int64_t)sizeof *attribute->numbers);
}

static bool attribute_equal(const Attribute *a, const Attribute *b) {
  size_t count = (size_t)a->count;
  return a->kind == b->kind && a->given == b->given && a->integer == b->integer &&
         memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->count == b->count &&
         memcmp(a->list, b->list, count * sizeof *a->list) == 0 &&
         memcmp(a->numbers, b->numbers, count * sizeof *a->numbers) == 0;
}

static uint64_t hash_node(const Node *node) {
  uint64_t hash = hash_integer(HASH_START, node->op);
  hash = hash_integer(hash, node->phase);
  hash = hash_integer(hash, (int64_t)node->random_id);
  bool swap = swaps(node) && node->inputs[0] > node->inputs[1];
  for (int i = 0; i < node->input_count; i++) hash = hash_integer(hash, node->inputs[swap ? 1 - i : i]);
  for (int i = 0; i < op_info(node->op)->attribute_count; i++) hash = hash_attribute(hash, &node->attributes[i]);
  return hash;
}

static bool inputs_equal(const Node *a, const Node *b) {
  if (a->input_count != b->input_count) return false;
  bool straight = true;
  for (int i = 0; i < a->input_count; i++) straight = straight && a->inputs[i] == b->inputs[i];
  return straight || (swaps(a) && a->inputs[0] == b->inputs[1] && a->inputs[1] == b->inputs[0]);
}

static bool node_equal(const Graph *graph, const Node *a, const Node *b) {
  if (a->op != b->op || a->phase != b->phase || a->random_id != b->random_id || !inputs_equal(a, b)) return false;
  for (int i = 0; i < op_info(a->op)->attribute_count; i++)
    if (!attribute_equal(&a->attributes[i], &b->attributes[i])) return false;
  return graph_value(graph, a->outputs[0])->recompute_block == graph_value(graph, b->outputs[0])->recompute_block;
}

NodeId node_table_find(const NodeTable *table, const Node *node) {
  if (!table->slot_count) return NO_NODE;
  uint64_t hash = hash_node(node), mask = (uint64_t)table->slot_count - 1;
  for (uint64_t slot = hash & mask; table->slots[slot]; slot = (slot + 1) & mask)
    if (table->hashes[slot] == hash && node_equal(table->graph, node, graph_node(table->graph, table->slots[slot] - 1)))
      return table->slots[slot] - 1;
  return NO_NODE;
}

static void put(NodeTable *table, NodeId id, uint64_t hash) {
  uint64_t mask = (uint64_t)table->slot_count - 1, slot = hash & mask;
  while (table->slots[slot]) slot = (slot + 1) & mask;
  table->slots[slot] = id + 1;
  table->hashes[slot] = hash;
}

static void grow(NodeTable *table) {
  NodeTable old = *table;
  table->slot_count = old.slot_count ? 2 * old.slot_count : 256;
  table->slots = NEW_ARRAY(table->arena, NodeId, table->slot_count);
  table->hashes = NEW_ARRAY(table->arena, uint64_t, table->slot_count);
  for (int64_t i = 0; i < old.slot_count; i++)
    if (old.slots[i]) put(table, old.slots[i] - 1, old.hashes[i]);
}

void node_table_insert(NodeTable *table, NodeId id) {
  if (2 * ++table->count > table->slot_count) grow(table);
  put(table, id, hash_node(graph_node(table->graph, id)));
}
