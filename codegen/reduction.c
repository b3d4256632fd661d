/* codegen/reduction.c - reductions as functions.
 *
 * The elements that make one result are combined in an order that depends on the shape alone. The innermost axis of the
 * collapsed nest decides the form:
 *
 *   reduced: it is cut into chunks of ROW_CHUNK elements. A chunk is combined in LANES lanes (element i in lane
 *            i mod LANES), the lanes as a tree, the chunks in order.
 *   kept:    results are made COLUMN_BLOCK at a time, each from chunks of COLUMN_CHUNK elements along the innermost
 * reduced axis, the chunks in order.
 *
 * Results are shared out among threads. Where there are too few of them, the chunks of a result are divided into a
 * fixed number of pieces, which are combined in order at the end. */
#include <inttypes.h>

#include "codegen/body.h"

enum { LANES = 16, ROW_CHUNK = 1024, COLUMN_CHUNK = 256, COLUMN_BLOCK = 64, PIECES = 64 };

typedef struct Reduction {
  GraphEmission *graph;
  MemoryArena *arena;
  const OpInfo *info;
  DataType dtype;   /* of the accumulator: F32, F64 or I64 */
  const char *type; /* its C type */
  LoopNest nest;    /* operand 0 is the result */
  BodyText body;
  bool by_rows;                 /* the innermost axis is reduced */
  int chunked;                  /* the axis cut into chunks */
  int64_t chunk;                /* its elements per chunk */
  int64_t sites, units, pieces; /* results (or blocks of them), chunks of each, pieces of those */
  const char *names[MAX_RANK + 1];
  Text text;
} Reduction;

/* ---- expressions ---- */

static char *combine(const Reduction *r, const char *a, const char *x) {
  const Symbol symbols[] = {{"a", a}, {"x", x}};
  return expression_write(r->arena, r->info->combine, r->dtype, 2, symbols);
}

static char *initial(const Reduction *r) {
  const Symbol symbols[] = {{"LOWEST", c_lowest(r->arena, r->dtype)}, {"HIGHEST", c_highest(r->arena, r->dtype)}};
  return expression_write(r->arena, r->info->initial, r->dtype, 2, symbols);
}

static char *finish(const Reduction *r, const char *a) {
  int64_t count = 1;
  for (int axis = 0; axis < r->nest.rank; axis++) count *= r->nest.reduced[axis] ? r->nest.dims[axis] : 1;
  char *number = dtype_class(r->dtype) == CLASS_REAL ? c_real_literal(r->arena, r->dtype, (double)count)
                                                     : c_integer_literal(r->arena, count);
  const Symbol symbols[] = {{"a", a}, {"COUNT", number}};
  return expression_write(r->arena, r->info->finish, r->dtype, 2, symbols);
}

/* A function that combines x[0..count), which lie side by side. */
static const char *row_function(const Reduction *r) {
  Text text = {.arena = r->arena, .indent = 1};
  text_line(&text, "enum { LANES = %d };", LANES);
  text_line(&text, "%s lanes[LANES];", r->type);
  text_line(&text, "for (int lane = 0; lane < LANES; lane++) lanes[lane] = %s;", initial(r));
  text_line(&text, "int64_t i = 0;");
  text_open(&text, "for (; i + LANES <= count; i += LANES)");
  text_line(&text, "#pragma omp simd");
  text_line(&text, "for (int lane = 0; lane < LANES; lane++) lanes[lane] = %s;",
            combine(r, "lanes[lane]", "x[i + lane]"));
  text_close(&text);
  text_line(&text, "for (int lane = 0; i + lane < count; lane++) lanes[lane] = %s;",
            combine(r, "lanes[lane]", "x[i + lane]"));
  text_line(&text, "for (int width = LANES / 2; width > 0; width /= 2)");
  text_line(&text, "  for (int lane = 0; lane < width; lane++) lanes[lane] = %s;",
            combine(r, "lanes[lane]", "lanes[lane + width]"));
  text_line(&text, "return lanes[0];");
  return emission_function(r->graph->emission, memory_format(r->arena, "static inline %s", r->type),
                           memory_format(r->arena, "%s_row", r->info->name),
                           memory_format(r->arena, "const %s *x, int64_t count", r->type), text_bytes(&text));
}

