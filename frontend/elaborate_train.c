/* frontend/elaborate_train.c - the train block: freeze globs, schedule and the single settings. Readers and the
 * optimizer have files of their own. */
#include <inttypes.h>
#include <math.h>

#include "frontend/elaborate_state.h"

/* ---- freeze ---- */

static void read_glob(Elaborator *elaborator, const Argument *argument) {
  Datum value = evaluate(elaborator, argument->value);
  if (value.kind == DATUM_ERROR) return;
  if (argument->name || value.kind != DATUM_STRING || !*value.string) {
    diag_error(argument->location, "'freeze' takes globs over parameter paths, as in freeze \"**\", \"!head.**\"");
    return;
  }
  bool admits = *value.string == '!';
  FreezeGlob glob = {value.string + admits, admits, false, argument->location};
  array_push(elaborator->scratch, &elaborator->globs, glob);
}

void read_freeze_globs(Elaborator *elaborator, const Top *train) {
  for (int64_t i = 0; i < train->items.count; i++) {
    const Item *item = &train->items.items[i];
    if (item->kind != ITEM_OTHER || !string_equal(item->keyword.text, "freeze")) continue;
    for (int64_t k = 0; k < item->arguments.count; k++) read_glob(elaborator, &item->arguments.items[k]);
  }
}

static void check_globs_matched(Elaborator *elaborator) {
  for (int64_t i = 0; i < elaborator->globs.count; i++)
    if (!elaborator->globs.items[i].matched)
      diag_error(elaborator->globs.items[i].location, "no parameter or state matches \"%s\"",
                 elaborator->globs.items[i].pattern);
}

/* ---- schedule ---- */

enum { MOST_SCHEDULE_PARAMETERS = 3 };

static const struct Schedule {
  const char *name;
  ScheduleKind kind;
  int parameter_count;
  ParameterSpec parameters[MOST_SCHEDULE_PARAMETERS];
} schedules[] = {
    {"constant", SCHEDULE_CONSTANT, 1, {{"warmup", PARAMETER_INT, false}}},
    {"cosine",
     SCHEDULE_COSINE,
     3,
     {{"steps", PARAMETER_INT, true}, {"warmup", PARAMETER_INT, false}, {"final", PARAMETER_NUMBER, false}}},
    {"linear",
     SCHEDULE_LINEAR,
     3,
     {{"steps", PARAMETER_INT, true}, {"warmup", PARAMETER_INT, false}, {"final", PARAMETER_NUMBER, false}}},
    {"step",
     SCHEDULE_STEP,
     3,
     {{"every", PARAMETER_INT, true}, {"factor", PARAMETER_NUMBER, false}, {"warmup", PARAMETER_INT, false}}}};

static int64_t given_int(const Datum *value, int64_t otherwise) {
  return value->kind == DATUM_INT ? value->integer : otherwise;
}

static void set_schedule(Elaborator *elaborator, const struct Schedule *schedule, const Datum *values,
                         Location location) {
  Training *training = &elaborator->module->training;
  const Datum *warmup = schedule->kind == SCHEDULE_CONSTANT ? &values[0]
                        : schedule->kind == SCHEDULE_STEP   ? &values[2]
                                                            : &values[1];
  bool steps = schedule->kind == SCHEDULE_COSINE || schedule->kind == SCHEDULE_LINEAR;
  training->schedule = schedule->kind;
  training->warmup = given_int(warmup, 0);
  training->schedule_steps = steps ? values[0].integer : 0;
  training->final = steps && is_number(&values[2]) ? as_number(&values[2]) : 0;
  training->every = schedule->kind == SCHEDULE_STEP ? values[0].integer : 0;
  training->factor = schedule->kind == SCHEDULE_STEP && is_number(&values[1]) ? as_number(&values[1]) : 0.1;
  if (training->warmup < 0)
    diag_error(location, "the warmup is a number of steps from 0, found %" PRId64, training->warmup);
  if (steps && training->schedule_steps <= training->warmup)
    diag_error(location, "the %" PRId64 " steps of the schedule end before its warmup of %" PRId64 " does",
               training->schedule_steps, training->warmup);
  if (schedule->kind == SCHEDULE_STEP && training->every < 1)
    diag_error(location, "'every' is a number of steps from 1, found %" PRId64, training->every);
}

static void read_schedule(Elaborator *elaborator, const Item *item, const Expr *expr) {
  Word name;
  CallArguments arguments = {0};
  if (!evaluate_named_call(elaborator, expr, "a schedule such as cosine(steps=1000)", &name, &arguments)) return;
  Suggestion suggestion = suggestion_start(name.text);
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
    Datum values[MOST_SCHEDULE_PARAMETERS] = {{0}};
    suggestion_consider(&suggestion, schedules[i].name);
    if (!string_equal(schedules[i].name, name.text)) continue;
    if (bind_parameters(elaborator, name.text, &arguments, schedules[i].parameters, schedules[i].parameter_count,
                        values, item->location))
      set_schedule(elaborator, &schedules[i], values, item->location);
    return;
  }
  diag_error(name.location, "unknown schedule '%s'%s", name.text, suggestion_list(elaborator, &suggestion));
}

/* ---- single settings ---- */

static void report_setting(Elaborator *elaborator, const Item *item, const char *what, const Datum *value) {
  diag_error(item->arguments.items[0].location, "'%s' takes %s, found %s", item->keyword.text, what,
             datum_text(elaborator->scratch, value));
}

