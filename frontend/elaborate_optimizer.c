/* frontend/elaborate_optimizer.c - the optimizer, and its settings for each parameter after the rules. */
#include <inttypes.h>

#include "frontend/elaborate_state.h"

static Op find_optimizer(Elaborator *elaborator, const Word *name) {
  Suggestion suggestion = suggestion_start(name->text);
  for (int op = 1; op < OP_COUNT; op++) {
    if (op_kind((Op)op) != KIND_OPTIMIZER) continue;
    if (string_equal(op_info((Op)op)->name, name->text)) return (Op)op;
    suggestion_consider(&suggestion, op_info((Op)op)->name);
  }
  diag_error(name->location, "unknown optimizer '%s'%s", name->text, suggestion_list(elaborator, &suggestion));
  return OP_NONE;
}

static int find_setting(Elaborator *elaborator, Op optimizer, const char *name, Location location) {
  const OpInfo *info = op_info(optimizer);
  int index = op_attribute_index(optimizer, name);
  if (index >= 0) return index;
  Suggestion suggestion = suggestion_start(name);
  for (int i = 0; i < info->attribute_count; i++) suggestion_consider(&suggestion, info->attributes[i].name);
  diag_error(location, "'%s' has no setting '%s'%s", info->name, name, suggestion_text(elaborator, &suggestion));
  diag_note(location, "its settings are (%s)", info->signature);
  return -1;
}

static const char *number_text(Elaborator *elaborator, double number) {
  Datum value = datum_float(number);
  return datum_text(elaborator->scratch, &value);
}

/* What an optimizer's numbers may be; lists of them are decay rates. */
static bool check_setting(Elaborator *elaborator, const AttributeInfo *info, const Attribute *setting,
                          Location location) {
  if (info->kind == ATTRIBUTE_FLOAT && !(setting->number >= 0)) {
    diag_error(location, "'%s' is a number from 0, found %s", info->name, number_text(elaborator, setting->number));
    return false;
  }
  if (info->kind != ATTRIBUTE_FLOATS) return true;
  for (int i = 0; i < setting->count; i++) {
    if (setting->numbers[i] >= 0 && setting->numbers[i] < 1) continue;
    diag_error(location, "'%s' are numbers from 0 and below 1, found %s", info->name,
               number_text(elaborator, setting->numbers[i]));
    return false;
  }
  return true;
}

static bool set_setting(Elaborator *elaborator, Op optimizer, int index, const Datum *value, Location location,
                        Attribute *setting) {
  return set_attribute(elaborator, optimizer, index, value, location, setting) &&
         check_setting(elaborator, &op_info(optimizer)->attributes[index], setting, location);
}

static bool set_base(Elaborator *elaborator, Op optimizer, const CallArguments *arguments, Attribute *settings,
                     Location location) {
  const OpInfo *info = op_info(optimizer);
  bool given[MAX_OP_ATTRIBUTES] = {false};
  for (int i = 0; i < info->attribute_count; i++) {
    settings[i] = info->attributes[i].initial;
    settings[i].kind = info->attributes[i].kind;
  }
  for (int64_t i = 0; i < arguments->count; i++) {
    const CallArgument *argument = &arguments->items[i];
    int index = argument->name ? find_setting(elaborator, optimizer, argument->name, argument->name_location) : (int)i;
    if (index >= info->attribute_count) diag_error(argument->location, "'%s' takes (%s)", info->name, info->signature);
    if (index < 0 || index >= info->attribute_count) return false;
    if (given[index]) {
      diag_error(argument->location, "the setting '%s' is given twice", info->attributes[index].name);
      return false;
    }
    given[index] = true;
    if (!set_setting(elaborator, optimizer, index, &argument->value, argument->location, &settings[index]))
      return false;
  }
  for (int i = 0; i < info->attribute_count; i++) {
    if (given[i] || !info->attributes[i].required) continue;
    diag_error(location, "'%s' lacks its setting '%s'", info->name, info->attributes[i].name);
    return false;
  }
  return true;
}

/* ---- rules ---- */

static Datum setting_value(Elaborator *elaborator, const AttributeInfo *info, const Attribute *setting) {
  DatumList numbers = {0};
  if (!setting->given) return datum_none();
  switch (info->kind) {
    case ATTRIBUTE_INT:
      return datum_int(setting->integer);
    case ATTRIBUTE_FLOAT:
    case ATTRIBUTE_NUMBER:
      return datum_float(setting->number);
    case ATTRIBUTE_BOOL:
      return datum_bool(setting->integer);
    case ATTRIBUTE_CHOICE:
      return datum_string(info->choices[setting->integer]);
    case ATTRIBUTE_DTYPE:
      return datum_string(dtype_name((DataType)setting->integer));
    case ATTRIBUTE_INTS:
    case ATTRIBUTE_FLOATS:
      break;
  }
  for (int i = 0; i < setting->count; i++)
    array_push(elaborator->scratch, &numbers,
               info->kind == ATTRIBUTE_INTS ? datum_int(setting->list[i]) : datum_float(setting->numbers[i]));
  return datum_list(numbers.items, numbers.count);
}

