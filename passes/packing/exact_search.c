/* passes/packing/exact_search.c - floors, their propagation, and an explicit stack of branches.
 *
 * floor[p]   no unplaced item that covers p can lie below it
 * least[i]   no lower offset is possible for the unplaced item i: the largest floor over its life
 * valley     a run of points of equal floor with higher ones, or none, on both sides
 * A branch takes a point p in a valley of height h: some item within the valley lies at h and covers p, or none does
 * and the floor of p rises. Both are checked by floor[p] + bytes still to be placed at p <= capacity. */
#include "passes/packing/exact_search.h"

#include <stdlib.h>

/* A point without unplaced items: a wall. */
#define FLOOR_DONE INT64_MAX

/* Elementary steps that take about a microsecond. */
enum { TOUCHED_PER_UNIT = 512 };

typedef struct TrailEntry {
  int64_t before;
  int32_t index, count; /* count: of the choices of a point whose floor changes */
  enum { TRAIL_FLOOR, TRAIL_LEAST, TRAIL_PLACED } kind;
} TrailEntry;

/* A range of points that is independent of everything else unplaced. */
typedef struct Component {
  int32_t low, high;
  int32_t parent; /* the branch to return to when it has no solution; -1: none */
  int32_t next;   /* another that is still to be solved; -1: none */
} Component;

typedef struct Branch {
  Component component;
  int64_t trail, height;
  bool may_skip; /* nothing may cover the point at this height */
  int32_t point, components;
  int64_t first_choice, next_choice, last_choice; /* in choices */
} Branch;

/* An item that a branch may place. */
typedef struct Option {
  double key;
  int32_t item;
} Option;

struct ExactSearch {
  const Problem *problem;
  const double *key;
  double wall_bonus;
  int64_t capacity;
  BranchRule rule;
  int32_t *item_begin, *items; /* the items at point p are items[item_begin[p] .. item_begin[p + 1]) */
  int32_t *twin;               /* [count] the first item of the same life and size */
  int64_t *floor, *remaining;  /* [points] */
  int32_t *choice_count;       /* [points] unplaced items with least == floor */
  int32_t *crossing;           /* [points] unplaced items that live at p and at p + 1 */
  int64_t *least, *offset;     /* [count] */
  bool *placed;
  bool *point_queued; /* points whose floor may have to rise */
  int32_t *point_queue, point_count;
  MemoryArena *arena;
  ARRAY(TrailEntry) trail;
  ARRAY(Branch) branches;
  ARRAY(Option) choices;
  ARRAY(Component) components;
  int64_t touched; /* elementary steps */
};

typedef struct ItemSize {
  int64_t size;
  int32_t item;
} ItemSize;

static void list_items(MemoryArena *arena, ExactSearch *search) {
  const Problem *problem = search->problem;
  int64_t total = 0;
  for (int32_t i = 0; i < problem->count; i++) total += problem->end[i] - problem->start[i];
  ASSERT(total < INT32_MAX);
  search->item_begin = NEW_ARRAY(arena, int32_t, problem->points + 2);
  search->items = NEW_ARRAY(arena, int32_t, total);
  for (int32_t i = 0; i < problem->count; i++)
    for (int32_t p = problem->start[i]; p < problem->end[i]; p++) search->item_begin[p + 2]++;
  for (int32_t p = 2; p <= problem->points + 1; p++) search->item_begin[p] += search->item_begin[p - 1];
  for (int32_t i = 0; i < problem->count; i++)
    for (int32_t p = problem->start[i]; p < problem->end[i]; p++) search->items[search->item_begin[p + 1]++] = i;
}

