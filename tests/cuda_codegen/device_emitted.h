/* tests/cuda_codegen/device_emitted.h - what emitted programs can do beyond tests/codegen/emitted.h on a device. */
#ifndef REPRISE_TESTS_CUDA_CODEGEN_DEVICE_EMITTED_H
#define REPRISE_TESTS_CUDA_CODEGEN_DEVICE_EMITTED_H

#include "runtime/arena.h"
#include "tests/codegen/emitted.h"

/* Programs loaded from now on have `to` in place of the first `from` in their kernels; NULL: as emitted. */
void emitted_plant(const char *from, const char *to);
/* emitted_run that may fail: false with the device's error. An emulated device is of no use after a fault. */
bool emitted_try(Emitted *emitted, const RpPhase *phase, RpStatus *status);

#endif
