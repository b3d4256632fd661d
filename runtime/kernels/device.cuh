/* runtime/kernels/device.cuh - what every CUDA source starts with: types, scalar functions, random numbers, the control
 * block. Compiled by NVRTC, which has no C library, with --fmad=false: a value then has the same bits in whatever
 * kernel it is computed, and on the host. */
#ifndef REPRISE_RUNTIME_KERNELS_DEVICE_CUH
#define REPRISE_RUNTIME_KERNELS_DEVICE_CUH

#ifndef INT64_MAX
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

#define RP_FUNCTION static __device__ __forceinline__
#define RP_RANDOM_FUNCTION static __device__ __forceinline__
/* A kernel that the host launches by its name, with at most 256 threads in a block; one with a block for each row, with
 * at most 512. So the assembler sees to it that a block's registers are there. */
#define RP_KERNEL extern "C" __global__ void __launch_bounds__(256)
#define RP_ROW_KERNEL extern "C" __global__ void __launch_bounds__(512)
/* `type name[]`: the bytes of dynamic shared memory of the launch. */
#ifndef RP_DYNAMIC_SHARED
#define RP_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

#include "runtime/control.h"
#include "runtime/random.h"
#include "runtime/scalar_math.h"

/* Index of this thread among all threads of a one-dimensional grid, and their number. */
RP_FUNCTION int64_t rp_thread(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
RP_FUNCTION int64_t rp_threads(void) { return (int64_t)gridDim.x * blockDim.x; }

/* Sets control->fault to 1 + the index of the failed check in the program's table; the smallest wins, whatever the
 * order of threads. */
RP_FUNCTION void rp_report_fault(RpControl *control, int32_t check) {
  if (atomicCAS(&control->fault, 0, check + 1) != 0) atomicMin(&control->fault, check + 1);
}

/* ---- four floats at a time ---- */

/* Whether rows of `columns` floats from `data` on can be read sixteen bytes at a time. */
RP_FUNCTION bool rp_vectorises(const void *data, int64_t columns) {
  return columns % 4 == 0 && ((uint64_t)data & 15) == 0;
}

/* row[j .. j + 4), `rest` from `columns` on. */
RP_FUNCTION float4 rp_load4(const float *row, int64_t j, int64_t columns, bool vectorises, float rest) {
  if (vectorises) return *(const float4 *)(row + j);
  return make_float4(row[j], j + 1 < columns ? row[j + 1] : rest, j + 2 < columns ? row[j + 2] : rest,
                     j + 3 < columns ? row[j + 3] : rest);
}

/* row[j .. j + 4) = value, as far as `columns` goes. */
RP_FUNCTION void rp_store4(float *row, int64_t j, int64_t columns, bool vectorises, float4 value) {
  if (vectorises) {
    *(float4 *)(row + j) = value;
    return;
  }
  row[j] = value.x;
  if (j + 1 < columns) row[j + 1] = value.y;
  if (j + 2 < columns) row[j + 2] = value.z;
  if (j + 3 < columns) row[j + 3] = value.w;
}

#endif
