#include "runtime/batches.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "runtime/types.h"

static bool covers(const RpReader *readers, int64_t count, int input) {
  for (int64_t r = 0; r < count; r++) {
    for (int i = 0; i < readers[r].input_count; i++) {
      if (readers[r].inputs[i] == input) return true;
    }
  }
  return false;
}

/* All inputs of one reader have B rows, and all readers the same B. */
static bool check_rows(RpData *data, const RpSource *source, RpStatus *status) {
  for (int i = 0; i < source->reader->input_count; i++) {
    int64_t rows = source->inputs[i]->rank > 0 ? source->inputs[i]->dims[0] : 1;
    if (data->batch == 0) data->batch = rows;
    if (rows != data->batch) {
      return rp_fail(status, RP_BAD_DATA,
                     "input '%s' takes %lld records a step, an input before it %lld: inputs that "
                     "read files need the same first axis",
                     source->inputs[i]->name, (long long)rows, (long long)data->batch);
    }
  }
  return true;
}

/* Sets batch, records, texts and window from the open sources. */
static bool combine(RpData *data, RpStatus *status) {
  const RpSource *counted = NULL; /* the record source that sets the length of a pass */
  data->texts = true;
  for (int s = 0; s < data->count; s++) {
    const RpSource *source = &data->sources[s];
    if (source->reader->kind == RP_READ_CONSTANT) continue;
    if (!check_rows(data, source, status)) return false;
    int64_t records = rp_source_records(source);
    if (source->format->text) {
      data->window = source->window;
      if (!counted && (data->records == 0 || records < data->records)) data->records = records;
      continue;
    }
    data->texts = false;
    if (counted && counted->count != records) {
      return rp_fail(status, RP_BAD_DATA, "'%s' has %lld records for input '%s', '%s' has %lld for input '%s'",
                     counted->path, (long long)counted->count, counted->reader->name, source->path, (long long)records,
                     source->reader->name);
    }
    counted = source;
    data->records = records;
  }
  if (data->batch == 0) {
    data->batch = data->records = 1;
    data->texts = false;
  }
  if (data->records < data->batch) {
    return rp_fail(status, RP_BAD_DATA, "the %s data has %lld records, a batch takes %lld",
                   data->test ? "test" : "training", (long long)data->records, (long long)data->batch);
  }
  return true;
}

static bool allocate_buffers(RpData *data, RpStatus *status) {
  int64_t largest = 1;
  bool records = false;
  for (int s = 0; s < data->count; s++) {
    const RpSource *source = &data->sources[s];
    records |= source->reader->kind != RP_READ_CONSTANT && !source->format->text;
    for (int i = 0; i < source->reader->input_count; i++) {
      if (source->record_bytes[i] > largest) largest = source->record_bytes[i];
    }
  }
  data->scratch = rp_allocate(largest, 1, status);
  if (!data->scratch) return false;
  if (!data->shuffle || !records) return true;
  data->order = rp_allocate(data->records, sizeof *data->order, status);
  data->order_epoch = -1;
  return data->order != NULL;
}

static bool finish(RpData *data, RpStatus *status) {
  if (combine(data, status) && allocate_buffers(data, status)) return true;
  rp_data_close(data);
  return false;
}

bool rp_data_open_training(RpData *data, const RpProgram *program, const RpOptions *options, uint64_t seed,
                           RpStatus *status) {
  *data = (RpData){.shuffle = program->shuffle, .seed = seed};
  for (int input = 0; input < program->input_count; input++) {
    if (!covers(program->readers, program->reader_count, input)) {
      return rp_fail(status, RP_BAD_DATA,
                     "nothing is read into input '%s': add a 'data' item to the model's train block",
                     program->inputs[input].tensor.name);
    }
  }
  data->sources = rp_allocate(program->reader_count, sizeof *data->sources, status);
  if (!data->sources) return false;
  for (int64_t r = 0; r < program->reader_count; r++) {
    const RpReader *reader = &program->readers[r];
    const char *path = rp_pair_find(options->data, options->data_count, reader->name);
    if (!rp_source_open(&data->sources[data->count], program, reader, path, false, NULL, status)) {
      rp_data_close(data);
      return false;
    }
    data->count++;
  }
  return finish(data, status);
}

bool rp_data_has_test(const RpProgram *program, const RpOptions *options) {
  return program->test_reader_count > 0 || options->test_count > 0;
}

static const RpSource *find_vocabulary(const RpData *training, const RpReader *reader) {
  for (int s = 0; reader->kind == RP_READ_CHARS && s < training->count; s++) {
    const RpSource *source = &training->sources[s];
    if (source->reader->kind == RP_READ_CHARS && strcmp(source->reader->name, reader->name) == 0) return source;
  }
  return NULL;
}

static bool add_test_source(RpData *data, const RpProgram *program, const RpReader *reader, const char *path,
                            bool whole, const RpData *training, RpStatus *status) {
  const RpSource *vocabulary = find_vocabulary(training, reader);
  if (!rp_source_open(&data->sources[data->count], program, reader, path, whole, vocabulary, status)) return false;
  data->count++;
  return true;
}

