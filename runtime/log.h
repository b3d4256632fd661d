/* runtime/log.h - what a run tells: on a terminal for people, otherwise one JSON object a line on stdout; the same
 * lines go to --log whatever stdout is. */
#ifndef REPRISE_RUNTIME_LOG_H
#define REPRISE_RUNTIME_LOG_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/program.h"
#include "runtime/status.h"

typedef struct RpLog {
  bool terminal, colour;
  bool silent; /* nothing on the standard output (--print) */
  bool line_open;    /* the terminal's last line is a progress line that the next one replaces */
  FILE *file;        /* --log, or NULL */
  double last_shown; /* seconds: progress is redrawn at most ten times a second */
} RpLog;

/* `path` may be NULL; `append` goes on with an existing file. */
bool rp_log_open(RpLog *log, const char *path, bool append, RpStatus *status);
/* Reports output that could not be written (disk full), unless `status` holds an error already. */
bool rp_log_close(RpLog *log, RpStatus *status);

/* Writes `event` as a line to the log, and to stdout unless that is a terminal. Takes `event` over. */
void rp_log_event(RpLog *log, json_t *event);
/* On a terminal only: a line of text. */
void rp_log_text(RpLog *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A remark for people, on stderr. */
void rp_log_note(RpLog *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* JSON of a number: null when it is not finite. */
json_t *rp_json_number(double value);
/* {"name": value, ...} of scalars[1..], NULL when there are none. */
json_t *rp_json_scalars(const RpPhase *phase, const double *values);

typedef struct RpProgress {
  int64_t step, steps;
  double learning_rate;
  const RpPhase *phase;
  const double *scalars; /* of the phase, loss first */
  double rate;           /* samples or tokens per second */
  const char *rate_unit; /* "samples" | "tokens" */
  double seconds_left, now;
} RpProgress;

/* The event of a step and, on a terminal, the progress line. */
void rp_log_step(RpLog *log, const RpProgress *progress);

/* Seconds on the monotonic clock. */
double rp_seconds(void);

#endif