/* ---- shape ---- */

/* Strides of the result in the iteration shape: 0 along reduced axes. */
static void set_result_view(Reduction *r, const Node *node, const Type *iteration) {
  const Layout *layout = value_layout(r->graph, node->outputs[0]);
  const Attribute *axes = node_attribute(node, "axis");
  bool keepdims = node_attribute(node, "keepdims")->integer;
  for (int i = 0; i < axes->count; i++) r->nest.reduced[axes->list[i]] = true;
  for (int axis = 0, out = 0; axis < iteration->rank; axis++) {
    if (!r->nest.reduced[axis]) r->nest.strides[0][axis] = layout->view.strides[out];
    if (!r->nest.reduced[axis] || keepdims) out++;
  }
}

/* A nest whose reduced axes all have one element gets one back, so that there is something to reduce. */
static void ensure_reduced_axis(LoopNest *nest) {
  for (int axis = 0; axis < nest->rank; axis++)
    if (nest->reduced[axis]) return;
  for (int k = 0; k < nest->operand_count; k++) nest->strides[k][nest->rank] = 0;
  nest->dims[nest->rank] = 1;
  nest->reduced[nest->rank++] = true;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a - 1) / b + 1; }

static void choose_form(Reduction *r) {
  const LoopNest *nest = &r->nest;
  int last = nest->rank - 1;
  r->by_rows = nest->reduced[last];
  for (int axis = 0; axis < nest->rank; axis++)
    if (nest->reduced[axis]) r->chunked = axis;
  r->chunk = r->by_rows ? ROW_CHUNK : COLUMN_CHUNK;
  r->sites = r->units = 1;
  for (int axis = 0; axis < nest->rank; axis++) {
    if (axis == r->chunked)
      r->units *= divide_up(nest->dims[axis], r->chunk);
    else if (nest->reduced[axis])
      r->units *= nest->dims[axis];
    else
      r->sites *= axis == last ? divide_up(nest->dims[axis], COLUMN_BLOCK) : nest->dims[axis];
  }
  bool divide = r->sites < PARALLEL_ITERATIONS && nest_elements(nest) >= PARALLEL_ELEMENTS;
  r->pieces = divide ? PIECES / r->sites : 1;
  if (r->pieces > r->units) r->pieces = r->units;
}

/* ---- text: one chunk ---- */

/* "name = min(size, count - first)" */
static void write_extent(Reduction *r, const char *name, const char *first, int64_t count, int64_t size) {
  if (count % size == 0)
    text_line(&r->text, "const int64_t %s = %" PRId64 ";", name, size);
  else
    text_line(&r->text, "const int64_t %s = %" PRId64 " - %s < %" PRId64 " ? %" PRId64 " - %s : %" PRId64 ";", name,
              count, first, size, count, first, size);
}

/* The elements lie side by side, as what the accumulator is: the row function can read them where they are. */
static bool reads_in_place(const Reduction *r) {
  DataType stored = value_type(r->graph->compiled->graph, r->body.node->inputs[0])->dtype;
  return r->body.body.instruction_count == 0 && stored == r->dtype && r->nest.strides[1][r->chunked] == 1;
}

/* total <- total combined with a row too short for lanes, element by element. */
static void write_short_row(Reduction *r) {
  open_loop(&r->text, nest_variable(r->chunked), r->nest.dims[r->chunked]);
  body_write_element(&r->body, &r->text, r->names);
  text_line(&r->text, "const %s x = %s;", r->type, body_result(&r->body, 0));
  text_line(&r->text, "total = %s;", combine(r, "total", "x"));
  text_close(&r->text);
}

