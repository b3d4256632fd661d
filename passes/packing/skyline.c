/* passes/packing/skyline.c - the skyline, with a heap of segments and two trees that answer its queries. */
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
  /* Bytes still to be placed at each point; a node holds the maximum below it without what its ancestors add. */
  int64_t *load_most, *load_added;
  int32_t load_leaves;
  Candidates *candidates;
  int32_t candidate_leaves;
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
  skyline->right = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->left_of = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->height = NEW_ARRAY(arena, int64_t, points + 1);
  skyline->heap = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->heap_position = NEW_ARRAY(arena, int32_t, points + 1);
  skyline->load_leaves = power_of_two(points);
  skyline->load_most = NEW_ARRAY(arena, int64_t, 2 * skyline->load_leaves);
  skyline->load_added = NEW_ARRAY(arena, int64_t, 2 * skyline->load_leaves);
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

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void load_add(Skyline *skyline, int32_t node, int32_t low, int32_t high, int32_t from, int32_t to,
                     int64_t bytes) {
  if (from <= low && high <= to) {
    skyline->load_added[node] += bytes;
    skyline->load_most[node] += bytes;
    return;
  }
  int32_t middle = low + (high - low) / 2;
  if (from < middle) load_add(skyline, 2 * node, low, middle, from, to, bytes);
  if (to > middle) load_add(skyline, 2 * node + 1, middle, high, from, to, bytes);
  skyline->load_most[node] =
      larger(skyline->load_most[2 * node], skyline->load_most[2 * node + 1]) + skyline->load_added[node];
}

typedef struct Peak {
  int64_t load;
  int32_t point;
} Peak;

/* Finds a point of the largest load in [from, to); `above` is what the node's ancestors add. */
static void load_peak(const Skyline *skyline, int32_t node, int32_t low, int32_t high, int32_t from, int32_t to,
                      int64_t above, Peak *peak) {
  if (to <= low || high <= from || skyline->load_most[node] + above <= peak->load) return;
  if (high - low == 1) {
    *peak = (Peak){skyline->load_most[node] + above, low};
    return;
  }
  int32_t middle = low + (high - low) / 2;
  above += skyline->load_added[node];
  bool right_first = skyline->load_most[2 * node + 1] > skyline->load_most[2 * node];
  if (right_first) load_peak(skyline, 2 * node + 1, middle, high, from, to, above, peak);
  load_peak(skyline, 2 * node, low, middle, from, to, above, peak);
  if (!right_first) load_peak(skyline, 2 * node + 1, middle, high, from, to, above, peak);
}

