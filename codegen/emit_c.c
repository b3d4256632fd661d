/* codegen/emit_c.c - the C target: one file with a function per distinct kernel, step functions, tables, main. */
#include <inttypes.h>

#include "codegen/emission.h"
#include "codegen/expression.h"

/* ---- nodes ---- */

static bool c_holds(DataType dtype) { return dtype != BF16 && dtype != F16; }

static void emit_c_node(GraphEmission *graph, NodeId id, Text *steps) {
  const Node *node = graph_node(graph->compiled->graph, id);
  switch (op_kind(node->op)) {
    case KIND_POINTWISE:
      emit_pointwise(graph, node, steps);
      return;
    case KIND_REDUCTION:
      emit_reduction(graph, node, steps);
      return;
    case KIND_ASSEMBLY:
      emit_assembly(graph, node, steps);
      return;
    case KIND_CONTRACTION:
      emit_contraction(graph, node, steps);
      return;
    case KIND_KERNEL:
      emit_kernel(graph, id, steps);
      return;
    case KIND_VIEW:
    case KIND_COMPOSITE:
    case KIND_OPTIMIZER:
    case KIND_NONE:
      die("no code for %s in a schedule", op_info(node->op)->name);
  }
}

/* ---- the file ---- */

static void emit_headers(const Emission *emission, Text *text) {
  const Module *module = emission->compilation->module;
  const char *slash = strrchr(module->path, '/');
  text_line(text,
            "/* Model %s of %s, written by reprise for target %s. Compile with -fopenmp -ffp-contract=off -fwrapv.",
            module->name, slash ? slash + 1 : module->path, emission->target->name);
  text_line(text, " *");
  text_line(
      text,
      " * One function per distinct kernel; the step functions call them in the planned order on offsets into one");
  text_line(text, " * arena of %" PRId64 " bytes. */", emission->compilation->arena_bytes);
  text_line(text, "#ifdef __clang__ /* a loop for which it finds no vector form stays a loop */");
  text_line(text, "#pragma clang diagnostic ignored \"-Wpass-failed\"");
  text_line(text, "#endif");
  text_line(text, "#include <math.h>");
  text_line(text, "#include <stdbool.h>");
  text_line(text, "#include <stddef.h>");
  text_line(text, "#include <stdint.h>\n");
  text_line(text, "#include \"runtime/gemm.h\"");
  for (int64_t i = 0; i < emission->headers.count; i++)
    text_line(text, "#include \"runtime/kernels/%s.h\"", emission->headers.keys[i]);
  text_line(text, "#include \"runtime/program.h\"");
  text_line(text, "#include \"runtime/random.h\"");
  text_line(text, "#include \"runtime/scalar_math.h\"\n");
  text_line(text, "/* inlined, each call would be optimised anew: minutes for a step of thousands */");
  text_line(text, "#define KERNEL static __attribute__((noinline))");
  text_line(text, "#define AT(type, offset) ((type *)(void *)(arena + (offset)))\n");
}

char *emit_c_program(const Compilation *compilation, const CodegenOptions *options, MemoryArena *arena,
                     int64_t *length) {
  Emission emission = {.target = &target_c, .compilation = compilation, .options = options, .arena = arena};
  emission.functions.arena = emission.function_names.arena = emission.stems.arena = emission.headers.arena = arena;
  bool supported = emission_supports(&emission, compilation->train.graph);
  if (!emission_supports(&emission, compilation->evaluation.graph) || !supported) return NULL;
  PhaseRange phases[3];
  find_phases(compilation, phases);
  Text text = {.arena = arena}, steps = {.arena = arena};
  emission_steps(&emission, phases, 2, &steps);
  emission_steps(&emission, phases + 2, 1, &steps);
  emit_headers(&emission, &text);
  text_append(&text, "%s%s", text_bytes(&emission.functions), text_bytes(&steps));
  emit_tables(&emission, phases, &text);
  *length = text.length;
  return text.bytes;
}

const Target target_c = {.name = "cpu",
                         .extension = ".c",
                         .alignment = 64,
                         .function = "KERNEL void",
                         .holds = c_holds,
                         .emit_node = emit_c_node};

const Target *target_find(const char *name) {
  static const Target *const targets[] = {&target_c, &target_cuda};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (string_equal(targets[i]->name, name)) return targets[i];
  return NULL;
}
