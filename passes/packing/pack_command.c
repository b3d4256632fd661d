/* passes/packing/pack_command.c - `reprise pack`: the memory map alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "ir/diagnostics.h"
#include "passes/packing/buffer_table.h"

typedef struct PackArguments {
  const char *input, *output;
  PackingOptions options;
  bool quiet, help;
} PackArguments;

static const char usage[] =
    "usage: reprise pack FILE [--capacity=SIZE] [--alignment=SIZE] [--effort=N] [-o FILE] [-q]\n"
    "  FILE               buffers as CSV with the header id,lower,upper,size ('-': standard input);\n"
    "                     a buffer lives in [lower, upper)\n"
    "  --capacity=SIZE    stop as soon as the buffers fit; exit 3 when they do not\n"
    "                     (default: as small as possible)\n"
    "  --alignment=SIZE   offsets are multiples of it (default: 1)\n"
    "  --effort=N         units of work to spend, about half a microsecond each (default: 15000000)\n"
    "  -o FILE            where the table with offsets goes (default: standard output)\n"
    "  -q                 no summary on standard error\n";

static int usage_error(const char *expected, const char *found) {
  fprintf(stderr, "reprise pack: error: expected %s, found '%s'\n%s", expected, found, usage);
  return EXIT_USAGE;
}

static int size_option(const char *argument, const char *name, int64_t *bytes) {
  const char *error;
  if (parse_size(argument + strlen(name), bytes, &error)) return EXIT_OK;
  fprintf(stderr, "reprise pack: error: '%s': %s\n", argument, error);
  return EXIT_USAGE;
}

static int effort_option(const char *argument, int64_t *effort) {
  const char *digits = argument + strlen("--effort=");
  int64_t value = 0;
  bool valid = *digits != '\0';
  for (const char *c = digits; valid && *c; c++)
    valid = *c >= '0' && *c <= '9' && checked_multiply(value, 10, &value) && checked_add(value, *c - '0', &value);
  if (!valid || value == 0) return usage_error("a positive whole number for --effort", digits);
  *effort = value;
  return EXIT_OK;
}

static int unknown_option(const char *argument) {
  static const char *const known[] = {"--capacity=", "--alignment=", "--effort="};
  MemoryArena *arena = memory_arena_create();
  const char *equals = strchr(argument, '=');
  const char *name = equals ? memory_string_range(arena, argument, equals + 1 - argument) : argument;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (string_distance(name, known[i], 3) <= 3) fprintf(stderr, "reprise pack: did you mean '%sVALUE'?\n", known[i]);
  memory_arena_destroy(arena);
  return usage_error("an option of pack", argument);
}

/* Reads one argument, or two for -o; *index is moved on. */
static int read_argument(PackArguments *arguments, int argc, char **argv, int *index) {
  const char *argument = argv[*index];
  if (string_starts(argument, "--capacity=")) return size_option(argument, "--capacity=", &arguments->options.capacity);
  if (string_starts(argument, "--alignment="))
    return size_option(argument, "--alignment=", &arguments->options.alignment);
  if (string_starts(argument, "--effort=")) return effort_option(argument, &arguments->options.effort);
  if (string_equal(argument, "-q")) {
    arguments->quiet = true;
  } else if (string_equal(argument, "-h") || string_equal(argument, "--help")) {
    arguments->help = true;
  } else if (string_equal(argument, "-o")) {
    if (++*index == argc) return usage_error("a file after -o", "the end of the command line");
    arguments->output = argv[*index];
  } else if (argument[0] == '-' && argument[1] != '\0') {
    return unknown_option(argument);
  } else if (arguments->input) {
    return usage_error("one table of buffers", argument);
  } else {
    arguments->input = argument;
  }
  return EXIT_OK;
}

static int does_not_fit(MemoryArena *arena, const PackArguments *arguments, const PackingResult *result) {
  fprintf(stderr, "reprise pack: error: the buffers do not fit %s: best makespan %s, lower bound %s\n",
          format_bytes_exact(arena, arguments->options.capacity), format_bytes_exact(arena, result->makespan),
          format_bytes_exact(arena, result->lower_bound));
  if (result->lower_bound > arguments->options.capacity)
    fprintf(stderr, "reprise pack: note: more bytes than that are live at once, so no packing fits\n");
  else
    fprintf(stderr, "reprise pack: note: a packing may exist; a larger --effort searches on\n");
  return EXIT_BUDGET_INFEASIBLE;
}

static int pack_table(MemoryArena *arena, const PackArguments *arguments, BufferTable table) {
  const char *error;
  int64_t total, length;
  int64_t alignment = arguments->options.alignment;
  if (!packing_total_size(table.items, table.count, alignment, &total)) {
    fprintf(stderr, "%s: error: the sizes of the buffers, rounded up to the alignment, add up to 2^63 or more\n",
            arguments->input);
    return EXIT_SOURCE_ERROR;
  }
  PackingResult result = pack_buffers(table.items, table.count, &arguments->options);
  if (!result.fits) return does_not_fit(arena, arguments, &result);
  char *text = format_buffer_table(arena, table.items, table.count, &length);
  if (!file_write(arena, arguments->output ? arguments->output : "-", text, length, &error)) {
    fprintf(stderr, "reprise pack: error: %s\n", error);
    return EXIT_IO;
  }
  if (!arguments->quiet)
    fprintf(stderr, "%" PRId64 " buffers: makespan %s, lower bound %s%s\n", table.count,
            format_bytes_exact(arena, result.makespan), format_bytes_exact(arena, result.lower_bound),
            result.optimal ? " (optimal)" : "");
  return EXIT_OK;
}

static int pack_file(MemoryArena *arena, const PackArguments *arguments) {
  const char *error;
  int64_t length;
  char *text = file_read(arena, arguments->input, &length, &error);
  if (!text) {
    fprintf(stderr, "reprise pack: error: %s\n", error);
    return EXIT_IO;
  }
  int errors = diag_error_count();
  BufferTable table = parse_buffer_table(arena, arguments->input, text, length);
  if (diag_error_count() == errors) return pack_table(arena, arguments, table);
  diag_print(stderr, isatty(STDERR_FILENO) && !getenv("NO_COLOR"));
  return EXIT_SOURCE_ERROR;
}

int pack_command(int argc, char **argv) {
  PackArguments arguments = {0};
  for (int i = 1; i < argc; i++) {
    int code = read_argument(&arguments, argc, argv, &i);
    if (code != EXIT_OK) return code;
  }
  if (arguments.help) return fputs(usage, stdout) < 0 ? EXIT_IO : EXIT_OK;
  if (!arguments.input) return usage_error("a table of buffers", "no file");
  MemoryArena *arena = memory_arena_create();
  int code = pack_file(arena, &arguments);
  memory_arena_destroy(arena);
  diag_reset();
  return code;
}
