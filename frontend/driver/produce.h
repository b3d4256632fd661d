/* frontend/driver/produce.h - from a module to files: passes, code generation, linking. */
#ifndef REPRISE_FRONTEND_DRIVER_PRODUCE_H
#define REPRISE_FRONTEND_DRIVER_PRODUCE_H

#include "frontend/driver/options.h"
#include "passes/passes.h"

/* Runs the passes with the target's alignment and the options' budget. NULL after errors were reported. */
Compilation *compile_for_target(const Options *options, Module *module);

/* Emits, compiles and links the program. Returns an ExitCode after its own message. */
int produce_executable(const Options *options, const Compilation *compilation, const char *output);

/* Writes a text to a file or standard output ("-"). Returns EXIT_OK, or EXIT_IO after its message. */
int write_text(const Options *options, const char *path, const char *text);

#endif
