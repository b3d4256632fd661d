/* frontend/driver/main.c - `reprise`: finds the command, parses its options, runs it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "frontend/driver/commands.h"
#include "passes/packing/packing.h"
#include "runtime/files.h"

static const Command commands[] = {
    {"check", "MODEL.rp", "Parses a model, checks names, dimensions and types, and reports what it is.",
     "define json quiet", 1, 1, check_command},
    {"fmt", "FILE.rp...", "Rewrites files in canonical form, comments kept; '-' filters standard input.", "check quiet",
     1, 1 << 20, format_command},
    {"compile", "MODEL.rp -o PROGRAM",
     "Compiles a model to a program that trains it, or writes the C source, the graphs or the planner's graph file.",
     "output define emit target arch tf32 memory-budget strategy device cost profile planner solver-nodes solver-time "
     "plan-out plan-in dot dot-detail svg report points dump cc cflags quiet verbose",
     1, 1, compile_command},
    {"plan", "MODEL.rp|GRAPH.json", "Decides what to keep and what to recompute within a budget, and says why.",
     "define target arch memory-budget strategy device cost profile planner solver-nodes solver-time plan-out plan-in "
     "dot dot-detail svg report points json quiet verbose",
     1, 1, plan_command},
    {"sweep", "MODEL.rp|GRAPH.json", "The curve of budget against time for every strategy.",
     "define target arch memory-budget device cost profile planner solver-nodes solver-time points csv svg json quiet",
     1, 1, sweep_command},
    {"explain", "STORAGE MODEL.rp|GRAPH.json",
     "Why a storage is kept or recomputed, and what the other way would cost, from a solve with it forced.",
     "define target arch memory-budget strategy device cost profile planner solver-nodes solver-time json", 2, 2,
     explain_command},
    {"device", "[NAME]", "Prints a device description, the names of all, or (--measure) measures this machine.",
     "measure output", 0, 1, device_command},
    {"verify", "MODEL.rp",
     "Checks a model's gradients: finite differences in double precision, then the compiled program against the "
     "interpreter, then programs at smaller budgets, bit for bit, against it.",
     "define target arch tf32 memory-budget strategy planner solver-nodes solver-time points elements steps cc cflags "
     "json quiet verbose",
     1, 1, verify_command},
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_help(FILE *file) {
  fputs(
      "Reprise compiles neural-network training into one executable inside a memory budget.\n\n"
      "usage: reprise COMMAND ...\n\n",
      file);
  for (int i = 0; i < COMMAND_COUNT; i++) fprintf(file, "  reprise %-9s %s\n", commands[i].name, commands[i].arguments);
  fputs(
      "  reprise pack      BUFFERS.csv [--capacity=SIZE]\n\n'reprise COMMAND --help' tells more. Documentation: "
      "docs/tour.md.\n",
      file);
}

static const Command *find_command(const char *name) {
  for (int i = 0; i < COMMAND_COUNT; i++)
    if (string_equal(commands[i].name, name)) return &commands[i];
  return NULL;
}

static int unknown_command(const char *name) {
  const char *close = NULL;
  int best = 3;
  for (int i = 0; i < COMMAND_COUNT; i++) {
    int distance = string_distance(name, commands[i].name, best - 1);
    if (distance < best) best = distance, close = commands[i].name;
  }
  fprintf(stderr, "reprise: unknown command '%s'", name);
  if (close) fprintf(stderr, "; did you mean '%s'?", close);
  fputs("\n(see 'reprise --help')\n", stderr);
  return EXIT_USAGE;
}

static bool asks_for_help(int count, char **words) {
  for (int i = 0; i < count; i++)
    if (string_equal(words[i], "--help") || string_equal(words[i], "-h")) return true;
  return false;
}

static int run_command(const Command *command, int count, char **words) {
  if (asks_for_help(count, words)) {
    print_command_help(stdout, command);
    return EXIT_OK;
  }
  MemoryArena *arena = memory_arena_create();
  Options options = {.arena = arena};
  int code = parse_options(command, count, words, &options);
  if (code == EXIT_OK && options.plan_input && !can_read(&options, options.plan_input)) code = EXIT_IO;
  if (code == EXIT_OK) code = command->run(&options);
  print_diagnostics();
  memory_arena_destroy(arena);
  return code;
}

static int run_words(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  const char *name = argv[1];
  if (string_equal(name, "--help") || string_equal(name, "-h") || string_equal(name, "help")) {
    print_help(stdout);
    return EXIT_OK;
  }
  if (string_equal(name, "--version")) {
    puts("reprise " REPRISE_VERSION);
    return EXIT_OK;
  }
  if (string_equal(name, "pack")) return pack_command(argc - 1, argv + 1);
  const Command *command = find_command(name);
  return command ? run_command(command, argc - 2, argv + 2) : unknown_command(name);
}

int main(int argc, char **argv) {
  rp_hold_standard_streams();
  int code = run_words(argc, argv);
  if ((fflush(stdout) == 0 && !ferror(stdout)) || code != EXIT_OK) return code;
  fprintf(stderr, "reprise: cannot write to standard output: %s\n", strerror(errno));
  return EXIT_IO;
}
