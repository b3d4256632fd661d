/* codegen/emission.h - the state of writing one program; shared by the files of codegen/. */
#ifndef REPRISE_CODEGEN_EMISSION_H
#define REPRISE_CODEGEN_EMISSION_H

#include "codegen/codegen.h"
#include "codegen/text.h"

/* A data-dependent fault that a kernel can report: one per node and its clones. */
typedef struct Check {
  const char *message, *source;
} Check;

typedef struct Emission {
  const Target *target;
  const Compilation *compilation;
  const CodegenOptions *options;
  MemoryArena *arena;
  Text functions;           /* definitions, each distinct one once */
  Text constants;           /* those of the host's program where the functions are a device's */
  StringMap function_names; /* definition without its name -> index into names */
  ARRAY(const char *) names;
  StringMap stems;   /* how many functions have a stem */
  StringMap headers; /* of hand-made kernels */
  ARRAY(Check) checks;
  struct CudaEmission *cuda; /* codegen/cuda.h; NULL where the host runs the kernels */
} Emission;

/* A graph of the compilation while its steps are written. */
typedef struct GraphEmission {
  Emission *emission;
  const CompiledGraph *compiled;
  int *checks; /* by node: index of the node's check + 1, clones share it */
} GraphEmission;

/* The name of the function with this result ("static void"), parameters and body; defines it unless there is an equal
 * one. */
const char *emission_function(Emission *emission, const char *result, const char *stem, const char *parameters,
                              const char *body);

/* Likewise for a constant: "static const RpGemmBatch", its stem, "{…}". */
const char *emission_constant(Emission *emission, const char *type, const char *stem, const char *initializer);

/* False after diag_error for nodes on data types that the target does not compute. */
bool emission_supports(const Emission *emission, const Graph *graph);

/* ---- one node as calls of the C target; each writes lines to `steps` ---- */

void emit_pointwise(GraphEmission *graph, const Node *node, Text *steps);
void emit_reduction(GraphEmission *graph, const Node *node, Text *steps);
void emit_assembly(GraphEmission *graph, const Node *node, Text *steps);
void emit_contraction(GraphEmission *graph, const Node *node, Text *steps);
void emit_kernel(GraphEmission *graph, NodeId id, Text *steps);

/* The part of the output of an assembly that input i fills, and whether the input was computed there already. */
Layout assembly_slice(const GraphEmission *graph, const Node *node, int i);
bool lies_in_place(const GraphEmission *graph, const Layout *slice, const Layout *input);
/* Index of the check of a hand-made kernel's data in the program's table. Clones report the check of their original. */
int64_t check_index(GraphEmission *graph, NodeId id, const KernelArguments *arguments);

/* "AT(float, 4096)": the first element of a value, or of a view of a storage. */
char *value_pointer(const GraphEmission *graph, ValueId value);
char *layout_pointer(const GraphEmission *graph, const Layout *layout, DataType dtype);
const Layout *value_layout(const GraphEmission *graph, ValueId value);
int64_t layout_offset(const GraphEmission *graph, const Layout *layout, DataType dtype);

/* "file.rp:3:7" without folders, so that the text does not depend on where the model lies; "" without location. */
char *source_text(MemoryArena *arena, Location location);
/* Operators of a node: "add_gelu" for functions, "add gelu" (separator ' ') for people. */
char *node_title(MemoryArena *arena, const Node *node, char separator);

/* ---- phases ---- */

/* One phase program: the range of the schedule that it runs. */
typedef struct PhaseRange {
  const char *name; /* of the step function and prefix of its tables */
  const CompiledGraph *compiled;
  int64_t first_step, end_step; /* of schedule->steps */
} PhaseRange;

/* Micro-step, update, evaluation; compiled NULL: none. */
void find_phases(const Compilation *compilation, PhaseRange phases[3]);
/* The step functions of phases of one graph. */
void emission_steps(Emission *emission, const PhaseRange *phases, int count, Text *text);

/* ---- tables.c ---- */

/* All tables, RpProgram and main. */
void emit_tables(Emission *emission, const PhaseRange phases[3], Text *text);

#endif
