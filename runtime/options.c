#include "runtime/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum OptionId {
  STEPS,
  EPOCHS,
  DATA,
  TEST,
  LR,
  SEED,
  LOAD,
  RENAME,
  SAVE,
  RESUME,
  EVAL,
  LOG,
  THREADS,
  MEMORY,
  PLAN,
  DUMP_GRADS,
  PRINT,
  TRACE,
  POISON,
  HELP,
  OPTION_COUNT
} OptionId;

static const struct {
  const char *name, *argument, *help; /* argument NULL: a switch */
} table[OPTION_COUNT] = {
    [STEPS] = {"--steps", "N", "train until update N, counted from the start of training"},
    [EPOCHS] = {"--epochs", "N", "train for N passes over the data"},
    [DATA] = {"--data", "NAME=FILE", "read input NAME from FILE (plain FILE when the model has one source)"},
    [TEST] = {"--test", "NAME=FILE", "the same for the test data"},
    [LR] = {"--lr", "RATE", "learning rate in place of the model's; schedules and rules scale with it"},
    [SEED] = {"--seed", "N", "seed of initial values, dropout and the order of the data"},
    [LOAD] = {"--load", "FILE", "start from the weights in FILE (safetensors)"},
    [RENAME] = {"--rename", "FROM=TO",
                "with --load: tensor FROM of the file is TO here; a FROM ending in '.' is a prefix"},
    [SAVE] = {"--save", "FILE", "write a snapshot to FILE (safetensors) at the end, or when interrupted"},
    [RESUME] = {"--resume", "FILE", "go on from a snapshot exactly as if training had not stopped"},
    [EVAL] = {"--eval", NULL, "evaluate on the test data and exit"},
    [LOG] = {"--log", "FILE", "write JSON lines to FILE as well"},
    [THREADS] = {"--threads", "N", "number of threads"},
    [MEMORY] = {"--memory", NULL,
                "measure the first step's memory and print it beside the plan (1 step unless --steps)"},
    [PLAN] = {"--plan", NULL, "print the plan this program was compiled with and exit"},
    [DUMP_GRADS] = {"--dump-grads", "FILE", "write the first step's loss, outputs and gradients to FILE (safetensors)"},
    [PRINT] = {"--print", NULL, "print the first step's loss, outputs and gradients, and exit"},
    [TRACE] = {"--trace", "FILE", "write the second step's kernels and live bytes to FILE (Chrome trace JSON)"},
    [POISON] = {"--poison", NULL, "overwrite freed bytes with NaN after each kernel (for finding errors; slow)"},
    [HELP] = {"--help", NULL, "print this and exit"},
};

/* Levenshtein distance, strings cut at 31 characters. */
static int edit_distance(const char *a, const char *b) {
  enum { MOST = 32 };
  int row[MOST], a_length = (int)strnlen(a, MOST - 1), b_length = (int)strnlen(b, MOST - 1);
  for (int j = 0; j <= b_length; j++) row[j] = j;
  for (int i = 1; i <= a_length; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= b_length; j++) {
      int replaced = diagonal + (a[i - 1] != b[j - 1]), shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
      diagonal = row[j];
      row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
    }
  }
  return row[b_length];
}

