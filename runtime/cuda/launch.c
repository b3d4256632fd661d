/* What step functions call: kernels, matrix products and fills, queued on the stream of the steps. */
#include "runtime/cuda/device.h"

static bool working(const RpContext *context) { return context->device->status.code == RP_OK; }

/* With REPRISE_CUDA_SYNC=1 a fault is found at the kernel that made it. */
static void finish_call(RpContext *context) {
  RpDevice *device = context->device;
  if (device->synchronous && working(context))
    rp_cuda_check(context, device->cuda.stream_synchronize(device->stream), "run it");
}

static CuPointer address_of(const RpContext *context, int64_t offset) {
  return offset < 0 ? 0 : context->device->arena + (CuPointer)offset;
}

/* ---- kernels ---- */

/* The emulated device is told what the kernel may touch. */
static void declare(const RpContext *context, const RpArgument *arguments, int count) {
  CuOperand operands[RP_MAX_ARGUMENTS];
  int operand_count = 0;
  if (!context->device->cuda.declare_operands) return;
  for (int i = 0; i < count; i++) {
    const RpArgument *argument = &arguments[i];
    if (argument->use == RP_OPERAND_VALUE || argument->value.offset < 0) continue;
    operands[operand_count++] = (CuOperand){.address = address_of(context, argument->value.offset),
                                            .bytes = (size_t)argument->bytes,
                                            .use = (int)argument->use};
  }
  context->device->cuda.declare_operands(operands, operand_count);
}

/* Dynamic shared memory beyond 48 KiB has to be asked for. */
static bool allow_shared(RpContext *context, CuFunction function, uint32_t shared) {
  enum { WITHOUT_ASKING = 48 << 10 };
  const CudaLibraries *cuda = &context->device->cuda;
  if (shared <= WITHOUT_ASKING) return true;
  return rp_cuda_check(context, cuda->function_set(function, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)shared),
                       "give it its shared memory");
}

void rp_cuda_launch_arguments(RpContext *context, int function, RpDim grid, RpDim block, uint32_t shared,
                              const RpArgument *arguments, int count) {
  RpDevice *device = context->device;
  CuPointer addresses[RP_MAX_ARGUMENTS];
  void *parameters[RP_MAX_ARGUMENTS];
  if (!working(context) || !grid.x || !grid.y || !grid.z) return;
  if (count > RP_MAX_ARGUMENTS || function < 0 || function >= context->program->device->function_count) {
    rp_fail(&device->status, RP_INTERNAL, "launch of function %d with %d arguments", function, count);
    return;
  }
  for (int i = 0; i < count; i++) {
    const RpArgument *argument = &arguments[i];
    addresses[i] = address_of(context, argument->value.offset);
    parameters[i] = argument->use == RP_OPERAND_VALUE ? (void *)(uintptr_t)&argument->value : &addresses[i];
  }
  declare(context, arguments, count);
  CuFunction handle = device->functions[function];
  if (!allow_shared(context, handle, shared)) return;
  rp_cuda_check(context,
                device->cuda.launch(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, device->stream,
                                    parameters, NULL),
                "launch it");
  finish_call(context);
}

void rp_cuda_fill(RpContext *context, int64_t offset, unsigned char value, int64_t bytes) {
  RpDevice *device = context->device;
  if (!working(context) || bytes <= 0) return;
  rp_cuda_check(context, device->cuda.fill(address_of(context, offset), value, (size_t)bytes, device->stream), "fill");
  finish_call(context);
}

/* ---- matrix products ---- */

static bool check_cublas(RpContext *context, int result, const char *action) {
  RpDevice *device = context->device;
  const RpPhase *phase = context->phase;
  if (result == 0) return true;
  const RpKernel *kernel =
      phase && context->kernel < phase->kernel_count ? &phase->kernels[context->kernel] : &(RpKernel){.name = "?"};
  return rp_fail(&device->status, RP_INTERNAL, "%s: %s: cuBLAS cannot %s: %s (status %d)",
                 kernel->source ? kernel->source : "?", kernel->name, action, device->cuda.cublas.status_string(result),
                 result);
}

