/* runtime/kernels/fault.h - how kernels report data that the model cannot take. */
#ifndef REPRISE_RUNTIME_KERNELS_FAULT_H
#define REPRISE_RUNTIME_KERNELS_FAULT_H

#include "runtime/program.h"

/* Sets control->fault to 1 + the index of the failed check in the program's table; the smallest wins, whatever the
 * order of threads. */
static inline void rp_report_fault(RpControl *control, int32_t check) {
#pragma omp critical(rp_fault)
  if (control->fault == 0 || control->fault > check + 1) control->fault = check + 1;
}

#endif
