/* tests/packing/bench_packing.c - packs every table it is given and prints the figures beside those to reach.
 *
 * bench_packing [--effort=N] FILE...  Baselines: greedy by size (Pisarchyk & Lee, arXiv 2001.03288) and best fit in the
 * order of time. Seconds are of the processor. Exits with 1 when a checker finds a fault or a goal is missed. */
#include <stdlib.h>
#include <time.h>

#include "ir/diagnostics.h"
#include "passes/packing/buffer_table.h"

/* What the instances are known to admit: capacity in bytes, or most percent over the lower bound. */
typedef struct Goal {
  const char *name;
  int64_t capacity;
  double over;
} Goal;

static const Goal goals[] = {
    {"unet_1k_c.csv", 0, 8},
    {"tf_1k_c.csv", 0, 4},
    {"tf_1k_d.csv", 0, 4},
    {"tf_10k_a.csv", 0, 4},
};

static Goal goal_of(const char *name) {
  if (strstr(name, ".1048576.")) return (Goal){name, 1048576, 0};
  for (size_t i = 0; i < sizeof goals / sizeof *goals; i++)
    if (string_equal(goals[i].name, name)) return goals[i];
  return (Goal){name, 0, 0};
}

static int by_size(const void *left, const void *right) {
  const PackingBuffer *a = left, *b = right;
  return (a->size < b->size) - (a->size > b->size);
}

static int by_lower(const void *left, const void *right) {
  const PackingBuffer *a = left, *b = right;
  return (a->lower > b->lower) - (a->lower < b->lower);
}

static int by_offset(const void *left, const void *right) {
  const PackingBuffer *a = *(PackingBuffer *const *)left, *b = *(PackingBuffer *const *)right;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Places buffers one by one, each in the smallest gap among those placed that it lives with, or on top. */
static int64_t pack_greedily(MemoryArena *arena, PackingBuffer *buffers, int64_t count,
                             int (*order)(const void *, const void *)) {
  PackingBuffer **live = NEW_ARRAY(arena, PackingBuffer *, count);
  int64_t makespan = 0;
  qsort(buffers, (size_t)count, sizeof *buffers, order);
  for (int64_t i = 0; i < count; i++) {
    int64_t live_count = 0, reach = 0, best = -1, least_gap = INT64_MAX;
    for (int64_t j = 0; j < i; j++)
      if (buffers[j].lower < buffers[i].upper && buffers[i].lower < buffers[j].upper) live[live_count++] = &buffers[j];
    qsort(live, (size_t)live_count, sizeof *live, by_offset);
    for (int64_t k = 0; k < live_count; k++) {
      int64_t gap = live[k]->offset - reach, end = live[k]->offset + live[k]->size;
      if (gap >= buffers[i].size && gap < least_gap) best = reach, least_gap = gap;
      if (end > reach) reach = end;
    }
    buffers[i].offset = best >= 0 ? best : reach;
    if (buffers[i].offset + buffers[i].size > makespan) makespan = buffers[i].offset + buffers[i].size;
  }
  return makespan;
}

static double percent_over(int64_t makespan, int64_t bound) {
  return bound ? 100.0 * (double)(makespan - bound) / (double)bound : 0;
}

/* Packs one table and prints its line; false when the map is invalid or the goal is missed. */
static bool bench_table(MemoryArena *arena, const char *path, int64_t effort) {
  enum { MOST_FOR_BASELINES = 12000 };
  int64_t length;
  const char *error, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char *text = file_read(arena, path, &length, &error);
  if (!text) die("%s", error);
  BufferTable table = parse_buffer_table(arena, path, text, length);
  if (diag_error_count()) {
    diag_print(stderr, false);
    return false;
  }
  Goal goal = goal_of(name);
  clock_t begin = clock();
  PackingOptions options = {.capacity = goal.capacity, .effort = effort};
  PackingResult result = pack_buffers(table.items, table.count, &options);
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC, over = percent_over(result.makespan, result.lower_bound);
  bool valid = check_packing(table.items, table.count, 1, result.makespan).fault == PACKING_VALID;
  bool reached = goal.capacity ? result.fits : over <= goal.over;
  printf("%-18s %7ld %14ld %8.3f %8.3f %10ld", name, (long)table.count, (long)result.lower_bound, over, seconds,
         (long)result.effort);
  if (table.count <= MOST_FOR_BASELINES) {
    double size = percent_over(pack_greedily(arena, table.items, table.count, by_size), result.lower_bound);
    double fit = percent_over(pack_greedily(arena, table.items, table.count, by_lower), result.lower_bound);
    printf(" %8.2f %8.2f", size, fit);
  } else {
    printf(" %8s %8s", "-", "-");
  }
  if (goal.capacity)
    printf("  <= %ld %s", (long)goal.capacity, reached ? "reached" : "MISSED");
  else
    printf("  <= %.0f %% %s", goal.over, reached ? "reached" : "MISSED");
  puts(valid ? "" : "  INVALID MAP");
  fflush(stdout);
  return valid && reached;
}

int main(int argc, char **argv) {
  int64_t effort = 0;
  bool good = true;
  printf("%-18s %7s %14s %8s %8s %10s %8s %8s  %s\n", "table", "buffers", "lower bound", "over %", "seconds", "effort",
         "size %", "fit %", "goal");
  for (int i = 1; i < argc; i++) {
    if (string_starts(argv[i], "--effort=")) {
      effort = strtoll(argv[i] + strlen("--effort="), NULL, 10);
      continue;
    }
    MemoryArena *arena = memory_arena_create();
    good = bench_table(arena, argv[i], effort) && good;
    memory_arena_destroy(arena);
  }
  return good ? 0 : 1;
}
