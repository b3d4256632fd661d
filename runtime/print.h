/* runtime/print.h - the first step's values in words: what --dump-grads writes, for people (--print). */
#ifndef REPRISE_RUNTIME_PRINT_H
#define REPRISE_RUNTIME_PRINT_H

#include "runtime/status.h"

/* Prints every tensor of a dump on the standard output, a line each: "name = value" for scalars, else type, shape and
 * the first elements. */
bool rp_print_dump(const char *path, RpStatus *status);

/* A fresh empty file in $TMPDIR for a dump that only --print reads; the caller unlinks and frees it. NULL on failure. */
char *rp_print_temporary(RpStatus *status);

#endif