static bool fail_unknown(const char *name, RpStatus *status) {
  int best = -1, best_distance = 4;
  for (int i = 0; i < OPTION_COUNT; i++) {
    int distance = edit_distance(name, table[i].name);
    if (distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  if (best >= 0) {
    return rp_fail(status, RP_USAGE, "unknown option '%s'; did you mean '%s'?", name, table[best].name);
  }
  return rp_fail(status, RP_USAGE, "unknown option '%s'; --help lists them", name);
}

/* A decimal number of digits only; no sign, no overflow past `most`. */
static bool parse_integer(OptionId id, const char *text, uint64_t least, uint64_t most, uint64_t *value,
                          RpStatus *status) {
  char *end = NULL;
  errno = 0;
  unsigned long long number = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
  if (!end || *end || errno || number < least || number > most) {
    return rp_fail(status, RP_USAGE, "%s: expected a whole number from %llu to %llu, found '%s'", table[id].name,
                   (unsigned long long)least, (unsigned long long)most, text);
  }
  *value = number;
  return true;
}

static bool parse_count(OptionId id, const char *text, int64_t *value, RpStatus *status) {
  uint64_t number;
  if (!parse_integer(id, text, 1, INT64_MAX / 1024, &number, status)) return false;
  *value = (int64_t)number;
  return true;
}

static bool parse_rate(const char *text, double *value, RpStatus *status) {
  char *end = NULL;
  double number = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : -1;
  if (!end || end == text || *end || !isfinite(number) || number < 0) {
    return rp_fail(status, RP_USAGE, "--lr: expected a finite number, 0 or more, found '%s'", text);
  }
  *value = number;
  return true;
}

/* What --data may name: readers of files, and for --test also those of the test data. */
static bool names_reader(const RpProgram *program, bool test, const char *name, int length) {
  for (int64_t i = 0; i < program->reader_count + (test ? program->test_reader_count : 0); i++) {
    const RpReader *reader =
        i < program->reader_count ? &program->readers[i] : &program->test_readers[i - program->reader_count];
    bool same = (int)strlen(reader->name) == length && strncmp(reader->name, name, (size_t)length) == 0;
    if (same && reader->kind != RP_READ_CONSTANT) return true;
  }
  return false;
}

/* The only reader of a file, or NULL. */
static const char *only_reader(const RpProgram *program) {
  const char *name = NULL;
  for (int64_t i = 0; i < program->reader_count; i++) {
    if (program->readers[i].kind == RP_READ_CONSTANT) continue;
    if (name) return NULL;
    name = program->readers[i].name;
  }
  return name;
}

static void list_readers(const RpProgram *program, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int64_t i = 0; i < program->reader_count && used < size; i++) {
    if (program->readers[i].kind == RP_READ_CONSTANT) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", program->readers[i].name);
  }
}

static bool parse_source(RpOptions *options, const RpProgram *program, OptionId id, const char *text,
                         RpStatus *status) {
  const char *equals = strchr(text, '='), *only = only_reader(program);
  RpPair pair = {text, equals ? equals + 1 : NULL, equals ? (int)(equals - text) : 0};
  char names[512];
  if (!equals || !names_reader(program, id == TEST, text, pair.name_length)) {
    list_readers(program, names, sizeof names);
    if (!*names) return rp_fail(status, RP_USAGE, "%s: the model reads no file", table[id].name);
    if (!only || !*text) {
      return rp_fail(status, RP_USAGE, "%s: expected NAME=FILE with NAME one of %s, found '%s'", table[id].name, names,
                     text);
    }
    if (equals && access(text, F_OK) != 0) { /* NAME=FILE with another NAME, rather than a file with such a name */
      return rp_fail(status, RP_USAGE, "%s: expected FILE or %s=FILE, found '%s'", table[id].name, only, text);
    }
    pair = (RpPair){only, text, (int)strlen(only)};
  }
  RpPair *pairs = id == TEST ? options->test : options->data;
  int *count = id == TEST ? &options->test_count : &options->data_count;
  for (int i = 0; i < *count; i++) {
    if (pairs[i].name_length == pair.name_length && strncmp(pairs[i].name, pair.name, (size_t)pair.name_length) == 0) {
      return rp_fail(status, RP_USAGE, "%s names '%.*s' twice", table[id].name, pair.name_length, pair.name);
    }
  }
  pairs[(*count)++] = pair;
  return true;
}

static bool parse_rename(RpOptions *options, const char *text, RpStatus *status) {
  const char *equals = strchr(text, '=');
  bool prefix = equals && equals > text && equals[-1] == '.';
  size_t length = equals ? strlen(equals + 1) : 0;
  if (!equals || equals == text || (prefix ? length > 0 && equals[length] != '.' : length == 0)) {
    return rp_fail(status, RP_USAGE, "--rename: expected FROM=TO, or FROM.=TO. (or FROM.=) for a prefix, found '%s'",
                   text);
  }
  options->renames[options->rename_count++] = (RpPair){text, equals + 1, (int)(equals - text)};
  return true;
}

static bool take_string(OptionId id, const char *text, const char **to, RpStatus *status) {
  if (*to) return rp_fail(status, RP_USAGE, "%s is given twice", table[id].name);
  if (!*text) return rp_fail(status, RP_USAGE, "%s: expected a file, found nothing", table[id].name);
  *to = text;
  return true;
}

static bool take(RpOptions *options, const RpProgram *program, OptionId id, const char *text, RpStatus *status) {
  uint64_t number;
  switch (id) {
    case STEPS:
      return parse_count(id, text, &options->steps, status);
    case EPOCHS:
      return parse_count(id, text, &options->epochs, status);
    case DATA:
    case TEST:
      return parse_source(options, program, id, text, status);
    case LR:
      return parse_rate(text, &options->learning_rate, status);
    case SEED:
      options->seed_given = true;
      return parse_integer(id, text, 0, UINT64_MAX, &options->seed, status);
    case LOAD:
      return take_string(id, text, &options->load, status);
    case RENAME:
      return parse_rename(options, text, status);
    case SAVE:
      return take_string(id, text, &options->save, status);
    case RESUME:
      return take_string(id, text, &options->resume, status);
    case LOG:
      return take_string(id, text, &options->log, status);
    case DUMP_GRADS:
      return take_string(id, text, &options->dump_grads, status);
    case TRACE:
      return take_string(id, text, &options->trace, status);
    case THREADS:
      if (!parse_integer(id, text, 1, 1024, &number, status)) return false;
      options->threads = (int)number;
      return true;
    case EVAL:
      options->eval = true;
      return true;
    case PRINT:
      options->print = true;
      return true;
    case MEMORY:
      options->memory = true;
      return true;
    case PLAN:
      options->plan = true;
      return true;
    case POISON:
      options->poison = true;
      return true;
    case HELP:
      options->help = true;
      return true;
    case OPTION_COUNT:
      break;
  }
  return false;
}

/* Combinations in which one option would have no effect. */
static bool check_combinations(const RpOptions *options, const RpProgram *program, RpStatus *status) {
  const struct {
    bool both;
    const char *first, *second, *advice;
  } clashes[] = {
      {options->steps > 0 && options->epochs > 0, "--steps", "--epochs", "give one of them"},
      {options->load && options->resume, "--load", "--resume", "a snapshot holds the weights too"},
      {options->resume && options->seed_given, "--resume", "--seed", "a resumed run keeps its seed"},
      {options->resume && options->dump_grads, "--resume", "--dump-grads",
       "it writes the first step of a run: use --load"},
      {options->print && options->resume, "--print", "--resume", "it prints the first step of a run: use --load"},
      {options->print && (options->steps > 0 || options->epochs > 0), "--print", "--steps or --epochs",
       "it makes one step"},
      {options->eval && options->print, "--eval", "--print", "it makes no gradients"},
      {options->eval && options->resume, "--eval", "--resume", "use --load, which reads snapshots too"},
      {options->eval && (options->steps > 0 || options->epochs > 0), "--eval", "--steps or --epochs",
       "it does not train"},
      {options->eval && options->learning_rate >= 0, "--eval", "--lr", "it does not train"},
      {options->eval && options->save, "--eval", "--save", "it changes nothing"},
      {options->eval && options->memory, "--eval", "--memory", "it measures training"},
      {options->eval && options->dump_grads, "--eval", "--dump-grads", "it makes no gradients"},
      {options->eval && options->trace, "--eval", "--trace", "it traces training"},
  };
  for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
    if (clashes[i].both) {
      return rp_fail(status, RP_USAGE, "%s cannot be combined with %s: %s", clashes[i].first, clashes[i].second,
                     clashes[i].advice);
    }
  }
  if (options->rename_count > 0 && !options->load) return rp_fail(status, RP_USAGE, "--rename needs --load");
  if (options->eval && !program->evaluation.run)
    return rp_fail(status, RP_USAGE, "--eval: the model has no evaluation");
  if (options->learning_rate >= 0 && program->learning_rate == 0) {
    return rp_fail(status, RP_USAGE, "--lr: the model's rate is 0, which nothing can scale; set lr in the model file");
  }
  return true;
}

