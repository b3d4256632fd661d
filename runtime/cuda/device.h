/* runtime/cuda/device.h - the state of a program on a CUDA device; shared by the files of runtime/cuda/. */
#ifndef REPRISE_RUNTIME_CUDA_DEVICE_H
#define REPRISE_RUNTIME_CUDA_DEVICE_H

#include "runtime/arena.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"

enum { RP_PHASES = 3, RP_SLOTS = 2 };

/* Pinned host memory: [staging of a batch] twice, [control block in], [control block and scalars out], [a part of what
 * is read or written]. */
typedef struct RpPinned {
  char *memory;
  char *slots[RP_SLOTS];
  RpControl *control_in, *control_out;
  float *scalars;
  char *part;
} RpPinned;

typedef struct RpDevice {
  CudaLibraries cuda;
  RpStatus status; /* the first error, RP_OK while there is none */
  RpDeviceFacts facts;
  CuDevice ordinal;
  CuContext context;
  CuModule module;
  CuFunction *functions; /* as in the program's table */
  CuPointer arena;
  CuStream stream, copies;       /* of the steps, of the inputs */
  CuEvent phase_end, inputs_end; /* of the phase started last, of the inputs sent last */
  CublasHandle cublas;
  int64_t workspace, workspace_bytes; /* what the handle has; -1: nothing */
  CuGraphExec graphs[RP_PHASES];      /* of micro-step, update, evaluation; NULL until captured */
  bool warm[RP_PHASES];               /* has run once, uncaptured */
  RpPinned pinned;
  int64_t *input_offsets, *evaluation_offsets; /* of inputs in a slot, -1: none */
  int slot;                                    /* the one that `stage` gave */
  bool synchronous;                            /* REPRISE_CUDA_SYNC: wait after each kernel */
} RpDevice;

enum { RP_PART_BYTES = 1 << 20 };

/* Keeps the first error, with what was done and, inside a phase, the kernel of the model it belongs to. */
bool rp_cuda_check(const RpContext *context, CuResult result, const char *action);

/* ---- step.c ---- */
bool rp_cuda_start(RpContext *context, const RpControl *control, RpStatus *status);
bool rp_cuda_finish(RpContext *context, RpControl *control, float *scalars, RpStatus *status);
char *rp_cuda_stage(RpContext *context, bool evaluation, const int64_t **offsets);
bool rp_cuda_send(RpContext *context, bool evaluation, RpStatus *status);

#endif
