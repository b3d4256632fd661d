/* runtime/kernels/launch.h - grids and blocks of the hand-made CUDA kernels, for whoever writes their launches.
 *
 * They depend on the extents alone, so the order in which a kernel adds is a function of the shape. All fit every
 * architecture from sm_75 on; none needs dynamic shared memory. */
#ifndef REPRISE_RUNTIME_KERNELS_LAUNCH_H
#define REPRISE_RUNTIME_KERNELS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct RpLaunch {
  int64_t grid, block; /* blocks along x, threads of a block along x */
} RpLaunch;

enum {
  RP_WARP = 32,
  RP_LARGEST_ROW_BLOCK = 512, /* divides the threads that a multiprocessor holds, 1024, 1536 or 2048 */
  RP_ELEMENTS_BLOCK = 256,
  RP_EMBED_BACKWARD_ENTRIES = 32 /* rows of the table that a block sums */
};

/* One block for a row: a thread for each four elements, in whole warps. */
static inline RpLaunch rp_launch_rows(int64_t rows, int64_t columns) {
  int64_t threads = ((columns + 3) / 4 + RP_WARP - 1) / RP_WARP * RP_WARP;
  if (threads < RP_WARP) threads = RP_WARP;
  if (threads > RP_LARGEST_ROW_BLOCK) threads = RP_LARGEST_ROW_BLOCK;
  return (RpLaunch){rows, threads};
}

static inline RpLaunch rp_launch_embed_backward(int64_t entries) {
  return (RpLaunch){(entries + RP_EMBED_BACKWARD_ENTRIES - 1) / RP_EMBED_BACKWARD_ENTRIES, RP_ELEMENTS_BLOCK};
}

/* The launch of kernel `name` ("softmax_rows") on its extents, in the order in which the kernel takes them. False when
 * there is no such kernel. */
static inline bool rp_kernel_launch(const char *name, const int64_t *extents, RpLaunch *launch) {
  static const char *const row_kernels[] = {
      "softmax_rows",       "softmax_rows_backward",       "layer_norm",  "layer_norm_backward",
      "cross_entropy_rows", "cross_entropy_rows_backward", "argmax_rows", "embed"};
  for (int i = 0; i < (int)(sizeof row_kernels / sizeof *row_kernels); i++) {
    if (strcmp(name, row_kernels[i]) != 0) continue;
    *launch = rp_launch_rows(extents[0], extents[1]);
    return true;
  }
  if (strcmp(name, "embed_backward") != 0) return false;
  *launch = rp_launch_embed_backward(extents[2]);
  return true;
}

#endif
