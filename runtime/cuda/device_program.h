/* runtime/cuda/device_program.h - what an emitted CUDA program hands over beside RpProgram.
 *
 * The emitted host file is C. Its step functions have the form of those of the host target, but what they call only
 * queues work: rp_cuda_launch for a kernel of the emitted device code or of runtime/kernels/X.cuh, rp_cuda_gemm for a
 * matrix product, rp_cuda_fill for bytes. Offsets count from the start of the arena, as everywhere.
 *
 *   static void micro_step(RpContext *context) {
 *     // h.0.mlp add gelu, gpt2.rp:31:9
 *     rp_cuda_launch(context, ADD_GELU_1, RP_DIM(96, 1, 1), RP_DIM(256, 1, 1), 0,
 *                    RP_OUT(4096, 98304), RP_IN(0, 98304), RP_IN(512, 3072));
 *     rp_done(context, 0);
 *     …
 *   }
 *
 * A step function is called for the first step, for the second with its launches captured into a CUDA graph, which is
 * replayed from then on, and whenever something observes the kernels (--dump-grads, --trace, --memory, --poison) or
 * REPRISE_CUDA_SYNC=1 is set. So it may not look at the control block or at anything else that changes from step to
 * step; kernels read the control block on the device, at RP_CONTROL.
 *
 * Errors are kept in the context; after the first, calls do nothing. */
#ifndef REPRISE_RUNTIME_CUDA_DEVICE_PROGRAM_H
#define REPRISE_RUNTIME_CUDA_DEVICE_PROGRAM_H

#include "runtime/gemm.h"
#include "runtime/program.h"

/* Compiled device code: for `architecture` 90 a cubin of sm_90, or the PTX of compute_90 (NUL-terminated text). */
typedef struct RpImage {
  int architecture;
  const void *bytes;
  int64_t count;
} RpImage;

struct RpBackend;

typedef struct RpDeviceProgram {
  const struct RpBackend *backend; /* &rp_cuda_backend */
  const RpImage *cubins;           /* one for each --arch */
  int64_t cubin_count;
  RpImage ptx; /* for architectures later than those of the cubins; bytes NULL: none */
  /* Names of the `extern "C" __global__` functions; rp_cuda_launch takes indices into it. */
  const char *const *functions;
  int64_t function_count;
  bool uses_gemm;
  bool tf32; /* --tf32: products may round their operands to 10 bits of mantissa */
} RpDeviceProgram;

extern const struct RpBackend rp_cuda_backend;

typedef struct RpDim {
  uint32_t x, y, z;
} RpDim;
#define RP_DIM(x, y, z) ((RpDim){(x), (y), (z)})

/* One argument of a kernel. What an operand's kernel may touch is given in bytes from its address on; the emulated
 * device holds every access against it, and expects that every byte of an RP_OPERAND_OUT is written. Devices do not
 * look at it. */
typedef enum RpOperandUse {
  RP_OPERAND_VALUE, /* not an address */
  RP_OPERAND_IN,
  RP_OPERAND_OUT,   /* written whole; may be read, also before where another operand covers the same bytes */
  RP_OPERAND_UPDATE /* read, or written, or both, in part or whole */
} RpOperandUse;
typedef struct RpArgument {
  RpOperandUse use;
  int64_t bytes;
  union {
    int64_t offset; /* of an operand in the arena, -1 for NULL */
    bool boolean;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
  } value;
} RpArgument;
#define RP_IN(at, count) ((RpArgument){RP_OPERAND_IN, (count), {.offset = (at)}})
#define RP_OUT(at, count) ((RpArgument){RP_OPERAND_OUT, (count), {.offset = (at)}})
#define RP_UPDATE(at, count) ((RpArgument){RP_OPERAND_UPDATE, (count), {.offset = (at)}})
#define RP_NONE ((RpArgument){RP_OPERAND_IN, 0, {.offset = -1}}) /* an optional input left out */
#define RP_CONTROL ((RpArgument){RP_OPERAND_UPDATE, sizeof(RpControl), {.offset = context->program->control_offset}})
#define RP_BOOL(x) ((RpArgument){RP_OPERAND_VALUE, 1, {.boolean = (x)}})
#define RP_I32(x) ((RpArgument){RP_OPERAND_VALUE, 4, {.i32 = (x)}})
#define RP_I64(x) ((RpArgument){RP_OPERAND_VALUE, 8, {.i64 = (x)}})
#define RP_F32(x) ((RpArgument){RP_OPERAND_VALUE, 4, {.f32 = (x)}})
#define RP_F64(x) ((RpArgument){RP_OPERAND_VALUE, 8, {.f64 = (x)}})

enum { RP_MAX_ARGUMENTS = 64 };

/* Queues function `function` of the program's table. shared: bytes of dynamic shared memory. An empty grid does
 * nothing. At least one argument. */
#define rp_cuda_launch(context, function, grid, block, shared, ...) \
  rp_cuda_launch_arguments((context), (function), (grid), (block), (shared), (const RpArgument[]){__VA_ARGS__}, \
                           (int)(sizeof((const RpArgument[]){__VA_ARGS__}) / sizeof(RpArgument)))
void rp_cuda_launch_arguments(RpContext *context, int function, RpDim grid, RpDim block, uint32_t shared,
                              const RpArgument *arguments, int count);

/* c = op(a) op(b), f32, row major, as rp_gemm_batched_f32 (runtime/gemm.h) with alpha 1 and beta 0; a, b, c are
 * offsets. batch NULL: one product. The workspace, workspace_bytes at workspace, is part of the arena and its size a
 * function of graph and architecture (rp_cuda_workspace_bytes); alignment 256. */
void rp_cuda_gemm(RpContext *context, const RpGemmBatch *batch, bool transpose_a, bool transpose_b, int64_t m,
                  int64_t n, int64_t k, int64_t a, int64_t lda, int64_t b, int64_t ldb, int64_t c, int64_t ldc,
                  int64_t workspace, int64_t workspace_bytes);

/* What cuBLAS wants for its workspace on an architecture (90: sm_90). */
static inline int64_t rp_cuda_workspace_bytes(int architecture) {
  return (int64_t)(architecture / 10 == 9 ? 32 : 4) << 20;
}

/* Sets `bytes` bytes at an offset to a value. */
void rp_cuda_fill(RpContext *context, int64_t offset, unsigned char value, int64_t bytes);

#endif
