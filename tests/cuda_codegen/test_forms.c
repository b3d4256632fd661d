/* Every form that a kernel can take, at sizes that random graphs do not reach: vectors, tiles, reductions by threads,
 * warps, blocks and columns, whole and in pieces, products that cuBLAS does not compute. On the emulated device against
 * the interpreter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codegen/cuda.h"
#include "ir/build.h"
#include "tests/codegen/emitted.h"

typedef struct Forms {
  MemoryArena *arena;
  Module *module;
  Graph *graph;
} Forms;

static Forms create(MemoryArena *arena) {
  Module *module = module_create(arena, "forms", "forms.rp");
  Graph *graph = module->evaluation = graph_create(module, true);
  return (Forms){arena, module, graph};
}

static ValueId input(Forms *f, DataType dtype, int rank, const int64_t *dims) {
  char *name = memory_format(f->arena, "x%d", (int)f->module->inputs.count);
  ModelInput declared = {.name = name, .type = type_make(dtype, rank, dims)};
  return graph_input(f->graph, module_add_input(f->module, declared));
}
#define INPUT(f, dtype, ...) \
  input((f), (dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void output(Forms *f, ValueId value) {
  char *name = memory_format(f->arena, "y%d", (int)f->graph->outputs.count);
  array_push(f->arena, &f->graph->outputs, ((GraphOutput){.name = name, .value = value, .denominator = NO_VALUE}));
}

static void reduce(Forms *f, Op op, ValueId x, int64_t axis) {
  output(f, build_reduce(f->graph, op, x, 1, &axis, false));
}

/* ---- graphs ---- */

static void build_vectors(Forms *f) {
  ValueId x = INPUT(f, F32, 12, 8, 64), row = INPUT(f, F32, 64), column = INPUT(f, F32, 12, 8, 1);
  output(f, BUILD(f->graph, add, BUILD(f->graph, multiply, x, row), column));
  output(f, BUILD(f->graph, greater, x, row));
  output(f, build_cast(f->graph, BUILD(f->graph, greater, x, column), I64));
  ValueId wide = INPUT(f, F64, 96, 4), integers = INPUT(f, I32, 96, 4), bytes = INPUT(f, U8, 96, 4);
  output(f, BUILD(f->graph, add, wide, wide));
  output(f, BUILD(f->graph, add, integers, build_cast(f->graph, bytes, I32)));
  output(f, build_cast(f->graph, bytes, F32));
  output(f, BUILD(f->graph, square, build_slice(f->graph, x, 2, 1, 64, 2)));
}

static void build_tiles(Forms *f) {
  ValueId whole = INPUT(f, F32, 64, 96), ragged = INPUT(f, F32, 3, 45, 37), wide = INPUT(f, F64, 40, 33),
          mask = INPUT(f, BOOL, 20, 50), other = INPUT(f, F32, 96, 64);
  output(f, build_copy(f->graph, build_swap(f->graph, whole, 0, 1)));
  output(f, build_copy(f->graph, build_permute(f->graph, ragged, (int64_t[]){2, 0, 1})));
  output(f, BUILD(f->graph, exp, build_swap(f->graph, ragged, 1, 2)));
  output(f, BUILD(f->graph, negate, build_swap(f->graph, wide, 0, 1)));
  output(f, BUILD(f->graph, logical_not, build_swap(f->graph, mask, 0, 1)));
  output(f, BUILD(f->graph, add, build_swap(f->graph, whole, 0, 1), other));
  ValueId parts[] = {build_swap(f->graph, whole, 0, 1), other};
  output(f, build_concat(f->graph, 2, parts, 1));
}

