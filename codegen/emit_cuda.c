/* codegen/emit_cuda.c - the CUDA target: device source with a kernel per distinct node, host program with step
 * functions that launch them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "codegen/cuda.h"
#include "codegen/expression.h"
#include "passes/facts.h"
#include "runtime/cuda/device_program.h"

/* ---- options ---- */

static void add_architecture(CudaOptions *options, int architecture) {
  int at = options->count;
  for (int i = 0; i < options->count; i++)
    if (options->architectures[i] == architecture) return;
  for (; at > 0 && options->architectures[at - 1] > architecture; at--)
    options->architectures[at] = options->architectures[at - 1];
  options->architectures[at] = architecture;
  options->count++;
}

bool cuda_parse_architectures(const char *list, CudaOptions *options) {
  options->count = 0;
  for (const char *at = list; *at; at++) {
    char *end;
    if (strncmp(at, "sm_", 3) == 0) at += 3;
    long number = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
    if (number < 50 || number > 999 || options->count == MAX_ARCHITECTURES || (*end && *end != ',')) return false;
    add_architecture(options, (int)number);
    if (!*end) return true;
    at = end;
  }
  return false;
}

CudaOptions cuda_default_options(void) { return (CudaOptions){4, {80, 86, 89, 90}, false}; }

/* ---- workspace ---- */

/* cuBLAS divides long inner products and adds the parts: room for the parts of PART elements each, from the least that
 * it never refuses to the most that it uses. */
static int64_t product_workspace(const CudaOptions *options, const Type *result, int64_t inner) {
  enum { PART = 256, LEAST = 16 << 10, ALIGNMENT = 256 };
  int64_t most = 0, wanted;
  for (int i = 0; i < options->count; i++) {
    int64_t bytes = rp_cuda_workspace_bytes(options->architectures[i]);
    if (bytes > most) most = bytes;
  }
  if (!checked_multiply(type_bytes(result), divide_up(inner, PART), &wanted) || wanted > most) return most;
  return align_size(wanted < LEAST ? LEAST : wanted, ALIGNMENT);
}

int64_t cuda_workspace(const void *context, const Graph *graph, const Node *node) {
  switch (op_kind(node->op)) {
    case KIND_CONTRACTION: {
      const Type *result = value_type(graph, node->outputs[0]), *left = value_type(graph, node->inputs[0]);
      return result->dtype == F32 ? product_workspace(context, result, left->dims[left->rank - 1]) : 0;
    }
    case KIND_REDUCTION:
      return cuda_reduction_workspace(graph, node);
    default:
      return 0;
  }
}

/* ---- what the files that write nodes share ---- */

char *cuda_operand(const GraphEmission *graph, OperandUse use, const Layout *layout, DataType dtype) {
  int64_t last = 0;
  for (int axis = 0; axis < layout->view.rank; axis++)
    last += layout->view.strides[axis] * (layout->view.dims[axis] - 1);
  const char *form = use == OPERAND_READ ? "IN" : layout_is_dense(&layout->view) ? "OUT" : "UPDATE";
  return memory_format(graph->emission->arena, "RP_%s(%" PRId64 ", %" PRId64 ")", form,
                       layout_offset(graph, layout, dtype), (last + 1) * dtype_bytes(dtype));
}

void cuda_body_arguments(const BodyText *body, Text *arguments) {
  const Graph *graph = body->graph->compiled->graph;
  int instructions = body->body.instruction_count;
  for (int i = 0; i < body->node->input_count; i++) {
    ValueId value = body->node->inputs[i];
    if (body->used[instructions + i])
      text_append(
          arguments, ", %s",
          cuda_operand(body->graph, OPERAND_READ, value_layout(body->graph, value), value_type(graph, value)->dtype));
  }
  if (body->reads_control) text_append(arguments, ", RP_CONTROL");
  for (int i = 0; i < instructions; i++)
    if (body->used[i] && op_has(body->body.instructions[i].op, OP_RANDOM))
      text_append(arguments, ", RP_I64((int64_t)UINT64_C(0x%016" PRIx64 "))", body->body.instructions[i].random_id);
}

void cuda_kernel_known(GraphEmission *graph, const Node *node, const char *name) {
  Emission *emission = graph->emission;
  CudaEmission *cuda = emission->cuda;
  if (string_map_find(&cuda->indices, name)) return;
  char *title = memory_format(emission->arena, "%s%s%s", node->module, *node->module ? " " : "",
                              node_title(emission->arena, node, ' '));
  CudaKernel kernel = {.name = memory_string(emission->arena, name), .title = title, .location = node->location};
  string_map_set(&cuda->indices, name, cuda->kernels.count);
  array_push(emission->arena, &cuda->kernels, kernel);
}