static void read_count(Elaborator *elaborator, const Item *item, const Datum *value, int64_t least, int64_t *count) {
  if (value->kind == DATUM_INT && value->integer >= least)
    *count = value->integer;
  else
    report_setting(elaborator, item, memory_format(elaborator->scratch, "an int from %" PRId64, least), value);
}

static void read_accumulate(Elaborator *elaborator, const Item *item, const Datum *value) {
  enum { MOST_MICRO_STEPS = 1000000 };
  if (value->kind == DATUM_INT && value->integer >= 1 && value->integer <= MOST_MICRO_STEPS)
    elaborator->module->training.accumulate = value->integer;
  else
    report_setting(elaborator, item, "an int from 1 to 1000000", value);
}

static void read_clip(Elaborator *elaborator, const Item *item, const Datum *value) {
  if (is_number(value) && as_number(value) > 0)
    elaborator->module->training.clip = as_number(value);
  else
    report_setting(elaborator, item, "the largest global norm of the gradients, a number above 0", value);
}

static void read_seed(Elaborator *elaborator, const Item *item, const Datum *value) {
  int64_t seed = 0;
  read_count(elaborator, item, value, 0, &seed);
  elaborator->module->training.seed = (uint64_t)seed;
}

static void read_shuffle(Elaborator *elaborator, const Item *item, const Datum *value) {
  if (value->kind == DATUM_BOOL)
    elaborator->module->training.shuffle = value->integer;
  else
    report_setting(elaborator, item, "true or false", value);
}

static const char *const setting_names[] = {"clip", "accumulate", "seed", "epochs", "steps", "shuffle"};

static bool read_setting(Elaborator *elaborator, const Item *item, const Datum *value) {
  Training *training = &elaborator->module->training;
  const char *keyword = item->keyword.text;
  if (string_equal(keyword, "clip"))
    read_clip(elaborator, item, value);
  else if (string_equal(keyword, "accumulate"))
    read_accumulate(elaborator, item, value);
  else if (string_equal(keyword, "seed"))
    read_seed(elaborator, item, value);
  else if (string_equal(keyword, "epochs"))
    read_count(elaborator, item, value, 1, &training->epochs);
  else if (string_equal(keyword, "steps"))
    read_count(elaborator, item, value, 1, &training->steps);
  else if (string_equal(keyword, "shuffle"))
    read_shuffle(elaborator, item, value);
  else
    return false;
  return true;
}

static void report_unknown_item(Elaborator *elaborator, const Item *item) {
  Suggestion suggestion = suggestion_start(item->keyword.text);
  static const char *const others[] = {"data", "test", "optimizer", "schedule", "freeze"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) suggestion_consider(&suggestion, others[i]);
  for (size_t i = 0; i < sizeof setting_names / sizeof *setting_names; i++)
    suggestion_consider(&suggestion, setting_names[i]);
  diag_error(item->keyword.location, "unknown item '%s' in a train block%s", item->keyword.text,
             suggestion_list(elaborator, &suggestion));
}

static bool is_setting(const char *keyword) {
  for (size_t i = 0; i < sizeof setting_names / sizeof *setting_names; i++)
    if (string_equal(setting_names[i], keyword)) return true;
  return false;
}

static void read_other(Elaborator *elaborator, const Item *item) {
  const char *keyword = item->keyword.text;
  bool setting = is_setting(keyword), schedule = string_equal(keyword, "schedule");
  if (string_equal(keyword, "freeze")) return;
  if (string_equal(keyword, "lora")) {
    diag_error(item->location, "'lora' is not supported yet");
    return;
  }
  if (!setting && !schedule) {
    report_unknown_item(elaborator, item);
    return;
  }
  if (item->arguments.count != 1 || item->arguments.items[0].name) {
    diag_error(item->location, "'%s' takes one value", keyword);
    return;
  }
  if (schedule) {
    read_schedule(elaborator, item, item->arguments.items[0].value);
    return;
  }
  Datum value = evaluate(elaborator, item->arguments.items[0].value);
  if (value.kind != DATUM_ERROR) read_setting(elaborator, item, &value);
}

/* ---- the block ---- */

static void check_optimizer(const Elaborator *elaborator, Location location) {
  if (diag_error_count() > elaborator->errors || elaborator->module->training.has_optimizer) return;
  diag_warning(location, "the train block has no 'optimizer': the weights stay as they are");
}

static void check_once(const Top *train) {
  for (int64_t i = 0; i < train->items.count; i++) {
    const Item *item = &train->items.items[i];
    for (int64_t k = 0; k < i && item->kind != ITEM_DATA && item->kind != ITEM_TEST; k++) {
      if (!string_equal(train->items.items[k].keyword.text, item->keyword.text)) continue;
      diag_error(item->keyword.location, "'%s' appears twice in the train block", item->keyword.text);
      diag_note(train->items.items[k].keyword.location, "the other one is here");
      break;
    }
  }
}

void elaborate_train(Elaborator *elaborator, const Top *train) {
  elaborator->module->training.present = true;
  check_once(train);
  check_globs_matched(elaborator);
  for (int64_t i = 0; i < train->items.count; i++) {
    const Item *item = &train->items.items[i];
    switch (item->kind) {
      case ITEM_DATA:
      case ITEM_TEST:
        read_data(elaborator, item);
        break;
      case ITEM_OPTIMIZER:
        read_optimizer(elaborator, item);
        break;
      case ITEM_OTHER:
        read_other(elaborator, item);
        break;
    }
  }
  check_readers(elaborator, train->name.location);
  check_optimizer(elaborator, train->name.location);
}