/* total <- total combined with the chunk from `first` of a row. */
static void write_row_chunk(Reduction *r) {
  if (r->nest.dims[r->chunked] <= LANES) {
    write_short_row(r);
    return;
  }
  const char *row = row_function(r), *inner = nest_variable(r->chunked);
  int64_t length = r->nest.dims[r->chunked];
  bool whole = length <= r->chunk;
  char *count = whole ? memory_format(r->arena, "%" PRId64, length) : "count";
  if (!whole) write_extent(r, "count", "first", length, r->chunk);
  const char *names[MAX_RANK + 1];
  memcpy(names, r->names, sizeof names);
  if (reads_in_place(r)) {
    names[r->chunked] = whole ? NULL : "first";
    char *part = memory_format(r->arena, "%s(in0 + %s, %s)", row, nest_offset(r->arena, &r->nest, 1, names), count);
    text_line(&r->text, "total = %s;", combine(r, "total", part));
    return;
  }
  text_line(&r->text, "%s values[%" PRId64 "];", r->type, whole ? length : r->chunk);
  if (r->body.vectorises) text_line(&r->text, "#pragma omp simd");
  text_open(&r->text, "for (int64_t %s = 0; %s < %s; %s++)", inner, inner, count, inner);
  names[r->chunked] = whole ? inner : memory_format(r->arena, "(first + %s)", inner);
  body_write_element(&r->body, &r->text, names);
  text_line(&r->text, "values[%s] = %s;", inner, body_result(&r->body, 0));
  text_close(&r->text);
  text_line(&r->text, "total = %s;", combine(r, "total", memory_format(r->arena, "%s(values, %s)", row, count)));
}

/* total[c] <- total[c] combined with a chunk of column block + c, for the `width` columns of the block. */
static void write_column_chunk(Reduction *r) {
  const char *chunked = nest_variable(r->chunked);
  int64_t length = r->nest.dims[r->chunked];
  bool whole = length <= r->chunk;
  const char *names[MAX_RANK + 1], *target = whole && r->units == 1 ? "total" : "part";
  memcpy(names, r->names, sizeof names);
  if (string_equal(target, "part")) {
    text_line(&r->text, "%s part[%d];", r->type, COLUMN_BLOCK);
    text_line(&r->text, "for (int64_t c = 0; c < width; c++) part[c] = %s;", initial(r));
  }
  if (whole) {
    open_loop(&r->text, chunked, length);
  } else {
    write_extent(r, "count", "first", length, r->chunk);
    text_open(&r->text, "for (int64_t %s = first; %s < first + count; %s++)", chunked, chunked, chunked);
  }
  names[r->chunked] = chunked;
  names[r->nest.rank - 1] = "(block + c)";
  if (r->body.vectorises) text_line(&r->text, "#pragma omp simd");
  text_open(&r->text, "for (int64_t c = 0; c < width; c++)");
  body_write_element(&r->body, &r->text, names);
  text_line(&r->text, "const %s x = %s;", r->type, body_result(&r->body, 0));
  char *cell = memory_format(r->arena, "%s[c]", target);
  text_line(&r->text, "%s = %s;", cell, combine(r, cell, "x"));
  close_loops(&r->text, 2);
  if (string_equal(target, "part"))
    text_line(&r->text, "for (int64_t c = 0; c < width; c++) total[c] = %s;", combine(r, "total[c]", "part[c]"));
}

static void write_chunk(Reduction *r) {
  if (r->by_rows)
    write_row_chunk(r);
  else
    write_column_chunk(r);
}

/* ---- text: one result, or one block of results ---- */

static void write_total(Reduction *r) {
  if (r->by_rows) {
    text_line(&r->text, "%s total = %s;", r->type, initial(r));
  } else {
    text_line(&r->text, "%s total[%d];", r->type, COLUMN_BLOCK);
    text_line(&r->text, "for (int64_t c = 0; c < width; c++) total[c] = %s;", initial(r));
  }
}

static void write_store(Reduction *r) {
  const char *names[MAX_RANK + 1];
  memcpy(names, r->names, sizeof names);
  if (r->by_rows) {
    text_line(&r->text, "out[%s] = %s;", nest_offset(r->arena, &r->nest, 0, names), finish(r, "total"));
  } else {
    names[r->nest.rank - 1] = "(block + c)";
    text_line(&r->text, "for (int64_t c = 0; c < width; c++) out[%s] = %s;", nest_offset(r->arena, &r->nest, 0, names),
              finish(r, "total[c]"));
  }
}

