/* runtime/safetensors.h - the safetensors format: u64 little-endian header length, JSON header, data.
 *
 * Reading is strict: header at most 100,000,000 bytes and starting with '{', offsets contiguous from 0 to the end of
 * the file, sizes equal to shape times type, no duplicate names, __metadata__ string to string. Writing is bounded in
 * memory by the header, and the file appears whole or not at all. */
#ifndef REPRISE_RUNTIME_SAFETENSORS_H
#define REPRISE_RUNTIME_SAFETENSORS_H

#include <jansson.h>
#include <stdint.h>

#include "runtime/files.h"
#include "runtime/program.h"

enum { RP_SAFETENSORS_MAX_HEADER = 100000000 };

/* One tensor of a file. */
typedef struct RpTensorEntry {
  const char *name;      /* owned by the file's header */
  const char *type_name; /* as in the file: "F32" */
  int type;              /* RpType, or -1: a type no tensor of ours has (I8, U16, F8_E4M3, ...) */
  int rank;
  int64_t dims[RP_MAX_RANK];
  int64_t begin, end; /* bytes in the data section */
} RpTensorEntry;

typedef struct RpTensorFile {
  RpFile file;
  json_t *header;
  int64_t data_offset;
  RpTensorEntry *entries; /* in the order of their data */
  int64_t count;
} RpTensorFile;

/* Opens and validates `path`. Errors say what was expected and found; on failure nothing is left open. */
bool rp_tensors_open(RpTensorFile *tensors, const char *path, RpStatus *status);
/* The same for a file that is in memory (tests, fuzzing); `name` is for messages, `bytes` is copied. */
bool rp_tensors_open_memory(RpTensorFile *tensors, const char *name, const void *bytes, int64_t size, RpStatus *status);
void rp_tensors_close(RpTensorFile *tensors);

/* Value of a key of __metadata__, or NULL. Owned by the file. */
const char *rp_tensors_metadata(const RpTensorFile *tensors, const char *key);

/* Whether a tensor of the entry's type can be read as `type`: equal types, and F16 or BF16 read as f32. */
bool rp_tensors_readable(const RpTensorEntry *entry, RpType type);
/* Reads elements [first, first + count) of the entry as `type`, which must be readable. */
bool rp_tensors_read(const RpTensorFile *tensors, const RpTensorEntry *entry, RpType type, int64_t first, int64_t count,
                     void *to, RpStatus *status);

/* A file being written: all tensors are declared first, then put in any order. */
typedef struct RpTensorWriter {
  bool open;
  RpOutput output;
  int64_t count, data_offset;
  int64_t *begins, *sizes; /* bytes in the data section */
} RpTensorWriter;

/* Writes the header for `count` tensors (names, types, shapes; offsets are not looked at) with `metadata` pairs
 * {name, value}; "format": "pt" is added, which other readers ask for. Duplicate names are RP_INTERNAL. */
typedef struct RpMetadata {
  const char *key;
  char value[48];
} RpMetadata;
bool rp_writer_open(RpTensorWriter *writer, const char *path, const RpTensor *tensors, int64_t count,
                    const RpMetadata *metadata, int metadata_count, RpStatus *status);
/* Writes tensor `index`, contiguous at `data`. */
bool rp_writer_put(RpTensorWriter *writer, int64_t index, const void *data, RpStatus *status);
/* Writes `count` bytes of tensor `index` from its byte `offset` on. */
bool rp_writer_put_part(RpTensorWriter *writer, int64_t index, int64_t offset, const void *data, int64_t count,
                        RpStatus *status);
bool rp_writer_commit(RpTensorWriter *writer, RpStatus *status);
/* Leaves no file. Harmless when not open. */
void rp_writer_discard(RpTensorWriter *writer);

#endif