const char *cuda_kernel(GraphEmission *graph, const Node *node, const char *stem, const char *parameters,
                        const char *body) {
  Emission *emission = graph->emission;
  const char *name = emission_function(emission, emission->target->function, stem, parameters, body);
  cuda_kernel_known(graph, node, name);
  return name;
}

/* The constant of the host's program that stands for a kernel. */
static char *kernel_constant(MemoryArena *arena, const char *name) {
  char *constant = memory_string(arena, name);
  for (char *at = constant; *at; at++) *at = (char)toupper((unsigned char)*at);
  return constant;
}

void cuda_launch(Text *steps, const char *kernel, CudaLaunch launch, const char *arguments) {
  ASSERT(launch.grid > 0 && launch.grid <= INT32_MAX);
  text_wrapped(steps, memory_format(steps->arena,
                                    "rp_cuda_launch(context, %s, RP_DIM(%" PRId64 ", 1, 1), RP_DIM(%" PRId64
                                    ", %" PRId64 ", 1), 0, %s);",
                                    kernel_constant(steps->arena, kernel), launch.grid, launch.block_x, launch.block_y,
                                    arguments));
}

/* ---- the target ---- */

static bool cuda_holds(DataType dtype) { return dtype != BF16 && dtype != F16; }

static void emit_cuda_node(GraphEmission *graph, NodeId id, Text *steps) {
  const Node *node = graph_node(graph->compiled->graph, id);
  switch (op_kind(node->op)) {
    case KIND_POINTWISE:
      emit_cuda_pointwise(graph, id, steps);
      return;
    case KIND_REDUCTION:
      emit_cuda_reduction(graph, id, steps);
      return;
    case KIND_ASSEMBLY:
      emit_cuda_assembly(graph, id, steps);
      return;
    case KIND_CONTRACTION:
      emit_cuda_contraction(graph, id, steps);
      return;
    case KIND_KERNEL:
      emit_cuda_kernel(graph, id, steps);
      return;
    default:
      die("no code for %s in a schedule", op_info(node->op)->name);
  }
}

const Target target_cuda = {.name = "cuda",
                            .extension = ".cu",
                            .alignment = 256,
                            .function = "RP_KERNEL",
                            .holds = cuda_holds,
                            .emit_node = emit_cuda_node};

/* A grid has at most 2^31 - 1 blocks, and hand-made kernels a block for each row. */
static bool grids_fit(const Graph *graph) {
  int errors = diag_error_count();
  for (int64_t id = 0; graph && id < graph->nodes.count; id++) {
    const Node *node = &graph->nodes.items[id];
    int64_t blocks = op_kind(node->op) == KIND_KERNEL ? cuda_kernel_launch(graph, node).grid : 0;
    if (blocks > INT32_MAX)
      diag_error(node->location, "target '%s' computes at most %d rows in '%s', found %" PRId64, target_cuda.name,
                 INT32_MAX, op_info(node->op)->name, blocks);
  }
  return diag_error_count() == errors;
}

/* ---- device source ---- */

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void write_source(CudaProgram *program) {
  const Emission *emission = &program->emission;
  const Module *module = emission->compilation->module;
  Text text = {.arena = emission->arena};
  text_line(&text,
            "/* Kernels of model %s of %s, written by reprise: one for each distinct node. Compiled by NVRTC with",
            module->name, file_name(module->path));
  text_line(&text, " * --fmad=false, and launched by the host's program with offsets into one arena. */");
  text_line(&text, "#include \"runtime/kernels/device.cuh\"");
  text_line(&text, "#include \"runtime/kernels/reduce.cuh\"");
  text_line(&text, "#include \"runtime/kernels/vector.cuh\"");
  for (int64_t i = 0; i < emission->headers.count; i++)
    text_line(&text, "#include \"runtime/kernels/%s.cuh\"", emission->headers.keys[i]);
  text_line(&text, "%s", "");
  text_append(&text, "%s", text_bytes(&emission->functions));
  program->source = text.bytes;
  program->length = text.length;
}

CudaProgram *emit_cuda_device(const Compilation *compilation, const CodegenOptions *options, MemoryArena *arena) {
  CudaProgram *program = NEW(arena, CudaProgram);
  Emission *emission = &program->emission;
  *emission = (Emission){.target = &target_cuda, .compilation = compilation, .options = options, .arena = arena};
  emission->functions.arena = emission->constants.arena = program->steps.arena = arena;
  emission->function_names.arena = emission->stems.arena = emission->headers.arena = arena;
  emission->cuda = &program->cuda;
  program->cuda.indices.arena = arena;
  bool supported = emission_supports(emission, compilation->train.graph);
  if (!emission_supports(emission, compilation->evaluation.graph) || !supported) return NULL;
  if (!grids_fit(compilation->train.graph) || !grids_fit(compilation->evaluation.graph)) return NULL;
  find_phases(compilation, program->phases);
  emission_steps(emission, program->phases, 2, &program->steps);
  emission_steps(emission, program->phases + 2, 1, &program->steps);
  write_source(program);
  return program;
}

