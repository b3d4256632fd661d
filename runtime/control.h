/* runtime/control.h - the control block, as host and device code see it. */
#ifndef REPRISE_RUNTIME_CONTROL_H
#define REPRISE_RUNTIME_CONTROL_H

#ifndef __CUDACC_RTC__
#include <stdint.h>
#endif

/* The control block: 64 bytes at program->control_offset that the runtime writes before each micro-step and the
 * kernels read (and, for fault, write). */
typedef struct RpControl {
  uint64_t seed;
  int64_t micro_step;        /* global index of the micro-step, from 0: keys random numbers */
  int64_t update;            /* number of this update, from 1: Adam's t */
  float learning_rate_scale; /* schedule(update) times --lr override; each parameter multiplies its own rate */
  int32_t fault;             /* 0, or 1 + index into program->checks of the check that failed (the smallest wins) */
  int32_t micro_steps;       /* micro-steps per update (accumulate) */
  int32_t reserved[7];
} RpControl;

#endif
