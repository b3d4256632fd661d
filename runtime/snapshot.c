#include "runtime/snapshot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"

bool rp_snapshot_save(const RpRun *run, const char *path, RpStatus *status) {
  const RpProgram *program = run->program;
  RpTensor *tensors = rp_allocate(program->persistent_count, sizeof *tensors, status);
  if (!tensors) return false;
  int64_t count = 0;
  for (int64_t i = 0; i < program->persistent_count; i++) {
    if (program->persistents[i].role != RP_ACCUMULATOR) tensors[count++] = program->persistents[i].tensor;
  }
  RpMetadata metadata[] = {{.key = "reprise.update"},        {.key = "reprise.micro_steps"}, {.key = "reprise.seed"},
                           {.key = "reprise.learning_rate"}, {.key = "reprise.records"},     {.key = "reprise.batch"}};
  enum { VALUE = sizeof metadata->value };
  snprintf(metadata[0].value, VALUE, "%lld", (long long)run->update);
  snprintf(metadata[1].value, VALUE, "%lld", (long long)program->accumulate);
  snprintf(metadata[2].value, VALUE, "%llu", (unsigned long long)run->seed);
  snprintf(metadata[3].value, VALUE, "%a", run->learning_rate);
  snprintf(metadata[4].value, VALUE, "%lld", (long long)run->training.records);
  snprintf(metadata[5].value, VALUE, "%lld", (long long)run->training.batch);
  RpTensorWriter writer;
  bool saved = rp_writer_open(&writer, path, tensors, count, metadata, sizeof metadata / sizeof *metadata, status);
  for (int64_t i = 0; saved && i < count; i++) {
    saved = rp_arena_save(&run->context, &writer, i, &tensors[i], status);
  }
  if (saved) saved = rp_writer_commit(&writer, status);
  if (!saved) rp_writer_discard(&writer);
  free(tensors);
  return saved;
}

/* A whole number, 0 or more, of the metadata. */
static bool read_number(const RpTensorFile *tensors, const char *key, uint64_t most, uint64_t *value,
                        RpStatus *status) {
  const char *text = rp_tensors_metadata(tensors, key);
  char *end = NULL;
  errno = 0;
  *value = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  if (end && !*end && !errno && *value <= most) return true;
  return rp_fail(status, RP_BAD_DATA,
                 "'%s' is not a snapshot to resume from: expected a number as \"%s\" of its "
                 "metadata, found %s (weights alone are read with --load)",
                 tensors->file.path, key, text ? text : "nothing");
}

static bool read_rate(const RpTensorFile *tensors, double *value, RpStatus *status) {
  const char *text = rp_tensors_metadata(tensors, "reprise.learning_rate");
  char *end = NULL;
  *value = text ? strtod(text, &end) : 0;
  if (end && end != text && !*end && isfinite(*value) && *value >= 0) return true;
  return rp_fail(status, RP_BAD_DATA, "'%s': no valid \"reprise.learning_rate\" in its metadata", tensors->file.path);
}

bool rp_snapshot_place(const RpTensorFile *tensors, const RpProgram *program, RpSnapshotPlace *place,
                       RpStatus *status) {
  uint64_t update, micro_steps, records, batch;
  if (!read_number(tensors, "reprise.update", INT64_MAX / 1024, &update, status) ||
      !read_number(tensors, "reprise.micro_steps", INT64_MAX, &micro_steps, status) ||
      !read_number(tensors, "reprise.seed", UINT64_MAX, &place->seed, status) ||
      !read_number(tensors, "reprise.records", INT64_MAX, &records, status) ||
      !read_number(tensors, "reprise.batch", INT64_MAX, &batch, status) ||
      !read_rate(tensors, &place->learning_rate, status)) {
    return false;
  }
  if ((int64_t)micro_steps != program->accumulate) {
    return rp_fail(status, RP_BAD_DATA,
                   "'%s' was written with accumulate %lld, this program has %lld: a resumed run "
                   "would not be the same",
                   tensors->file.path, (long long)micro_steps, (long long)program->accumulate);
  }
  place->update = (int64_t)update;
  place->records = (int64_t)records;
  place->batch = (int64_t)batch;
  return true;
}
