/* frontend/elaborate_readers.c - `data` and `test`: which reader feeds which inputs. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "frontend/elaborate_state.h"

enum { MOST_READER_PARAMETERS = 3, MOST_READER_INPUTS = 8 };

static const struct ReaderForm {
  const char *name;
  ReaderKind kind;
  int inputs; /* how many it feeds, 0: any number */
  int parameter_count;
  ParameterSpec parameters[MOST_READER_PARAMETERS];
} reader_forms[] = {
    {"constant", READER_CONSTANT, 0, 1, {{"value", PARAMETER_NUMBER, true}}},
    {"idx", READER_IDX, 1, 2, {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}}},
    {"npy", READER_NPY, 1, 2, {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}}},
    {"csv",
     READER_CSV,
     0,
     3,
     {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}, {"header", PARAMETER_BOOL, false}}},
    {"bytes", READER_BYTES, 2, 2, {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}}},
    {"chars",
     READER_CHARS,
     2,
     3,
     {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}, {"vocabulary", PARAMETER_INT, false}}},
    {"tokens",
     READER_TOKENS,
     2,
     3,
     {{"file", PARAMETER_STRING, true}, {"records", PARAMETER_LIST, false}, {"format", PARAMETER_STRING, false}}}};

static const struct ReaderForm *find_form(Elaborator *elaborator, const Word *name) {
  Suggestion suggestion = suggestion_start(name->text);
  for (size_t i = 0; i < sizeof reader_forms / sizeof *reader_forms; i++) {
    if (string_equal(reader_forms[i].name, name->text)) return &reader_forms[i];
    suggestion_consider(&suggestion, reader_forms[i].name);
  }
  diag_error(name->location, "unknown reader '%s'%s", name->text, suggestion_list(elaborator, &suggestion));
  return NULL;
}

/* records=a..b: the records [a, b). */
static bool set_records(const Datum *records, Reader *reader, Location location) {
  reader->last = -1;
  if (records->kind == DATUM_NONE) return true;
  if (records->items || records->integer < 0 || records->count < 1) {
    diag_error(location, "'records' is a range a..b with 0 <= a < b");
    return false;
  }
  reader->first = records->integer;
  reader->last = records->integer + records->count;
  return true;
}

static bool set_reader(Elaborator *elaborator, const struct ReaderForm *form, const Datum *values, Reader *reader) {
  reader->kind = form->kind;
  if (form->kind == READER_CONSTANT) {
    reader->value = as_number(&values[0]);
    reader->last = -1;
    return true;
  }
  if (form->kind == READER_CSV) reader->header = values[2].kind == DATUM_BOOL && values[2].integer;
  if (form->kind == READER_CHARS && values[2].kind == DATUM_INT) reader->vocabulary = values[2].integer;
  reader->path = memory_string(elaborator->arena, values[0].string);
  if (reader->vocabulary < 0) {
    diag_error(reader->location, "'vocabulary' is a number of characters from 1");
    return false;
  }
  if (form->kind == READER_TOKENS && values[2].kind == DATUM_STRING && !string_equal(values[2].string, "llmc")) {
    diag_error(reader->location, "the format of 'tokens' is \"llmc\", found \"%s\"", values[2].string);
    return false;
  }
  return set_records(&values[1], reader, reader->location);
}

static int find_input(Elaborator *elaborator, const Word *word) {
  Suggestion suggestion = suggestion_start(word->text);
  for (int64_t i = 0; i < elaborator->module->inputs.count; i++) {
    if (string_equal(elaborator->module->inputs.items[i].name, word->text)) return (int)i;
    suggestion_consider(&suggestion, elaborator->module->inputs.items[i].name);
  }
  diag_error(word->location, "the model '%s' has no input '%s'%s", elaborator->module->name, word->text,
             suggestion_list(elaborator, &suggestion));
  return -1;
}

static bool reads_input(const Reader *reader, int64_t input) {
  for (int64_t i = 0; i < reader->inputs.count; i++)
    if (reader->inputs.items[i] == input) return true;
  return false;
}

static const Reader *find_reader(const Elaborator *elaborator, bool test, int64_t input) {
  const Training *training = &elaborator->module->training;
  int64_t count = test ? training->test_readers.count : training->readers.count;
  const Reader *readers = test ? training->test_readers.items : training->readers.items;
  for (int64_t i = 0; i < count; i++)
    if (reads_input(&readers[i], input)) return &readers[i];
  return NULL;
}

