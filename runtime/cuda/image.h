/* runtime/cuda/image.h - which of a program's device codes runs on a device. */
#ifndef REPRISE_RUNTIME_CUDA_IMAGE_H
#define REPRISE_RUNTIME_CUDA_IMAGE_H

#include "runtime/cuda/device_program.h"

/* A cubin runs on its architecture and on later ones with the same tens (sm_80 on sm_89): the latest that does, else
 * the PTX where it is not of a later one. NULL when nothing runs. */
const RpImage *rp_cuda_choose_image(const RpDeviceProgram *program, int architecture);

#endif
