#include "runtime/weights.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "runtime/types.h"

typedef struct Loader {
  const RpContext *context;
  const RpTensorFile *tensors;
  bool snapshot;
  const RpPair *renames;
  int rename_count;
  RpLog *log;
  bool *rename_used;
  const RpTensorEntry **source; /* of each persistent: the entry it was loaded from */
  int64_t converted, ignored;
  const char *first_ignored;
} Loader;

/* Optimizer state is named "optimizer.<slot>.<parameter>": only looked at in a snapshot. */
static bool wanted(const Loader *loader, const RpPersistent *persistent) {
  if (persistent->role == RP_ACCUMULATOR) return false;
  return persistent->role != RP_OPTIMIZER || loader->snapshot;
}

static int64_t find_persistent(const Loader *loader, const char *name) {
  const RpProgram *program = loader->context->program;
  for (int64_t i = 0; i < program->persistent_count; i++) {
    if (wanted(loader, &program->persistents[i]) && strcmp(program->persistents[i].tensor.name, name) == 0) return i;
  }
  return -1;
}

/* The model's name for `name`, allocated; the first rename that matches decides. */
static char *rename_tensor(Loader *loader, const char *name) {
  for (int i = 0; i < loader->rename_count; i++) {
    const RpPair *rename = &loader->renames[i];
    size_t from = (size_t)rename->name_length;
    bool prefix = rename->name[from - 1] == '.';
    if (strncmp(name, rename->name, from) != 0 || (!prefix && name[from])) continue;
    loader->rename_used[i] = true;
    char *renamed = malloc(strlen(rename->value) + strlen(name + from) + 1);
    if (renamed) strcat(strcpy(renamed, rename->value), name + from);
    return renamed;
  }
  return strdup(name);
}

/* Index of the persistent that an entry belongs to, or -1; -2 when out of memory. */
static int64_t find_target(Loader *loader, const RpTensorEntry *entry) {
  static const char prefix[] = "transformer.";
  char *name = rename_tensor(loader, entry->name);
  if (!name) return -2;
  int64_t target = find_persistent(loader, name);
  if (target < 0 && strncmp(name, prefix, sizeof prefix - 1) == 0) {
    target = find_persistent(loader, name + sizeof prefix - 1);
  }
  free(name);
  return target;
}

static bool check_entry(const Loader *loader, const RpTensorEntry *entry, const RpTensor *tensor, RpStatus *status) {
  char expected[160], found[160];
  bool same_shape = entry->rank == tensor->rank &&
                    memcmp(entry->dims, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims) == 0;
  if (same_shape && rp_tensors_readable(entry, tensor->type)) return true;
  rp_shape_text(tensor->rank, tensor->dims, expected, sizeof expected);
  rp_shape_text(entry->rank, entry->dims, found, sizeof found);
  return rp_fail(status, RP_BAD_DATA, "'%s': tensor '%.200s': expected %s %s, found %s %s", loader->tensors->file.path,
                 tensor->name, rp_type_name(tensor->type), expected, entry->type_name, found);
}

/* Whether an entry holds what was loaded already, compared in chunks. */
static bool check_equal(const Loader *loader, const RpTensorEntry *entry, const RpTensorEntry *loaded,
                        const RpTensor *tensor, RpStatus *status) {
  enum { CHUNK = 4096 };
  _Alignas(8) char chunk[8 * CHUNK], present[8 * CHUNK];
  int64_t elements = rp_tensor_elements(tensor), size = rp_type_size(tensor->type);
  for (int64_t at = 0; at < elements; at += CHUNK) {
    int64_t count = elements - at < CHUNK ? elements - at : CHUNK;
    if (!rp_tensors_read(loader->tensors, entry, tensor->type, at, count, chunk, status)) return false;
    if (!rp_arena_read(loader->context, tensor->offset + at * size, present, count * size, status)) return false;
    if (memcmp(chunk, present, (size_t)(count * size)) != 0) {
      return rp_fail(status, RP_BAD_DATA,
                     "'%s': '%.200s' and '%.200s' are both '%.200s' of the model but hold different "
                     "values",
                     loader->tensors->file.path, loaded->name, entry->name, tensor->name);
    }
  }
  return true;
}