/* Opens loops over the chunks of a result; returns how many. */
static int open_units(Reduction *r) {
  int loops = 0;
  for (int axis = 0; axis < r->nest.rank; axis++) {
    int64_t size = r->nest.dims[axis];
    if (!r->nest.reduced[axis]) continue;
    if (axis != r->chunked) {
      open_loop(&r->text, nest_variable(axis), size);
      loops++;
    } else if (size > r->chunk) {
      text_open(&r->text, "for (int64_t first = 0; first < %" PRId64 "; first += %" PRId64 ")", size, r->chunk);
      loops++;
    }
  }
  return loops;
}

/* "for each block of columns" as an open loop. */
static void open_blocks(Reduction *r) {
  int64_t columns = r->nest.dims[r->nest.rank - 1];
  text_open(&r->text, "for (int64_t block = 0; block < %" PRId64 "; block += %d)", columns, COLUMN_BLOCK);
}

static void write_width(Reduction *r) {
  if (!r->by_rows) write_extent(r, "width", "block", r->nest.dims[r->nest.rank - 1], COLUMN_BLOCK);
}

/* Opens loops over results or blocks of them; the outermost ones in parallel when asked. */
static int open_sites(Reduction *r, bool parallel) {
  int axes = 0, loops = 0;
  for (int axis = 0; axis < r->nest.rank; axis++) axes += !r->nest.reduced[axis];
  if (parallel && axes > 1) text_line(&r->text, "#pragma omp parallel for collapse(%d) schedule(static)", axes);
  if (parallel && axes == 1) text_line(&r->text, "#pragma omp parallel for schedule(static)");
  for (int axis = 0; axis < r->nest.rank; axis++) {
    if (r->nest.reduced[axis]) continue;
    if (!r->by_rows && axis == r->nest.rank - 1)
      open_blocks(r);
    else
      open_loop(&r->text, nest_variable(axis), r->nest.dims[axis]);
    loops++;
  }
  return loops;
}

static void write_undivided(Reduction *r) {
  int sites = open_sites(r, nest_elements(&r->nest) >= PARALLEL_ELEMENTS && r->sites > 1);
  write_width(r);
  write_total(r);
  int units = open_units(r);
  write_chunk(r);
  close_loops(&r->text, units);
  write_store(r);
  close_loops(&r->text, sites);
}

/* ---- text: results divided into pieces ---- */

/* Whether the text reads the variable of an axis: some operand among [first, end) moves along it, or an extent is cut
 * off. */
static bool reads_axis(const Reduction *r, int axis, int64_t step, int first, int end) {
  if (step > 1 && r->nest.dims[axis] % step != 0) return true;
  for (int operand = first; operand < end; operand++)
    if (r->nest.strides[operand][axis]) return true;
  return false;
}

/* Variables of kept axes (or of reduced ones) from a number that counts them all, the last fastest; those that operands
 * [first, end) need. */
static void write_indices(Reduction *r, const char *number, bool reduced, int first, int end) {
  int64_t stride = 1;
  int outermost = 0;
  while (outermost < r->nest.rank && r->nest.reduced[outermost] != reduced) outermost++;
  for (int axis = r->nest.rank - 1; axis >= 0; axis--) {
    if (r->nest.reduced[axis] != reduced) continue;
    bool block = !r->by_rows && axis == r->nest.rank - 1, chunk = axis == r->chunked;
    int64_t size = r->nest.dims[axis],
            step = block   ? COLUMN_BLOCK
                   : chunk ? r->chunk
                           : 1,
            count = divide_up(size, step);
    if (!(chunk && count == 1) && reads_axis(r, axis, step, first, end)) {
      text_append(&r->text, "%*sconst int64_t %s = %s", 2 * r->text.indent, "",
                  block   ? "block"
                  : chunk ? "first"
                          : nest_variable(axis),
                  number);
      if (stride > 1) text_append(&r->text, " / %" PRId64, stride);
      if (axis != outermost) text_append(&r->text, " %% %" PRId64, count);
      if (step > 1) text_append(&r->text, " * %" PRId64, step);
      text_append(&r->text, ";\n");
    }
    stride *= count;
  }
}

