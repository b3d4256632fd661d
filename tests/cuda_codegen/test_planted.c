/* Faults planted in every kind of kernel that a program has, emitted and hand-made: an index off by one, a guard or a
 * barrier that is missing, a shared write by threads that should not, a grid that is too small or too large. The
 * emulated device finds each. One process for each, for a device is broken after a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/build.h"
#include "tests/cuda_codegen/device_emitted.h"

/* ---- graphs of one kind of kernel each ---- */

static ValueId input(Graph *graph, DataType dtype, int64_t rows, int64_t columns) {
  char *name = memory_format(graph->module->arena, "x%d", (int)graph->module->inputs.count);
  const int64_t dims[] = {rows, columns};
  ModelInput declared = {.name = name, .type = type_make(dtype, columns ? 2 : 1, dims)};
  return graph_input(graph, module_add_input(graph->module, declared));
}

static void output(Graph *graph, ValueId value) {
  char *name = memory_format(graph->module->arena, "y%d", (int)graph->outputs.count);
  array_push(graph->module->arena, &graph->outputs,
             ((GraphOutput){.name = name, .value = value, .denominator = NO_VALUE}));
}

static ValueId reduce(Graph *graph, Op op, int64_t rows, int64_t columns, int64_t axis) {
  return build_reduce(graph, op, input(graph, F32, rows, columns), 1, &axis, false);
}

static void vectors(Graph *graph) { output(graph, BUILD(graph, exp, input(graph, F32, 40, 64))); }
static void elements(Graph *graph) { output(graph, BUILD(graph, exp, input(graph, F32, 7, 5))); }
static void tiles(Graph *graph) {
  output(graph, build_copy(graph, build_swap(graph, input(graph, F32, 45, 37), 0, 1)));
}
static void assembly(Graph *graph) {
  const ValueId parts[] = {input(graph, F32, 5, 3), input(graph, F32, 5, 4)};
  output(graph, build_concat(graph, 2, parts, 1));
}
static void serial(Graph *graph) { output(graph, reduce(graph, OP_sum, 300, 9, 1)); }
static void warps(Graph *graph) { output(graph, reduce(graph, OP_max, 19, 257, 1)); }
static void blocks(Graph *graph) { output(graph, reduce(graph, OP_max, 3, 2048, 1)); }
static void pieces(Graph *graph) { output(graph, reduce(graph, OP_sum, 1, 9001, 1)); }
static void columns(Graph *graph) { output(graph, reduce(graph, OP_sum, 200, 40, 0)); }
static void product(Graph *graph) {
  output(graph, BUILD(graph, matmul, input(graph, F64, 11, 5), input(graph, F64, 5, 13)));
}

enum { ROWS = 3, COLUMNS = 300 }; /* three warps to a row */

static ValueId rows(Graph *graph) { return input(graph, F32, ROWS, COLUMNS); }
static void softmax(Graph *graph) { output(graph, BUILD(graph, softmax_rows, rows(graph))); }
static void softmax_backward(Graph *graph) {
  output(graph, BUILD(graph, softmax_rows_backward, rows(graph), rows(graph)));
}
static void layer_norm(Graph *graph) {
  ValueId weight = input(graph, F32, COLUMNS, 0), bias = input(graph, F32, COLUMNS, 0);
  output(graph, BUILD(graph, layer_norm, rows(graph), weight, bias));
}
static void layer_norm_backward(Graph *graph) {
  ValueId weight = input(graph, F32, COLUMNS, 0), mean = input(graph, F32, ROWS, 1), rstd = input(graph, F32, ROWS, 1);
  output(graph, BUILD(graph, layer_norm_backward, rows(graph), rows(graph), weight, mean, rstd));
}
static void cross_entropy(Graph *graph) {
  output(graph, BUILD(graph, cross_entropy_rows, rows(graph), input(graph, I32, ROWS, 0)));
}
static void cross_entropy_backward(Graph *graph) {
  ValueId target = input(graph, I32, ROWS, 0), logsumexp = input(graph, F32, ROWS, 0), g = input(graph, F32, ROWS, 0);
  output(graph, BUILD(graph, cross_entropy_rows_backward, rows(graph), target, logsumexp, g));
}
static void argmax(Graph *graph) { output(graph, BUILD(graph, argmax_rows, rows(graph))); }
static void embed(Graph *graph) { output(graph, BUILD(graph, embed, rows(graph), input(graph, I32, 5, 0))); }
static void embed_backward(Graph *graph) {
  const Attribute size = attribute_int(70);
  const ValueId inputs[] = {input(graph, F32, 40, 36), input(graph, I32, 40, 0)};
  output(graph, build_apply(graph, OP_embed_backward, &size, 2, inputs));
}

