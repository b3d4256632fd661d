/* frontend/driver/commands.h - the commands of `reprise`. Each returns an ExitCode. */
#ifndef REPRISE_FRONTEND_DRIVER_COMMANDS_H
#define REPRISE_FRONTEND_DRIVER_COMMANDS_H

#include "frontend/driver/options.h"

int check_command(const Options *options);
int format_command(const Options *options);
int compile_command(const Options *options);
int plan_command(const Options *options);
int explain_command(const Options *options);
int sweep_command(const Options *options);
int device_command(const Options *options);
int verify_command(const Options *options);

/* Elaborates the first file of the options. Returns NULL after the errors were printed, with the exit code. */
Module *load_module(const Options *options, int *exit_code);
/* Prints the collected diagnostics on stderr, in colour on a terminal without NO_COLOR, and forgets them. */
void print_diagnostics(void);
/* "124,439,808" */
char *format_count(MemoryArena *arena, int64_t count);

#endif
