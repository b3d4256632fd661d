/* passes/passes.h - the passes between frontend and code generation, and what they hand on.
 *
 * passes/pipeline.c calls them in this order, each once per graph:
 *
 *   simplify   removes dead nodes, merges equal ones, folds constants
 *   grad       appends backward and update nodes (training graph)
 *   simplify
 *   fuse       groups pointwise nodes, and pointwise nodes in front of reductions, into one node with a body
 *   kernels    inserts copies where a kernel needs another layout, chooses algorithms and workspace
 *   storage    resolves views to storages, computes layouts, lists in-place permissions
 *   order      fixes the default order: a schedule of runs and frees that keeps every activation
 *   parts      inputs of assemblies are made where they belong, where that holds no more bytes in that order
 *   checkpoint inserts clones and frees until the schedule fits the budget
 *   memplan    gives every storage an offset in the arena
 *
 * Nothing reorders, merges or re-aliases after checkpoint. No pass names an operator: they ask the op table. Passes take a scratch arena for
 * what they do not hand on. */
#ifndef REPRISE_PASSES_PASSES_H
#define REPRISE_PASSES_PASSES_H

#include "ir/ir.h"

/* ---- rewriting the graph ---- */

/* Requires a verified graph. Keeps effects, outputs, loss, requested gradients and the order of what stays. Folds nodes whose inputs
 * are all uniform constants into constants, drops multiplications by one and the like, merges equal nodes (same operator,
 * inputs, attributes, phase, recompute block; never random ones with different ids, never effects, never clones). */
void simplify_graph(Graph *graph, MemoryArena *scratch);

/* Appends the backward pass of graph->loss (reverse mode, contributions to one value summed in reverse program order of its uses), fills
 * graph->gradients, then appends updates: accumulators (accumulate > 1), clipping, optimizer. Adds optimizer and accumulator
 * persistents to the module. Reports operators without gradient, all at once, at their locations. Phase of new nodes: PHASE_BACKWARD, PHASE_UPDATE. */
void differentiate_graph(Graph *graph, MemoryArena *scratch);

/* Makes copies of persistents for those who ask for the value from before the step when it may be overwritten already: the
 * loss, outputs and gradients that are persistents or views of them, nodes behind an update, updates in a circle. Requires
 * equal nodes to be simplified: that would take the copies out again. */
void hold_old_values(Graph *graph, MemoryArena *scratch);

/* Groups pointwise nodes of one iteration shape, phase and recompute block into nodes with a body, and gives reductions
 * the group that only they read as a body. A value that only its own group reads disappears, unless the graph names it
 * or it is to be kept. Constants are copied into every body that reads them. Moves nothing where lives would get longer.
 * A decision never depends on budget or plan. Requires constants and equal nodes to be simplified: nothing merges them
 * later. */
void fuse_graph(Graph *graph, MemoryArena *scratch);

/* Makes every node executable by inserting copies: of the last two axes of a contraction's operands one has stride 1 (an
 * axis of size 1 counts), the inputs of hand-made kernels are dense and row-major, and so are the loss, outputs and
 * gradients, which are named by their copies from then on. Later passes find only views that a layout can express.
 * node->workspace stays 0; the pipeline sets it where the target asks for some. Requires fused nodes: a copy is not fused. */
void choose_kernels(Graph *graph, MemoryArena *scratch);

/* ---- storage ---- */

typedef enum StorageClass {
  STORAGE_WEIGHT,     /* parameters and model state */
  STORAGE_GRADIENT,   /* gradients of parameters, accumulators */
  STORAGE_OPTIMIZER,
  STORAGE_ACTIVATION, /* made in the forward phase and read in a later one */
  STORAGE_TEMPORARY,  /* everything else that nodes make */
  STORAGE_WORKSPACE,
  STORAGE_INPUT,      /* model inputs and the control block */
  STORAGE_CLASS_COUNT
} StorageClass;

const char *storage_class_name(StorageClass class);

/* Bytes with one life: a value together with its views. */
typedef struct Storage {
  const char *name;   /* unique in its graph, stable, for people: name or module path of the value */
  ValueId root;       /* the value that is not a view; NO_VALUE for the control block */
  int64_t bytes;      /* rounded up to the alignment */
  int64_t elements;   /* of its root, or of the assembly that its values are parts of */
  StorageClass class;
  bool persistent;    /* weights, state, optimizer, accumulators, inputs: live before and after the step */
  bool result;        /* live at the end: scalars that are logged */
  NodeId producer;    /* NO_NODE for persistent ones */
  Constraint constraint;
} Storage;

/* Where a value lies: storage and layout in elements. */
typedef struct Layout {
  int storage;
  ViewLayout view;
} Layout;

/* Output `output` of node `node` may take the bytes of `host`, one of its input storages, where that is the last use. */
typedef struct InplacePair {
  NodeId node;
  int host, output; /* storages of equal size */
} InplacePair;

/* A value that is made in its slice of a larger storage (passes/storage_parts.c). */
typedef struct Part {
  int group;       /* outputs of one node with the same group share a storage; 0: no part */
  Type whole;      /* what fills the storage */
  ViewLayout view; /* the slice */
  const char *name; /* of the assembly's output, or of its operator */
} Part;

typedef struct StorageTable {
  int64_t alignment;
  ARRAY(Storage) storages;
  Layout *layouts; /* per value id of the graph */
  ARRAY(InplacePair) inplace; /* in node order */
  int control;        /* the storage of the control block */
  const Part *parts;  /* per value id below part_count, those of clones as of their originals; NULL: there are none */
  int64_t part_count;
} StorageTable;