static int compare_sizes(const void *left, const void *right) {
  const ItemSize *a = left, *b = right;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

/* Items are sorted by life, so twins are found among runs of equal lives. */
static void find_twins(MemoryArena *arena, ExactSearch *search) {
  const Problem *problem = search->problem;
  ItemSize *run = NEW_ARRAY(arena, ItemSize, problem->count);
  for (int32_t from = 0, to; from < problem->count; from = to) {
    int32_t length = 0;
    for (to = from;
         to < problem->count && problem->start[to] == problem->start[from] && problem->end[to] == problem->end[from];
         to++)
      run[length++] = (ItemSize){problem->size[to], to};
    qsort(run, (size_t)length, sizeof *run, compare_sizes);
    for (int32_t k = 0; k < length; k++)
      search->twin[run[k].item] = k > 0 && run[k].size == run[k - 1].size ? search->twin[run[k - 1].item] : run[k].item;
  }
}

ExactSearch *exact_search_create(MemoryArena *arena, const Problem *problem) {
  ExactSearch *search = NEW(arena, ExactSearch);
  int32_t count = problem->count, points = problem->points;
  *search = (ExactSearch){.problem = problem, .arena = arena};
  list_items(arena, search);
  search->twin = NEW_ARRAY(arena, int32_t, count);
  find_twins(arena, search);
  search->floor = NEW_ARRAY(arena, int64_t, points);
  search->remaining = NEW_ARRAY(arena, int64_t, points);
  search->choice_count = NEW_ARRAY(arena, int32_t, points);
  search->crossing = NEW_ARRAY(arena, int32_t, points);
  search->least = NEW_ARRAY(arena, int64_t, count);
  search->offset = NEW_ARRAY(arena, int64_t, count);
  search->placed = NEW_ARRAY(arena, bool, count);
  search->point_queued = NEW_ARRAY(arena, bool, points);
  search->point_queue = NEW_ARRAY(arena, int32_t, points);
  return search;
}

static void search_reset(ExactSearch *search) {
  const Problem *problem = search->problem;
  memset(search->floor, 0, (size_t)problem->points * sizeof *search->floor);
  memcpy(search->remaining, problem->load, (size_t)problem->points * sizeof *search->remaining);
  for (int32_t p = 0; p < problem->points; p++)
    search->choice_count[p] = search->item_begin[p + 1] - search->item_begin[p];
  memset(search->crossing, 0, (size_t)problem->points * sizeof *search->crossing);
  memset(search->least, 0, (size_t)problem->count * sizeof *search->least);
  memset(search->placed, 0, (size_t)problem->count * sizeof *search->placed);
  for (int32_t i = 0; i < problem->count; i++)
    for (int32_t p = problem->start[i]; p + 1 < problem->end[i]; p++) search->crossing[p]++;
  search->trail.count = search->branches.count = search->choices.count = search->components.count = 0;
}

/* ---- changes that can be undone ---- */

static void record(ExactSearch *search, int kind, int32_t index, int64_t before) {
  TrailEntry entry = {before, index, kind == TRAIL_FLOOR ? search->choice_count[index] : 0, kind};
  array_push(search->arena, &search->trail, entry);
}

static void set_least(ExactSearch *search, int32_t item, int64_t least) {
  const Problem *problem = search->problem;
  int32_t end = problem->end[item], *count = search->choice_count;
  int64_t before = search->least[item];
  const int64_t *floor = search->floor;
  search->least[item] = least;
  for (int32_t p = problem->start[item]; p < end; p++) count[p] += (floor[p] == least) - (floor[p] == before);
  search->touched += end - problem->start[item];
}

static void set_placed(ExactSearch *search, int32_t item, bool placed) {
  const Problem *problem = search->problem;
  int32_t start = problem->start[item], end = problem->end[item], step = placed ? 1 : -1;
  int64_t bytes = step * problem->size[item];
  search->placed[item] = placed;
  for (int32_t p = start; p < end; p++) {
    search->remaining[p] -= bytes;
    search->crossing[p] -= p + 1 < end ? step : 0;
  }
}

static void undo_to(ExactSearch *search, int64_t mark) {
  while (search->trail.count > mark) {
    TrailEntry entry = search->trail.items[--search->trail.count];
    if (entry.kind == TRAIL_FLOOR) {
      search->floor[entry.index] = entry.before;
      search->choice_count[entry.index] = entry.count;
    } else if (entry.kind == TRAIL_LEAST) {
      set_least(search, entry.index, entry.before);
    } else {
      set_placed(search, entry.index, false);
    }
  }
}

/* ---- propagation ----
 * A floor that is raised raises the items over it; a point none of whose items can lie on its floor any more gets the
 * floor of the lowest of them, which raises no item in turn: one step of each reaches the fixed point. */

/* Keeps the count of a point above zero while its items are being counted. */
enum { COUNTING = 1 << 24 };

static void queue_point(ExactSearch *search, int32_t point) {
  if (search->point_queued[point] || search->floor[point] == FLOOR_DONE) return;
  search->point_queued[point] = true;
  search->point_queue[search->point_count++] = point;
}

/* Keeps an unplaced item, which lives at a point of [start, end) whose floors are `height` now, at or above it, and
 * counts it there; false when it then ends above the capacity. */
static bool raise_item(ExactSearch *search, int32_t item, int32_t start, int32_t end, int64_t height) {
  const Problem *problem = search->problem;
  int32_t from = problem->start[item], to = problem->end[item];
  if (search->placed[item] || search->least[item] > height) return true;
  if (search->least[item] == height) {
    for (int32_t p = from > start ? from : start; p < to && p < end; p++) search->choice_count[p]++;
    return true;
  }
  record(search, TRAIL_LEAST, item, search->least[item]);
  set_least(search, item, height);
  for (int32_t p = from; p < to; p++)
    if (search->choice_count[p] == 0) queue_point(search, p);
  return height <= search->capacity - problem->size[item];
}

/* Sets the floors of [start, end) to `height`, or to a wall where nothing is left, and raises all items there. */
static bool raise_floors(ExactSearch *search, int32_t start, int32_t end, int64_t height) {
  const Problem *problem = search->problem;
  bool possible = true;
  for (int32_t p = start; p < end; p++) {
    record(search, TRAIL_FLOOR, p, search->floor[p]);
    search->floor[p] = search->remaining[p] ? height : FLOOR_DONE;
    search->choice_count[p] = COUNTING;
    if (search->remaining[p] && height > search->capacity - search->remaining[p]) possible = false;
  }
  if (!possible) return false;
  for (int32_t k = search->item_begin[start]; k < search->item_begin[start + 1]; k++)
    possible &= raise_item(search, search->items[k], start, end, height);
  for (int32_t i = problem->first_from[start + 1]; i < problem->first_from[end]; i++)
    possible &= raise_item(search, i, start, end, height);
  for (int32_t p = start; p < end; p++) {
    search->choice_count[p] -= COUNTING;
    if (search->choice_count[p] == 0) queue_point(search, p);
  }
  search->touched += search->item_begin[start + 1] - search->item_begin[start] + 2 * (end - start);
  return possible;
}

/* Raises the floor of a point to the lowest of its items; false when they cannot all fit above it. */
static bool update_point(ExactSearch *search, int32_t point) {
  int64_t lowest = FLOOR_DONE;
  int32_t count = 0;
  for (int32_t k = search->item_begin[point]; k < search->item_begin[point + 1]; k++) {
    int32_t item = search->items[k];
    if (search->placed[item] || search->least[item] > lowest) continue;
    count = search->least[item] == lowest ? count + 1 : 1;
    lowest = search->least[item];
  }
  search->touched += search->item_begin[point + 1] - search->item_begin[point];
  record(search, TRAIL_FLOOR, point, search->floor[point]);
  search->floor[point] = lowest;
  search->choice_count[point] = count;
  return lowest <= search->capacity - search->remaining[point];
}

static bool update_points(ExactSearch *search, bool possible) {
  while (search->point_count > 0) {
    int32_t point = search->point_queue[--search->point_count];
    search->point_queued[point] = false;
    if (possible && search->choice_count[point] == 0) possible = update_point(search, point);
  }
  return possible;
}

static bool place(ExactSearch *search, int32_t item, int64_t height) {
  const Problem *problem = search->problem;
  int64_t top = height + problem->size[item];
  record(search, TRAIL_PLACED, item, 0);
  set_placed(search, item, true);
  search->offset[item] = height;
  return top <= search->capacity &&
         update_points(search, raise_floors(search, problem->start[item], problem->end[item], top));
}

static bool skip(ExactSearch *search, int32_t point, int64_t height) {
  return update_points(search, raise_floors(search, point, point + 1, height));
}

/* ---- branching ---- */

typedef struct Choice {
  int32_t point, branches;
  int64_t slack, height;
} Choice;

static bool better_choice(BranchRule rule, const Choice *a, const Choice *b) {
  if (rule == BRANCH_LOWEST && a->height != b->height) return a->height < b->height;
  if (rule == BRANCH_NARROWEST && a->branches != b->branches) return a->branches < b->branches;
  if (a->slack != b->slack) return a->slack < b->slack;
  return a->branches < b->branches;
}

/* Whether a choice whose branches are not counted yet can be better than the best one. */
static bool may_be_better(BranchRule rule, const Choice *choice, const Choice *best) {
  if (best->point < 0 || rule == BRANCH_NARROWEST) return true;
  if (rule == BRANCH_LOWEST && choice->height != best->height) return choice->height < best->height;
  return choice->slack <= best->slack;
}

/* Chooses a point among the valleys of a component that has unplaced items everywhere. */
static Choice choose_point(ExactSearch *search, int32_t low, int32_t high) {
  Choice best = {-1, 0, 0, 0};
  for (int32_t from = low, to; from < high; from = to) {
    int64_t height = search->floor[from];
    for (to = from + 1; to < high && search->floor[to] == height;) to++;
    if ((from > low && search->floor[from - 1] < height) || (to < high && search->floor[to] < height)) continue;
    for (int32_t p = from; p < to; p++) {
      Choice choice = {p, 0, search->capacity - height - search->remaining[p], height};
      if (!may_be_better(search->rule, &choice, &best)) continue;
      choice.branches = search->choice_count[p] + (choice.slack > 0);
      if (best.point < 0 || better_choice(search->rule, &choice, &best)) best = choice;
    }
  }
  search->touched += high - low;
  return best;
}

/* The lowest height at which an item can cover the point when none does at the valley's: on top of an item that is
 * placed in the valley beside the point, or where an item that reaches out of the valley can lie. */
static int64_t height_after_skip(ExactSearch *search, int32_t point, int32_t low, int32_t high) {
  const Problem *problem = search->problem;
  int64_t height = search->floor[point], next = FLOOR_DONE;
  int32_t from = point, to = point + 1;
  while (from > low && search->floor[from - 1] == height) from--;
  while (to < high && search->floor[to] == height) to++;
  for (int32_t p = from; p < to; p++) {
    for (int32_t k = search->item_begin[p]; k < search->item_begin[p + 1]; k++) {
      int32_t item = search->items[k];
      if (search->placed[item]) continue;
      bool covers = problem->start[item] <= point && point < problem->end[item];
      int64_t candidate = search->least[item] > height ? search->least[item] : height + problem->size[item];
      if ((search->least[item] > height || !covers) && candidate < next) next = candidate;
    }
    search->touched += search->item_begin[p + 1] - search->item_begin[p];
  }
  return next;
}

static double choice_key(const ExactSearch *search, const Branch *branch, int32_t item) {
  const Problem *problem = search->problem;
  int32_t start = problem->start[item], end = problem->end[item];
  int64_t left = start > 0 ? search->floor[start - 1] : FLOOR_DONE;
  int64_t right = end < problem->points ? search->floor[end] : FLOOR_DONE;
  int64_t top = branch->height + problem->size[item];
  int touches = (left != branch->height) + (right != branch->height) + 2 * (left == top) + 2 * (right == top);
  return search->key[item] + search->wall_bonus * touches;
}

/* Lists the items that can cover the point of a branch, the best first, twins once. */
static void push_choices(ExactSearch *search, Branch *branch) {
  int64_t first = branch->first_choice = branch->next_choice = search->choices.count;
  for (int32_t k = search->item_begin[branch->point]; k < search->item_begin[branch->point + 1]; k++) {
    int32_t item = search->items[k];
    if (search->placed[item] || search->least[item] != branch->height) continue;
    Option option = {choice_key(search, branch, item), item};
    bool repeated = false;
    for (int64_t c = first; c < search->choices.count && !repeated; c++)
      repeated = search->twin[search->choices.items[c].item] == search->twin[item];
    if (repeated) continue;
    array_push(search->arena, &search->choices, option);
    int64_t c = search->choices.count - 1;
    for (; c > first && search->choices.items[c - 1].key < option.key; c--)
      search->choices.items[c] = search->choices.items[c - 1];
    search->choices.items[c] = option;
  }
  branch->last_choice = search->choices.count;
}

static void push_branch(ExactSearch *search, Component component) {
  Choice choice = choose_point(search, component.low, component.high);
  Branch branch = {.component = component,
                   .trail = search->trail.count,
                   .height = choice.height,
                   .may_skip = choice.slack > 0,
                   .point = choice.point,
                   .components = (int32_t)search->components.count};
  push_choices(search, &branch);
  array_push(search->arena, &search->branches, branch);
}

static int64_t component_slack(const ExactSearch *search, int32_t low, int32_t high) {
  int64_t slack = INT64_MAX;
  for (int32_t p = low; p < high; p++) {
    int64_t here = search->capacity - search->floor[p] - search->remaining[p];
    if (here < slack) slack = here;
  }
  return slack;
}

/* Splits what is left of a component where nothing crosses and returns the part of least slack, with the others linked
 * behind it; when nothing is left, the next pending component. low == high: everything is placed. */
static Component next_component(ExactSearch *search, Component from) {
  Component best = {0, 0, -1, from.next};
  int64_t least_slack = INT64_MAX;
  int32_t next = from.next;
  for (int32_t p = from.low, end; p < from.high; p = end) {
    for (end = p + 1; end < from.high && search->crossing[end - 1] > 0;) end++;
    if (search->floor[p] == FLOOR_DONE) continue;
    Component part = {p, end, from.parent, next};
    int64_t slack = component_slack(search, p, end);
    if (best.low == best.high) {
      best = part;
      least_slack = slack;
      continue;
    }
    Component later = slack < least_slack ? best : part;
    if (slack < least_slack) best = part, least_slack = slack;
    later.next = next;
    array_push(search->arena, &search->components, later);
    next = (int32_t)search->components.count - 1;
  }
  search->touched += from.high - from.low;
  best.next = next;
  if (best.low < best.high || next < 0) return best;
  return next_component(search, search->components.items[next]);
}

/* Takes the next choice of a branch; false when it has failed or there is none, *open tells which. */
static bool take_choice(ExactSearch *search, Branch *branch, bool *open) {
  *open = true;
  if (branch->next_choice < branch->last_choice)
    return place(search, search->choices.items[branch->next_choice++].item, branch->height);
  *open = branch->may_skip;
  if (!branch->may_skip) return false;
  branch->may_skip = false;
  int64_t height = height_after_skip(search, branch->point, branch->component.low, branch->component.high);
  return height <= search->capacity - search->remaining[branch->point] && skip(search, branch->point, height);
}

SearchOutcome exact_search_run(ExactSearch *search, const double *key, double wall_bonus, BranchRule rule,
                               int64_t capacity, int64_t limit, int64_t *offset, int64_t *work) {
  search->key = key;
  search->wall_bonus = wall_bonus;
  search->rule = rule;
  search->capacity = capacity;
  search->touched = 0;
  if (capacity < search->problem->lower_bound) return SEARCH_IMPOSSIBLE;
  search_reset(search);
  push_branch(search, next_component(search, (Component){0, search->problem->points, -1, -1}));
  SearchOutcome outcome = SEARCH_STOPPED;
  int32_t at = 0;
  while (search->touched / TOUCHED_PER_UNIT < limit) {
    if (at < 0) {
      outcome = SEARCH_IMPOSSIBLE;
      break;
    }
    Branch *branch = &search->branches.items[at];
    bool open;
    search->branches.count = at + 1;
    search->choices.count = branch->last_choice;
    search->components.count = branch->components;
    undo_to(search, branch->trail);
    search->touched += 32;
    if (!take_choice(search, branch, &open)) {
      if (!open) at = branch->component.parent;
      continue;
    }
    Component rest = branch->component;
    rest.parent = at;
    Component next = next_component(search, rest);
    if (next.low == next.high) {
      memcpy(offset, search->offset, (size_t)search->problem->count * sizeof *offset);
      outcome = SEARCH_FOUND;
      break;
    }
    push_branch(search, next);
    at = (int32_t)search->branches.count - 1;
  }
  *work += search->touched / TOUCHED_PER_UNIT;
  return outcome;
}