static OptionId find_option(const char *name, size_t length) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0) return (OptionId)i;
  }
  return OPTION_COUNT;
}

static bool parse_argument(RpOptions *options, const RpProgram *program, int argc, char **argv, int *index,
                           RpStatus *status) {
  const char *word = argv[*index], *equals = strchr(word, '=');
  if (strncmp(word, "--", 2) != 0) {
    return rp_fail(status, RP_USAGE, "expected an option, found '%s'; --help lists them", word);
  }
  OptionId id = find_option(word, equals ? (size_t)(equals - word) : strlen(word));
  if (id == OPTION_COUNT) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - word : (ptrdiff_t)strlen(word)), word);
    return fail_unknown(name, status);
  }
  if (!table[id].argument) {
    if (equals) return rp_fail(status, RP_USAGE, "%s takes no value, found '%s'", table[id].name, equals + 1);
    return take(options, program, id, NULL, status);
  }
  if (equals) return take(options, program, id, equals + 1, status);
  if (*index + 1 >= argc) {
    return rp_fail(status, RP_USAGE, "%s: expected %s, found the end of the command line", table[id].name,
                   table[id].argument);
  }
  *index += 1;
  return take(options, program, id, argv[*index], status);
}

bool rp_options_parse(RpOptions *options, const RpProgram *program, int argc, char **argv, RpStatus *status) {
  *options = (RpOptions){.steps = -1, .epochs = -1, .learning_rate = -1};
  options->data = rp_allocate(argc, sizeof *options->data, status);
  options->test = rp_allocate(argc, sizeof *options->test, status);
  options->renames = rp_allocate(argc, sizeof *options->renames, status);
  if (!options->data || !options->test || !options->renames) return false;
  for (int i = 1; i < argc; i++) {
    if (!parse_argument(options, program, argc, argv, &i, status)) return false;
  }
  return options->help || check_combinations(options, program, status);
}

