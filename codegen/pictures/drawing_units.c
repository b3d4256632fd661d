/* codegen/pictures/drawing_units.c - modules, equal blocks, and stretches of nodes where there are no modules. */
#include <stdlib.h>

#include "codegen/pictures/drawing.h"

/* dot lays out some hundred clusters at once. */
enum { MOST_UNITS = 96 };

static bool is_number(const char *text, int64_t length) {
  for (int64_t i = 0; i < length; i++)
    if (text[i] < '0' || text[i] > '9') return false;
  return length > 0;
}

int64_t block_length(const char *path) {
  for (const char *at = path; *at;) {
    int64_t length = (int64_t)strcspn(at, ".");
    if (is_number(at, length)) return at + length - path;
    at += length + (at[length] == '.');
  }
  return 0;
}

/* ---- modules of nodes ---- */

/* The module of the last node before this one that makes an input; forward nodes first. */
static const char *adopted(const Picture *picture, const char **modules, int32_t node) {
  const PlanNode *reader = &picture->graph->nodes.items[node];
  int32_t best = -1, other = -1;
  for (int32_t i = 0; i < reader->input_count; i++) {
    int32_t producer = picture->graph->storages.items[reader->inputs[i]].producer;
    if (producer < 0 || !modules[producer][0]) continue;
    if (picture_phase(picture->graph, producer) == PLAN_PHASE_FORWARD)
      best = producer > best ? producer : best;
    else
      other = producer > other ? producer : other;
  }
  return best >= 0 ? modules[best] : other >= 0 ? modules[other] : "";
}

const char **adopt_modules(const Picture *picture) {
  const PlanGraph *graph = picture->graph;
  const char **modules = NEW_ARRAY(picture->arena, const char *, graph->nodes.count);
  bool named = false;
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    modules[n] = graph->nodes.items[n].module ? graph->nodes.items[n].module : "";
    named |= modules[n][0] != '\0';
    if (!modules[n][0] && picture_phase(graph, n) == PLAN_PHASE_BACKWARD) modules[n] = adopted(picture, modules, n);
  }
  return named ? modules : NULL;
}

/* ---- stretches ---- */

/* Without modules, forward nodes are cut into stretches of equal length; a backward node belongs to the stretch whose
 * storages it reads last. */
static int32_t *cut_stretches(Drawing *drawing) {
  const Picture *picture = drawing->picture;
  const PlanGraph *graph = picture->graph;
  int32_t forward = 0, *stretch = NEW_ARRAY(picture->arena, int32_t, graph->nodes.count);
  for (int32_t n = 0; n < graph->nodes.count; n++) forward += picture_phase(graph, n) == PLAN_PHASE_FORWARD;
  int32_t count = forward < MOST_UNITS / 2 ? forward : MOST_UNITS / 2, seen = 0, last = 0;
  for (int32_t n = 0; n < graph->nodes.count; n++) {
    const PlanNode *node = &graph->nodes.items[n];
    int32_t found = -1;
    if (picture_phase(graph, n) == PLAN_PHASE_FORWARD) found = (int32_t)((int64_t)seen++ * count / forward);
    for (int32_t i = 0; i < node->input_count && picture_phase(graph, n) != PLAN_PHASE_FORWARD; i++) {
      int32_t producer = graph->storages.items[node->inputs[i]].producer;
      if (producer >= 0 && picture_phase(graph, producer) == PLAN_PHASE_FORWARD && stretch[producer] > found)
        found = stretch[producer];
    }
    stretch[n] = last = found >= 0 ? found : last;
  }
  seen = 0;
  for (int32_t n = 0, first = 0; n < graph->nodes.count; n++) {
    if (picture_phase(graph, n) != PLAN_PHASE_FORWARD) continue;
    if (stretch[n] >= drawing->units.count) {
      first = n;
      array_push(picture->arena, &drawing->units, ((Unit){.times = 1}));
    }
    const char *from = graph->nodes.items[first].id, *to = graph->nodes.items[n].id;
    Unit *unit = &drawing->units.items[drawing->units.count - 1];
    unit->name = n == first ? from : memory_format(picture->arena, "%s \xE2\x80\xA6 %s", from, to);
    unit->path = unit->name;
  }
  if (!drawing->units.count) array_push(picture->arena, &drawing->units, ((Unit){"", "", 1}));
  return stretch;
}

/* ---- equal blocks ---- */

typedef struct Block {
  const char *name;    /* "h.0" */
  int64_t place;       /* length of the family's name in it: 2 of "h.0", with the dot */
  ARRAY(int64_t) runs; /* of picture->planned, ordered by node and execution */
  uint64_t signature;  /* of what runs in it, sizes and decisions */
  int64_t stands_for;  /* the block that it is drawn as */
} Block;

typedef struct BlockList {
  ARRAY(Block) items;
  StringMap index;
} BlockList;