static Peak fullest_point(const Skyline *skyline, int32_t from, int32_t to) {
  Peak peak = {-1, from};
  load_peak(skyline, 1, 0, skyline->load_leaves, from, to, 0, &peak);
  return peak;
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

static void best_candidate(const Skyline *skyline, int32_t node, int32_t low, int32_t high, const Query *query,
                           int32_t *best) {
  Candidates below = skyline->candidates[node];
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

/* The rank of the best candidate within [from, to) that covers one of the points [low, high), or INT32_MAX. */
static int32_t find_candidate(const Skyline *skyline, int32_t from, int32_t to, int32_t low, int32_t high) {
  const Problem *problem = skyline->problem;
  Query query = {problem->first_from[from], problem->first_from[high], low, to};
  int32_t best = INT32_MAX;
  best_candidate(skyline, 1, 0, skyline->candidate_leaves, &query, &best);
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
  for (int32_t p = 0; p < skyline->load_leaves; p++)
    skyline->load_most[skyline->load_leaves + p] = p < problem->points ? problem->load[p] : 0;
  for (int32_t node = skyline->load_leaves - 1; node > 0; node--)
    skyline->load_most[node] = larger(skyline->load_most[2 * node], skyline->load_most[2 * node + 1]);
  memset(skyline->load_added, 0, (size_t)(2 * skyline->load_leaves) * sizeof *skyline->load_added);
  skyline->right[0] = problem->points;
  skyline->left_of[0] = -1;
  skyline->left_of[problem->points] = 0;
  skyline->height[0] = 0;
  skyline->heap_count = 0;
  heap_insert(skyline, 0);
}

static void make_segment(Skyline *skyline, int32_t from, int32_t to, int64_t height) {
  if (from == to) return;
  skyline->right[from] = to;
  skyline->left_of[to] = from;
  skyline->height[from] = height;
  heap_insert(skyline, from);
}

/* Joins a segment that has no candidates with its lower neighbour, and with both when they are equally high. */
static void raise_segment(Skyline *skyline, int32_t from) {
  int32_t to = skyline->right[from], before = skyline->left_of[from];
  int64_t left = before >= 0 ? skyline->height[before] : INT64_MAX;
  int64_t right = to < skyline->problem->points ? skyline->height[to] : INT64_MAX;
  ASSERT(before >= 0 || right < INT64_MAX);
  heap_remove(skyline, from);
  if (left <= right) {
    heap_remove(skyline, before);
    from = before;
  }
  if (right <= left) {
    heap_remove(skyline, to);
    to = skyline->right[to];
  }
  make_segment(skyline, from, to, left < right ? left : right);
}

/* Chooses what to place on the segment [from, to): the rank of an item, or INT32_MAX. Where nothing covers the fullest
 * point, the fuller side of it is searched, a few times. */
static int32_t choose_candidate(const Skyline *skyline, int32_t from, int32_t to, Pivot pivot, Peak fullest) {
  int32_t low = from, high = to, rank = INT32_MAX;
  if (pivot == PIVOT_LEFTMOST) rank = find_candidate(skyline, from, to, from, from + 1);
  if (pivot == PIVOT_RIGHTMOST) rank = find_candidate(skyline, from, to, to - 1, to);
  for (int tries = 0; pivot == PIVOT_FULLEST && tries < 4 && rank == INT32_MAX && low < high; tries++) {
    rank = find_candidate(skyline, from, to, fullest.point, fullest.point + 1);
    if (rank < INT32_MAX) break;
    Peak left = fullest_point(skyline, low, fullest.point), right = fullest_point(skyline, fullest.point + 1, high);
    if (left.load >= right.load)
      high = fullest.point, fullest = left;
    else
      low = fullest.point + 1, fullest = right;
  }
  return rank < INT32_MAX ? rank : find_candidate(skyline, from, to, from, to);
}

static void place_item(Skyline *skyline, int32_t segment, int32_t item) {
  const Problem *problem = skyline->problem;
  int32_t start = problem->start[item], end = problem->end[item], to = skyline->right[segment];
  int64_t height = skyline->height[segment];
  heap_remove(skyline, segment);
  make_segment(skyline, segment, start, height);
  make_segment(skyline, start, end, height + problem->size[item]);
  make_segment(skyline, end, to, height);
  forget_candidate(skyline, item);
  load_add(skyline, 1, 0, skyline->load_leaves, start, end, -problem->size[item]);
}

int64_t skyline_pack(Skyline *skyline, const int32_t *order, Pivot pivot, int64_t limit, int64_t *offset,
                     int64_t *work) {
  const Problem *problem = skyline->problem;
  /* Measured: a step takes half a microsecond at 10,000 items and five times that at 100,000, beyond the caches. */
  int64_t makespan = 0, step = 1 + problem->count / 25000;
  skyline_reset(skyline, order);
  *work += problem->count / 8;
  for (int32_t placed = 0; placed < problem->count;) {
    int32_t from = skyline->heap[0], to = skyline->right[from];
    *work += step;
    Peak fullest = fullest_point(skyline, from, to);
    if (fullest.load > limit - skyline->height[from]) return INT64_MAX;
    int32_t rank = fullest.load > 0 ? choose_candidate(skyline, from, to, pivot, fullest) : INT32_MAX;
    if (rank == INT32_MAX) {
      raise_segment(skyline, from);
      continue;
    }
    int32_t item = order[rank];
    offset[item] = skyline->height[from];
    place_item(skyline, from, item);
    if (offset[item] + problem->size[item] > makespan) makespan = offset[item] + problem->size[item];
    placed++;
  }
  return makespan;
}