/* Reads the entry into the arena in chunks. */
static bool read_entry(const Loader *loader, const RpTensorEntry *entry, const RpTensor *tensor, RpStatus *status) {
  enum { CHUNK = 1 << 17 };
  int64_t elements = rp_tensor_elements(tensor), size = rp_type_size(tensor->type);
  char *chunk = rp_allocate(elements < CHUNK ? elements : CHUNK, size, status);
  bool read = chunk != NULL;
  for (int64_t at = 0; read && at < elements; at += CHUNK) {
    int64_t count = elements - at < CHUNK ? elements - at : CHUNK;
    read = rp_tensors_read(loader->tensors, entry, tensor->type, at, count, chunk, status) &&
           rp_arena_write(loader->context, tensor->offset + at * size, chunk, count * size, status);
  }
  free(chunk);
  return read;
}

static bool load_entry(Loader *loader, const RpTensorEntry *entry, RpStatus *status) {
  int64_t target = find_target(loader, entry);
  if (target == -2) return rp_fail(status, RP_IO, "out of memory");
  if (target < 0) {
    if (loader->snapshot || strncmp(entry->name, "optimizer.", 10) != 0) {
      if (loader->ignored++ == 0) loader->first_ignored = entry->name;
    }
    return true;
  }
  const RpTensor *tensor = &loader->context->program->persistents[target].tensor;
  if (!check_entry(loader, entry, tensor, status)) return false;
  if (loader->source[target]) return check_equal(loader, entry, loader->source[target], tensor, status);
  loader->source[target] = entry;
  if (entry->type != (int)tensor->type) loader->converted++;
  return read_entry(loader, entry, tensor, status);
}

static bool check_complete(const Loader *loader, RpStatus *status) {
  const RpProgram *program = loader->context->program;
  int64_t missing = 0, first = -1;
  for (int i = 0; i < loader->rename_count; i++) {
    if (!loader->rename_used[i]) {
      return rp_fail(status, RP_BAD_DATA, "--rename %s: '%s' has no such tensor", loader->renames[i].name,
                     loader->tensors->file.path);
    }
  }
  for (int64_t i = 0; i < program->persistent_count; i++) {
    if (!wanted(loader, &program->persistents[i]) || loader->source[i]) continue;
    if (missing++ == 0) first = i;
  }
  if (missing == 0) return true;
  return rp_fail(status, RP_BAD_DATA, "'%s' lacks %lld tensor%s of the model, first '%.200s'%s",
                 loader->tensors->file.path, (long long)missing, missing == 1 ? "" : "s",
                 program->persistents[first].tensor.name,
                 loader->ignored > 0 ? "; it has others the model does not know: use --rename FROM=TO" : "");
}

static void report(const Loader *loader) {
  const char *path = loader->tensors->file.path;
  if (loader->converted > 0) {
    rp_log_note(loader->log, "'%s': converted %lld tensor%s from F16 or BF16 to f32", path,
                (long long)loader->converted, loader->converted == 1 ? "" : "s");
  }
  if (loader->ignored > 0) {
    rp_log_note(loader->log, "'%s': ignored %lld tensor%s that the model does not have, first '%.200s'", path,
                (long long)loader->ignored, loader->ignored == 1 ? "" : "s", loader->first_ignored);
  }
}

bool rp_weights_load(const RpContext *context, const RpTensorFile *tensors, bool snapshot, const RpPair *renames,
                     int rename_count, RpLog *log, RpStatus *status) {
  Loader loader = {.context = context,
                   .tensors = tensors,
                   .snapshot = snapshot,
                   .renames = renames,
                   .rename_count = rename_count,
                   .log = log};
  loader.rename_used = rp_allocate(rename_count, sizeof *loader.rename_used, status);
  loader.source = rp_allocate(context->program->persistent_count, sizeof *loader.source, status);
  bool loaded = loader.rename_used && loader.source;
  for (int64_t i = 0; loaded && i < tensors->count; i++) loaded = load_entry(&loader, &tensors->entries[i], status);
  if (loaded) loaded = check_complete(&loader, status);
  if (loaded) report(&loader);
  free(loader.rename_used);
  free(loader.source);
  return loaded;
}
