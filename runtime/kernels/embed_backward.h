/* runtime/kernels/embed_backward.h - gradient of a table of which rows were taken by index. */
#ifndef REPRISE_RUNTIME_KERNELS_EMBED_BACKWARD_H
#define REPRISE_RUNTIME_KERNELS_EMBED_BACKWARD_H

#include <string.h>

#include "runtime/kernels/reduce.h"

/* dtable: [entries, columns]; g: [rows, columns]; indices: [rows]. Rows of g with the same index are added in their
 * order: threads share out columns. An index outside [0, entries), a fault reported by the forward kernel, is passed
 * over. `size`, the attribute, is entries. */
static inline void rp_embed_backward(float *dtable, const float *g, const int32_t *indices, int64_t rows,
                                     int64_t columns, int64_t entries, int64_t size) {
  enum { BLOCK = 64 };
  (void)size;
#pragma omp parallel for schedule(static) if (entries * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t entry = 0; entry < entries; entry++)
    memset(dtable + entry * columns, 0, (size_t)columns * sizeof(float));
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t first = 0; first < columns; first += BLOCK) {
    const int64_t count = columns - first < BLOCK ? columns - first : BLOCK;
    for (int64_t row = 0; row < rows; row++) {
      if (indices[row] < 0 || indices[row] >= entries) continue;
      float *out = dtable + indices[row] * columns + first;
      const float *in = g + row * columns + first;
#pragma omp simd
      for (int64_t j = 0; j < count; j++) out[j] += in[j];
    }
  }
}

#endif