static void build_rows(Forms *f) {
  static const int64_t lengths[] = {1, 7, 32, 36, 257, 1024, 1030, 1536};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    ValueId x = INPUT(f, F32, 19, lengths[i]);
    reduce(f, OP_sum, x, 1);
    reduce(f, OP_max, BUILD(f->graph, negate, x), 1);
  }
  reduce(f, OP_mean, INPUT(f, F64, 3, 1100), 1);
  reduce(f, OP_sum, INPUT(f, I32, 5, 1200), 1);
  ValueId long_row = INPUT(f, F32, 2, 9001), longer = INPUT(f, F32, 20000), factor = INPUT(f, F32, 1);
  reduce(f, OP_mean, long_row, 1);
  reduce(f, OP_min, long_row, 1);
  reduce(f, OP_sum, BUILD(f->graph, multiply, longer, longer), 0);
  reduce(f, OP_sum, BUILD(f->graph, multiply, BUILD(f->graph, square, longer), factor), 0);
}

static void build_columns(Forms *f) {
  static const int64_t shapes[][2] = {{40, 5}, {33, 64}, {200, 96}, {1000, 40}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    ValueId x = INPUT(f, F32, shapes[i][0], shapes[i][1]);
    reduce(f, OP_sum, x, 0);
    reduce(f, OP_max, x, 0);
  }
  ValueId batch = INPUT(f, F32, 3, 70, 34), outer = INPUT(f, F64, 50, 6, 3);
  reduce(f, OP_mean, batch, 1);
  output(f, build_reduce(f->graph, OP_sum, batch, 2, (int64_t[]){0, 1}, true));
  output(f, build_reduce(f->graph, OP_sum, batch, 2, (int64_t[]){0, 2}, false));
  output(f, build_reduce(f->graph, OP_sum, outer, 2, (int64_t[]){0, 1}, false));
  reduce(f, OP_sum, INPUT(f, I64, 300, 33), 0);
}

static void build_products(Forms *f) {
  ValueId a = INPUT(f, F32, 2, 3, 9, 5), b = INPUT(f, F32, 3, 5, 6), vector = INPUT(f, F32, 4, 1, 5),
          shared = INPUT(f, F32, 5, 7);
  output(f, BUILD(f->graph, matmul, a, b));
  output(f, BUILD(f->graph, matmul, vector, shared));
  output(f, BUILD(f->graph, matmul, build_swap(f->graph, INPUT(f, F32, 5, 40), 0, 1), shared));
  output(f, BUILD(f->graph, matmul, INPUT(f, F64, 2, 11, 5), INPUT(f, F64, 5, 13)));
  output(f, BUILD(f->graph, matmul, INPUT(f, I32, 9, 5), build_swap(f->graph, INPUT(f, I32, 13, 5), 0, 1)));
}

/* Rows of whole vectors that do not start at one: a slice of a longer vector, seen as a matrix. */
static ValueId unaligned(Forms *f, int64_t rows, int64_t columns) {
  ValueId slice = build_slice(f->graph, INPUT(f, F32, rows * columns + 9), 0, 3, rows * columns + 3, 1);
  return build_reshape(f->graph, slice, 2, (const int64_t[]){rows, columns});
}

static void build_unaligned(Forms *f) {
  ValueId target = INPUT(f, I32, 6), whole = INPUT(f, F32, 6, 132);
  output(f, BUILD(f->graph, exp, unaligned(f, 6, 132)));
  output(f, BUILD(f->graph, add, unaligned(f, 6, 132), whole));
  reduce(f, OP_sum, unaligned(f, 6, 132), 1);
  reduce(f, OP_sum, unaligned(f, 6, 132), 0);
  reduce(f, OP_max, unaligned(f, 2, 2048), 1);
  output(f, BUILD(f->graph, softmax_rows, unaligned(f, 6, 132)));
  output(f, BUILD(f->graph, softmax_rows_backward, unaligned(f, 6, 132), whole));
  output(f, BUILD(f->graph, layer_norm, unaligned(f, 6, 132), NO_VALUE, NO_VALUE));
  output(f, BUILD(f->graph, cross_entropy_rows, unaligned(f, 6, 11), target));
  output(f, BUILD(f->graph, cross_entropy_rows, unaligned(f, 6, 132), target));
  output(f, BUILD(f->graph, argmax_rows, unaligned(f, 6, 132)));
  output(f, BUILD(f->graph, embed, unaligned(f, 11, 132), target));
  output(f, BUILD(f->graph, matmul, unaligned(f, 6, 8), unaligned(f, 8, 4)));
}

