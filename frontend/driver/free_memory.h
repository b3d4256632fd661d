/* frontend/driver/free_memory.h - the memory that this machine has free now. */
#ifndef REPRISE_FRONTEND_DRIVER_FREE_MEMORY_H
#define REPRISE_FRONTEND_DRIVER_FREE_MEMORY_H

#include "codegen/target.h"

/* Bytes that a program of the target can have for its arena: of the first GPU, beside a context and cuBLAS, or of main
 * memory; whole MiB, with a little left over. False with *error, in the arena or static, when nobody says. */
bool find_free_memory(const Target *target, MemoryArena *arena, int64_t *bytes, const char **error);

#endif
