/* frontend/driver/npy.h - tensors written as .npy files (NumPy format 1.0), for programs under verification. */
#ifndef REPRISE_FRONTEND_DRIVER_NPY_H
#define REPRISE_FRONTEND_DRIVER_NPY_H

#include "ir/eval.h"

/* Writes `count` tensors of one type one after the other along their first axis. Returns false with *error set. */
bool write_npy(MemoryArena *arena, const char *path, const EvalTensor *tensors, int64_t count, const char **error);

#endif
