#include "runtime/cuda/image.h"

#include <stddef.h>

const RpImage *rp_cuda_choose_image(const RpDeviceProgram *program, int architecture) {
  const RpImage *best = NULL;
  for (int64_t i = 0; i < program->cubin_count; i++) {
    const RpImage *image = &program->cubins[i];
    bool runs = image->architecture / 10 == architecture / 10 && image->architecture <= architecture;
    if (runs && (!best || image->architecture > best->architecture)) best = image;
  }
  if (best) return best;
  return program->ptx.bytes && program->ptx.architecture <= architecture ? &program->ptx : NULL;
}
