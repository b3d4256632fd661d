/* passes/cost.h - what a node costs on a device, in microseconds. */
#ifndef REPRISE_PASSES_COST_H
#define REPRISE_PASSES_COST_H

#include "passes/passes.h"

/* A device as the roofline model sees it (Williams, Waterman, Patterson 2009). */
typedef struct Device {
  const char *name;
  double flops;     /* f32 floating-point operations per second */
  double bandwidth; /* bytes per second to and from memory */
  double launch;    /* microseconds per kernel */
  int64_t memory;   /* bytes */
} Device;

/* A device by name (passes/devices) or by the path of a description: lines "key = value", '#' starts a comment. Reports
 * what is wrong with diag_error and returns NULL; *io_error is set when a file cannot be read. */
const Device *find_device(MemoryArena *arena, const char *name_or_path, const char **io_error);
/* The description as text, and the names that are built in (NULL-terminated). */
char *device_text(MemoryArena *arena, const Device *device);
const char *const *device_names(void);

/* Work of a node: floating-point operations, and bytes read and written (a broadcast input counts once). */
double node_flops(const Graph *graph, const Node *node);
double node_bytes(const Graph *graph, const StorageTable *table, const Node *node);

/* max(flops / peak, bytes / bandwidth) + launch per node id; views cost nothing. */
double *model_costs(const Graph *graph, const StorageTable *table, const Device *device, MemoryArena *arena);

#endif
