/* runtime/batches.h - which records make which batch.
 *
 * A pass (epoch) over the data has records / B batches of B; the rest of a pass that fills no batch is left out. All
 * readers share one order. It depends only on (seed, epoch), and the batch of a micro-step only on the micro-step's
 * number, so a resumed run reads what the uninterrupted one would have. */
#ifndef REPRISE_RUNTIME_BATCHES_H
#define REPRISE_RUNTIME_BATCHES_H

#include "runtime/options.h"
#include "runtime/reader.h"

typedef struct RpData {
  RpSource *sources;
  int count;
  int64_t batch;   /* B; 1 when all inputs are constant */
  int64_t records; /* of a pass; B when all inputs are constant */
  bool test;
  bool shuffle; /* records permuted and windows drawn at random, by (seed, epoch) */
  uint64_t seed;
  int64_t *order; /* permutation of the records for order_epoch; NULL unless shuffled records are read */
  int64_t order_epoch;
  char *scratch; /* a record of an input that the running program does not have */
  bool texts;    /* every reader of a file is a text: progress counts tokens */
  int64_t window;
} RpData;

/* Opens the training data. */
bool rp_data_open_training(RpData *data, const RpProgram *program, const RpOptions *options, uint64_t seed,
                           RpStatus *status);
/* Whether there is test data: a `test` item in the model or --test. */
bool rp_data_has_test(const RpProgram *program, const RpOptions *options);
/* Opens the test data, read in order. `training` gives texts their vocabulary and may be closed data. */
bool rp_data_open_test(RpData *data, const RpProgram *program, const RpOptions *options, const RpData *training,
                       RpStatus *status);
void rp_data_close(RpData *data);

/* Batches of a pass, at least 1. */
int64_t rp_data_batches(const RpData *data);
/* Reads batch `number` (counted from the first epoch's first) into the arena. */
bool rp_data_load(RpData *data, const RpProgram *program, int64_t number, char *arena, RpStatus *status);
/* The same with input i at offsets[i] of `base`, -1: nowhere. */
bool rp_data_load_at(RpData *data, const RpProgram *program, int64_t number, char *base, const int64_t *offsets,
                     RpStatus *status);

#endif
