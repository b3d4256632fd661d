/* runtime/cuda/driver.h - the entry points of libcuda and libcublas that are used, found at run time.
 *
 * Declared here so that the runtime builds without NVIDIA's headers; names are those that cuda.h's macros expand to.
 * NVIDIA, "CUDA Driver API" and "cuBLAS", release 13.0. */
#ifndef REPRISE_RUNTIME_CUDA_DRIVER_H
#define REPRISE_RUNTIME_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/status.h"

typedef int CuResult; /* 0: success */
typedef int CuDevice;
typedef uint64_t CuPointer; /* CUdeviceptr */
typedef struct CUctx_st *CuContext;
typedef struct CUmod_st *CuModule;
typedef struct CUfunc_st *CuFunction;
typedef struct CUstream_st *CuStream;
typedef struct CUevent_st *CuEvent;
typedef struct CUgraph_st *CuGraph;
typedef struct CUgraphExec_st *CuGraphExec;
typedef struct cublasContext *CublasHandle;

enum {
  CU_OUT_OF_MEMORY = 2,
  CU_NO_DEVICE = 100,
  CU_NO_BINARY_FOR_GPU = 209,
  CU_ATTRIBUTE_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  CU_ATTRIBUTE_MINOR = 76,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_CAPTURE_THREAD_LOCAL = 1,
  CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  CUBLAS_REAL_F32 = 0,      /* CUDA_R_32F */
  CUBLAS_F32_PEDANTIC = 69, /* CUBLAS_COMPUTE_32F_PEDANTIC */
  CUBLAS_F32_TF32 = 77,     /* CUBLAS_COMPUTE_32F_FAST_TF32 */
  CUBLAS_DEFAULT_ALGORITHM = -1
};

/* X(result, member, symbol, parameters) */
#define CUDA_DRIVER_FUNCTIONS(X) \
  X(CuResult, init, cuInit, (unsigned flags)) \
  X(CuResult, driver_version, cuDriverGetVersion, (int *version)) \
  X(CuResult, error_string, cuGetErrorString, (CuResult error, const char **text)) \
  X(CuResult, device_count, cuDeviceGetCount, (int *count)) \
  X(CuResult, device_get, cuDeviceGet, (CuDevice * device, int ordinal)) \
  X(CuResult, device_name, cuDeviceGetName, (char *name, int size, CuDevice device)) \
  X(CuResult, device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CuDevice device)) \
  X(CuResult, context_retain, cuDevicePrimaryCtxRetain, (CuContext * context, CuDevice device)) \
  X(CuResult, context_release, cuDevicePrimaryCtxRelease_v2, (CuDevice device)) \
  X(CuResult, context_set, cuCtxSetCurrent, (CuContext context)) \
  X(CuResult, memory_info, cuMemGetInfo_v2, (size_t * free, size_t * total)) \
  X(CuResult, allocate, cuMemAlloc_v2, (CuPointer * pointer, size_t bytes)) \
  X(CuResult, release, cuMemFree_v2, (CuPointer pointer)) \
  X(CuResult, allocate_host, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags)) \
  X(CuResult, release_host, cuMemFreeHost, (void *pointer)) \
  X(CuResult, copy_in, cuMemcpyHtoDAsync_v2, (CuPointer to, const void *from, size_t bytes, CuStream s)) \
  X(CuResult, copy_out, cuMemcpyDtoHAsync_v2, (void *to, CuPointer from, size_t bytes, CuStream s)) \
  X(CuResult, fill, cuMemsetD8Async, (CuPointer to, unsigned char value, size_t bytes, CuStream s)) \
  X(CuResult, module_load, cuModuleLoadData, (CuModule * module, const void *image)) \
  X(CuResult, module_unload, cuModuleUnload, (CuModule module)) \
  X(CuResult, module_function, cuModuleGetFunction, (CuFunction * f, CuModule module, const char *name)) \
  X(CuResult, function_set, cuFuncSetAttribute, (CuFunction function, int attribute, int value)) \
  X(CuResult, launch, cuLaunchKernel, \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared, CuStream s, void **parameters, void **extra)) \
  X(CuResult, stream_create, cuStreamCreate, (CuStream * stream, unsigned flags)) \
  X(CuResult, stream_destroy, cuStreamDestroy_v2, (CuStream stream)) \
  X(CuResult, stream_synchronize, cuStreamSynchronize, (CuStream stream)) \
  X(CuResult, stream_wait, cuStreamWaitEvent, (CuStream stream, CuEvent event, unsigned flags)) \
  X(CuResult, capture_begin, cuStreamBeginCapture_v2, (CuStream stream, int mode)) \
  X(CuResult, capture_end, cuStreamEndCapture, (CuStream stream, CuGraph * graph)) \
  X(CuResult, graph_instantiate, cuGraphInstantiateWithFlags, \
    (CuGraphExec * executable, CuGraph graph, unsigned long long flags)) \
  X(CuResult, graph_launch, cuGraphLaunch, (CuGraphExec executable, CuStream stream)) \
  X(CuResult, graph_exec_destroy, cuGraphExecDestroy, (CuGraphExec executable)) \
  X(CuResult, graph_destroy, cuGraphDestroy, (CuGraph graph)) \
  X(CuResult, event_create, cuEventCreate, (CuEvent * event, unsigned flags)) \
  X(CuResult, event_destroy, cuEventDestroy_v2, (CuEvent event)) \
  X(CuResult, event_record, cuEventRecord, (CuEvent event, CuStream stream)) \
  X(CuResult, event_synchronize, cuEventSynchronize, (CuEvent event))