/* A parameter that momentum updates, in one kernel with its gradient: of a train graph. */
static void update(Graph *graph) {
  Module *module = graph->module;
  const OpInfo *info = op_info(OP_adam);
  Attribute *settings = NEW_ARRAY(module->arena, Attribute, info->attribute_count);
  for (int i = 0; i < info->attribute_count; i++) settings[i] = info->attributes[i].initial;
  module->training.present = module->training.has_optimizer = true;
  module->training.optimizer = OP_adam;
  module->training.optimizer_settings = settings;
  module->training.accumulate = 1;
  Persistent declared = {.name = "w",
                         .type = type_make(F32, 1, (int64_t[]){500}),
                         .role = ROLE_PARAMETER,
                         .trainable = true,
                         .optimizer_settings = settings};
  ValueId w = graph_persistent(graph, module_add_persistent(module, declared));
  ValueId product = BUILD(graph, multiply, w, input(graph, F32, 500, 0));
  ValueId loss = build_reduce(graph, OP_sum, product, -1, NULL, false);
  graph->loss = (GraphOutput){.name = "loss", .value = loss, .denominator = NO_VALUE};
}

/* ---- runs ---- */

typedef void (*Build)(Graph *graph);

static Module *module_of(MemoryArena *arena, Build build) {
  Module *module = module_create(arena, "planted", "planted.rp");
  Graph *graph = graph_create(module, build != update);
  *(build == update ? &module->train : &module->evaluation) = graph;
  build(graph);
  return module;
}

/* What the device says of a run, in a process of its own; "": nothing. */
static char *run(MemoryArena *arena, Build build, const Plant *plant) {
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(module_of(arena, build), &options);
  assert_non_null(compilation);
  emitted_plant(plant);
  Emitted *emitted = emitted_load(arena, compilation);
  const RpPhase *phase = build == update ? &emitted->program->micro_step : &emitted->program->evaluation;
  RpStatus status = {0};
  memset(emitted->arena, 0, (size_t)emitted->program->arena_bytes);
  char *said = memory_alloc(arena, 4096);
  int ends[2], result = -1;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    bool done = emitted_try(emitted, phase, &status);
    if (!done) fprintf(stderr, "%s\n", status.message);
    _exit(done ? 0 : 1);
  }
  close(ends[1]);
  ssize_t length, all = 0;
  while ((length = read(ends[0], said + all, 4095 - (size_t)all)) > 0) all += length;
  said[all] = '\0';
  close(ends[0]);
  assert_true(child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result));
  if ((WEXITSTATUS(result) == 0) != !*said) fail_msg("exit code %d, and the device says: %s", result, said);
  free(emitted->arena);
  return said;
}

/* ---- faults ---- */

typedef struct Fault {
  const char *kind;
  Build build;
  Plant plant;
  const char *said; /* part of what the device says; NULL: nothing, for it is no fault */
} Fault;

#define BARRIER "  __syncthreads();"
static const char unordered[] = "without a barrier between", unwritten[] = "does not write byte",
                  uninitialised[] = "that no thread of the block has written",
                  blocks_write[] = "which another block has written";

