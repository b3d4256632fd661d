/* passes/packing/search.c - what runs when, and for how long. */
#include "passes/packing/search.h"

#include <math.h>

#include "passes/packing/exact_search.h"
#include "passes/packing/hot_evolution.h"
#include "passes/packing/hot_window.h"
#include "passes/packing/portfolio.h"

/* The exact search lists every item at every point of its life: problems with more entries are too large for it. */
enum { MOST_ENTRIES = 8000000 };

/* Problems that the exact search is at home with have at most so many items. */
enum { SMALL = 600 };

/* How a restart of the exact search branches. */
typedef struct Style {
  RankRule rank;
  BranchRule branch;
  double wall_bonus;
  bool guided; /* by the best packing so far, not by a rule of rank */
  bool found;  /* a restart in this style has improved the packing */
} Style;

struct Search {
  Style style, last_success;
  Problem *problem;
  HotEvolution *evolution;
  ExactSearch *exact; /* NULL where the problem is too large */
  Random random;
  double *key; /* working memory */
  int64_t *offset;
  int64_t bound, slice, entries; /* entries: of the lists of items by point */
  int32_t round;
  /* of the round at hand */
  int64_t goal, stop, *work;
};

static int64_t count_entries(const Problem *problem) {
  int64_t entries = 0;
  for (int32_t i = 0; i < problem->count; i++) entries += problem->end[i] - problem->start[i];
  return entries;
}

Search *search_create(MemoryArena *arena, Problem *problem, uint64_t seed) {
  Search *search = NEW(arena, Search);
  search->problem = problem;
  search->evolution = hot_evolution_create(arena, problem);
  search->entries = count_entries(problem);
  if (search->entries <= MOST_ENTRIES) search->exact = exact_search_create(arena, problem);
  search->random.state = seed;
  search->key = NEW_ARRAY(arena, double, problem->count);
  search->offset = NEW_ARRAY(arena, int64_t, problem->count);
  search->bound = problem->lower_bound;
  search->slice = 5000 + 10 * (int64_t)problem->count;
  return search;
}

void search_release(Search *search) { hot_evolution_release(search->evolution); }

int64_t search_bound(const Search *search) { return search->bound; }

static bool round_over(const Search *search) {
  return search->problem->makespan <= search->goal || search->problem->makespan <= search->bound ||
         *search->work >= search->stop;
}

/* A makespan to aim at: the goal itself, or, with some probability, something between it and the best so far. */
static int64_t pick_target(Search *search, double probability) {
  int64_t goal = search->goal > search->bound ? search->goal : search->bound;
  int64_t room = search->problem->makespan - 1 - goal;
  double part = random_unit(&search->random), between = random_unit(&search->random);
  return part < probability ? goal + (int64_t)((double)room * between) : goal;
}

/* Chooses how to branch in the next restart: half of the time as in the last one that found something. */
static void pick_style(Search *search) {
  static const double bonuses[] = {0, 1, 100};
  Style *style = &search->style;
  if (search->last_success.found && random_unit(&search->random) < 0.5) {
    *style = search->last_success;
    return;
  }
  /* Narrowest first pays on small problems only: on tf_1k_d and unet_1k_a it found nothing where the others did. */
  int32_t rules = search->problem->count > SMALL ? BRANCH_NARROWEST : BRANCH_COUNT;
  style->guided = random_unit(&search->random) < 0.3;
  style->rank = (RankRule)random_choice(&search->random, RANK_COUNT);
  style->branch = (BranchRule)random_choice(&search->random, rules);
  style->wall_bonus = bonuses[random_choice(&search->random, sizeof bonuses / sizeof *bonuses)];
}

/* Keys for a restart: a rule, or the order of the best packing so far from the bottom up, with some noise. */
static void pick_keys(Search *search) {
  const Problem *problem = search->problem;
  bool guided = search->style.guided;
  double noise = guided ? 0.05 : 0.6, height = (double)problem->lower_bound;
  if (!guided) log_rank_keys(problem, search->style.rank, search->key);
  for (int32_t i = 0; i < problem->count; i++) {
    if (guided) search->key[i] = -(double)problem->offset[i] / height;
    search->key[i] += noise * random_unit(&search->random);
  }
  *search->work += problem->count / 16;
}

/* Restarts of the exact search until `until`. Its times to a solution are heavy-tailed, so most runs are as short as a
 * descent without failures, and each doubling of the length is half as frequent (after Luby, Sinclair & Zuckerman, IPL
 * 1993). */
static void run_exact_restarts(Search *search, int64_t until) {
  Problem *problem = search->problem;
  while (*search->work < until && !round_over(search)) {
    pick_style(search);
    pick_keys(search);
    int64_t target = pick_target(search, problem->count > SMALL ? 0.9 : 0.5);
    int64_t limit = (500 + search->entries / 2) << random_doublings(&search->random, 12);
    if (limit > until - *search->work) limit = until - *search->work;
    SearchOutcome outcome = exact_search_run(search->exact, search->key, search->style.wall_bonus, search->style.branch,
                                             target, limit, search->offset, search->work);
    if (outcome == SEARCH_IMPOSSIBLE) search->bound = target + 1;
    if (outcome != SEARCH_FOUND) continue;
    offer_packing(problem, search->offset, measure_makespan(problem, search->offset));
    search->last_success = search->style;
    search->last_success.found = true;
  }
}

static int64_t left_of_round(const Search *search, int64_t slice) {
  int64_t left = search->stop - *search->work;
  return slice < left ? slice : left;
}

void search_round(Search *search, bool windows, int64_t goal, int64_t limit, int64_t *work) {
  /* A narrow window of small problems, then a wide one. */
  static const double heats[2][6] = {{0.97, 0.99, 0.95, 0.97, 0.99, 0.95}, {0.8, 0.9, 0.7, 0.6, 0.85, 0.5}};
  int64_t slice = search->slice;
  search->goal = goal;
  search->work = work;
  search->stop = *work + limit;
  if (search->exact) run_exact_restarts(search, *work + slice);
  for (int k = 0; windows && k < 2 && !round_over(search); k++) {
    pack_hot_window(search->problem, heats[k][search->round % 6], pick_target(search, search->round == 0 ? 0 : 0.3),
                    left_of_round(search, 2 * slice + 40 * search->problem->count), &search->random, work);
  }
  if (!round_over(search)) {
    int64_t share = windows && search->problem->count > SMALL ? 16 : 1;
    hot_evolution_run(search->evolution, &search->random, goal, left_of_round(search, share * slice), work);
  }
  search->slice += slice / 2;
  search->round++;
}
