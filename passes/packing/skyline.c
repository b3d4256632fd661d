/* passes/packing/skyline.c - the skyline: a heap of segments, loads in blocks, a tree of candidates. */
#include "passes/packing/skyline.h"

/* The items below a node of the candidate tree, whose leaves are the items in order of start. */
typedef struct Candidates {
  int32_t least_end, largest_end, best_rank; /* INT32_MAX, -1, INT32_MAX where all are placed */
} Candidates;

struct Skyline {
  const Problem *problem;
  /* Segments, named by their first point: [left, right[left]) at height[left]. left_of[p] is the segment that ends at
   * p, or -1. */
  int32_t *right, *left_of;
  int64_t *height;
  /* A binary heap of segments by (height, first point). */
  int32_t *heap, *heap_position, heap_count;
  /* Bytes still to be placed at point p: load[p] + block_added[p / block_points]. block_most is the largest load[] of a
   * block. Blocks have about as many points as there are blocks. */
  int64_t *load, *block_added, *block_most;
  int32_t block_points;
  Candidates *candidates;
  int32_t candidate_leaves;
  int64_t visits; /* of nodes of the candidate tree */
};

static int32_t power_of_two(int32_t least) {
  int32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

Skyline *skyline_create(MemoryArena *arena, const Problem *problem) {
  Skyline *skyline = NEW(arena, Skyline);
  int32_t points = problem->points;
  skyline->problem = problem;
  skyline->block_points = 16;
  skyline->right = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->left_of = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->height = NEW_ARRAY(arena, int64_t, points + 1);
  skyline->heap = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->heap_position = NEW_ARRAY(arena, int32_t, points + 1);
  while (skyline->block_points * skyline->block_points < points) skyline->block_points *= 2;
  skyline->load = NEW_ARRAY(arena, int64_t, points + skyline->block_points);
  skyline->block_added = NEW_ARRAY(arena, int64_t, points / skyline->block_points + 1);
  skyline->block_most = NEW_ARRAY(arena, int64_t, points / skyline->block_points + 1);
  skyline->candidate_leaves = power_of_two(problem->count);
  skyline->candidates = NEW_ARRAY(arena, Candidates, 2 * skyline->candidate_leaves);
  return skyline;
}

/* ---- the heap of segments ---- */

static bool segment_below(const Skyline *skyline, int32_t a, int32_t b) {
  return skyline->height[a] < skyline->height[b] || (skyline->height[a] == skyline->height[b] && a < b);
}

static void heap_put(Skyline *skyline, int32_t position, int32_t segment) {
  skyline->heap[position] = segment;
  skyline->heap_position[segment] = position;
}

static void heap_sift_up(Skyline *skyline, int32_t position) {
  int32_t segment = skyline->heap[position];
  while (position > 0 && segment_below(skyline, segment, skyline->heap[(position - 1) / 2])) {
    heap_put(skyline, position, skyline->heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  heap_put(skyline, position, segment);
}

static void heap_sift_down(Skyline *skyline, int32_t position) {
  int32_t segment = skyline->heap[position];
  for (;;) {
    int32_t child = 2 * position + 1;
    if (child >= skyline->heap_count) break;
    if (child + 1 < skyline->heap_count && segment_below(skyline, skyline->heap[child + 1], skyline->heap[child]))
      child++;
    if (!segment_below(skyline, skyline->heap[child], segment)) break;
    heap_put(skyline, position, skyline->heap[child]);
    position = child;
  }
  heap_put(skyline, position, segment);
}

static void heap_insert(Skyline *skyline, int32_t segment) {
  heap_put(skyline, skyline->heap_count++, segment);
  heap_sift_up(skyline, skyline->heap_count - 1);
}

static void heap_remove(Skyline *skyline, int32_t segment) {
  int32_t position = skyline->heap_position[segment], last = skyline->heap[--skyline->heap_count];
  if (last == segment) return;
  heap_put(skyline, position, last);
  heap_sift_up(skyline, position);
  heap_sift_down(skyline, skyline->heap_position[last]);
}

/* ---- bytes still to be placed ---- */

static void measure_block(Skyline *skyline, int32_t block) {
  const int64_t *load = skyline->load + block * skyline->block_points;
  int64_t most = INT64_MIN;
  for (int i = 0; i < skyline->block_points; i++) most = load[i] > most ? load[i] : most;
  skyline->block_most[block] = most;
}

static void add_in_block(Skyline *skyline, int32_t from, int32_t to, int64_t bytes) {
  for (int32_t p = from; p < to; p++) skyline->load[p] += bytes;
  measure_block(skyline, from / skyline->block_points);
}

static void load_add(Skyline *skyline, int32_t from, int32_t to, int64_t bytes) {
  int32_t first = from / skyline->block_points, last = (to - 1) / skyline->block_points;
  if (first == last) {
    add_in_block(skyline, from, to, bytes);
    return;
  }
  add_in_block(skyline, from, (first + 1) * skyline->block_points, bytes);
  for (int32_t b = first + 1; b < last; b++) skyline->block_added[b] += bytes;
  add_in_block(skyline, last * skyline->block_points, to, bytes);
}

typedef struct Peak {
  int64_t load;
  int32_t point;
} Peak;

static Peak peak_in_block(const Skyline *skyline, int32_t from, int32_t to) {
  Peak peak = {INT64_MIN, from};
  for (int32_t p = from; p < to; p++)
    if (skyline->load[p] > peak.load) peak = (Peak){skyline->load[p], p};
  peak.load += skyline->block_added[from / skyline->block_points];
  return peak;
}

/* The first point of the largest load in [from, to); load -1 where that is empty. */
static Peak fullest_point(const Skyline *skyline, int32_t from, int32_t to) {
  if (from >= to) return (Peak){-1, from};
  int32_t first = from / skyline->block_points, last = (to - 1) / skyline->block_points, block = -1;
  if (first == last) return peak_in_block(skyline, from, to);
  Peak peak = peak_in_block(skyline, from, (first + 1) * skyline->block_points),
       right = peak_in_block(skyline, last * skyline->block_points, to);
  int64_t most = peak.load;
  for (int32_t b = first + 1; b < last; b++) {
    int64_t load = skyline->block_most[b] + skyline->block_added[b];
    if (load > most) most = load, block = b;
  }
  if (right.load > most) return right;
  return block < 0 ? peak : peak_in_block(skyline, block * skyline->block_points, (block + 1) * skyline->block_points);
}

/* ---- candidates ---- */

static Candidates join_candidates(Candidates a, Candidates b) {
  return (Candidates){a.least_end < b.least_end ? a.least_end : b.least_end,
                      a.largest_end > b.largest_end ? a.largest_end : b.largest_end,
                      a.best_rank < b.best_rank ? a.best_rank : b.best_rank};
}

static void forget_candidate(Skyline *skyline, int32_t item) {
  int32_t node = skyline->candidate_leaves + item;
  skyline->candidates[node] = (Candidates){INT32_MAX, -1, INT32_MAX};
  while (node /= 2)
    skyline->candidates[node] = join_candidates(skyline->candidates[2 * node], skyline->candidates[2 * node + 1]);
}

/* What a candidate must satisfy: an item of [first, last) that ends in (after, until]. */
typedef struct Query {
  int32_t first, last, after, until;
} Query;

static void best_candidate(Skyline *skyline, int32_t node, int32_t low, int32_t high, const Query *query,
                           int32_t *best) {
  Candidates below = skyline->candidates[node];
  skyline->visits++;
  if (below.best_rank >= *best || below.least_end > query->until || below.largest_end <= query->after) return;
  if (query->last <= low || high <= query->first) return;
  if (high - low == 1) {
    *best = below.best_rank;
    return;
  }
  int32_t middle = low + (high - low) / 2;
  bool right_first = skyline->candidates[2 * node + 1].best_rank < skyline->candidates[2 * node].best_rank;
  if (right_first) best_candidate(skyline, 2 * node + 1, middle, high, query, best);
  best_candidate(skyline, 2 * node, low, middle, query, best);
  if (!right_first) best_candidate(skyline, 2 * node + 1, middle, high, query, best);
}

/* Leaves that are looked at one by one sooner than by the tree. */
enum { FEW = 64 };

/* The rank of the best candidate within [from, to) that covers one of the points [low, high), or INT32_MAX. */
static int32_t find_candidate(Skyline *skyline, int32_t from, int32_t to, int32_t low, int32_t high) {
  const Problem *problem = skyline->problem;
  Query query = {problem->first_from[from], problem->first_from[high], low, to};
  int32_t best = INT32_MAX;
  if (query.last - query.first > FEW) {
    best_candidate(skyline, 1, 0, skyline->candidate_leaves, &query, &best);
    return best;
  }
  const Candidates *leaves = skyline->candidates + skyline->candidate_leaves;
  for (int32_t i = query.first; i < query.last; i++)
    if (leaves[i].best_rank < best && leaves[i].least_end <= to && leaves[i].largest_end > low)
      best = leaves[i].best_rank;
  return best;
}

/* ---- packing ---- */

static void skyline_reset(Skyline *skyline, const int32_t *order) {
  const Problem *problem = skyline->problem;
  int32_t leaves = skyline->candidate_leaves;
  for (int32_t i = 0; i < leaves; i++)
    skyline->candidates[leaves + i] = (Candidates){i < problem->count ? problem->end[i] : INT32_MAX,
                                                   i < problem->count ? problem->end[i] : -1, INT32_MAX};
  for (int32_t rank = 0; rank < problem->count; rank++) skyline->candidates[leaves + order[rank]].best_rank = rank;
  for (int32_t node = leaves - 1; node > 0; node--)
    skyline->candidates[node] = join_candidates(skyline->candidates[2 * node], skyline->candidates[2 * node + 1]);
  memcpy(skyline->load, problem->load, (size_t)problem->points * sizeof *skyline->load);
  for (int32_t b = 0; b <= (problem->points - 1) / skyline->block_points; b++) {
    skyline->block_added[b] = 0;
    measure_block(skyline, b);
  }
  skyline->right[0] = problem->points;
  skyline->left_of[0] = -1;
  skyline->left_of[problem->points] = 0;
  skyline->height[0] = 0;
  skyline->heap_count = 0;
  heap_insert(skyline, 0);
}

static void link_segment(Skyline *skyline, int32_t from, int32_t to) {
  skyline->right[from] = to;
  skyline->left_of[to] = from;
}

static void make_segment(Skyline *skyline, int32_t from, int32_t to, int64_t height) {
  link_segment(skyline, from, to);
  skyline->height[from] = height;
  heap_insert(skyline, from);
}

/* Joins the lowest segment, which has no candidates, with its lower neighbour, and with both when they are equally
 * high. A segment that only grows to the right keeps its place in the heap. */
static void raise_lowest(Skyline *skyline) {
  int32_t from = skyline->heap[0], to = skyline->right[from], before = skyline->left_of[from];
  int64_t left = before >= 0 ? skyline->height[before] : INT64_MAX;
  int64_t right = to < skyline->problem->points ? skyline->height[to] : INT64_MAX;
  ASSERT(before >= 0 || right < INT64_MAX);
  int32_t end = right <= left ? skyline->right[to] : to;
  if (right <= left) heap_remove(skyline, to);
  if (left <= right) {
    heap_remove(skyline, from);
    link_segment(skyline, before, end);
  } else {
    link_segment(skyline, from, end);
    skyline->height[from] = right;
    heap_sift_down(skyline, skyline->heap_position[from]);
  }
}

static bool covers(const Problem *problem, int32_t item, int32_t point) {
  return problem->start[item] <= point && point < problem->end[item];
}

/* The rank of the best candidate that covers the fullest point of [from, to) or, where none does, that of the fuller
 * side of it, a few times; INT32_MAX: none. */
static int32_t find_at_fullest(Skyline *skyline, int32_t from, int32_t to, Peak fullest) {
  int32_t low = from, high = to;
  for (int tries = 0; tries < 4 && low < high; tries++) {
    int32_t rank = find_candidate(skyline, from, to, fullest.point, fullest.point + 1);
    if (rank < INT32_MAX) return rank;
    Peak left = fullest_point(skyline, low, fullest.point), right = fullest_point(skyline, fullest.point + 1, high);
    if (left.load >= right.load)
      high = fullest.point, fullest = left;
    else
      low = fullest.point + 1, fullest = right;
  }
  return INT32_MAX;
}

/* Chooses what to place on the segment [from, to): the rank of an item, or INT32_MAX where there is no candidate. */
static int32_t choose_candidate(Skyline *skyline, const int32_t *order, int32_t from, int32_t to, Pivot pivot,
                                Peak fullest) {
  int32_t best = find_candidate(skyline, from, to, from, to), rank = best;
  int32_t point = pivot == PIVOT_FULLEST ? fullest.point : pivot == PIVOT_LEFTMOST ? from : to - 1;
  if (best == INT32_MAX || pivot == PIVOT_NONE || covers(skyline->problem, order[best], point)) return best;
  if (pivot == PIVOT_FULLEST)
    rank = find_at_fullest(skyline, from, to, fullest);
  else
    rank = find_candidate(skyline, from, to, point, point + 1);
  return rank < INT32_MAX ? rank : best;
}

/* Places an item on the lowest segment. */
static void place_item(Skyline *skyline, int32_t item) {
  const Problem *problem = skyline->problem;
  int32_t start = problem->start[item], end = problem->end[item], from = skyline->heap[0], to = skyline->right[from];
  int64_t height = skyline->height[from], top = height + problem->size[item];
  link_segment(skyline, from, start > from ? start : end);
  if (start > from) {
    make_segment(skyline, start, end, top);
  } else {
    skyline->height[from] = top;
    heap_sift_down(skyline, 0);
  }
  if (end < to) make_segment(skyline, end, to, height);
  forget_candidate(skyline, item);
  load_add(skyline, start, end, -problem->size[item]);
}

/* Places all items; INT64_MAX when the makespan would exceed `limit`. */
static int64_t place_items(Skyline *skyline, const int32_t *order, Pivot pivot, int64_t limit, int64_t *offset,
                           int64_t *steps) {
  const Problem *problem = skyline->problem;
  int64_t makespan = 0;
  for (int32_t placed = 0; placed < problem->count;) {
    int32_t from = skyline->heap[0], to = skyline->right[from];
    ++*steps;
    Peak fullest = fullest_point(skyline, from, to);
    if (fullest.load > limit - skyline->height[from]) return INT64_MAX;
    int32_t rank = fullest.load > 0 ? choose_candidate(skyline, order, from, to, pivot, fullest) : INT32_MAX;
    if (rank == INT32_MAX) {
      raise_lowest(skyline);
      continue;
    }
    int32_t item = order[rank];
    offset[item] = skyline->height[from];
    place_item(skyline, item);
    if (offset[item] + problem->size[item] > makespan) makespan = offset[item] + problem->size[item];
    placed++;
  }
  return makespan;
}

/* Where most lives are long the tree rules out little and a step visits a thousand nodes, not the usual twenty. */
static int64_t work_of_visits(const Skyline *skyline, int64_t steps) {
  enum { USUAL = 100, VISITS_PER_UNIT = 64 };
  int64_t beyond = skyline->visits - USUAL * steps;
  return beyond > 0 ? beyond / VISITS_PER_UNIT : 0;
}

int64_t skyline_pack(Skyline *skyline, const int32_t *order, Pivot pivot, int64_t limit, int64_t *offset,
                     int64_t *work) {
  int64_t steps = 0, count = skyline->problem->count;
  skyline_reset(skyline, order);
  skyline->visits = 0;
  int64_t makespan = place_items(skyline, order, pivot, limit, offset, &steps);
  *work += count / 8 + steps / 3 + steps * count / 50000 + work_of_visits(skyline, steps);
  return makespan;
}