#define CUBLAS_FUNCTIONS(X) \
  X(int, create, cublasCreate_v2, (CublasHandle * handle)) \
  X(int, destroy, cublasDestroy_v2, (CublasHandle handle)) \
  X(int, set_stream, cublasSetStream_v2, (CublasHandle handle, CuStream stream)) \
  X(int, set_workspace, cublasSetWorkspace_v2, (CublasHandle handle, void *workspace, size_t bytes)) \
  X(const char *, status_string, cublasGetStatusString, (int status)) \
  X(int, gemm, cublasGemmStridedBatchedEx_64, \
    (CublasHandle handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, \
     int type_a, int64_t lda, long long stride_a, const void *b, int type_b, int64_t ldb, long long stride_b, \
     const void *beta, void *c, int type_c, int64_t ldc, long long stride_c, int64_t count, int compute_type, \
     int algorithm))

/* What the emulated device exports beside the driver's functions: its kernels' operands, which it holds every access
 * against. On a real device these are absent. */
typedef struct CuOperand {
  CuPointer address;
  size_t bytes;
  int use; /* RpOperandUse */
} CuOperand;
#define CUDA_EMULATOR_FUNCTIONS(X) \
  X(void, declare_operands, repriseEmulatorDeclareOperands, (const CuOperand *operands, int count))

typedef struct CudaLibraries {
  void *driver_handle, *cublas_handle;
#define DECLARE_MEMBER(result, member, symbol, parameters) result(*member) parameters;
  CUDA_DRIVER_FUNCTIONS(DECLARE_MEMBER)
  CUDA_EMULATOR_FUNCTIONS(DECLARE_MEMBER) /* NULL on a real device */
  struct {
    CUBLAS_FUNCTIONS(DECLARE_MEMBER)
  } cublas;
#undef DECLARE_MEMBER
} CudaLibraries;

enum { RP_LEAST_DRIVER = 13000 }; /* cubins and cuBLAS are of CUDA 13 */

/* Loads libcuda.so.1 and, where asked, libcublas.so.13, from the folder that REPRISE_CUDA_PATH names if it has them,
 * else from where the system looks. Errors are RP_NO_DEVICE. Unload after failure too. */
bool rp_cuda_load(CudaLibraries *libraries, bool cublas, RpStatus *status);
void rp_cuda_unload(CudaLibraries *libraries);

#endif
