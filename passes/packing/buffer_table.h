/* passes/packing/buffer_table.h - buffers as CSV: id,lower,upper,size in, the same with an offset column out. */
#ifndef REPRISE_PASSES_PACKING_BUFFER_TABLE_H
#define REPRISE_PASSES_PACKING_BUFFER_TABLE_H

#include "passes/packing/packing.h"

typedef ARRAY(PackingBuffer) BufferTable;

/* Parses a NUL-terminated table, which begins with the line "id,lower,upper,size" or the same with ",offset" (ignored,
 * so that a packed table can be packed again). Lines may end in CR LF; blank ones are skipped. Faults are reported by
 * diag_error() at their field: compare diag_error_count() before and after. Objects live in the arena. */
BufferTable parse_buffer_table(MemoryArena *arena, const char *path, const char *text, int64_t length);

/* The table with offsets, in the order of the buffers. *length excludes the final NUL. */
char *format_buffer_table(MemoryArena *arena, const PackingBuffer *buffers, int64_t count, int64_t *length);

#endif
