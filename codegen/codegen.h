/* codegen/codegen.h - from a compilation to source text and to an executable. */
#ifndef REPRISE_CODEGEN_CODEGEN_H
#define REPRISE_CODEGEN_CODEGEN_H

#include "codegen/target.h"
#include "passes/passes.h"

typedef struct CodegenOptions {
  const char *plan_json;          /* what the program prints for --plan, NULL: an empty object */
  const struct CudaOptions *cuda; /* for the cuda target */
} CodegenOptions;

/* The program as C: static functions for the distinct kernels, step functions, tables, main. Equal compilations give
 * equal bytes. Text in the arena, *length without its NUL; NULL after diag_error where the model uses what the target
 * cannot compute. */
char *emit_c_program(const Compilation *compilation, const CodegenOptions *options, MemoryArena *arena,
                     int64_t *length);

/* How a C compiler is run. Fields left NULL: */
typedef struct LinkOptions {
  const char *compiler;     /* $REPRISE_CC, else $CC, else "cc"; words separated by blanks */
  const char *flags;        /* $REPRISE_CFLAGS, else "-O3 -march=native"; value-safe flags are added always */
  const char *include_path; /* folder with runtime/program.h; found from the place of the running program */
  const char *library_path; /* folder with libreprise_runtime.a; likewise */
} LinkOptions;

/* The folder with runtime/program.h; NULL with *exit_code and *error as below. */
const char *find_include_path(const LinkOptions *options, MemoryArena *arena, ExitCode *exit_code, const char **error);

/* Compiles and links a C text into an executable that appears whole or not at all. False with *exit_code set (EXIT_IO
 * where files or the compiler are missing, EXIT_INTERNAL where the compiler refuses our text) and a message in *error,
 * in the arena. */
bool link_executable(const char *source, int64_t length, const char *output, const LinkOptions *options,
                     MemoryArena *arena, ExitCode *exit_code, const char **error);

#endif
