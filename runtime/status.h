/* runtime/status.h - how runtime functions report failure: they return false and fill an RpStatus. */
#ifndef REPRISE_RUNTIME_STATUS_H
#define REPRISE_RUNTIME_STATUS_H

#include <stdbool.h>

/* Exit codes of a produced program (docs/program.md). */
typedef enum RpCode {
  RP_OK = 0,
  RP_BAD_DATA = 1,      /* data, weights or a value in them is not what the model needs */
  RP_USAGE = 2,         /* the command line */
  RP_IO = 4,            /* a file cannot be opened, read or written */
  RP_NO_DEVICE = 7,     /* no memory for the arena, no device */
  RP_INTERNAL = 70,     /* a broken invariant of the runtime or of the emitted tables */
  RP_INTERRUPTED = 130, /* SIGINT, after saving */
} RpCode;

typedef struct RpStatus {
  RpCode code;
  char message[2048]; /* one or more lines, without a trailing newline */
} RpStatus;

/* Fills `status` and returns false, so that callers can write `return rp_fail(...)`. Long messages are cut. */
bool rp_fail(RpStatus *status, RpCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* rp_fail for a system call that set errno on `path`: "cannot read 'x': No such file or directory". */
bool rp_fail_errno(RpStatus *status, const char *action, const char *path);

/* calloc that reports instead of returning NULL silently; `count` 0 gives a valid pointer. */
void *rp_allocate(long long count, long long size, RpStatus *status);

#endif
