/* runtime/arena.h - the arena, in host memory or on a device: what is read, written and run there. */
#ifndef REPRISE_RUNTIME_ARENA_H
#define REPRISE_RUNTIME_ARENA_H

#include "runtime/program.h"
#include "runtime/safetensors.h"
#include "runtime/status.h"

/* What the runtime says about the device that runs a program. Bytes are of device memory. */
typedef struct RpDeviceFacts {
  char name[256];
  int architecture;   /* 90: sm_90 */
  int driver_version; /* 13000: 13.0 */
  bool emulated;
  int64_t total_bytes;
  int64_t context_bytes;   /* taken before the arena was: the context, the program's code, other processes */
  int64_t libraries_bytes; /* taken by cuBLAS, outside its workspace */
} RpDeviceFacts;

/* A device. Offsets are bytes from the start of the arena. Functions with a status report there; the others keep the
 * first error, which `finish` reports. */
typedef struct RpBackend {
  bool (*open)(RpContext *context, RpStatus *status);
  void (*close)(RpContext *context);
  bool (*read)(const RpContext *context, int64_t offset, void *to, int64_t bytes, RpStatus *status);
  bool (*write)(const RpContext *context, int64_t offset, const void *from, int64_t bytes, RpStatus *status);
  bool (*fill)(const RpContext *context, int64_t offset, unsigned char value, int64_t bytes, RpStatus *status);
  /* Waits for what is queued. */
  void (*synchronise)(const RpContext *context);
  /* Writes the control block and queues the phase after the inputs that were sent. */
  bool (*start)(RpContext *context, const RpControl *control, RpStatus *status);
  /* Waits for the phase; receives the control block and, per scalar, value and denominator (1 without one). */
  bool (*finish)(RpContext *context, RpControl *control, float *scalars, RpStatus *status);
  /* Host memory for a batch: input i at offsets[i], -1 for one that the form of the program does not have. */
  char *(*stage)(RpContext *context, bool evaluation, const int64_t **offsets);
  /* Queues the copy of what `stage` gave into the arena, after the phase that was started last. */
  bool (*send)(RpContext *context, bool evaluation, RpStatus *status);
  const RpDeviceFacts *(*facts)(const RpContext *context);
} RpBackend;

/* Allocates the arena of context->program: the one allocation for the model. */
bool rp_arena_open(RpContext *context, RpStatus *status);
void rp_arena_close(RpContext *context);
/* Are the guard zones before and behind the arena as they were filled? True on a device, which has none. */
bool rp_arena_is_intact(const RpContext *context);

/* status may be NULL inside observers: a device then keeps the error for rp_phase_finish. */
bool rp_arena_read(const RpContext *context, int64_t offset, void *to, int64_t bytes, RpStatus *status);
bool rp_arena_write(const RpContext *context, int64_t offset, const void *from, int64_t bytes, RpStatus *status);
bool rp_arena_fill(const RpContext *context, int64_t offset, unsigned char value, int64_t bytes, RpStatus *status);
void rp_arena_synchronise(const RpContext *context);
/* Writes the tensor's bytes as tensor `index` of a file. */
bool rp_arena_save(const RpContext *context, RpTensorWriter *writer, int64_t index, const RpTensor *tensor,
                   RpStatus *status);

/* Runs context->phase with a control block; on a device, starts it. */
bool rp_phase_start(RpContext *context, const RpControl *control, RpStatus *status);
/* Waits for it. scalars: two floats for each of the phase's, value and denominator. */
bool rp_phase_finish(RpContext *context, RpControl *control, float *scalars, RpStatus *status);

/* NULL on the host. */
const RpBackend *rp_backend(const RpContext *context);

#endif