static uint64_t hash_number(uint64_t hash, int64_t number) { return hash_bytes(hash, &number, (int64_t)sizeof number); }

static uint64_t hash_run(const Picture *picture, uint64_t hash, const PictureRun *run) {
  const PlanNode *node = &picture->graph->nodes.items[run->node];
  hash = hash_string(hash_number(hash, run->ordinal), node->op ? node->op : "");
  hash = hash_number(hash_bytes(hash, &node->cost, (int64_t)sizeof node->cost), node->workspace);
  hash = hash_number(hash, picture_phase(picture->graph, run->node));
  for (int32_t o = 0; o < node->output_count; o++) {
    hash = hash_number(hash, picture->graph->storages.items[node->outputs[o]].bytes);
    hash = hash_number(hash, picture->fates[node->outputs[o]]);
  }
  return hash_number(hash, node->output_count);
}

static int64_t block_of(Drawing *drawing, BlockList *blocks, const char *module) {
  MemoryArena *arena = drawing->picture->arena;
  int64_t length = block_length(module);
  if (!length) return -1;
  char *name = memory_string_range(arena, module, length);
  const int64_t *known = string_map_find(&blocks->index, name);
  if (known) return *known;
  Block block = {.name = name, .place = length, .signature = HASH_START, .stands_for = blocks->items.count};
  while (block.place > 0 && name[block.place - 1] != '.') block.place--;
  string_map_set(&blocks->index, name, blocks->items.count);
  array_push(arena, &blocks->items, block);
  return blocks->items.count - 1;
}

static bool same_family(const Block *a, const Block *b) {
  return a->place == b->place && strncmp(a->name, b->name, (size_t)a->place) == 0;
}

/* Runs in the order of their nodes, so that equal plans give equal signatures whenever their clones run. */
static BlockList collect_blocks(Drawing *drawing, const char **modules, int64_t *runs_by_node, int64_t *block_of_run) {
  const Picture *picture = drawing->picture;
  BlockList blocks = {.index = {.arena = picture->arena}};
  for (int64_t i = 0; i < picture->planned.runs.count; i++) {
    int64_t r = runs_by_node[i];
    const PictureRun *run = &picture->planned.runs.items[r];
    bool update = picture_phase(picture->graph, run->node) == PLAN_PHASE_UPDATE;
    int64_t b = update ? -1 : block_of(drawing, &blocks, modules[run->node]);
    block_of_run[r] = b;
    if (b < 0) continue;
    blocks.items.items[b].signature = hash_run(picture, blocks.items.items[b].signature, run);
    array_push(picture->arena, &blocks.items.items[b].runs, r);
  }
  return blocks;
}

/* A block that is like the one before it in its family is drawn as that one. */
static void join_equal_blocks(BlockList *blocks) {
  for (int64_t b = 0; b < blocks->items.count; b++) {
    Block *block = &blocks->items.items[b];
    int64_t before = b - 1;
    while (before >= 0 && !same_family(&blocks->items.items[before], block)) before--;
    if (before < 0) continue;
    const Block *last = &blocks->items.items[before];
    if (last->signature == block->signature && last->runs.count == block->runs.count)
      block->stands_for = last->stands_for;
  }
}

static char *collapsed_name(const Drawing *drawing, const BlockList *blocks, int64_t first, const char *path) {
  int64_t last = first;
  for (int64_t b = first; b < blocks->items.count; b++)
    if (blocks->items.items[b].stands_for == first) last = b;
  const char *name = blocks->items.items[first].name, *rest = path + strlen(name);
  if (last == first) return memory_string(drawing->picture->arena, path);
  return memory_format(drawing->picture->arena, "%s \xE2\x80\xA6 %s%s", name, blocks->items.items[last].name, rest);
}

static int64_t block_times(const BlockList *blocks, int64_t first) {
  int64_t times = 0;
  for (int64_t b = 0; b < blocks->items.count; b++) times += blocks->items.items[b].stands_for == first;
  return times;
}

/* ---- units of runs ---- */

typedef struct UnitFinder {
  Drawing *drawing;
  BlockList blocks;
  StringMap index;
} UnitFinder;

static int32_t unit_of(UnitFinder *finder, const char *path, int64_t block) {
  Drawing *drawing = finder->drawing;
  const int64_t *known = string_map_find(&finder->index, path);
  if (known) return (int32_t)*known;
  Unit unit = {.name = path, .path = path, .times = 1};
  if (block >= 0) {
    unit.name = collapsed_name(drawing, &finder->blocks, block, path);
    unit.times = block_times(&finder->blocks, block);
  }
  string_map_set(&finder->index, path, drawing->units.count);
  array_push(drawing->picture->arena, &drawing->units, unit);
  return (int32_t)(drawing->units.count - 1);
}

/* The path under which a module is drawn: whole, or at module detail its block or first part. Loose nodes between other
 * modules would close cycles there, so the stretch before and the one after are told apart. */
