/* runtime/files.h - reading whole or by position, and output files that appear whole or not at all. */
#ifndef REPRISE_RUNTIME_FILES_H
#define REPRISE_RUNTIME_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/status.h"

/* A file open for reading at any position: on disk, or (contents != NULL) held in memory. Owns its parts; all zero
 * with descriptor -1 is a closed file. */
typedef struct RpFile {
  char *path;
  int descriptor;
  unsigned char *contents;
  int64_t size;
} RpFile;

/* Opens a regular file. */
bool rp_file_open(RpFile *file, const char *path, RpStatus *status);
/* The same with the contents read into memory, decompressed where they start with gzip's magic bytes. */
bool rp_file_load(RpFile *file, const char *path, RpStatus *status);
/* Copies bytes [offset, offset + bytes) to `to`; error when they are not all there. */
bool rp_file_read(const RpFile *file, int64_t offset, int64_t bytes, void *to, RpStatus *status);
void rp_file_close(RpFile *file);

/* A file being written under a temporary name beside its own. */
typedef struct RpOutput {
  char *path, *temporary;
  int descriptor;
} RpOutput;

/* Occupies closed standard streams, so that no file that is opened later takes their numbers and receives what is
 * printed; using them still fails. */
void rp_hold_standard_streams(void);

/* Refuses a path where something other than a regular file is: the rename would replace it. */
bool rp_output_open(RpOutput *output, const char *path, RpStatus *status);
/* Whether rp_output_open would succeed; leaves nothing behind. */
bool rp_output_try(const char *path, RpStatus *status);
bool rp_output_write(RpOutput *output, int64_t offset, const void *bytes, int64_t count, RpStatus *status);
/* Flushes to disk and renames; afterwards `output` is closed whether it worked or not. */
bool rp_output_commit(RpOutput *output, RpStatus *status);
/* Removes what was written. Harmless on a closed output. */
void rp_output_discard(RpOutput *output);

/* Paths of regular files that match `pattern`, sorted by byte order: `*` matches within a segment, a segment `**` any
 * number of directories; names that start with a dot only match patterns that do. A pattern without `*` is that path
 * itself. No match is an error. Free with rp_paths_free. */
bool rp_glob(const char *pattern, char ***paths, int64_t *count, RpStatus *status);
void rp_paths_free(char **paths, int64_t count);

#endif
