/* runtime/kernels/embed.h - rows of a table by index. */
#ifndef REPRISE_RUNTIME_KERNELS_EMBED_H
#define REPRISE_RUNTIME_KERNELS_EMBED_H

#include <string.h>

#include "runtime/kernels/fault.h"
#include "runtime/kernels/reduce.h"

/* out: [rows, columns]; table: [entries, columns]; indices: [rows]. An index outside [0, entries) is a fault; its row
 * is zero. */
static inline void rp_embed(float *out, const float *table, const int32_t *indices, int64_t rows, int64_t columns,
                            int64_t entries, RpControl *control, int32_t check) {
#pragma omp parallel for schedule(static) if (rows * columns >= RP_PARALLEL_ELEMENTS)
  for (int64_t row = 0; row < rows; row++) {
    const int64_t index = indices[row];
    const size_t bytes = (size_t)columns * sizeof(float);
    if (index >= 0 && index < entries) {
      memcpy(out + row * columns, table + index * columns, bytes);
    } else {
      memset(out + row * columns, 0, bytes);
      rp_report_fault(control, check);
    }
  }
}

#endif
