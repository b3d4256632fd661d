/* runtime/reader.h - where inputs come from: one struct of function pointers per file format.
 *
 * A source serves records. For record formats (IDX, npy, CSV) record r of an input [B, ...] is one [...] along the
 * first axis; an input of rank 0 is a record itself. A constant fills its whole input, whatever the record. For texts
 * (bytes, chars, tokens) a record is named by the position s at which it starts: text[s .. s+T) for the first input and
 * text[s+1 .. s+T+1) for the second. Positions are relative to the reader's range. */
#ifndef REPRISE_RUNTIME_READER_H
#define REPRISE_RUNTIME_READER_H

#include "runtime/files.h"
#include "runtime/program.h"

typedef struct RpSource RpSource;

typedef struct RpFormat {
  const char *name;
  bool text; /* records are windows of a text */
  /* Opens source->path, validates it against the inputs, sets state and available. */
  bool (*open)(RpSource *source, RpStatus *status);
  /* Writes one record to to[i] for each of the source's inputs, in their types. */
  bool (*read)(RpSource *source, int64_t record, char *const *to, RpStatus *status);
  /* Frees state; called after a failed open too. */
  void (*close)(RpSource *source);
} RpFormat;

struct RpSource {
  const RpReader *reader;
  const RpFormat *format;
  char *path;
  const RpTensor *inputs[RP_MAX_READER_INPUTS];
  int64_t record_bytes[RP_MAX_READER_INPUTS];
  int64_t available;             /* records, or elements of the text, in the file; set by open */
  int64_t first;                 /* of the range served */
  int64_t count;                 /* records, or elements of the text, in the range */
  int64_t window;                /* texts: T */
  const RpSource *vocabulary_of; /* chars: number the bytes as this source does; NULL: by the file itself */
  void *state;
};

/* Opens the source of `reader` with `path` in place of its own when not NULL; `whole` ignores the reader's range.
 * `vocabulary_of` as above, may be NULL. On failure nothing is left open. */
bool rp_source_open(RpSource *source, const RpProgram *program, const RpReader *reader, const char *path, bool whole,
                    const RpSource *vocabulary_of, RpStatus *status);
bool rp_source_read(RpSource *source, int64_t record, char *const *to, RpStatus *status);
void rp_source_close(RpSource *source);

/* Records a pass over the range has: records, or consecutive windows of T. */
int64_t rp_source_records(const RpSource *source);

extern const RpFormat rp_format_constant, rp_format_idx, rp_format_npy, rp_format_csv, rp_format_bytes, rp_format_chars,
    rp_format_tokens;

/* For formats of one array (IDX, npy): checks a file's type and shape against the source's only input, names both in
 * the message, and sets available. `type_name` is the file's own word for the type; `matches` whether it is the
 * input's. */
bool rp_source_check_array(RpSource *source, const char *type_name, bool matches, int rank, const int64_t *dims,
                           RpStatus *status);

#endif
