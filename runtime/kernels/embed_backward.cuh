/* runtime/kernels/embed_backward.cuh - gradient of a table of which rows were taken by index, without atomics. */
#ifndef REPRISE_RUNTIME_KERNELS_EMBED_BACKWARD_CUH
#define REPRISE_RUNTIME_KERNELS_EMBED_BACKWARD_CUH

#include "runtime/kernels/reduce.cuh"

enum { RP_EMBED_TILE = 1024, RP_EMBED_ENTRIES_OF_WARP = 4 };

/* A warp's part of a row of floats: lane l has elements 4l .. 4l + 3 of each stretch of 128. */
#define RP_FOR_WARP_ROW(j, columns) for (int64_t j = 4 * rp_lane(); j < (columns); j += 128)

RP_FUNCTION void rp_add_row(float *out, const float *in, int64_t columns, bool vectorises) {
  RP_FOR_WARP_ROW(j, columns) {
    const float4 a = rp_load4(out, j, columns, vectorises, 0.0f), b = rp_load4(in, j, columns, vectorises, 0.0f);
    rp_store4(out, j, columns, vectorises, make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w));
  }
}

/* dtable: [entries, columns]; g: [rows, columns]; indices: [rows]. Rows of g with the same index are added in their
 * order, which gives the bits of the host's kernel. An index outside [0, entries), a fault reported by the forward
 * kernel, is passed over. `size`, the attribute, is entries.
 *
 * A warp owns four entries and looks through all indices, which the block brings in by tiles: entries * rows / 128
 * ballots in all. */
RP_KERNEL rp_embed_backward(float *__restrict__ dtable, const float *__restrict__ g,
                            const int32_t *__restrict__ indices, int64_t rows, int64_t columns, int64_t entries,
                            int64_t size) {
  __shared__ int32_t tile[RP_EMBED_TILE];
  const bool vectorises = rp_vectorises(dtable, columns) && rp_vectorises(g, columns);
  const int64_t first = ((int64_t)blockIdx.x * rp_warps() + rp_warp()) * RP_EMBED_ENTRIES_OF_WARP;
  const int64_t left = entries - first;
  const int64_t owned = left < 0 ? 0 : left < RP_EMBED_ENTRIES_OF_WARP ? left : RP_EMBED_ENTRIES_OF_WARP;
  for (int64_t entry = first; entry < first + owned; entry++) {
    RP_FOR_WARP_ROW(j, columns)
    rp_store4(dtable + entry * columns, j, columns, vectorises, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
  }
  for (int64_t base = 0; base < rows; base += RP_EMBED_TILE) {
    const int count = rows - base < RP_EMBED_TILE ? (int)(rows - base) : (int)RP_EMBED_TILE;
    __syncthreads(); /* the tile before has been looked through */
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) tile[i] = indices[base + i];
    __syncthreads();
    for (int i = 0; i < count; i += 32) {
      const int64_t entry = i + rp_lane() < count ? tile[i + rp_lane()] : -1;
      unsigned found = __ballot_sync(RP_ALL_LANES, entry >= first && entry < first + owned);
      for (; found; found &= found - 1) {
        const int lane = __ffs((int)found) - 1;
        const int64_t at = __shfl_sync(RP_ALL_LANES, entry, lane);
        rp_add_row(dtable + at * columns, g + (base + i + lane) * columns, columns, vectorises);
      }
    }
  }
}

#endif