/* --test, or --data where training and test read ranges of one file. */
static const char *test_path(const RpProgram *program, const RpOptions *options, const RpReader *reader) {
  const char *path = rp_pair_find(options->test, options->test_count, reader->name);
  for (int64_t r = 0; !path && r < program->reader_count; r++) {
    const RpReader *training = &program->readers[r];
    bool same = training->path && reader->path && strcmp(training->path, reader->path) == 0;
    if (same && strcmp(training->name, reader->name) == 0)
      return rp_pair_find(options->data, options->data_count, reader->name);
  }
  return path;
}

/* Test readers as declared, then training readers whose inputs have none: constants, and those that --test names. */
static bool add_test_sources(RpData *data, const RpProgram *program, const RpOptions *options, const RpData *training,
                             RpStatus *status) {
  for (int64_t r = 0; r < program->test_reader_count; r++) {
    const RpReader *reader = &program->test_readers[r];
    if (!add_test_source(data, program, reader, test_path(program, options, reader), false, training, status))
      return false;
  }
  for (int64_t r = 0; r < program->reader_count; r++) {
    const RpReader *reader = &program->readers[r];
    const char *path = rp_pair_find(options->test, options->test_count, reader->name);
    if (covers(program->test_readers, program->test_reader_count, reader->inputs[0])) continue;
    if (!path && reader->kind != RP_READ_CONSTANT) {
      return rp_fail(status, RP_BAD_DATA,
                     "there is test data, but none for input '%s': give --test %s=FILE or a 'test' "
                     "item in the model's train block",
                     reader->name, reader->name);
    }
    if (!add_test_source(data, program, reader, path, true, training, status)) return false;
  }
  return true;
}

bool rp_data_open_test(RpData *data, const RpProgram *program, const RpOptions *options, const RpData *training,
                       RpStatus *status) {
  *data = (RpData){.test = true};
  data->sources = rp_allocate(program->reader_count + program->test_reader_count, sizeof *data->sources, status);
  if (!data->sources) return false;
  if (add_test_sources(data, program, options, training, status)) return finish(data, status);
  rp_data_close(data);
  return false;
}

void rp_data_close(RpData *data) {
  for (int s = 0; s < data->count; s++) rp_source_close(&data->sources[s]);
  free(data->sources);
  free(data->order);
  free(data->scratch);
  *data = (RpData){0};
}

int64_t rp_data_batches(const RpData *data) { return data->records / data->batch; }

/* Fisher-Yates: order[i] and order[j], j uniform in [0, i]. */
static void permute(RpData *data, int64_t epoch) {
  uint64_t op_id = rp_hash_name("reprise.order");
  for (int64_t i = 0; i < data->records; i++) data->order[i] = i;
  for (int64_t i = data->records - 1; i > 0; i--) {
    int64_t j = (int64_t)rp_uniform_integer(data->seed, op_id, (uint64_t)epoch, (uint64_t)i, (uint64_t)i + 1);
    int64_t swapped = data->order[i];
    data->order[i] = data->order[j];
    data->order[j] = swapped;
  }
  data->order_epoch = epoch;
}

/* The record that `source` serves as sample `sample` of an epoch. */
static int64_t choose_record(const RpData *data, const RpSource *source, int64_t epoch, int64_t sample) {
  if (!source->format->text) return data->order ? data->order[sample] : sample;
  if (!data->shuffle) return sample * source->window;
  return (int64_t)rp_uniform_integer(data->seed, rp_hash_name("reprise.windows"), (uint64_t)epoch, (uint64_t)sample,
                                     (uint64_t)(source->count - source->window));
}

/* offsets NULL: those of the program. */
static bool load_row(RpData *data, const RpProgram *program, RpSource *source, int64_t record, int64_t row, char *base,
                     const int64_t *offsets, RpStatus *status) {
  char *to[RP_MAX_READER_INPUTS];
  for (int i = 0; i < source->reader->input_count; i++) {
    int index = source->reader->inputs[i];
    const RpInput *input = &program->inputs[index];
    int64_t own = data->test ? input->evaluation_offset : input->tensor.offset;
    int64_t offset = offsets ? offsets[index] : own;
    to[i] = offset < 0 ? data->scratch : base + offset + row * source->record_bytes[i];
  }
  return rp_source_read(source, record, to, status);
}

bool rp_data_load(RpData *data, const RpProgram *program, int64_t number, char *arena, RpStatus *status) {
  return rp_data_load_at(data, program, number, arena, NULL, status);
}

bool rp_data_load_at(RpData *data, const RpProgram *program, int64_t number, char *base, const int64_t *offsets,
                     RpStatus *status) {
  int64_t batches = rp_data_batches(data), epoch = number / batches, first = number % batches * data->batch;
  if (data->order && data->order_epoch != epoch) permute(data, epoch);
  for (int s = 0; s < data->count; s++) {
    RpSource *source = &data->sources[s];
    int64_t rows = source->reader->kind == RP_READ_CONSTANT ? 1 : data->batch;
    for (int64_t row = 0; row < rows; row++) {
      int64_t record = choose_record(data, source, epoch, first + row);
      if (!load_row(data, program, source, record, row, base, offsets, status)) return false;
    }
  }
  return true;
}
