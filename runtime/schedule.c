#include "runtime/schedule.h"

#include <math.h>

double rp_schedule_factor(const RpSchedule *schedule, int64_t t) {
  if (t < schedule->warmup) return (double)(t + 1) / (double)schedule->warmup;
  int64_t since = t - schedule->warmup, span = schedule->steps - schedule->warmup;
  double p = since >= span ? 1 : (double)since / (double)span;
  switch (schedule->kind) {
    case RP_SCHEDULE_COSINE:
      return schedule->final + (1 - schedule->final) * (1 + cos(3.141592653589793 * p)) / 2;
    case RP_SCHEDULE_LINEAR:
      return 1 - (1 - schedule->final) * p;
    case RP_SCHEDULE_STEP:
      return schedule->every > 0 ? pow(schedule->factor, (double)(since / schedule->every)) : 1;
    case RP_SCHEDULE_CONSTANT:
      break;
  }
  return 1;
}
