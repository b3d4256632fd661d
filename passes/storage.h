/* passes/storage.h - shared by the files of the storage pass. */
#ifndef REPRISE_PASSES_STORAGE_H
#define REPRISE_PASSES_STORAGE_H

#include "passes/passes.h"

typedef struct StorageBuilder {
  Graph *graph;
  StorageTable *table;
  MemoryArena *arena, *scratch;
} StorageBuilder;

/* storage.c: what the table says of output i of a node, and of a clone's what it says of its original's; NULL: it is no
 * part. */
const Part *part_of(const StorageBuilder *b, const Node *node, int output);

/* storage_names.c: a name for every storage that a node makes: "h.0.attn.y", or "h.0.attn.gelu" where the source has
 * no name for the value; "#2", "#3" … is appended where that is taken. The storage of parts is named
 * after what they become: "cell.concat parts". Clones are named after their originals. */
void name_storages(StorageBuilder *b);

/* storage_inplace.c: fills table->inplace. A pair is permitted where the node reads the host, element by element, only
 * where it writes the output: pointwise nodes, kernels that say so in the op table, and assemblies of which the host
 * holds what lies in it already in its place. */
void list_inplace_pairs(StorageBuilder *b);

/* storage_parts.c: per value of the graph, in the arena; NULL where there are none. */
Part *find_parts(const Graph *graph, const StorageTable *table, Schedule *schedule, MemoryArena *arena);

#endif
