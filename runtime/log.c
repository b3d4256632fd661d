#include "runtime/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

double rp_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool rp_log_open(RpLog *log, const char *path, bool append, RpStatus *status) {
  const char *no_colour = getenv("NO_COLOR");
  *log = (RpLog){.terminal = isatty(STDOUT_FILENO) == 1};
  log->colour = log->terminal && !(no_colour && *no_colour);
  if (!path) return true;
  log->file = fopen(path, append ? "a" : "w");
  return log->file != NULL || rp_fail_errno(status, "write", path);
}

static void end_progress(RpLog *log) {
  if (log->line_open) fputc('\n', stdout);
  log->line_open = false;
}

bool rp_log_close(RpLog *log, RpStatus *status) {
  end_progress(log);
  bool written = fflush(stdout) == 0 && !ferror(stdout);
  if (log->file && (ferror(log->file) | fclose(log->file))) written = false;
  log->file = NULL;
  if (!written && status->code == RP_OK) return rp_fail(status, RP_IO, "the log could not be written");
  return written;
}

void rp_log_event(RpLog *log, json_t *event) {
  enum { FLAGS = JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) };
  char *line = event ? json_dumps(event, FLAGS) : NULL;
  if (line && !log->terminal && !log->silent) {
    printf("%s\n", line);
    fflush(stdout);
  }
  if (line && log->file) {
    fprintf(log->file, "%s\n", line);
    fflush(log->file);
  }
  free(line);
  json_decref(event);
}

void rp_log_text(RpLog *log, const char *format, ...) {
  if (!log->terminal) return;
  va_list arguments;
  end_progress(log);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  fputc('\n', stdout);
  fflush(stdout);
}

void rp_log_note(RpLog *log, const char *format, ...) {
  va_list arguments;
  end_progress(log);
  fflush(stdout);
  fputs("note: ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

json_t *rp_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *rp_json_scalars(const RpPhase *phase, const double *values) {
  if (phase->scalar_count < 2) return NULL;
  json_t *object = json_object();
  for (int64_t i = 1; i < phase->scalar_count; i++) {
    json_object_set_new(object, phase->scalars[i].name, rp_json_number(values[i]));
  }
  return object;
}

static void show_time_left(double seconds) {
  long total = (long)(seconds + 0.5), hours = total / 3600, minutes = total / 60 % 60;
  if (hours > 0) {
    printf("  %ld:%02ld:%02ld left", hours, minutes, total % 60);
  } else {
    printf("  %ld:%02ld left", minutes, total % 60);
  }
}

static void show_progress(RpLog *log, const RpProgress *progress) {
  const char *bold = log->colour ? "\x1b[1m" : "", *plain = log->colour ? "\x1b[0m" : "";
  if (progress->step < progress->steps && progress->now - log->last_shown < 0.1) return;
  log->last_shown = progress->now;
  printf("\r\x1b[Kstep %lld/%lld  loss %s%.6g%s", (long long)progress->step, (long long)progress->steps, bold,
         progress->scalars[0], plain);
  for (int64_t i = 1; i < progress->phase->scalar_count; i++) {
    printf("  %s %.4g", progress->phase->scalars[i].name, progress->scalars[i]);
  }
  printf("  lr %.3g  %.4g %s/s", progress->learning_rate, progress->rate, progress->rate_unit);
  if (progress->step < progress->steps) show_time_left(progress->seconds_left);
  fflush(stdout);
  log->line_open = true;
}

void rp_log_step(RpLog *log, const RpProgress *progress) {
  char unit[32];
  snprintf(unit, sizeof unit, "%s_per_second", progress->rate_unit);
  json_t *event =
      json_pack("{s:s, s:I, s:o, s:o, s:o*}", "event", "step", "step", (json_int_t)progress->step, "loss",
                rp_json_number(progress->scalars[0]), "learning_rate", rp_json_number(progress->learning_rate),
                "scalars", rp_json_scalars(progress->phase, progress->scalars));
  json_object_set_new(event, unit, rp_json_number(progress->rate));
  rp_log_event(log, event);
  if (log->terminal) show_progress(log, progress);
}
