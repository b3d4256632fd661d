/* tests/emulator/shim.h - CUDA for the host's C++ compiler; included before the source of a program.
 *
 * Kernels are compiled with -fsanitize=thread, whose hooks (shadow.c) see every access to memory that other threads
 * could see. Everything else that threads of a block do together is a call into the emulated device. */
#ifndef REPRISE_TESTS_EMULATOR_SHIM_H
#define REPRISE_TESTS_EMULATOR_SHIM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#define __CUDACC_RTC__ 1
#define __host__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
/* read by nvrtc.c, which blanks it out */
#define __launch_bounds__(threads, ...) __reprise_bounds__(threads)
#define __shared__ static __attribute__((section("reprise_shared")))
#define __constant__ static const
#define RP_DYNAMIC_SHARED(type, name) type *const name = (type *)reprise_dynamic_shared()

extern "C" {
/* which: 0-2 thread, 3-5 block, 6-8 size of a block, 9-11 size of the grid; x, y, z */
unsigned reprise_index(int which) __attribute__((const));
void *reprise_dynamic_shared(void) __attribute__((const));
void reprise_barrier(const char *file, int line);
void reprise_warp_barrier(unsigned mask, const char *file, int line);
/* Every lane of `mask` gives a value; returns those of all lanes, valid until the lane's next warp function. */
const uint64_t *reprise_exchange(unsigned mask, uint64_t value, int kind, const char *file, int line);
int reprise_lane(void) __attribute__((const));
/* operation: 0 add, 1 min, 2 max, 3 exchange, 4 or, 5 and, 6 compare and swap; of 4 bytes, returns the old ones */
int reprise_atomic(int *address, int operation, int value, int compare, int is_signed);
void reprise_misaligned(const void *data, uintptr_t address);
/* The hook of -fsanitize=alignment, in every module so that no sanitizer of the program's takes it. */
__attribute__((used, visibility("hidden"))) inline void __ubsan_handle_type_mismatch_v1(void *data, uintptr_t address) {
  reprise_misaligned(data, address);
}
}

template <int first>
struct RepriseAxis {
  operator unsigned() const { return reprise_index(first); }
};
template <int first>
struct RepriseDims {
  RepriseAxis<first> x;
  RepriseAxis<first + 1> y;
  RepriseAxis<first + 2> z;
};
static const RepriseDims<0> threadIdx = {};
static const RepriseDims<3> blockIdx = {};
static const RepriseDims<6> blockDim = {};
static const RepriseDims<9> gridDim = {};
enum { warpSize = 32 };

#define REPRISE_VECTOR(type, name, alignment2, alignment4) \
  struct alignas(alignment2) name##2 { \
    type x, y; \
  }; \
  struct alignas(alignment4) name##4 { \
    type x, y, z, w; \
  }; \
  static inline name##2 make_##name##2(type x, type y) { return name##2 {x, y}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return name##4 {x, y, z, w}; }
REPRISE_VECTOR(float, float, 8, 16)
REPRISE_VECTOR(int, int, 8, 16)
REPRISE_VECTOR(unsigned, uint, 8, 16)
REPRISE_VECTOR(double, double, 16, 16)
#undef REPRISE_VECTOR

#define __syncthreads() reprise_barrier(__FILE__, __LINE__)
#define REPRISE_FIRST(mask, ...) mask
#define __syncwarp(...) \
  reprise_warp_barrier(REPRISE_FIRST(__VA_ARGS__ __VA_OPT__(, ) 0xffffffffu, 0), __FILE__, __LINE__)

/* ---- warps ---- */