/* Layout of every value by following views (storage -1 for values that nothing makes); classes; in-place permissions.
 * The module's persistents come first, then its inputs, then the control block, in every graph the same; then what nodes
 * make, in node order, clones last: inserting clones changes nothing about the others. */
StorageTable *assign_storages(Graph *graph, int64_t alignment, MemoryArena *arena);
/* The table of a graph into which clones were inserted, with the parts of `table`. */
StorageTable *assign_storages_like(Graph *graph, const StorageTable *table, MemoryArena *arena);
/* Does input i of an assembly lie in the bytes of the output where the assembly takes over its storage? */
bool input_is_assembled(const Graph *graph, const StorageTable *table, const Node *node, int input);

/* ---- schedule (docs/design.md, section 6) ----
 * Every node runs once: a second execution is a clone, a node of its own with values and storages of its own. So a clone
 * whose output is not wanted (rule 4, `drop`) is one whose output nobody reads: it is freed as soon as it is made. */

typedef struct Step {
  bool run;    /* run `node`, or free `storage` */
  NodeId node;
  int storage;
  int into_count; /* outputs placed into the bytes of an input that ends here */
  int into_outputs[MAX_OP_OUTPUTS], into_hosts[MAX_OP_OUTPUTS];
} Step;

typedef struct Anatomy {
  int64_t bytes[STORAGE_CLASS_COUNT];
} Anatomy;

typedef struct Schedule {
  ARRAY(Step) steps;
  int64_t live_peak; /* by the counting rules, persistent storages included */
  int64_t peak_step; /* index of the run step where it is reached first */
  Anatomy anatomy;   /* of the live bytes there */
} Schedule;

/* Updates move up to right after the last node that needs what they overwrite; everything else keeps its place. Frees
 * follow last uses, outputs take the bytes of inputs that end where permitted. View nodes are not in the schedule. Dies
 * when an update must run before and after the same node, or when with accumulation the update phase reads anything of
 * the micro-step but persistents. */
Schedule *order_graph(Graph *graph, const StorageTable *table, MemoryArena *arena);
/* The table with parts where the schedule that keeps everything shows that they save bytes (passes/storage_parts.c);
 * `table` itself where none do. Replaces the schedule by one for the new table: of the same runs in the same order. */
StorageTable *place_parts(Graph *graph, StorageTable *table, Schedule **schedule, MemoryArena *arena);
/* Replays a schedule: sets peak and anatomy; NULL, or what is wrong with it. live_bytes (may be NULL) gets the bytes live during each step. */
const char *replay_schedule(const Graph *graph, const StorageTable *table, Schedule *schedule, int64_t *live_bytes,
                            MemoryArena *arena);

/* ---- memory map ---- */

typedef struct MemoryMap {
  int64_t *offsets;           /* per storage, bytes from the start of the arena */
  int64_t *workspace_offsets; /* per node, -1: none */
  int64_t control_offset;     /* the control block, 64 bytes */
  int64_t persistent_bytes;   /* persistent section: [0, persistent_bytes) */
  int64_t arena_bytes;
} MemoryMap;

/* Persistent storages (shared by the module's graphs, same offsets in each) first, then transients packed by lifetime. capacity:
 * bytes that the arena may take, where the search may stop; -1: as few as possible. effort: units of work of the packing
 * engine (passes/packing/packing.h); 0: its default. */
enum { QUICK_EFFORT = 1500000 }; /* a tenth: 0.1 to 2.3 % more bytes on the public traces with a budget, in 0.8 s instead of 8 s */
MemoryMap *plan_memory(const Graph *graph, const StorageTable *table, const Schedule *schedule, int64_t capacity,
                       int64_t effort, MemoryArena *arena);
/* Sweeps the map with code of its own: NULL, or the first two storages that overlap while both live. */
const char *check_memory(const Graph *graph, const StorageTable *table, const Schedule *schedule, const MemoryMap *map,
                         MemoryArena *arena);

/* ---- the whole ---- */

typedef struct CompiledGraph {
  Graph *graph;
  StorageTable *table;
  Schedule *schedule;
  MemoryMap *map;
} CompiledGraph;

typedef struct Compilation {
  Module *module;
  int64_t alignment; /* of the target */
  int64_t budget;    /* bytes, -1: none */
  CompiledGraph train, evaluation; /* graph NULL where the module has none */
  int64_t arena_bytes;             /* the larger of the two */
  CompiledGraph keep_all;          /* the training graph before the checkpoint pass */
  struct Checkpoint *checkpoint;   /* what the checkpoint pass decided (passes/checkpoint.h); NULL without training graph */
  double *costs;                   /* microseconds per node of keep_all.graph */
} Compilation;

typedef struct PipelineOptions {
  int64_t alignment, budget; /* bytes; budget -1: none */
  const char *dump_pass;     /* print the module after this pass to stdout, or NULL */
  const struct CheckpointOptions *checkpoint; /* strategy and limits; NULL: keep everything whatever the budget */
  /* Microseconds per node id of a graph with storages; called once, for the training graph. */
  double *(*costs)(void *context, const Graph *graph, const StorageTable *table, MemoryArena *arena);
  void *context;
  /* Bytes of workspace of a node, asked for after the kernels pass: a function of graph and target. NULL: none has any. */
  int64_t (*workspace)(const void *context, const Graph *graph, const Node *node);
  const void *workspace_context;
} PipelineOptions;

/* passes/pipeline.c. NULL after errors were reported. When no plan fits the budget, checkpoint->compiled.graph is NULL and train is
 * the graph that keeps everything. */
Compilation *compile_module(Module *module, const PipelineOptions *options);

#endif
