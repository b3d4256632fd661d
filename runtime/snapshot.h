/* runtime/snapshot.h - snapshots: weights, states and optimizer state with the place in training, in one safetensors
 * file. The metadata keys: reprise.update (updates done), reprise.micro_steps (per update),
 * reprise.seed, reprise.learning_rate (hexadecimal float, exact), reprise.records and reprise.batch of the data. The
 * place in the data follows from the updates done. */
#ifndef REPRISE_RUNTIME_SNAPSHOT_H
#define REPRISE_RUNTIME_SNAPSHOT_H

#include "runtime/run.h"

/* Writes a snapshot of the run. */
bool rp_snapshot_save(const RpRun *run, const char *path, RpStatus *status);

/* What a snapshot says about the run it came from. */
typedef struct RpSnapshotPlace {
  int64_t update, records, batch;
  uint64_t seed;
  double learning_rate;
} RpSnapshotPlace;

/* Reads the place; errors when `tensors` is no snapshot of this program. */
bool rp_snapshot_place(const RpTensorFile *tensors, const RpProgram *program, RpSnapshotPlace *place, RpStatus *status);

#endif
