/* codegen/cuda.h - the CUDA target: device source, its compilation by NVRTC, the host's program around it.
 *
 *   emit_cuda.c         the target, the two texts
 *   cuda_nest.c         loop nests shared out among threads
 *   cuda_pointwise.c    pointwise nodes, assemblies
 *   cuda_reduction.c    reductions
 *   cuda_contraction.c  matrix products: cuBLAS for float, a kernel for the rest
 *   cuda_kernel_call.c  launches of hand-made kernels
 *   nvrtc.c             from source to cubins and PTX
 *
 * Grids, blocks and the order in which reductions add are functions of shapes and layouts alone, not of plan, budget or
 * architecture. */
#ifndef REPRISE_CODEGEN_CUDA_H
#define REPRISE_CODEGEN_CUDA_H

#include "codegen/body.h"

enum { MAX_ARCHITECTURES = 16 };

/* What the command line says. */
typedef struct CudaOptions {
  int count, architectures[MAX_ARCHITECTURES]; /* ascending: 90 is sm_90 */
  bool tf32;                                   /* products may round their operands to 10 bits of mantissa */
} CudaOptions;

/* "sm_90,sm_80" or "90,80"; false: not such a list. */
bool cuda_parse_architectures(const char *list, CudaOptions *options);
/* For data center and desktop devices since 2020. */
CudaOptions cuda_default_options(void);

/* Bytes of workspace of a node, of which the kernels pass knows nothing; context: the CudaOptions. */
int64_t cuda_workspace(const void *context, const Graph *graph, const Node *node);

/* ---- the program ---- */

typedef struct CudaKernel {
  const char *name;
  const char *title; /* of the first node that launches it: module path and operators */
  Location location; /* likewise */
} CudaKernel;

typedef struct CudaEmission {
  ARRAY(CudaKernel) kernels; /* in the order of the program's table of functions */
  StringMap indices;         /* by name */
  bool uses_gemm;
} CudaEmission;

typedef struct CudaProgram {
  char *source; /* CUDA C: what NVRTC compiles, with the folder of runtime/ to include from */
  int64_t length;
  Emission emission;
  CudaEmission cuda;
  PhaseRange phases[3];
  Text steps;
} CudaProgram;

/* The kernels of a compilation and the step functions that launch them. NULL after diag_error where the model uses what
 * the target cannot compute. Equal compilations give equal bytes. */
CudaProgram *emit_cuda_device(const Compilation *compilation, const CodegenOptions *options, MemoryArena *arena);

/* What a kernel takes on an architecture, as the assembler says; -1: it did not say. */
typedef struct CudaKernelUse {
  int registers, stack_bytes, spill_bytes, shared_bytes;
} CudaKernelUse;

typedef struct CudaImage {
  int architecture;
  const char *bytes;
  int64_t length;
  CudaKernelUse *uses; /* per kernel of the program */
} CudaImage;

typedef struct CudaImages {
  int count;
  CudaImage cubins[MAX_ARCHITECTURES];
  CudaImage ptx; /* of the last architecture; text, its NUL counts */
} CudaImages;

/* Compiles the source for every architecture. NVRTC is looked for in the folder that REPRISE_CUDA_PATH names, then
 * where the system looks, then in the usual folders of a toolkit. Registers that spill are warnings at the nodes. False
 * with *exit_code (EXIT_DEVICE: no NVRTC, or it does not know an architecture; EXIT_INTERNAL: it refuses our text) and
 * a message in *error, in the arena. */
bool compile_cuda(const CudaProgram *program, const CudaOptions *options, const char *include_path, MemoryArena *arena,
                  CudaImages *images, ExitCode *exit_code, const char **error);

/* The host's program in C, with the images. */
char *emit_cuda_host(CudaProgram *program, const CudaImages *images, MemoryArena *arena, int64_t *length);

/* ---- one node as launches; each writes lines to `steps` ---- */

void emit_cuda_pointwise(GraphEmission *graph, NodeId id, Text *steps);
void emit_cuda_reduction(GraphEmission *graph, NodeId id, Text *steps);
void emit_cuda_assembly(GraphEmission *graph, NodeId id, Text *steps);
void emit_cuda_contraction(GraphEmission *graph, NodeId id, Text *steps);
void emit_cuda_kernel(GraphEmission *graph, NodeId id, Text *steps);

/* Workspace of a reduction: the parts of its results that blocks leave to a second kernel. */
int64_t cuda_reduction_workspace(const Graph *graph, const Node *node);

typedef enum OperandUse { OPERAND_READ, OPERAND_WRITTEN } OperandUse;
/* "RP_IN(4096, 1024)": an operand's offset in the arena and the bytes that its kernel may touch. */
char *cuda_operand(const GraphEmission *graph, OperandUse use, const Layout *layout, DataType dtype);
/* Arguments of a body: those of its inputs, control block and random numbers, as body_parameters lists them. */
void cuda_body_arguments(const BodyText *body, Text *arguments);

/* Grid and block; threads of a block lie along x, then y. */
typedef struct CudaLaunch {
  int64_t grid, block_x, block_y;
} CudaLaunch;
/* Of a node that a hand-made kernel computes. */
CudaLaunch cuda_kernel_launch(const Graph *graph, const Node *node);
/* The kernel with these parameters and body, defined unless there is an equal one. */
const char *cuda_kernel(GraphEmission *graph, const Node *node, const char *stem, const char *parameters,
                        const char *body);
/* Enters a kernel of runtime/kernels/ into the program's table. */
void cuda_kernel_known(GraphEmission *graph, const Node *node, const char *name);
void cuda_launch(Text *steps, const char *kernel, CudaLaunch launch, const char *arguments);

/* ---- loop nests shared out among threads ---- */

enum { VECTOR = 4, BLOCK_THREADS = 256, WARP_THREADS = 32 };

int64_t divide_up(int64_t a, int64_t b);
/* The type of counters and offsets: int32_t where every offset of every operand fits. */
const char *cuda_index_type(const LoopNest *nest);
/* Whether any operand in [first, end) moves along the axis. */
bool nest_moves(const LoopNest *nest, int axis, int first, int end);
/* Whether four neighbours of an operand along the innermost axis lie side by side and can be moved at once; or it is
 * the same for all of them. */
bool nest_vector_operand(const LoopNest *nest, int operand, const ViewLayout *view);

/* A variable for each axis that is kept, or each that is reduced, from a number that counts them all, the last fastest;
 * only for those along which operands in [first, end) move. The innermost one counts in steps of `width`. */
typedef struct AxisRange {
  const LoopNest *nest;
  bool reduced;
  int first, end;
  int skipped; /* an axis that the number does not count; -1: none */
} AxisRange;
void write_axes(Text *text, const char *type, const char *number, const AxisRange *range, int width);

/* The loop of a thread over its elements of a nest, `width` at a time, with the variables of the axes; closed by
 * text_close. */
void open_thread_loop(Text *text, const LoopNest *nest, int width);
CudaLaunch thread_loop_launch(const LoopNest *nest, int width);

/* Vector loads of the inputs of a body that move along the innermost axis, to be read as "v0[lane]". `names` are those
 * of nest_offset. */
void write_vector_loads(BodyText *body, Text *text, const char *const *names);

#endif