/* Nothing to divide among threads, and axes of one element everywhere. */
static void build_ones(Forms *f) {
  ValueId scalar = build_reshape(f->graph, INPUT(f, F32, 1), 0, NULL), cube = INPUT(f, F32, 1, 1, 1),
          column = INPUT(f, F32, 5, 1), row = INPUT(f, F32, 1, 5);
  output(f, build_reduce(f->graph, OP_sum, scalar, -1, NULL, false));
  output(f, build_reduce(f->graph, OP_mean, cube, -1, NULL, true));
  reduce(f, OP_max, column, 1);
  reduce(f, OP_sum, row, 0);
  reduce(f, OP_min, cube, 1);
  output(f, BUILD(f->graph, add, column, row));
  output(f, BUILD(f->graph, softmax_rows, column));
  output(f, BUILD(f->graph, layer_norm, column, NO_VALUE, NO_VALUE));
  output(f, BUILD(f->graph, argmax_rows, cube));
  output(f, BUILD(f->graph, matmul, column, row));
  output(f, BUILD(f->graph, matmul, row, column));
  output(f, build_copy(f->graph, build_swap(f->graph, row, 0, 1)));
}

/* More elements than 32 bits count, for the text alone. */
static void build_wide(Forms *f) {
  ValueId x = INPUT(f, F32, 70000, 70000), narrow = INPUT(f, F32, 70000);
  output(f, BUILD(f->graph, exp, x));
  output(f, BUILD(f->graph, add, build_swap(f->graph, x, 0, 1), x));
  reduce(f, OP_sum, x, 0);
  reduce(f, OP_max, x, 1);
  output(f, build_reduce(f->graph, OP_sum, x, -1, NULL, false));
  output(f, BUILD(f->graph, negate, narrow));
}

/* ---- running ---- */

static void fill_inputs(Evaluation *evaluation) {
  uint64_t state = 5;
  for (int64_t k = 0; k < evaluation->graph->module->inputs.count; k++) {
    EvalTensor *tensor = &evaluation->inputs[k];
    for (int64_t i = 0; i < type_elements(&tensor->type); i++) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
      int64_t drawn = (int64_t)(state >> 44);
      if (tensor->real)
        tensor->real[i] = (float)((double)drawn / (1 << 19) - 1);
      else
        tensor->integer[i] = drawn % (tensor->type.dtype == BOOL ? 2 : 11);
    }
  }
}

static void compare(const RpTensor *tensor, const char *bytes, const EvalTensor *expected) {
  double tolerance = tensor->type == RP_F32 ? 1e-5 : tensor->type == RP_F64 ? 1e-12 : 0;
  for (int64_t i = 0; i < emitted_elements(tensor); i++) {
    double found = emitted_element(tensor, bytes, i),
           wanted = expected->real ? expected->real[i] : (double)expected->integer[i];
    if (!(fabs(found - wanted) <= tolerance * (1 + fabs(wanted))))
      fail_msg("%s[%lld]: %.9g, the interpreter has %.9g", tensor->name, (long long)i, found, wanted);
  }
}

static Compilation *compile(const Forms *f) {
  PipelineOptions options = emitted_pipeline();
  Compilation *compilation = compile_module(f->module, &options);
  assert_non_null(compilation);
  return compilation;
}

static void check_words(MemoryArena *arena, const Compilation *compilation, const char *const *words) {
  CudaOptions cuda = cuda_default_options();
  CodegenOptions options = {.cuda = &cuda};
  const CudaProgram *program = emit_cuda_device(compilation, &options, arena);
  assert_non_null(program);
  for (; *words; words++)
    if (!strstr(program->source, *words) && !strstr(text_bytes(&program->steps), *words))
      fail_msg("no kernel or launch has '%s'", *words);
}