template <class T>
static inline uint64_t reprise_pack(T value) {
  static_assert(sizeof(T) <= 8, "warp functions take at most 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
static inline T reprise_unpack(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
static inline T reprise_shuffle(unsigned mask, T value, int source, const char *file, int line) {
  const uint64_t *values = reprise_exchange(mask, reprise_pack(value), 1, file, line);
  if (source < 0 || source > 31 || !(mask >> source & 1)) source = reprise_lane();
  return reprise_unpack<T>(values[source]);
}
static inline unsigned reprise_vote(unsigned mask, bool predicate, const char *file, int line) {
  const uint64_t *values = reprise_exchange(mask, predicate, 2, file, line);
  unsigned result = 0;
  for (int lane = 0; lane < 32; lane++) result |= (mask >> lane & 1) && values[lane] ? 1u << lane : 0;
  return result;
}
static inline int reprise_segment(int lane, int width) { return lane & ~(width - 1); }
static inline int reprise_within(int lane, int source, int width) {
  return source >= reprise_segment(lane, width) && source < reprise_segment(lane, width) + width ? source : lane;
}
#define REPRISE_WIDTH(width, ...) width
#define __shfl_xor_sync(mask, value, distance) \
  reprise_shuffle(mask, value, reprise_lane() ^ (distance), __FILE__, __LINE__)
#define __shfl_down_sync(mask, value, distance) \
  reprise_shuffle(mask, value, reprise_within(reprise_lane(), reprise_lane() + (int)(distance), 32), __FILE__, __LINE__)
#define __shfl_up_sync(mask, value, distance) \
  reprise_shuffle(mask, value, reprise_within(reprise_lane(), reprise_lane() - (int)(distance), 32), __FILE__, __LINE__)
#define __shfl_sync(mask, value, source) reprise_shuffle(mask, value, (source)&31, __FILE__, __LINE__)
#define __ballot_sync(mask, predicate) reprise_vote(mask, predicate, __FILE__, __LINE__)
#define __any_sync(mask, predicate) (reprise_vote(mask, predicate, __FILE__, __LINE__) != 0)
#define __all_sync(mask, predicate) (reprise_vote(mask, predicate, __FILE__, __LINE__) == (unsigned)(mask))

/* ---- scalars ---- */

static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline float __int_as_float(int x) { return reprise_unpack<float>(reprise_pack(x)); }
static inline int __float_as_int(float x) { return reprise_unpack<int>(reprise_pack(x)); }
static inline unsigned __float_as_uint(float x) { return reprise_unpack<unsigned>(reprise_pack(x)); }
static inline float __uint_as_float(unsigned x) { return reprise_unpack<float>(reprise_pack(x)); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T>
static inline T __ldg(const T *address) {
  return *address;
}

/* ---- atomics of 4-byte integers ---- */

static inline int atomicAdd(int *a, int v) { return reprise_atomic(a, 0, v, 0, 1); }
static inline int atomicMin(int *a, int v) { return reprise_atomic(a, 1, v, 0, 1); }
static inline int atomicMax(int *a, int v) { return reprise_atomic(a, 2, v, 0, 1); }
static inline int atomicExch(int *a, int v) { return reprise_atomic(a, 3, v, 0, 1); }
static inline int atomicCAS(int *a, int compare, int v) { return reprise_atomic(a, 6, v, compare, 1); }
static inline unsigned atomicAdd(unsigned *a, unsigned v) {
  return (unsigned)reprise_atomic((int *)a, 0, (int)v, 0, 0);
}
static inline unsigned atomicMin(unsigned *a, unsigned v) {
  return (unsigned)reprise_atomic((int *)a, 1, (int)v, 0, 0);
}
static inline unsigned atomicMax(unsigned *a, unsigned v) {
  return (unsigned)reprise_atomic((int *)a, 2, (int)v, 0, 0);
}
static inline unsigned atomicOr(unsigned *a, unsigned v) { return (unsigned)reprise_atomic((int *)a, 4, (int)v, 0, 0); }
static inline unsigned atomicAnd(unsigned *a, unsigned v) {
  return (unsigned)reprise_atomic((int *)a, 5, (int)v, 0, 0);
}

/* ---- what the emulated device finds in a module ---- */

extern "C" {
extern char __start_reprise_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_reprise_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"))) inline char *reprise_shared_range(int end) {
  return end ? __stop_reprise_shared : __start_reprise_shared;
}
/* Beside each kernel NAME there is a RepriseKernel reprise_kernel_NAME. */
typedef struct RepriseKernel {
  int count;
  const unsigned char *sizes; /* of its parameters, bytes */
  void (*run)(void **parameters);
  int most_threads; /* of a block: its launch bounds */
} RepriseKernel;
}

template <class... A>
struct RepriseSizes {
  static constexpr unsigned char sizes[] = {(unsigned char)sizeof(A)...};
};
template <class... A, size_t... I>
static inline void reprise_call(void (*kernel)(A...), void **parameters, std::index_sequence<I...>) {
  kernel(*(A *)parameters[I]...);
}
template <class... A>
static inline void reprise_call(void (*kernel)(A...), void **parameters) {
  reprise_call(kernel, parameters, std::index_sequence_for<A...>());
}
template <class... A>
constexpr RepriseKernel reprise_describe(void (*)(A...), void (*run)(void **), int most_threads) {
  return {(int)sizeof...(A), RepriseSizes<A...>::sizes, run, most_threads};
}

#endif
