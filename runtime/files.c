#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { LOAD_CHUNK = 1 << 20 };

bool rp_file_open(RpFile *file, const char *path, RpStatus *status) {
  *file = (RpFile){.descriptor = open(path, O_RDONLY | O_CLOEXEC)};
  struct stat information;
  if (file->descriptor < 0) return rp_fail_errno(status, "open", path);
  file->path = strdup(path);
  if (!file->path || fstat(file->descriptor, &information) != 0) {
    rp_fail_errno(status, "read", path);
    rp_file_close(file);
    return false;
  }
  if (!S_ISREG(information.st_mode)) {
    rp_file_close(file);
    return rp_fail(status, RP_IO, "'%s' is not a regular file", path);
  }
  file->size = information.st_size;
  return true;
}

/* Reads what is left of `stream` into file->contents, growing by doubling so that nothing the file claims about
 * itself decides how much memory is taken. */
static bool load_stream(RpFile *file, gzFile stream, RpStatus *status) {
  int64_t capacity = 0;
  for (;;) {
    if (file->size + LOAD_CHUNK > capacity) {
      capacity = capacity ? 2 * capacity : 2 * LOAD_CHUNK;
      unsigned char *grown = realloc(file->contents, (size_t)capacity);
      if (!grown) return rp_fail(status, RP_IO, "out of memory while reading '%s'", file->path);
      file->contents = grown;
    }
    int got = gzread(stream, file->contents + file->size, LOAD_CHUNK);
    int code = Z_OK;
    const char *reason = gzerror(stream, &code);
    if (got < 0 || code < 0) return rp_fail(status, RP_BAD_DATA, "cannot decompress '%s': %s", file->path, reason);
    if (got == 0) return true;
    file->size += got;
  }
}

bool rp_file_load(RpFile *file, const char *path, RpStatus *status) {
  if (!rp_file_open(file, path, status)) return false;
  gzFile stream = gzdopen(file->descriptor, "rb");
  if (!stream) {
    rp_file_close(file);
    return rp_fail(status, RP_IO, "out of memory while reading '%s'", path);
  }
  file->descriptor = -1; /* the stream's now */
  file->size = 0;
  bool loaded = load_stream(file, stream, status);
  gzclose(stream);
  if (!loaded) rp_file_close(file);
  return loaded;
}

bool rp_file_read(const RpFile *file, int64_t offset, int64_t bytes, void *to, RpStatus *status) {
  if (offset < 0 || bytes < 0 || bytes > file->size || offset > file->size - bytes) {
    return rp_fail(status, RP_BAD_DATA, "'%s' ends at byte %lld, expected %lld bytes at offset %lld", file->path,
                   (long long)file->size, (long long)bytes, (long long)offset);
  }
  if (file->contents) {
    memcpy(to, file->contents + offset, (size_t)bytes);
    return true;
  }
  while (bytes > 0) {
    ssize_t got = pread(file->descriptor, to, bytes < INT_MAX ? (size_t)bytes : INT_MAX, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return rp_fail_errno(status, "read", file->path);
    if (got == 0)
      return rp_fail(status, RP_IO, "'%s' was cut to %lld bytes while in use", file->path, (long long)offset);
    to = (char *)to + got;
    offset += got;
    bytes -= got;
  }
  return true;
}

void rp_file_close(RpFile *file) {
  if (file->descriptor >= 0) close(file->descriptor);
  free(file->path);
  free(file->contents);
  *file = (RpFile){.descriptor = -1};
}

void rp_hold_standard_streams(void) {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
    if (fcntl(descriptor, F_GETFD) < 0) open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool rp_output_open(RpOutput *output, const char *path, RpStatus *status) {
  *output = (RpOutput){.descriptor = -1};
  struct stat information;
  if (stat(path, &information) == 0 && !S_ISREG(information.st_mode))
    return rp_fail(status, RP_IO, "cannot write '%s': it is there and not a regular file", path);
  output->path = strdup(path);
  size_t size = strlen(path) + 32;
  output->temporary = malloc(size);
  if (!output->path || !output->temporary) {
    rp_output_discard(output);
    return rp_fail(status, RP_IO, "out of memory while opening '%s'", path);
  }
  snprintf(output->temporary, size, "%s.%ld.partial", path, (long)getpid());
  output->descriptor = open(output->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output->descriptor < 0) {
    rp_fail_errno(status, "write", output->temporary);
    rp_output_discard(output);
    return false;
  }
  return true;
}

bool rp_output_try(const char *path, RpStatus *status) {
  RpOutput output;
  if (!rp_output_open(&output, path, status)) return false;
  rp_output_discard(&output);
  return true;
}

bool rp_output_write(RpOutput *output, int64_t offset, const void *bytes, int64_t count, RpStatus *status) {
  while (count > 0) {
    ssize_t put = pwrite(output->descriptor, bytes, count < INT_MAX ? (size_t)count : INT_MAX, (off_t)offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return rp_fail_errno(status, "write", output->temporary);
    bytes = (const char *)bytes + put;
    offset += put;
    count -= put;
  }
  return true;
}

bool rp_output_commit(RpOutput *output, RpStatus *status) {
  bool written = fsync(output->descriptor) == 0;
  written = close(output->descriptor) == 0 && written;
  output->descriptor = -1;
  if (!written) rp_fail_errno(status, "write", output->temporary);
  if (written && rename(output->temporary, output->path) != 0) written = rp_fail_errno(status, "write", output->path);
  if (written) {
    free(output->temporary);
    output->temporary = NULL;
  }
  rp_output_discard(output);
  return written;
}

void rp_output_discard(RpOutput *output) {
  if (output->descriptor >= 0) close(output->descriptor);
  if (output->temporary) unlink(output->temporary);
  free(output->path);
  free(output->temporary);
  *output = (RpOutput){.descriptor = -1};
}