static void write_divided(Reduction *r) {
  const char *cell = r->by_rows ? "" : memory_format(r->arena, "[%d]", COLUMN_BLOCK);
  text_line(&r->text, "%s partial[%" PRId64 "]%s;", r->type, r->sites * r->pieces, cell);
  text_line(&r->text, "#pragma omp parallel for schedule(static)");
  open_loop(&r->text, "piece", r->sites * r->pieces);
  if (r->sites > 1) text_line(&r->text, "const int64_t site = piece / %" PRId64 ";", r->pieces);
  write_indices(r, r->sites > 1 ? "site" : "0", false, 1, r->nest.operand_count);
  write_width(r);
  write_total(r);
  const char *part = r->sites > 1 ? memory_format(r->arena, "piece %% %" PRId64, r->pieces) : "piece";
  text_open(&r->text,
            "for (int64_t unit = (%s) * %" PRId64 " / %" PRId64 "; unit < (%s + 1) * %" PRId64 " / %" PRId64
            "; unit++)",
            part, r->units, r->pieces, part, r->units, r->pieces);
  write_indices(r, "unit", true, 1, r->nest.operand_count);
  write_chunk(r);
  text_close(&r->text);
  text_line(&r->text, r->by_rows ? "partial[piece] = total;"
                                 : "for (int64_t c = 0; c < width; c++) partial[piece][c] = total[c];");
  text_close(&r->text);
  open_loop(&r->text, "site", r->sites);
  write_indices(r, "site", false, 0, 1);
  write_width(r);
  write_total(r);
  text_open(&r->text, "for (int64_t piece = site * %" PRId64 "; piece < (site + 1) * %" PRId64 "; piece++)", r->pieces,
            r->pieces);
  text_line(&r->text, r->by_rows ? "total = %s;" : "for (int64_t c = 0; c < width; c++) total[c] = %s;",
            r->by_rows ? combine(r, "total", "partial[piece]") : combine(r, "total[c]", "partial[piece][c]"));
  text_close(&r->text);
  write_store(r);
  text_close(&r->text);
}

/* ---- the node ---- */

void emit_reduction(GraphEmission *graph, const Node *node, Text *steps) {
  MemoryArena *arena = graph->emission->arena;
  DataType result = value_type(graph->compiled->graph, node->outputs[0])->dtype;
  Reduction r = {.graph = graph, .arena = arena, .info = op_info(node->op), .text = {.arena = arena, .indent = 1}};
  r.dtype = dtype_class(result) == CLASS_REAL ? result : I64;
  r.type = c_compute_type(r.dtype);
  Type iteration = node_iteration(graph->compiled->graph, node);
  r.nest = nest_create(arena, &iteration, node->input_count + 2);
  set_result_view(&r, node, &iteration);
  r.body = body_create(graph, node, &r.nest, 1);
  ensure_reduced_axis(&r.nest);
  for (int axis = 0; axis < r.nest.rank; axis++) r.names[axis] = nest_variable(axis);
  choose_form(&r);
  Text parameters = {.arena = arena}, arguments = {.arena = arena};
  text_append(&parameters, "%s *out", c_storage_type(result));
  text_append(&arguments, "%s", value_pointer(graph, node->outputs[0]));
  body_parameters(&r.body, &parameters, &arguments);
  body_write_invariants(&r.body, &r.text);
  if (r.pieces > 1)
    write_divided(&r);
  else
    write_undivided(&r);
  const char *name = emission_function(graph->emission, graph->emission->target->function, node_title(arena, node, '_'),
                                       text_bytes(&parameters), text_bytes(&r.text));
  text_wrapped(steps, memory_format(arena, "%s(%s);", name, text_bytes(&arguments)));
}
