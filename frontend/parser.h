/* frontend/parser.h - tokens to syntax tree: predictive recursive descent, one function per grammar rule. */
#ifndef REPRISE_FRONTEND_PARSER_H
#define REPRISE_FRONTEND_PARSER_H

#include "frontend/ast.h"

/* Parses a source and reports every error with diag_error, resuming at the next statement. The file is never NULL; it
 * is whole only when no error was added. Tree and tokens live in the arena and point into the source. */
File *parse_source(MemoryArena *arena, const Source *source);

#endif