/* Setting the stream takes the workspace away, setting the workspace does not touch the stream. */
static bool use_workspace(RpContext *context, int64_t workspace, int64_t bytes) {
  RpDevice *device = context->device;
  if (device->workspace == workspace && device->workspace_bytes == bytes) return true;
  device->workspace = workspace;
  device->workspace_bytes = bytes;
  void *address = (void *)(uintptr_t)address_of(context, workspace);
  return check_cublas(context, device->cuda.cublas.set_workspace(device->cublas, address, (size_t)bytes),
                      "take its workspace");
}

typedef struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k, a, b, c, lda, ldb, ldc;     /* a, b, c: offsets, bytes */
  int64_t count, stride_a, stride_b, stride_c; /* elements */
} Product;

/* Row-major c = op(a) op(b) is column-major c' = op(b)' op(a)', of the same bytes. */
static void multiply(RpContext *context, const Product *p) {
  static const float one = 1.0f, zero = 0.0f;
  RpDevice *device = context->device;
  const void *a = (const void *)(uintptr_t)address_of(context, p->a);
  const void *b = (const void *)(uintptr_t)address_of(context, p->b);
  void *c = (void *)(uintptr_t)address_of(context, p->c);
  int compute = context->program->device->tf32 ? CUBLAS_F32_TF32 : CUBLAS_F32_PEDANTIC;
  check_cublas(
      context,
      device->cuda.cublas.gemm(device->cublas, p->transpose_b, p->transpose_a, p->n, p->m, p->k, &one, b,
                               CUBLAS_REAL_F32, p->ldb, p->stride_b, a, CUBLAS_REAL_F32, p->lda, p->stride_a, &zero, c,
                               CUBLAS_REAL_F32, p->ldc, p->stride_c, p->count, compute, CUBLAS_DEFAULT_ALGORITHM),
      "multiply");
}

/* The last batch axis is the strided one; the others are walked through. */
static void multiply_batch(RpContext *context, const RpGemmBatch *batch, Product p) {
  int64_t index[RP_BATCH_MAX_RANK] = {0};
  int last = batch->rank - 1;
  p.count = batch->dims[last];
  p.stride_a = batch->stride_a[last];
  p.stride_b = batch->stride_b[last];
  p.stride_c = batch->stride_c[last];
  for (int axis = 0; axis >= 0;) {
    Product part = p;
    for (int i = 0; i < last; i++) {
      part.a += 4 * index[i] * batch->stride_a[i];
      part.b += 4 * index[i] * batch->stride_b[i];
      part.c += 4 * index[i] * batch->stride_c[i];
    }
    multiply(context, &part);
    for (axis = last - 1; axis >= 0 && ++index[axis] == batch->dims[axis]; axis--) index[axis] = 0;
  }
}

static int64_t product_elements(const RpGemmBatch *batch, int64_t m, int64_t n) {
  int64_t elements = m * n;
  for (int i = 0; batch && i < batch->rank; i++) elements *= batch->dims[i];
  return elements;
}

void rp_cuda_gemm(RpContext *context, const RpGemmBatch *batch, bool transpose_a, bool transpose_b, int64_t m,
                  int64_t n, int64_t k, int64_t a, int64_t lda, int64_t b, int64_t ldb, int64_t c, int64_t ldc,
                  int64_t workspace, int64_t workspace_bytes) {
  Product p = {transpose_a, transpose_b, m, n, k, a, b, c, lda, ldb, ldc, 1, 0, 0, 0};
  if (!working(context) || product_elements(batch, m, n) == 0) return;
  if (!use_workspace(context, workspace, workspace_bytes)) return;
  if (batch && batch->rank)
    multiply_batch(context, batch, p);
  else
    multiply(context, &p);
  finish_call(context);
}
