/* frontend/elaborate.h - static semantics: from syntax trees to a Module with its two graphs (docs/language.md).
 *
 * Everything is computed here: constants, dimensions, module calls (expanded in place), parameter paths, loops and
 * conditions. What comes out is built through the calls of ir/ir.h alone. */
#ifndef REPRISE_FRONTEND_ELABORATE_H
#define REPRISE_FRONTEND_ELABORATE_H

#include "frontend/ast.h"
#include "ir/ir.h"

/* "-D NAME=VALUE": replaces a dim or const of the main file. The value is an expression of the language. */
typedef struct Definition {
  const char *name, *value;
} Definition;

/* Elaborates the model of a file that parsed without errors: the one of its train block, else the last one declared.
 * Other files are read relative to its path. Returns NULL after errors, all reported with diag_error; the module and
 * all that its locations point to live in the arena. */
Module *elaborate_file(MemoryArena *arena, File *file, const Definition *definitions, int definition_count);

/* Reads, parses and elaborates ("-" is stdin). A file that cannot be read gives an error without a location in
 * *io_error and NULL without a diagnostic; *io_error is NULL otherwise. */
Module *elaborate_path(MemoryArena *arena, const char *path, const Definition *definitions, int definition_count,
                       const char **io_error);

#endif