/* ---- the host's program ---- */

static void write_headers(const CudaProgram *program, Text *text) {
  const Compilation *compilation = program->emission.compilation;
  text_line(text, "/* Model %s of %s, written by reprise for target %s: the host's program.", compilation->module->name,
            file_name(compilation->module->path), target_cuda.name);
  text_line(text, " *");
  text_line(text,
            " * The step functions launch the kernels of the images below in the planned order, on offsets into one");
  text_line(text, " * arena of %" PRId64 " bytes of device memory. */", compilation->arena_bytes);
  text_line(text, "#include <math.h>");
  text_line(text, "#include <stdbool.h>");
  text_line(text, "#include <stddef.h>");
  text_line(text, "#include <stdint.h>\n");
  text_line(text, "#include \"runtime/cuda/device_program.h\"");
  text_line(text, "#include \"runtime/program.h\"\n");
}

/* Any bytes and a NUL, as string literals: compilers read them faster than numbers. */
static void write_bytes(Text *text, const char *name, const char *bytes, int64_t length) {
  enum { BYTES_PER_LINE = 96 };
  text_line(text, "static _Alignas(16) const char %s[%" PRId64 "] =", name, length + 1);
  for (int64_t start = 0; start < length; start += BYTES_PER_LINE) {
    text_append(text, "    \"");
    for (int64_t i = start; i < length && i < start + BYTES_PER_LINE; i++) {
      unsigned char byte = (unsigned char)bytes[i];
      bool plain = byte >= ' ' && byte < 127 && byte != '"' && byte != '\\' && byte != '?';
      text_append(text, plain ? "%c" : "\\%03o", byte);
    }
    text_append(text, "\"\n");
  }
  text_line(text, "    ;\n");
}

static void write_images(const CudaImages *images, Text *text) {
  text_line(text, "#pragma GCC diagnostic ignored \"-Woverlength-strings\"");
  for (int i = 0; i < images->count; i++)
    write_bytes(text, memory_format(text->arena, "cubin_sm_%d", images->cubins[i].architecture),
                images->cubins[i].bytes, images->cubins[i].length);
  write_bytes(text, "ptx", images->ptx.bytes, images->ptx.length);
  text_line(text, "static const RpImage cubins[] = {");
  for (int i = 0; i < images->count; i++)
    text_line(text, "    {%d, cubin_sm_%d, %" PRId64 "},", images->cubins[i].architecture,
              images->cubins[i].architecture, images->cubins[i].length);
  text_line(text, "};\n");
}

static void write_functions(const CudaProgram *program, Text *text) {
  const CudaEmission *cuda = &program->cuda;
  if (!cuda->kernels.count) return;
  text_line(text, "enum {");
  for (int64_t i = 0; i < cuda->kernels.count; i++)
    text_line(text, "  %s,", kernel_constant(text->arena, cuda->kernels.items[i].name));
  text_line(text, "};");
  text_line(text, "static const char *const functions[] = {");
  for (int64_t i = 0; i < cuda->kernels.count; i++) text_line(text, "    \"%s\",", cuda->kernels.items[i].name);
  text_line(text, "};\n");
}

static void write_device_program(const CudaProgram *program, const CudaImages *images, Text *text) {
  const CudaEmission *cuda = &program->cuda;
  bool tf32 = program->emission.options->cuda->tf32;
  text_line(text, "static const RpDeviceProgram device_program = {");
  text->indent++;
  text_line(text, ".backend = &rp_cuda_backend,");
  text_line(text, ".cubins = cubins,");
  text_line(text, ".cubin_count = %d,", images->count);
  text_line(text, ".ptx = {%d, ptx, %" PRId64 "},", images->ptx.architecture, images->ptx.length);
  text_line(text, ".functions = %s,", cuda->kernels.count ? "functions" : "NULL");
  text_line(text, ".function_count = %" PRId64 ",", cuda->kernels.count);
  text_line(text, ".uses_gemm = %s,", cuda->uses_gemm ? "true" : "false");
  text_line(text, ".tf32 = %s,", tf32 ? "true" : "false");
  text->indent--;
  text_line(text, "};\n");
}

char *emit_cuda_host(CudaProgram *program, const CudaImages *images, MemoryArena *arena, int64_t *length) {
  Text text = {.arena = arena};
  write_headers(program, &text);
  write_functions(program, &text);
  text_append(&text, "%s%s", text_bytes(&program->emission.constants), text_bytes(&program->steps));
  write_images(images, &text);
  write_device_program(program, images, &text);
  emit_tables(&program->emission, program->phases, &text);
  *length = text.length;
  return text.bytes;
}
