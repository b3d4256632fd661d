/* runtime/kernels/embed.cuh - rows of a table by index. */
#ifndef REPRISE_RUNTIME_KERNELS_EMBED_CUH
#define REPRISE_RUNTIME_KERNELS_EMBED_CUH

#include "runtime/kernels/reduce.cuh"

/* out: [rows, columns]; table: [entries, columns]; indices: [rows]. An index outside [0, entries) is a fault; its row
 * is zero. A block per row. */
RP_ROW_KERNEL rp_embed(float *__restrict__ out, const float *__restrict__ table, const int32_t *__restrict__ indices,
                       int64_t rows, int64_t columns, int64_t entries, RpControl *control, int32_t check) {
  const int64_t row = blockIdx.x, index = indices[row];
  const bool known = index >= 0 && index < entries;
  const bool vectorises = rp_vectorises(out, columns) && rp_vectorises(table, columns);
  RP_FOR_ROW(j, columns) {
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (known) value = rp_load4(table + index * columns, j, columns, vectorises, 0.0f);
    rp_store4(out + row * columns, j, columns, vectorises, value);
  }
  if (!known && threadIdx.x == 0) rp_report_fault(control, check);
}

#endif
