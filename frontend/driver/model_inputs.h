/* frontend/driver/model_inputs.h - made-up data for a model, for verification and for costs that are measured. */
#ifndef REPRISE_FRONTEND_DRIVER_MODEL_INPUTS_H
#define REPRISE_FRONTEND_DRIVER_MODEL_INPUTS_H

#include "ir/eval.h"

/* Largest value + 1 that each integer input may take: what it indexes (embedding tables, class numbers) through casts
 * and views, found by the checks of the training graph; 2 where nothing checks it. Indexed by input. */
int64_t *find_input_limits(MemoryArena *arena, const Graph *graph);

/* Fills a tensor of an input: reals uniform in [-1, 1), bools and integers uniform in [0, limit); a function of the
 * seed, the input's index and `step` alone. */
void fill_input(EvalTensor *tensor, int input, int64_t limit, uint64_t seed, int64_t step);

#endif