static const char *unit_path(const Drawing *drawing, const char *module, int64_t segment) {
  MemoryArena *arena = drawing->picture->arena;
  if (drawing->detail != DETAIL_MODULE) return module;
  int64_t length = block_length(module);
  if (!length) length = (int64_t)strcspn(module, ".");
  if (!length) return segment ? memory_format(arena, "(no module, %lld)", (long long)segment + 1) : "(no module)";
  return memory_string_range(arena, module, length);
}

static int by_node(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

static int64_t *order_by_node(const Picture *picture) {
  int64_t count = picture->planned.runs.count, *pairs = NEW_ARRAY(picture->arena, int64_t, 2 * count);
  int64_t *order = NEW_ARRAY(picture->arena, int64_t, count);
  for (int64_t r = 0; r < count; r++) pairs[2 * r] = picture->planned.runs.items[r].node, pairs[2 * r + 1] = r;
  qsort(pairs, (size_t)count, 2 * sizeof *pairs, by_node);
  for (int64_t i = 0; i < count; i++) order[i] = pairs[2 * i + 1];
  return order;
}

/* Per node: how many named modules the forward pass has been through, counted where loose nodes follow one. */
static int64_t *number_segments(const Picture *picture, const char **modules) {
  int64_t segment = 0, *segments = NEW_ARRAY(picture->arena, int64_t, picture->graph->nodes.count);
  bool named = false;
  for (int32_t n = 0; n < picture->graph->nodes.count; n++) {
    if (picture_phase(picture->graph, n) == PLAN_PHASE_FORWARD) {
      if (named && !modules[n][0]) segment++;
      named = modules[n][0] != '\0';
    }
    segments[n] = segment;
  }
  for (int32_t n = 0; n < picture->graph->nodes.count && segment >= MOST_UNITS / 2; n++) segments[n] = 0;
  return segments;
}

/* Too many modules: neighbours share a unit. */
static void pack_units(Drawing *drawing, int32_t *unit_of_run) {
  int64_t count = drawing->units.count, size = (count + MOST_UNITS - 1) / MOST_UNITS, packed = 0;
  if (drawing->detail != DETAIL_MODULE || size <= 1) return;
  for (int64_t u = 0; u < count; u += size, packed++) {
    int64_t last = u + size < count ? u + size - 1 : count - 1;
    const char *from = drawing->units.items[u].name, *to = drawing->units.items[last].name;
    char *name = u == last ? memory_string(drawing->picture->arena, from)
                           : memory_format(drawing->picture->arena, "%s \xE2\x80\xA6 %s", from, to);
    drawing->units.items[packed] = (Unit){.name = name, .path = name, .times = 1};
  }
  drawing->units.count = packed;
  for (int64_t r = 0; r < drawing->picture->planned.runs.count; r++) unit_of_run[r] /= (int32_t)size;
}

int32_t *find_units(Drawing *drawing, int64_t *counterpart) {
  const Picture *picture = drawing->picture;
  const char **modules = adopt_modules(picture);
  int64_t count = picture->planned.runs.count;
  int32_t *units = NEW_ARRAY(picture->arena, int32_t, count);
  for (int64_t r = 0; r < count; r++) counterpart[r] = r;
  if (!modules) {
    int32_t *stretches = drawing->detail == DETAIL_FULL ? NULL : cut_stretches(drawing);
    if (!stretches) array_push(picture->arena, &drawing->units, ((Unit){"", "", 1}));
    for (int64_t r = 0; r < count && stretches; r++) units[r] = stretches[picture->planned.runs.items[r].node];
    return units;
  }
  int64_t *order = order_by_node(picture), *block_of_run = NEW_ARRAY(picture->arena, int64_t, count);
  const int64_t *segments = number_segments(picture, modules);
  UnitFinder finder = {.drawing = drawing, .index = {.arena = picture->arena}};
  finder.blocks = collect_blocks(drawing, modules, order, block_of_run);
  if (drawing->detail != DETAIL_FULL) join_equal_blocks(&finder.blocks);
  for (int64_t b = 0; b < finder.blocks.items.count; b++) {
    const Block *block = &finder.blocks.items.items[b], *shown = &finder.blocks.items.items[block->stands_for];
    for (int64_t i = 0; i < block->runs.count; i++) counterpart[block->runs.items[i]] = shown->runs.items[i];
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t r = order[i], shown = counterpart[r];
    int32_t node = picture->planned.runs.items[shown].node;
    bool update = picture_phase(picture->graph, node) == PLAN_PHASE_UPDATE;
    const char *path =
        update && drawing->detail != DETAIL_FULL ? "(update)" : unit_path(drawing, modules[node], segments[node]);
    units[r] = unit_of(&finder, path, block_of_run[shown]);
  }
  pack_units(drawing, units);
  return units;
}
