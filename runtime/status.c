#include "runtime/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rp_fail(RpStatus *status, RpCode code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  status->code = code;
  vsnprintf(status->message, sizeof status->message, format, arguments);
  va_end(arguments);
  return false;
}

bool rp_fail_errno(RpStatus *status, const char *action, const char *path) {
  return rp_fail(status, RP_IO, "cannot %s '%s': %s", action, path, strerror(errno));
}

void *rp_allocate(long long count, long long size, RpStatus *status) {
  void *memory = NULL;
  if (count >= 0 && size > 0 && count <= INT64_MAX / size) {
    memory = calloc((size_t)(count > 0 ? count : 1), (size_t)size);
  }
  if (!memory) rp_fail(status, RP_NO_DEVICE, "out of memory: %lld items of %lld bytes", count, size);
  return memory;
}
