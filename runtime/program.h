/* runtime/program.h - what a compiled model hands to the runtime: tables, offsets and step functions.
 *
 * An emitted C file defines one RpProgram and a main() that calls rp_main(&program, argc, argv). The runtime allocates
 * the arena (program->arena_bytes, once), fills persistent tensors, reads data into the inputs, calls the step
 * functions, and reads results back by offset. All offsets are bytes from the start of the arena. All tables are
 * constant, in the order in which the model declares things. */
#ifndef REPRISE_RUNTIME_PROGRAM_H
#define REPRISE_RUNTIME_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/control.h"

enum { RP_PROGRAM_VERSION = 1, RP_MAX_RANK = 8, RP_MAX_READER_INPUTS = 8 };

/* Element types; values are part of the file format of emitted programs, append only. */
typedef enum RpType { RP_F32, RP_F64, RP_BF16, RP_F16, RP_I32, RP_I64, RP_U8, RP_BOOL } RpType;

typedef struct RpTensor {
  const char *name;
  RpType type;
  int rank;
  int64_t dims[RP_MAX_RANK];
  int64_t offset; /* -1: not in the arena of this run (only observed when made) */
} RpTensor;

/* Initial values. fan-dependent kinds are resolved by the compiler to uniform or normal. Random ones draw element i of
 * Philox4x32-10 keyed by (seed, hash of the name), see runtime/random.h. */
typedef enum RpInitialKind { RP_INIT_CONSTANT, RP_INIT_UNIFORM, RP_INIT_NORMAL, RP_INIT_TRUNCATED_NORMAL } RpInitialKind;
typedef struct RpInitial {
  RpInitialKind kind;
  double value;      /* constant: the value; uniform: draws from [-value, value); normal: standard deviation */
  double mean;       /* normal, truncated normal (at two standard deviations) */
} RpInitial;

typedef enum RpRole { RP_PARAMETER, RP_STATE, RP_OPTIMIZER, RP_ACCUMULATOR } RpRole;

/* A tensor that lives across steps. Parameters and states go to weights files under their name; optimizer state goes
 * to snapshots too (name "optimizer.<slot>.<parameter>"); accumulators are zero between updates and never saved. */
typedef struct RpPersistent {
  RpTensor tensor;
  RpRole role;
  RpInitial initial;
  bool trainable;
} RpPersistent;

/* One input of the model: offset in the training program's arena and in the evaluation program's. */
typedef struct RpInput {
  RpTensor tensor;
  int64_t evaluation_offset;
} RpInput;

/* A scalar that is logged: the loss is scalar 0 of its program, scalar outputs follow. With a denominator
 * (`loss a per b`), the value over several micro-steps or batches is sum(a)/sum(b), otherwise their mean.
 * All are f32 []; denominator_offset is -1 when there is none. */
typedef struct RpScalar {
  const char *name;
  int64_t offset, denominator_offset;
} RpScalar;

/* What --dump-grads and tests can observe: captured from the arena right after the step that made it, since its bytes
 * may be reused later. */
typedef enum RpObservableKind { RP_OBSERVE_LOSS, RP_OBSERVE_OUTPUT, RP_OBSERVE_GRADIENT, RP_OBSERVE_VALUE } RpObservableKind;
typedef struct RpObservable {
  RpObservableKind kind;
  RpTensor tensor; /* contiguous at tensor.offset right after step `step` of its program */
  int64_t step;    /* -1: before the first */
  int64_t divisor_offset; /* an f32 scalar at that time that the values are to be divided by, or -1 */
} RpObservable;

/* One executed kernel of a program, in order. */
typedef struct RpKernel {
  const char *name;   /* module path and op, for people: "h.0.attn.c_attn matmul" */
  const char *source; /* "file.rp:line:column" */
  const char *phase;  /* "forward" | "backward" | "update" */
  bool clone;         /* a second execution inserted by the checkpoint pass */
  int64_t live_bytes; /* bytes live while it runs, the whole arena's, by the counting rules */
  const int64_t *freed; /* pairs offset, bytes: storages that die after it; freed_count pairs */
  int64_t freed_count;
} RpKernel;

/* A data-dependent fault a kernel can report through RpControl.fault. */
typedef struct RpCheck {
  const char *message; /* "class index out of range in cross_entropy: expected 0..9 or -1" */
  const char *source;
} RpCheck;

typedef struct RpContext RpContext;

/* One straight-line program over the arena. */
typedef struct RpPhase {
  void (*run)(RpContext *context); /* calls rp_done(context, i) after kernel i */
  const RpKernel *kernels;
  int64_t kernel_count;
  const RpObservable *observables;
  int64_t observable_count;
  const RpScalar *scalars;
  int64_t scalar_count;
} RpPhase;