static const Fault faults[] = {
    {"vectors: one too many", vectors, {"exp_1(", "item < 640", "item < 641"}, "reads 4 bytes at byte 10240"},
    {"vectors: one too few", vectors, {"exp_1(", "item < 640", "item < 639"}, unwritten},
    {"vectors: a load off by one", vectors, {"exp_1(", "in0 + i", "in0 + i + 1"}, "no multiple of 16"},
    {"vectors: a store off by four", vectors, {"exp_1(", "out + i", "out + i + 4"}, "writes 16 bytes at byte 10240"},
    {"vectors: all threads take each", vectors, {"exp_1(", "+= (int32_t)rp_threads()", "+= 1"}, "has written"},
    {"vectors: fewer blocks take more turns", vectors, {"EXP_1, ", "RP_DIM(3,", "RP_DIM(1,"}, NULL},
    {"vectors: too many blocks find nothing", vectors, {"EXP_1, ", "RP_DIM(3,", "RP_DIM(9,"}, NULL},
    {"elements: one too many", elements, {"exp_1(", "i < 35", "i < 36"}, "reads 4 bytes at byte 140"},
    {"elements: a load off by one", elements, {"exp_1(", "in0[i]", "in0[i + 1]"}, "reads 4 bytes at byte 140"},
    {"elements: a store off by one", elements, {"exp_1(", "out[i]", "out[i - 1]"}, "writes 4 bytes at byte -4"},
    {"tiles: a load without its guard", tiles, {"copy_1(", "if (row < 45 && column < 37) ", "if (row < 45) "}, "reads"},
    {"tiles: a store without its guard", tiles, {"copy_1(", "if (i >= 37) continue;", ""}, "reads shared memory"},
    {"tiles: no barrier", tiles, {"copy_1(", BARRIER, ""}, "shared memory"},
    {"tiles: rows of the tile in one", tiles, {"copy_1(", "[r][threadIdx.x] = ", "[0][threadIdx.x] = "}, unordered},
    {"tiles: a tile off by one", tiles, {"copy_1(", "block % 2 * 32", "block % 2 * 32 + 1"}, unwritten},
    {"tiles: a block too few", tiles, {"COPY_1, ", "RP_DIM(4,", "RP_DIM(3,"}, unwritten},
    {"tiles: a block too many", tiles, {"COPY_1, ", "RP_DIM(4,", "RP_DIM(5,"}, blocks_write},
    {"tiles: threads too few", tiles, {"COPY_1, ", "RP_DIM(32, 8,", "RP_DIM(32, 4,"}, "shared memory"},
    {"assembly: one too many", assembly, {"concat_2(", "item < 20", "item < 21"}, "reads 4 bytes at byte 80"},
    {"assembly: off by one", assembly, {"concat_1(", "out[i * 7 + j]", "out[i * 7 + j + 1]"}, "writes"},
    {"serial: no guard", serial, {"sum_1(", "if (site >= 300) return;", ""}, "reads"},
    {"serial: one too many", serial, {"sum_1(", "e < 9", "e < 10"}, "reads 4 bytes at byte 10800"},
    {"serial: a block too few", serial, {"SUM_1, ", "RP_DIM(2,", "RP_DIM(1,"}, unwritten},
    {"serial: results of a block shifted", serial, {"sum_1(", "rp_thread()", "rp_thread() + 1"}, unwritten},
    {"warps: no guard", warps, {"max_1(", "if (site >= 19) return;", ""}, "reads"},
    {"warps: every lane stores", warps, {"max_1(", "if (rp_lane() == 0)", "if (true)"}, unordered},
    {"warps: half of them", warps, {"max_1(", "* 8 + rp_warp()", "* 8 + rp_warp() / 2"}, unordered},
    {"warps: a shuffle that some lanes leave out",
     warps,
     {"max_1(", "const float other", "if (rp_lane() == 3) return; const float other"},
     "a warp function"},
    {"warps: a block too few", warps, {"MAX_1, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"blocks: no barrier", blocks, {"max_1(", BARRIER, ""}, "shared memory"},
    {"blocks: every lane writes for its warp", blocks, {"max_1(", "if (rp_lane() == 0) warps", "warps"}, unordered},
    {"blocks: every thread stores", blocks, {"max_1(", "if (threadIdx.x != 0) return;", ""}, unordered},
    {"blocks: a warp too many", blocks, {"max_1(", "warp < 8", "warp < 9"}, "shared memory"},
    {"blocks: a row too many", blocks, {"MAX_1, ", "RP_DIM(3,", "RP_DIM(4,"}, "reads 4 bytes at byte 24576"},
    {"blocks: a row too few", blocks, {"MAX_1, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"blocks: a warp too few", blocks, {"MAX_1, ", "RP_DIM(256,", "RP_DIM(224,"}, uninitialised},
    {"pieces: an end off by one", pieces, {"sum_1(", ": 9001;", ": 9002;"}, "reads 4 bytes at byte 36004"},
    {"pieces: a piece too few", pieces, {"SUM_1, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"pieces: all in one", pieces, {"sum_1(", "pieces[piece * 1 + 0]", "pieces[0]"}, blocks_write},
    {"pieces: combined from one too many", pieces, {"sum_pieces_1(", "piece < 3", "piece < 4"}, "reads"},
    {"columns: no barrier", columns, {"sum_1(", BARRIER, ""}, "shared memory"},
    {"columns: rows of threads in one", columns, {"sum_1(", "rows[threadIdx.y]", "rows[0]"}, unordered},
    {"columns: every thread stores", columns, {"sum_1(", "if (threadIdx.y != 0 || ", "if ("}, unordered},
    {"columns: no guard", columns, {"sum_1(", "if (j < 40) ", ""}, "reads"},
    {"columns: blocks share results", columns, {"sum_1(", "blockIdx.x % ", "blockIdx.x * 0 % "}, blocks_write},
    {"columns: a block too few", columns, {"SUM_1, ", "RP_DIM(8,", "RP_DIM(7,"}, unwritten},
    {"columns: a block too many", columns, {"SUM_1, ", "RP_DIM(8,", "RP_DIM(9,"}, "operand 0"},
    {"columns: a combining block too few", columns, {"SUM_PIECES_1, ", "RP_DIM(5,", "RP_DIM(4,"}, unwritten},
    {"product: one too many", product, {"contract_1(", "inner < 5", "inner < 6"}, "reads"},
    {"product: a row off by one", product, {"contract_1(", "i * 5", "(i + 1) * 5"}, "reads"},
    {"softmax: a row off by one", softmax, {"rp_softmax_rows(", "x + blockIdx.x", "x + (blockIdx.x + 1)"}, "reads"},
    {"softmax: a row too few", softmax, {"RP_SOFTMAX_ROWS, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"softmax: a row too many", softmax, {"RP_SOFTMAX_ROWS, ", "RP_DIM(3,", "RP_DIM(4,"}, "reads"},
    {"softmax: half a warp", softmax, {"RP_SOFTMAX_ROWS, ", "RP_DIM(96,", "RP_DIM(80,"}, "warp function"},
    {"softmax: too large a block", softmax, {"RP_SOFTMAX_ROWS, ", "RP_DIM(96,", "RP_DIM(544,"}, "invalid argument"},
    {"softmax: a maximum without its second barrier",
     softmax,
     {"if (rp_lane() == 0) partial[rp_warp()] = value;\n  __syncthreads();\n  return rp_warp_max", BARRIER, ""},
     "shared memory"},
    {"softmax: a sum without its second barrier",
     softmax,
     {"if (rp_lane() == 0) partial[rp_warp()] = value;\n  __syncthreads();\n  return rp_warp_sum", BARRIER, ""},
     "shared memory"},
    {"softmax: every lane writes for its warp", softmax, {"rp_block_sum(", "if (rp_lane() == 0) ", ""}, unordered},
    {"softmax: a stretch too short", softmax, {"define RP_FOR_ROW", "j += 4", "j += 2"}, unordered},
    {"softmax backward: a row off by one",
     softmax_backward,
     {"rp_softmax_rows_backward(", "g + blockIdx.x", "g + (blockIdx.x + 1)"},
     "reads"},
    {"softmax backward: no barrier",
     softmax_backward,
     {"if (rp_lane() == 0) partial[rp_warp()] = value;\n  __syncthreads();\n  return rp_warp_sum", BARRIER, ""},
     "shared memory"},
    {"softmax backward: a row too few",
     softmax_backward,
     {"RP_SOFTMAX_ROWS_BACKWARD, ", "RP_DIM(3,", "RP_DIM(2,"},
     unwritten},
    {"layer norm: between its two sums no barrier", layer_norm, {"rp_block_sum(", BARRIER, ""}, unordered},
    {"layer norm: every thread stores the mean",
     layer_norm,
     {"rp_layer_norm(", "if (threadIdx.x == 0)", "if (true)"},
     unordered},
    {"layer norm: a weight off by one",
     layer_norm,
     {"rp_layer_norm(", "rp_load4(weight, j", "rp_load4(weight + 4, j"},
     "reads"},
    {"layer norm: a row too many", layer_norm, {"RP_LAYER_NORM, ", "RP_DIM(3,", "RP_DIM(4,"}, "reads"},
    {"layer norm backward: between its two sums no barrier",
     layer_norm_backward,
     {"rp_block_sum(", BARRIER, ""},
     unordered},
    {"layer norm backward: a mean off by one",
     layer_norm_backward,
     {"rp_layer_norm_backward(", "mean[blockIdx.x]", "mean[blockIdx.x + 1]"},
     "reads"},
    {"layer norm backward: a row too few",
     layer_norm_backward,
     {"RP_LAYER_NORM_BACKWARD, ", "RP_DIM(3,", "RP_DIM(2,"},
     unwritten},
    {"cross entropy: every thread stores",
     cross_entropy,
     {"rp_cross_entropy_rows(", "if (threadIdx.x != 0) return;", ""},
     unordered},
    {"cross entropy: a label off by one row",
     cross_entropy,
     {"rp_cross_entropy_rows(", "target[row]", "target[row + 1]"},
     "reads"},
    {"cross entropy: a row too few", cross_entropy, {"RP_CROSS_ENTROPY_ROWS, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"cross entropy backward: a row off by one",
     cross_entropy_backward,
     {"rp_cross_entropy_rows_backward(", "logits + row", "logits + (row + 1)"},
     "reads"},
    {"cross entropy backward: ignored rows left out",
     cross_entropy_backward,
     {"rp_cross_entropy_rows_backward(", "RP_FOR_ROW(j, columns) {", "RP_FOR_ROW(j, columns) { if (j > 200) continue;"},
     unwritten},
    {"cross entropy backward: a row too many",
     cross_entropy_backward,
     {"RP_CROSS_ENTROPY_ROWS_BACKWARD, ", "RP_DIM(3,", "RP_DIM(4,"},
     "reads"},
    {"argmax: no barrier", argmax, {"rp_argmax_rows(", BARRIER, ""}, "shared memory"},
    {"argmax: every thread stores", argmax, {"rp_argmax_rows(", "if (threadIdx.x != 0) return;", ""}, unordered},
    {"argmax: a warp too many", argmax, {"rp_argmax_rows(", "warp < rp_warps()", "warp <= rp_warps()"}, uninitialised},
    {"argmax: a row too few", argmax, {"RP_ARGMAX_ROWS, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"embed: an index off by one", embed, {"rp_embed(", "index * columns", "(index + 3) * columns"}, "reads"},
    {"embed: an index of another row", embed, {"rp_embed(", "indices[row]", "indices[row + 1]"}, "reads"},
    {"embed: a row too few", embed, {"RP_EMBED, ", "RP_DIM(5,", "RP_DIM(4,"}, unwritten},
    {"embed backward: no barrier behind a tile", embed_backward, {"tile[i] = indices", BARRIER, ""}, "shared memory"},
    {"embed backward: entries of two warps",
     embed_backward,
     {"rp_embed_backward(", "+ rp_warp())", "+ rp_warp() / 2)"},
     unordered},
    {"embed backward: an entry too many",
     embed_backward,
     {"rp_embed_backward(", "entries - first", "entries + 1 - first"},
     "writes"},
    {"embed backward: blocks share entries",
     embed_backward,
     {"rp_embed_backward(", "(int64_t)blockIdx.x *", "(int64_t)blockIdx.x / 2 *"},
     blocks_write},
    {"embed backward: a block too few", embed_backward, {"RP_EMBED_BACKWARD, ", "RP_DIM(3,", "RP_DIM(2,"}, unwritten},
    {"update: one too many", update, {"assign_1(", "item < 125", "item < 126"}, "4 bytes at byte 2000"},
    {"update: a moment of the neighbour",
     update,
     {"assign_1(", "in1 + i", "in1 + (i + 4)"},
     "reads 4 bytes at byte 2000"},
    {"update: a store off by one", update, {"assign_1(", "out0 + i", "out0 + i + 1"}, "no multiple of 16"},
};

static void what_is_emitted_has_none(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    if (i && faults[i].build == faults[i - 1].build) continue;
    MemoryArena *arena = memory_arena_create();
    char *said = run(arena, faults[i].build, NULL);
    if (*said) fail_msg("%s: %s", faults[i].kind, said);
    memory_arena_destroy(arena);
  }
}

static size_t stride = 3; /* of every three faults one, unless all are asked for */

static void each_fault_is_found(void **state) {
  (void)state;
  int missed = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i += stride) {
    const Fault *fault = &faults[i];
    MemoryArena *arena = memory_arena_create();
    char *said = run(arena, fault->build, &fault->plant);
    bool expected = fault->said ? strstr(said, fault->said) != NULL : !*said;
    if (!expected) print_message("%s: expected '%s', found: %s\n", fault->kind, fault->said ? fault->said : "", said);
    missed += !expected;
    memory_arena_destroy(arena);
  }
  assert_int_equal(missed, 0);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "all") == 0) stride = 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_emitted_has_none), cmocka_unit_test(each_fault_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