static void bind_rule_name(Elaborator *elaborator, const char *name, Datum value) {
  scope_set(elaborator, &elaborator->rule->scope, name,
            (Binding){.kind = BINDING_CONSTANT, .value = value, .persistent = -1});
}

bool match_rule_glob(Elaborator *elaborator, const char *pattern, Location location) {
  RuleContext *rule = elaborator->rule;
  bool known = false;
  for (int64_t i = 0; i < rule->globs.count; i++)
    known = known || rule->globs.items[i].location.start == location.start;
  RuleGlob glob = {pattern, location};
  if (!known) array_push(elaborator->scratch, &rule->globs, glob);
  return glob_match(elaborator->scratch, pattern, rule->parameter->name);
}

static bool apply_rule(Elaborator *elaborator, const Rule *rule, Op optimizer, Attribute *settings) {
  bool applies;
  if (!evaluate_bool(elaborator, rule->condition, "the condition of a rule", &applies)) return false;
  for (int64_t i = 0; i < rule->settings.count; i++) {
    const Setting *setting = &rule->settings.items[i];
    int index = find_setting(elaborator, optimizer, setting->name, setting->name_location);
    if (index < 0) return false;
    if (!applies) continue;
    Datum value = evaluate(elaborator, setting->value);
    if (!set_setting(elaborator, optimizer, index, &value, setting->value->location, &settings[index])) return false;
    bind_rule_name(elaborator, setting->name,
                   setting_value(elaborator, &op_info(optimizer)->attributes[index], &settings[index]));
  }
  return true;
}

/* The settings of one parameter: the base, changed by each rule that holds, in order. */
static bool apply_rules(Elaborator *elaborator, const Item *item, Persistent *parameter, Op optimizer,
                        const Attribute *base) {
  const OpInfo *info = op_info(optimizer);
  Attribute *settings = NEW_ARRAY(elaborator->arena, Attribute, info->attribute_count);
  memcpy(settings, base, (size_t)info->attribute_count * sizeof *settings);
  elaborator->rule->parameter = parameter;
  for (int i = 0; i < info->attribute_count; i++)
    bind_rule_name(elaborator, info->attributes[i].name, setting_value(elaborator, &info->attributes[i], &settings[i]));
  bind_rule_name(elaborator, "rank", datum_int(parameter->type.rank));
  bind_rule_name(elaborator, "size", datum_int(type_elements(&parameter->type)));
  for (int64_t i = 0; i < item->rules.count; i++)
    if (!apply_rule(elaborator, &item->rules.items[i], optimizer, settings)) return false;
  parameter->optimizer_settings = settings;
  return true;
}

/* A glob that a rule asked for matches some trained parameter, whether or not it was asked for that one. */
static void check_rule_globs(Elaborator *elaborator, const RuleContext *rule) {
  const Module *module = elaborator->module;
  for (int64_t i = 0; i < rule->globs.count; i++) {
    bool matched = false;
    for (int64_t k = 0; k < module->persistents.count && !matched; k++)
      matched = module->persistents.items[k].trainable &&
                glob_match(elaborator->scratch, rule->globs.items[i].pattern, module->persistents.items[k].name);
    if (!matched)
      diag_error(rule->globs.items[i].location, "no trained parameter matches \"%s\"", rule->globs.items[i].pattern);
  }
}

void read_optimizer(Elaborator *elaborator, const Item *item) {
  Module *module = elaborator->module;
  Word name;
  CallArguments arguments = {0};
  RuleContext rule = {.scope = scope_create(elaborator)};
  if (!evaluate_named_call(elaborator, item->value, "an optimizer such as sgd(lr=0.1)", &name, &arguments)) return;
  Op optimizer = find_optimizer(elaborator, &name);
  if (optimizer == OP_NONE) return;
  Attribute *settings = NEW_ARRAY(elaborator->arena, Attribute, op_info(optimizer)->attribute_count);
  if (!set_base(elaborator, optimizer, &arguments, settings, item->value->location)) return;
  module->training.has_optimizer = true;
  module->training.optimizer = optimizer;
  module->training.optimizer_settings = settings;
  elaborator->rule = &rule;
  bool sound = true;
  for (int64_t i = 0; i < module->persistents.count && sound; i++)
    if (module->persistents.items[i].trainable)
      sound = apply_rules(elaborator, item, &module->persistents.items[i], optimizer, settings);
  if (sound) check_rule_globs(elaborator, &rule);
  elaborator->rule = NULL;
}