/* Where a model's inputs come from. */
typedef enum RpReaderKind {
  RP_READ_CONSTANT, /* value for every element */
  RP_READ_IDX,      /* IDX file, plain or .gz; one input */
  RP_READ_NPY,      /* .npy; one input; first axis = records */
  RP_READ_CSV,      /* rows = records; columns are dealt to the inputs in order */
  RP_READ_BYTES,    /* raw bytes; two inputs [B, T]: text[i..i+T) and text[i+1..i+T+1) */
  RP_READ_CHARS,    /* the same with the file's distinct bytes renumbered 0.. in byte order */
  RP_READ_TOKENS    /* llm.c token files (glob); two inputs [B, T] as for bytes */
} RpReaderKind;

typedef struct RpReader {
  RpReaderKind kind;
  const char *name;          /* name of its first input: what --data NAME=FILE names */
  const char *path;          /* as written in the model file, relative to the working directory */
  int input_count;
  int inputs[RP_MAX_READER_INPUTS]; /* indices into program->inputs */
  int64_t first, last;       /* records [first, last); last = -1: to the end */
  double value;              /* constant */
  bool header;               /* csv: skip the first line */
  int64_t vocabulary;        /* chars: largest number of distinct bytes the model has room for, 0 = unchecked */
} RpReader;

typedef enum RpScheduleKind { RP_SCHEDULE_CONSTANT, RP_SCHEDULE_COSINE, RP_SCHEDULE_LINEAR, RP_SCHEDULE_STEP } RpScheduleKind;
/* Factor on the learning rate at update t = 0, 1, ...:
 *   warmup: (t + 1) / warmup for t < warmup; then with p = min(1, (t - warmup) / (steps - warmup)):
 *   cosine: final + (1 - final) (1 + cos(pi p)) / 2; linear: 1 - (1 - final) p; step: factor ^ floor((t - warmup) / every). */
typedef struct RpSchedule {
  RpScheduleKind kind;
  int64_t warmup, steps, every;
  double final, factor;
} RpSchedule;

/* Bytes of the arena at the planned peak, by anatomy (docs/design.md, section 2). */
typedef struct RpAnatomy {
  int64_t weights, gradients, optimizer_state, activations, temporaries, workspace, inputs;
} RpAnatomy;

typedef struct RpProgram {
  int version; /* RP_PROGRAM_VERSION */
  const char *model, *target, *source;
  int64_t arena_bytes, alignment, budget; /* budget -1: none given */
  int64_t live_peak, persistent_bytes;    /* persistent section: [0, persistent_bytes) */
  RpAnatomy anatomy;
  int64_t control_offset;
  const RpPersistent *persistents;
  int64_t persistent_count;
  const RpInput *inputs;
  int64_t input_count;
  const RpReader *readers, *test_readers;
  int64_t reader_count, test_reader_count;
  const RpCheck *checks;
  int64_t check_count;
  RpPhase micro_step; /* forward and backward; with accumulate 1 the updates too */
  RpPhase update;     /* run == NULL with accumulate 1 */
  RpPhase evaluation; /* run == NULL when the model has no evaluation form */
  double learning_rate;        /* base rate, for --lr: the scale is lr / learning_rate */
  RpSchedule schedule;
  int64_t accumulate, steps, epochs; /* steps, epochs: defaults, 0 = not given */
  uint64_t seed;
  bool shuffle;
  const char *plan_json;       /* printed by --plan */
  const struct RpDeviceProgram *device; /* what runs on a device (runtime/cuda/device_program.h); NULL: the host does */
} RpProgram;

struct RpContext {
  const RpProgram *program;
  char *arena;             /* NULL when the arena is on a device */
  struct RpDevice *device; /* NULL when the host runs the program */
  int64_t kernel;          /* the kernel of the phase that runs, for error messages */
  void (*observer)(RpContext *context, int64_t kernel); /* NULL outside observed runs */
  void *observer_data;
  const RpPhase *phase; /* the one that is running, set by the runtime */
};

/* Called by emitted code after each kernel. */
static inline void rp_done(RpContext *context, int64_t kernel) {
  context->kernel = kernel + 1;
  if (context->observer) context->observer(context, kernel);
}

/* The control block of an arena in host memory. */
static inline RpControl *rp_control(const RpContext *context) {
  return (RpControl *)(void *)(context->arena + context->program->control_offset);
}

/* The command line of a produced program (docs/design.md, section 9). Returns the exit code. */
int rp_main(const RpProgram *program, int argc, char **argv);

#endif
