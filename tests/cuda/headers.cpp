// What runtime/cuda/driver.h declares against NVIDIA's own headers: every function has as many parameters, of the same
// sizes and kinds, and every constant its value. Compiled only, where a toolkit is installed.
#include <cublas_v2.h>
#include <cuda.h>

#include <type_traits>

#define CU_STREAM_NON_BLOCKING OUR_STREAM_NON_BLOCKING
#define CU_EVENT_DISABLE_TIMING OUR_EVENT_DISABLE_TIMING
#include "runtime/cuda/driver.h"
#undef CU_STREAM_NON_BLOCKING
#undef CU_EVENT_DISABLE_TIMING

template <class A, class B>
constexpr bool alike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;

template <class R, class... A, class S, class... B>
constexpr bool same_call(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return alike<R, S> && (alike<A, B> && ...);
}

#define CHECK_DRIVER(result, member, symbol, parameters) \
  static_assert(same_call(decltype(CudaLibraries::member)(nullptr), decltype (&symbol)(nullptr)), #symbol);
CUDA_DRIVER_FUNCTIONS(CHECK_DRIVER)
#define CHECK_CUBLAS(result, member, symbol, parameters) \
  static_assert(same_call(decltype(CudaLibraries::cublas.member)(nullptr), decltype (&symbol)(nullptr)), #symbol);
CUBLAS_FUNCTIONS(CHECK_CUBLAS)

static_assert(CU_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY);
static_assert(CU_NO_DEVICE == (int)CUDA_ERROR_NO_DEVICE);
static_assert(CU_NO_BINARY_FOR_GPU == (int)CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(CU_ATTRIBUTE_MAJOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(CU_ATTRIBUTE_MINOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(OUR_STREAM_NON_BLOCKING == (int)CU_STREAM_NON_BLOCKING);
static_assert(OUR_EVENT_DISABLE_TIMING == (int)CU_EVENT_DISABLE_TIMING);
static_assert(CU_CAPTURE_THREAD_LOCAL == (int)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(CU_FUNCTION_MAX_DYNAMIC_SHARED == (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(CUBLAS_REAL_F32 == (int)CUDA_R_32F);
static_assert(CUBLAS_F32_PEDANTIC == (int)CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(CUBLAS_F32_TF32 == (int)CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(CUBLAS_DEFAULT_ALGORITHM == (int)CUBLAS_GEMM_DEFAULT);
static_assert(RP_LEAST_DRIVER <= CUDA_VERSION);
