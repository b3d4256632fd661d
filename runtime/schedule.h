/* runtime/schedule.h - learning-rate schedules. */
#ifndef REPRISE_RUNTIME_SCHEDULE_H
#define REPRISE_RUNTIME_SCHEDULE_H

#include "runtime/program.h"

/* Factor on the learning rate at update t = 0, 1, ... (formulas at RpSchedule). */
double rp_schedule_factor(const RpSchedule *schedule, int64_t t);

#endif
