/* ir/files.c - whole files in and out, and sizes as people write them. */
#include "ir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Devices and pipes may have no end. */
static const int64_t most_of_stream = INT64_C(1) << 28;

char *file_read(MemoryArena *arena, const char *path, int64_t *length, const char **error) {
  bool standard = string_equal(path, "-");
  FILE *file = standard ? stdin : fopen(path, "rb");
  if (!file) {
    *error = memory_format(arena, "cannot open '%s': %s", path, strerror(errno));
    return NULL;
  }
  ARRAY(char) text = {0};
  char chunk[65536];
  struct stat information;
  bool endless = fstat(fileno(file), &information) != 0 || !S_ISREG(information.st_mode);
  size_t got;
  while ((!endless || text.count <= most_of_stream) && (got = fread(chunk, 1, sizeof chunk, file)) > 0) {
    while (text.capacity - text.count < (int64_t)got + 1) text.items = array_grow(arena, text.items, &text.capacity, 1);
    memcpy(text.items + text.count, chunk, got);
    text.count += (int64_t)got;
  }
  int fault = ferror(file) ? errno : 0;
  if (!standard) fclose(file);
  if (fault) {
    *error = memory_format(arena, "cannot read '%s': %s", path, strerror(fault));
    return NULL;
  }
  if (endless && text.count > most_of_stream) {
    *error = memory_format(arena, "cannot read '%s': it goes on beyond 256 MiB and is no regular file", path);
    return NULL;
  }
  array_push(arena, &text, '\0');
  *length = text.count - 1;
  return text.items;
}

bool file_can_read(MemoryArena *arena, const char *path, const char **error) {
  struct stat information;
  if (string_equal(path, "-")) return true;
  bool there = stat(path, &information) == 0;
  int fault = !there ? errno : S_ISDIR(information.st_mode) ? EISDIR : access(path, R_OK) == 0 ? 0 : errno;
  if (fault) *error = memory_format(arena, "cannot %s '%s': %s", there ? "read" : "open", path, strerror(fault));
  return !fault;
}

static bool write_all(FILE *file, const void *bytes, int64_t length) {
  return fwrite(bytes, 1, (size_t)length, file) == (size_t)length && fflush(file) == 0;
}

/* Devices and pipes are written in place: renaming a file over /dev/null would replace it for everyone. */
static bool is_special(const char *path) {
  struct stat information;
  return stat(path, &information) == 0 && !S_ISREG(information.st_mode) && !S_ISDIR(information.st_mode);
}

static bool write_special(MemoryArena *arena, const char *path, const void *bytes, int64_t length, const char **error) {
  FILE *file = fopen(path, "wb");
  bool written = file && write_all(file, bytes, length);
  int fault = errno;
  if (file && fclose(file) != 0 && written) {
    written = false;
    fault = errno;
  }
  if (!written) *error = memory_format(arena, "cannot write '%s': %s", path, strerror(fault));
  return written;
}

bool file_write(MemoryArena *arena, const char *path, const void *bytes, int64_t length, const char **error) {
  if (string_equal(path, "-")) {
    if (write_all(stdout, bytes, length)) return true;
    *error = memory_format(arena, "cannot write to standard output: %s", strerror(errno));
    return false;
  }
  if (is_special(path)) return write_special(arena, path, bytes, length, error);
  char *temporary = memory_format(arena, "%s.XXXXXX", path);
  int descriptor = mkstemp(temporary);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
  if (!file) {
    *error = memory_format(arena, "cannot write '%s': %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    return false;
  }
  mode_t mask = umask(0);
  umask(mask);
  bool written = write_all(file, bytes, length) && fchmod(descriptor, 0666 & ~mask) == 0;
  int fault = errno;
  if (fclose(file) != 0 && written) {
    written = false;
    fault = errno;
  }
  if (written && rename(temporary, path) == 0) return true;
  if (written) fault = errno;
  unlink(temporary);
  *error = memory_format(arena, "cannot write '%s': %s", path, strerror(fault));
  return false;
}

char *file_sibling(MemoryArena *arena, const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  if (name[0] == '/' || !slash) return memory_string(arena, name);
  return memory_format(arena, "%.*s/%s", (int)(slash - path), path, name);
}

/* ---- sizes as people write them ---- */

static const struct {
  const char *suffix;
  int64_t bytes;
} size_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {"KB", 1000},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", INT64_C(1000000000000)},
};

/* Reads digits with an optional fraction as a whole number of `unit` bytes, exactly: 1.5GiB is 1610612736. */
static bool scale_decimal(const char *digits, const char *end, int64_t unit, int64_t *bytes) {
  int64_t whole = 0, numerator = 0, denominator = 1;
  bool fraction = false;
  for (const char *c = digits; c < end; c++) {
    if (*c == '.') {
      fraction = true;
      continue;
    }
    int64_t *number = fraction ? &numerator : &whole;
    if (!checked_multiply(*number, 10, number) || !checked_add(*number, *c - '0', number)) return false;
    if (fraction && !checked_multiply(denominator, 10, &denominator)) return false;
  }
  int64_t part;
  if (!checked_multiply(whole, unit, &whole) || !checked_multiply(numerator, unit, &part)) return false;
  return part % denominator == 0 && checked_add(whole, part / denominator, bytes);
}

bool parse_size(const char *text, int64_t *bytes, const char **error) {
  *error = "expected a positive size such as 64MiB, 64MB, 1.5GiB or a whole number of bytes";
  const char *end = text;
  int points = 0;
  while ((*end >= '0' && *end <= '9') || *end == '.') points += *end++ == '.';
  if (end == text || *text == '.' || end[-1] == '.' || points > 1) return false;
  for (size_t i = 0; i < sizeof size_units / sizeof *size_units; i++) {
    if (!string_equal(end, size_units[i].suffix)) continue;
    int64_t value;
    if (!scale_decimal(text, end, size_units[i].bytes, &value)) {
      *error = "the size is not a whole number of bytes below 8 EiB";
      return false;
    }
    if (value <= 0) return false;
    *bytes = value;
    return true;
  }
  return false;
}

char *format_bytes(MemoryArena *arena, int64_t bytes) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit < 6) value /= 1024, unit++;
  return memory_format(arena, unit ? "%.1f %s" : "%.0f %s", value, names[unit]);
}

char *format_bytes_exact(MemoryArena *arena, int64_t bytes) {
  char digits[32], text[48];
  int length = snprintf(digits, sizeof digits, "%lld", (long long)(bytes < 0 ? -bytes : bytes)), at = 0;
  if (bytes < 0) text[at++] = '-';
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) text[at++] = ',';
    text[at++] = digits[i];
  }
  text[at] = '\0';
  return memory_format(arena, "%s B", text);
}