void rp_options_free(RpOptions *options) {
  free(options->data);
  free(options->test);
  free(options->renames);
  *options = (RpOptions){0};
}

static void print_reader(FILE *stream, const char *option, const RpReader *reader) {
  if (reader->kind == RP_READ_CONSTANT) return;
  fprintf(stream, "  %s %s=%s", option, reader->name, reader->path);
  if (reader->first > 0 || reader->last >= 0) {
    fprintf(stream, "   (records %lld..", (long long)reader->first);
    if (reader->last >= 0) fprintf(stream, "%lld", (long long)reader->last);
    fputc(')', stream);
  }
  fputc('\n', stream);
}

char *rp_options_help(const RpProgram *program, const char *name) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return NULL;
  fprintf(stream, "Trains %s (%s, target %s) in an arena of %lld bytes.\n\nusage: %s [options]\n\n", program->model,
          program->source, program->target, (long long)program->arena_bytes, name);
  for (int i = 0; i < OPTION_COUNT; i++) {
    char left[40];
    snprintf(left, sizeof left, "%s%s%s", table[i].name, table[i].argument ? " " : "",
             table[i].argument ? table[i].argument : "");
    fprintf(stream, "  %-20s %s\n", left, table[i].help);
  }
  fputs(program->reader_count ? "\nData as the model file has it:\n" : "\nThe model file names no data.\n", stream);
  for (int64_t i = 0; i < program->reader_count; i++) print_reader(stream, "--data", &program->readers[i]);
  for (int64_t i = 0; i < program->test_reader_count; i++) print_reader(stream, "--test", &program->test_readers[i]);
  fclose(stream);
  return text;
}

const char *rp_pair_find(const RpPair *pairs, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (pairs[i].name_length == (int)strlen(name) && strncmp(pairs[i].name, name, strlen(name)) == 0) {
      return pairs[i].value;
    }
  }
  return NULL;
}