/* words: what the kernels or launches are to have. */
static void check(void (*build)(Forms *f), const char *const *words) {
  MemoryArena *arena = memory_arena_create();
  Forms forms = create(arena), reference = create(arena);
  build(&forms);
  build(&reference);
  assert_int_equal(diag_error_count(), 0);
  Compilation *compilation = compile(&forms);
  check_words(arena, compilation, words);
  Evaluation *evaluation = eval_create(arena, reference.module->evaluation, EVAL_F32);
  fill_inputs(evaluation);
  assert_true(eval_run(evaluation));
  Emitted *emitted = emitted_load(arena, compilation);
  emitted_fill(emitted, evaluation);
  emitted_run(emitted, &emitted->program->evaluation);
  const RpPhase *phase = &emitted->program->evaluation;
  assert_int_equal(phase->observable_count, reference.graph->outputs.count);
  for (int64_t i = 0; i < phase->observable_count; i++)
    compare(&phase->observables[i].tensor, emitted->observed[i],
            eval_value(evaluation, reference.graph->outputs.items[i].value));
  free(emitted->arena);
  memory_arena_destroy(arena);
}

#define CHECK(build, ...) check((build), (const char *const[]){__VA_ARGS__, NULL})

static void vectors(void **state) {
  (void)state;
  CHECK(build_vectors, "rp_load_vector(v1, in1 + j)", "bool r", "int64_t r", "double v0[4]", "uint8_t v0[4]");
}

static void tiles(void **state) {
  (void)state;
  CHECK(build_tiles, "__shared__ float tile0[32][33]", "__shared__ double tile0", "__shared__ bool tile0",
        "if (row < 45 && column < 37)");
}

static void rows(void **state) {
  (void)state;
  CHECK(build_rows, "rp_warp();", "warps[rp_warp()] = total", "piece", "e = 4 * rp_lane()", "4 * (int)threadIdx.x",
        "e = rp_lane()", "mean_pieces_1");
}

static void columns(void **state) {
  (void)state;
  CHECK(build_columns, "rows[threadIdx.y][threadIdx.x] = total", "sum_pieces_1", "const int32_t row = ");
}

static void products(void **state) {
  (void)state;
  CHECK(build_products, "rp_cuda_gemm(context, &batch_1", "rp_cuda_gemm(context, NULL, true", "double sum = 0",
        "int32_t sum = 0");
}

static void unaligned_rows(void **state) {
  (void)state;
  CHECK(build_unaligned, "exp_1", "out[i] = rp_exp_f32(x0)");
}

static void ones(void **state) {
  (void)state;
  CHECK(build_ones, "rp_cuda_gemm");
}

/* Kernels on the wide tensor count in 64 bits, those on others in 32. */
static void wide(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  Forms forms = create(arena);
  build_wide(&forms);
  static const char *const words[] = {
      "for (int64_t item = rp_thread(); item < 1225000000; item += rp_threads())",
      "const int64_t block = (int64_t)blockIdx.x;",
      "const int64_t piece = (int64_t)blockIdx.x / ",
      "const int64_t site = (int64_t)blockIdx.x;",
      "for (int64_t e = first + 4 * (int)threadIdx.x; e < end; e += 1024)",
      "for (int32_t item = (int32_t)rp_thread(); item < 17500; item += (int32_t)rp_threads())",
      "RP_DIM(2112, 1, 1)",
      NULL};
  check_words(arena, compile(&forms), words);
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(vectors),  cmocka_unit_test(tiles),          cmocka_unit_test(rows), cmocka_unit_test(columns),
      cmocka_unit_test(products), cmocka_unit_test(unaligned_rows), cmocka_unit_test(ones), cmocka_unit_test(wide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
