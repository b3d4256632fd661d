/* frontend/format.h - the canonical form of a source file (`reprise fmt`).
 *
 * Spacing and indentation are canonical; line breaks, one-line blocks, single blank lines and comments stay where the
 * author put them. format(format(x)) == format(x), and the result parses to the same tree. */
#ifndef REPRISE_FRONTEND_FORMAT_H
#define REPRISE_FRONTEND_FORMAT_H

#include "frontend/ast.h"

/* The text of a file that was parsed without errors; NUL-terminated, in the arena. */
char *format_file(MemoryArena *arena, const File *file);

#endif
