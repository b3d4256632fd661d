/* tests/cuda_codegen/device_emitted.h - what emitted programs can do beyond tests/codegen/emitted.h on a device. */
#ifndef REPRISE_TESTS_CUDA_CODEGEN_DEVICE_EMITTED_H
#define REPRISE_TESTS_CUDA_CODEGEN_DEVICE_EMITTED_H

#include "runtime/arena.h"
#include "tests/codegen/emitted.h"

/* A fault: `to` in place of the first `from` that follows the text `behind`, in the kernels, hand-made ones with them,
 * or in the host's program. */
typedef struct Plant {
  const char *behind, *from, *to;
} Plant;
/* Programs loaded from now on have the fault; NULL: none. */
void emitted_plant(const Plant *plant);
/* emitted_run that may fail: false with the device's error. An emulated device is of no use after a fault. */
bool emitted_try(Emitted *emitted, const RpPhase *phase, RpStatus *status);

#endif
