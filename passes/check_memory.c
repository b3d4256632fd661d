/* passes/check_memory.c - an independent check of a memory map: a sweep over the schedule with the set of occupied
 * ranges, ordered by offset, in which a new range must fit between its neighbours.
 *
 * Shares no code with the packing engine. The set is a tree of 64-bit words over the ranks of all ranges by offset: a
 * bit per live range, and a bit per word that is not empty in the levels above. */
#include <stdlib.h>

#include "passes/passes.h"

typedef struct Range {
  int64_t offset, bytes;
  int storage; /* or -1: workspace of `node` */
  NodeId node;
  int64_t rank;
} Range;

enum { LEVELS = 6 };

typedef struct Sweep {
  const Graph *graph;
  const StorageTable *table;
  const MemoryMap *map;
  MemoryArena *arena;
  Range *ranges; /* storages by index, then workspaces of nodes */
  Range **ranked;
  int64_t range_count;
  uint64_t *levels[LEVELS];
  const char *fault;
} Sweep;

/* ---- the set of live ranks ---- */

static void set_bit(Sweep *s, int64_t rank, bool live) {
  for (int level = 0; level < LEVELS; level++, rank /= 64) {
    uint64_t *word = &s->levels[level][rank / 64], bit = UINT64_C(1) << (rank % 64);
    if (live) {
      *word |= bit;
    } else {
      *word &= ~bit;
      if (*word) return;
    }
  }
}

/* The nearest live rank above (or below) this one, or -1. */
static int64_t neighbour(const Sweep *s, int64_t rank, bool above) {
  for (int level = 0; level < LEVELS; level++) {
    uint64_t word = s->levels[level][rank / 64];
    int bit = (int)(rank % 64);
    uint64_t beyond = above ? (bit == 63 ? 0 : word >> (bit + 1) << (bit + 1)) : word & ((UINT64_C(1) << bit) - 1);
    rank /= 64;
    if (!beyond) continue;
    for (; level >= 0; level--) {
      rank = rank * 64 + (above ? __builtin_ctzll(beyond) : 63 - __builtin_clzll(beyond));
      if (level) beyond = s->levels[level - 1][rank];
    }
    return rank;
  }
  return -1;
}

/* ---- ranges ---- */

static const char *range_name(const Sweep *s, const Range *range) {
  if (range->storage >= 0) return s->table->storages.items[range->storage].name;
  return memory_format(s->arena, "workspace of node %d", range->node);
}

static bool fail(Sweep *s, const Range *range, const char *what, const Range *other) {
  s->fault = memory_format(
      s->arena, "'%s' (%lld bytes at %lld) %s%s%s%s", range_name(s, range), (long long)range->bytes,
      (long long)range->offset, what, other ? " '" : "", other ? range_name(s, other) : "",
      other ? memory_format(s->arena, "' (%lld bytes at %lld)", (long long)other->bytes, (long long)other->offset)
            : "");
  return false;
}