/* The inputs that an item names; each has one reader of a kind. */
static bool set_inputs(Elaborator *elaborator, const Item *item, const struct ReaderForm *form, Reader *reader) {
  int64_t count = item->inputs.count;
  if (count > MOST_READER_INPUTS || (form->inputs && count != form->inputs)) {
    diag_error(item->location, "'%s' feeds %d input%s, found %" PRId64, form->name,
               form->inputs ? form->inputs : MOST_READER_INPUTS, form->inputs == 1 ? "" : "s", count);
    return false;
  }
  for (int64_t i = 0; i < count; i++) {
    int input = find_input(elaborator, &item->inputs.items[i]);
    if (input < 0) return false;
    const Reader *other = find_reader(elaborator, item->kind == ITEM_TEST, input);
    if (other || reads_input(reader, input)) {
      diag_error(item->inputs.items[i].location, "the input '%s' has a '%s' reader already", item->inputs.items[i].text,
                 item->keyword.text);
      if (other) diag_note(other->location, "it is here");
      return false;
    }
    array_push(elaborator->arena, &reader->inputs, input);
  }
  return true;
}

/* Windows of a text and their successors have one shape, [B, T]. */
static bool check_windows(Elaborator *elaborator, const Item *item, const Reader *reader) {
  bool text = reader->kind == READER_BYTES || reader->kind == READER_CHARS || reader->kind == READER_TOKENS;
  if (!text) return true;
  const Type *first = &elaborator->module->inputs.items[reader->inputs.items[0]].type;
  const Type *second = &elaborator->module->inputs.items[reader->inputs.items[1]].type;
  if (first->rank == 2 && shape_equal(first, second)) return true;
  diag_error(item->location, "a reader of text feeds two inputs of one shape [B, T], found %s and %s",
             type_text(elaborator->scratch, first), type_text(elaborator->scratch, second));
  return false;
}

static bool holds_number(DataType dtype, double value) {
  switch (dtype) {
    case I32:
      return value == floor(value) && value >= INT32_MIN && value <= INT32_MAX;
    case I64: /* up to what a double counts exactly */
      return value == floor(value) && fabs(value) <= 9007199254740992.0;
    case U8:
      return value == floor(value) && value >= 0 && value <= UINT8_MAX;
    case BOOL:
      return value == 0 || value == 1;
    case F64:
      return true;
    default:
      return fabs(value) <= (dtype == F16 ? 65504.0 : (double)FLT_MAX);
  }
}

static bool check_constant(Elaborator *elaborator, const Item *item, const Reader *reader) {
  for (int64_t i = 0; i < reader->inputs.count && reader->kind == READER_CONSTANT; i++) {
    const ModelInput *input = &elaborator->module->inputs.items[reader->inputs.items[i]];
    if (holds_number(input->type.dtype, reader->value)) continue;
    diag_error(item->value->location, "the input '%s' is %s, which does not hold the value %.17g", input->name,
               type_text(elaborator->scratch, &input->type), reader->value);
    return false;
  }
  return true;
}

void read_data(Elaborator *elaborator, const Item *item) {
  Word name;
  CallArguments arguments = {0};
  Datum values[MOST_READER_PARAMETERS] = {{0}};
  Reader reader = {.location = item->location};
  Training *training = &elaborator->module->training;
  if (!evaluate_named_call(elaborator, item->value, "a reader such as npy(\"images.npy\")", &name, &arguments)) return;
  const struct ReaderForm *form = find_form(elaborator, &name);
  if (!form || !bind_parameters(elaborator, name.text, &arguments, form->parameters, form->parameter_count, values,
                                item->value->location))
    return;
  if (!set_reader(elaborator, form, values, &reader) || !set_inputs(elaborator, item, form, &reader) ||
      !check_windows(elaborator, item, &reader) || !check_constant(elaborator, item, &reader))
    return;
  if (item->kind == ITEM_TEST)
    array_push(elaborator->arena, &training->test_readers, reader);
  else
    array_push(elaborator->arena, &training->readers, reader);
}

void check_readers(Elaborator *elaborator, Location location) {
  if (diag_error_count() > elaborator->errors) return;
  for (int64_t i = 0; i < elaborator->module->inputs.count; i++) {
    const ModelInput *input = &elaborator->module->inputs.items[i];
    if (find_reader(elaborator, false, i)) continue;
    diag_error(location, "the input '%s' has no reader; expected 'data %s = ...'", input->name, input->name);
    diag_note(input->location, "'%s' is declared here", input->name);
  }
}
