/* runtime/dump.h - --dump-grads: the first step's loss, outputs, gradients and asked-for values as safetensors.
 *
 * With accumulation the loss is the combined one, gradients are those the update sees, and outputs and values are the
 * first micro-step's. Tensors are written as they are made, so a dump takes no memory of their size. */
#ifndef REPRISE_RUNTIME_DUMP_H
#define REPRISE_RUNTIME_DUMP_H

#include "runtime/program.h"
#include "runtime/safetensors.h"
#include "runtime/status.h"

typedef struct RpDump {
  bool active;
  RpTensorWriter writer;
  const RpObservable **observables; /* what is written, in the order of the writer's tensors */
  const RpPhase **phases;           /* of each */
  bool *written;
  int64_t count;
  RpStatus status; /* the first failure inside an observer */
} RpDump;

bool rp_dump_start(RpDump *dump, const RpProgram *program, const char *path, RpStatus *status);
/* Writes what is observed after `kernel` of the running phase; kernel -1 is before the first. */
void rp_dump_kernel(RpDump *dump, const RpContext *context, int64_t kernel);
/* Writes the combined loss, checks that everything was seen, completes the file and stops. */
bool rp_dump_finish(RpDump *dump, double loss, RpStatus *status);
/* Stops and leaves no file. Harmless when inactive. */
void rp_dump_discard(RpDump *dump);

#endif