static bool overlaps(const Range *a, const Range *b) {
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool occupy(Sweep *s, Range *range) {
  if (!range->bytes) return true;
  for (int side = 0; side < 2; side++) {
    int64_t rank = neighbour(s, range->rank, side);
    if (rank >= 0 && overlaps(range, s->ranked[rank])) return fail(s, range, "overlaps", s->ranked[rank]);
  }
  set_bit(s, range->rank, true);
  return true;
}

static void vacate(Sweep *s, const Range *range) {
  if (range->bytes) set_bit(s, range->rank, false);
}

static int compare_offsets(const void *left, const void *right) {
  const Range *a = *(Range *const *)left, *b = *(Range *const *)right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a < b ? -1 : a > b;
}

static void rank_ranges(Sweep *s) {
  s->ranked = NEW_ARRAY(s->arena, Range *, s->range_count);
  for (int64_t i = 0; i < s->range_count; i++) s->ranked[i] = &s->ranges[i];
  if (s->range_count) qsort(s->ranked, (size_t)s->range_count, sizeof *s->ranked, compare_offsets);
  for (int64_t i = 0; i < s->range_count; i++) s->ranked[i]->rank = i;
  int64_t words = s->range_count;
  for (int level = 0; level < LEVELS; level++) s->levels[level] = NEW_ARRAY(s->arena, uint64_t, words = words / 64 + 1);
}

static void collect_ranges(Sweep *s) {
  int64_t storages = s->table->storages.count, nodes = s->graph->nodes.count;
  s->range_count = storages + nodes;
  s->ranges = NEW_ARRAY(s->arena, Range, s->range_count);
  for (int64_t i = 0; i < storages; i++)
    s->ranges[i] = (Range){s->map->offsets[i], s->table->storages.items[i].bytes, (int)i, NO_NODE, 0};
  for (int64_t n = 0; n < nodes; n++)
    s->ranges[storages + n] =
        (Range){s->map->workspace_offsets[n], graph_node(s->graph, (NodeId)n)->workspace, -1, (NodeId)n, 0};
  rank_ranges(s);
}

/* ---- the checks ---- */

static bool check_bounds(Sweep *s, int64_t *touched) {
  const MemoryMap *map = s->map;
  for (int64_t i = 0; i < s->range_count; i++) {
    const Range *range = &s->ranges[i];
    bool persistent = range->storage >= 0 && s->table->storages.items[range->storage].persistent;
    bool used = range->bytes && (range->storage >= 0 || range->offset >= 0);
    if (range->storage < 0 && range->bytes && range->offset < 0) return fail(s, range, "has no place", NULL);
    if (!used) continue;
    if (range->offset < 0 || range->offset % s->table->alignment) return fail(s, range, "is not aligned", NULL);
    if (range->offset + range->bytes > map->arena_bytes) return fail(s, range, "lies beyond the arena", NULL);
    if (persistent ? range->offset + range->bytes > map->persistent_bytes : range->offset < map->persistent_bytes)
      return fail(s, range, "lies in the wrong section", NULL);
    if (range->offset + range->bytes > *touched) *touched = range->offset + range->bytes;
  }
  return true;
}

static bool sweep_run(Sweep *s, const Step *step) {
  const Node *node = graph_node(s->graph, step->node);
  for (int i = 0; i < step->into_count; i++) {
    Range *host = &s->ranges[step->into_hosts[i]], *output = &s->ranges[step->into_outputs[i]];
    if (host->offset != output->offset) return fail(s, output, "does not lie where its host does,", host);
    vacate(s, host);
  }
  for (int i = 0; i < node->output_count; i++) {
    int storage = s->table->layouts[node->outputs[i]].storage;
    bool shared = false; /* with an output before it */
    for (int k = 0; k < i; k++) shared = shared || s->table->layouts[node->outputs[k]].storage == storage;
    if (!shared && !occupy(s, &s->ranges[storage])) return false;
  }
  Range *workspace = &s->ranges[s->table->storages.count + step->node];
  if (!occupy(s, workspace)) return false;
  vacate(s, workspace);
  return true;
}

static bool sweep(Sweep *s, const Schedule *schedule) {
  int64_t touched = 0;
  if (!check_bounds(s, &touched)) return false;
  if (align_size(touched, s->table->alignment) != s->map->arena_bytes) {
    s->fault = memory_format(s->arena, "the arena has %lld bytes, the last one used is %lld",
                             (long long)s->map->arena_bytes, (long long)touched);
    return false;
  }
  for (int64_t i = 0; i < s->table->storages.count; i++)
    if (s->table->storages.items[i].persistent && !occupy(s, &s->ranges[i])) return false;
  for (int64_t i = 0; i < schedule->steps.count; i++) {
    const Step *step = &schedule->steps.items[i];
    if (!step->run)
      vacate(s, &s->ranges[step->storage]);
    else if (!sweep_run(s, step))
      return false;
  }
  return true;
}

const char *check_memory(const Graph *graph, const StorageTable *table, const Schedule *schedule, const MemoryMap *map,
                         MemoryArena *arena) {
  Sweep s = {.graph = graph, .table = table, .map = map, .arena = arena};
  collect_ranges(&s);
  return sweep(&s, schedule) ? NULL : s.fault;
}
