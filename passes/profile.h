/* passes/profile.h - measured costs: microseconds of each distinct kernel, kept in a file.
 *
 * A kernel is known by its signature: operator, attributes, body, types and layouts of everything it reads and makes.
 * So one profile serves every budget of a model and every model with the same layers; the same file gives the same
 * plan. */
#ifndef REPRISE_PASSES_PROFILE_H
#define REPRISE_PASSES_PROFILE_H

#include "passes/passes.h"

typedef struct Profile {
  MemoryArena *arena;
  StringMap index;     /* signature -> index into times */
  ARRAY(double) times; /* microseconds */
} Profile;

/* "contract f32[8, 4]{4, 1} f32[4, 2]{1, 4} -> f32[8, 2]{2, 1}": what makes two kernels the same. */
char *node_signature(MemoryArena *arena, const Graph *graph, const StorageTable *table, const Node *node);

Profile *profile_create(MemoryArena *arena);
/* Keeps the smaller of a known and a new time of a kernel. */
void profile_add(Profile *profile, const char *signature, double microseconds);
/* Reads a profile file ("format": "reprise-profile"). NULL with *io_error set when it cannot be read, NULL after
 * diag_error when it is malformed. */
Profile *profile_read(MemoryArena *arena, const char *path, const char **io_error);
char *profile_text(const Profile *profile);

/* Microseconds per node id; *missing counts kernels that the profile lacks (their cost is 0). Views cost nothing. */
double *profile_costs(const Profile *profile, const Graph *graph, const StorageTable *table, int64_t *missing,
                      MemoryArena *arena);

#endif
