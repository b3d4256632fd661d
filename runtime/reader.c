#include "runtime/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/types.h"

static const RpFormat *const formats[] = {
    [RP_READ_CONSTANT] = &rp_format_constant, [RP_READ_IDX] = &rp_format_idx,     [RP_READ_NPY] = &rp_format_npy,
    [RP_READ_CSV] = &rp_format_csv,           [RP_READ_BYTES] = &rp_format_bytes, [RP_READ_CHARS] = &rp_format_chars,
    [RP_READ_TOKENS] = &rp_format_tokens,
};

static bool open_constant(RpSource *source, RpStatus *status) {
  (void)status;
  source->available = INT64_MAX;
  return true;
}

static bool read_constant(RpSource *source, int64_t record, char *const *to, RpStatus *status) {
  (void)record, (void)status;
  for (int i = 0; i < source->reader->input_count; i++) {
    RpType type = source->inputs[i]->type;
    int64_t elements = source->record_bytes[i] / rp_type_size(type);
    for (int64_t e = 0; e < elements; e++) rp_store(type, to[i], e, source->reader->value);
  }
  return true;
}

static void close_constant(RpSource *source) { (void)source; }

const RpFormat rp_format_constant = {"constant", false, open_constant, read_constant, close_constant};

static void bind_inputs(RpSource *source, const RpProgram *program) {
  for (int i = 0; i < source->reader->input_count; i++) {
    const RpTensor *tensor = &program->inputs[source->reader->inputs[i]].tensor;
    source->inputs[i] = tensor;
    bool rows = tensor->rank > 0 && source->reader->kind != RP_READ_CONSTANT;
    source->record_bytes[i] = rp_tensor_bytes(tensor) / (rows ? tensor->dims[0] : 1);
  }
}

/* Sets first and count from the reader's range and what the file has. */
static bool take_range(RpSource *source, bool whole, RpStatus *status) {
  const RpReader *reader = source->reader;
  const char *unit = source->format->text ? "positions" : "records";
  int64_t last = whole || reader->last < 0 ? source->available : reader->last;
  source->first = whole ? 0 : reader->first;
  source->count = last - source->first;
  if (last > source->available || source->first > last) {
    return rp_fail(status, RP_BAD_DATA,
                   "the model asks for %s %lld..%lld of '%s' for input '%s', but the file has %lld; compile it with "
                   "another 'records=', or name a longer file",
                   unit, (long long)source->first, (long long)last, source->path, reader->name,
                   (long long)source->available);
  }
  if (rp_source_records(source) == 0) {
    return rp_fail(status, RP_BAD_DATA, "'%s' has no record for input '%s' in %s %lld..%lld%s", source->path,
                   reader->name, unit, (long long)source->first, (long long)last,
                   source->format->text ? ": a window takes one more than the input's last axis" : "");
  }
  return true;
}

/* Adds to a failed opening how another file is named; what the command line names needs no such help. */
static void explain_path(const RpReader *reader, RpStatus *status) {
  size_t length = strlen(status->message);
  snprintf(
      status->message + length, sizeof status->message - length,
      "; the model file names it, seen from the folder in which the program runs: --data %s=FILE or --test %s=FILE "
      "takes another",
      reader->name, reader->name);
}

bool rp_source_open(RpSource *source, const RpProgram *program, const RpReader *reader, const char *path, bool whole,
                    const RpSource *vocabulary_of, RpStatus *status) {
  *source = (RpSource){.reader = reader, .format = formats[reader->kind], .vocabulary_of = vocabulary_of};
  const char *name = path ? path : reader->path;
  source->path = strdup(name ? name : "");
  if (!source->path) return rp_fail(status, RP_IO, "out of memory");
  bind_inputs(source, program);
  if (source->format->open(source, status) && take_range(source, whole, status)) return true;
  if (status->code == RP_IO && !path && access(source->path, F_OK) != 0) explain_path(reader, status);
  rp_source_close(source);
  return false;
}

bool rp_source_read(RpSource *source, int64_t record, char *const *to, RpStatus *status) {
  return source->format->read(source, source->first + record, to, status);
}

void rp_source_close(RpSource *source) {
  if (source->format) source->format->close(source);
  free(source->path);
  *source = (RpSource){0};
}

int64_t rp_source_records(const RpSource *source) {
  if (!source->format->text) return source->count;
  return source->count > 0 ? (source->count - 1) / source->window : 0;
}

bool rp_source_check_array(RpSource *source, const char *type_name, bool matches, int rank, const int64_t *dims,
                           RpStatus *status) {
  const RpTensor *input = source->inputs[0];
  int record_rank = input->rank > 0 ? input->rank - 1 : 0;
  const int64_t *record = input->dims + (input->rank > 0 ? 1 : 0);
  char expected[160], found[160];
  if (source->reader->input_count != 1) {
    return rp_fail(status, RP_INTERNAL, "%s reader '%s' has %d inputs, expected 1", source->format->name,
                   source->reader->name, source->reader->input_count);
  }
  if (!matches) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s': input '%s' expects %s, found %s (data is never converted: convert it in "
                   "the model, or store the file as %s)",
                   source->path, source->reader->name, rp_type_name(input->type), type_name, rp_type_name(input->type));
  }
  if (rank != record_rank + 1 || memcmp(dims + 1, record, (size_t)record_rank * sizeof *dims) != 0) {
    rp_shape_text(record_rank, record, expected, sizeof expected);
    rp_shape_text(rank > 0 ? rank - 1 : 0, dims + 1, found, sizeof found);
    return rp_fail(status, RP_BAD_DATA, "'%s': input '%s' expects records of shape %s, found %s%s", source->path,
                   source->reader->name, expected, rank > 0 ? found : "a scalar",
                   rank > 0 ? " after the first axis" : "");
  }
  source->available = dims[0];
  return true;
}
