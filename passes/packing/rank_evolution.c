/* passes/packing/rank_evolution.c - features, the population, its changes. */
#include "passes/packing/rank_evolution.h"

#include <math.h>

#include "passes/packing/portfolio.h"

/* So many rules are invented, the best of which are the first population. */
enum { POPULATION = 12, INVENTED = 62 };

/* A population whose best has not improved for so many packings is exhausted. */
enum { PATIENCE = 700 };

/* Of an item that lives at points [start, end), u = start / points, v = end / points. */
typedef enum Feature {
  FEATURE_SIZE,          /* log(size / lower bound) */
  FEATURE_WIDTH,         /* log(end - start) */
  FEATURE_HEAT,          /* 4 log(heat) */
  FEATURE_EXTREME,       /* log(1 + log(size / lower bound)^2): small ones */
  FEATURE_START,         /* 4 u */
  FEATURE_END,           /* 4 v */
  FEATURE_CENTRAL,       /* 4 |u + v - 1| */
  FEATURE_START_CENTRAL, /* 8 |u - 1/2| */
  FEATURE_END_CENTRAL,   /* 8 |v - 1/2| */
  FEATURE_LENGTH,        /* sqrt(end - start) / 4 */
  FEATURE_COUNT
} Feature;

typedef struct Rule {
  double weight[FEATURE_COUNT];
  double *correction; /* [count] */
  Pivot pivot;
  int64_t makespan; /* INT64_MAX: not set yet */
} Rule;

struct RankEvolution {
  Problem *problem;
  double *feature[FEATURE_COUNT]; /* [count] each */
  Rule rules[POPULATION], child;
  int32_t age, stale; /* packings of the population, and since its best rule has improved */
  double *key;        /* working memory */
  int32_t *order;
  int64_t *offset;
};

static void measure_features(RankEvolution *evolution) {
  const Problem *problem = evolution->problem;
  for (int32_t i = 0; i < problem->count; i++) {
    double size = log((double)problem->size[i] / (double)problem->lower_bound);
    double width = problem->end[i] - problem->start[i];
    double u = (double)problem->start[i] / problem->points, v = (double)problem->end[i] / problem->points;
    double values[FEATURE_COUNT] = {
        [FEATURE_SIZE] = size,
        [FEATURE_WIDTH] = log(width),
        [FEATURE_HEAT] = 4 * log(problem->heat[i]),
        [FEATURE_EXTREME] = log(1 + size * size),
        [FEATURE_START] = 4 * u,
        [FEATURE_END] = 4 * v,
        [FEATURE_CENTRAL] = 4 * fabs(u + v - 1),
        [FEATURE_START_CENTRAL] = 8 * fabs(u - 0.5),
        [FEATURE_END_CENTRAL] = 8 * fabs(v - 0.5),
        [FEATURE_LENGTH] = sqrt(width) / 4,
    };
    for (int f = 0; f < FEATURE_COUNT; f++) evolution->feature[f][i] = values[f];
  }
}

RankEvolution *rank_evolution_create(MemoryArena *arena, Problem *problem) {
  RankEvolution *evolution = NEW(arena, RankEvolution);
  int32_t count = problem->count;
  evolution->problem = problem;
  for (int f = 0; f < FEATURE_COUNT; f++) evolution->feature[f] = NEW_ARRAY(arena, double, count);
  for (int k = 0; k < POPULATION; k++)
    evolution->rules[k] = (Rule){.correction = NEW_ARRAY(arena, double, count), .makespan = INT64_MAX};
  evolution->child.correction = NEW_ARRAY(arena, double, count);
  evolution->key = NEW_ARRAY(arena, double, count);
  evolution->order = NEW_ARRAY(arena, int32_t, count);
  evolution->offset = NEW_ARRAY(arena, int64_t, count);
  measure_features(evolution);
  return evolution;
}

static void copy_rule(Rule *to, const Rule *from, int32_t count) {
  double *correction = to->correction;
  memcpy(correction, from->correction, (size_t)count * sizeof *correction);
  *to = *from;
  to->correction = correction;
}

/* A new rule: the larger, the longer and the hotter the earlier, more often than not. */
static void invent_rule(Rule *rule, Random *random, int32_t count) {
  static const double least[FEATURE_COUNT] = {-0.3, -0.3, 0, -1, -1, -1, -1, -1, -1, -1};
  for (int f = 0; f < FEATURE_COUNT; f++) rule->weight[f] = least[f] + 2 * random_unit(random);
  memset(rule->correction, 0, (size_t)count * sizeof *rule->correction);
  rule->pivot = random_unit(random) < 0.8 ? PIVOT_FULLEST : (Pivot)random_choice(random, PIVOT_COUNT);
}

/* In [0.03, 1): small changes and large ones, equally often by order of magnitude. */
static double random_scale(Random *random) { return pow(0.03, random_unit(random)); }

/* In (-1.5, 1.5), nearly normal with standard deviation 1/2. */
static double random_normal(Random *random) {
  double sum = -1.5;
  for (int k = 0; k < 3; k++) sum += random_unit(random);
  return sum;
}

static void change_weights(Rule *rule, Random *random) {
  double scale = 0.3 * random_scale(random);
  for (int f = 0; f < FEATURE_COUNT; f++) rule->weight[f] += scale * random_normal(random);
}

/* Moves a rule along the difference of two others, a step of differential evolution (Storn & Price, 1997). */
static void follow_difference(Rule *rule, const Rule *from, const Rule *to, double step, int32_t count) {
  for (int f = 0; f < FEATURE_COUNT; f++) rule->weight[f] += step * (to->weight[f] - from->weight[f]);
  for (int32_t i = 0; i < count; i++) rule->correction[i] += step * (to->correction[i] - from->correction[i]);
}

static bool near(int32_t a, int32_t b, int32_t distance) { return a - b <= distance && b - a <= distance; }

/* Changes the corrections of all items whose birth, death or both are near those of a random one, half of the time only
 * those of similar size. */
static void change_corrections(const RankEvolution *evolution, Rule *rule, Random *random) {
  const Problem *problem = evolution->problem;
  const double *size = evolution->feature[FEATURE_SIZE];
  enum { BIRTH, DEATH, BOTH } sides = random_choice(random, 3);
  int32_t middle = random_choice(random, problem->count);
  double part = random_unit(random), scale = random_scale(random), change = scale * (2 * random_unit(random) - 1);
  int32_t distance = 1 + (int32_t)(0.3 * problem->points * part * part);
  double range = random_unit(random) < 0.5 ? 3 * random_unit(random) : INFINITY;
  for (int32_t i = 0; i < problem->count; i++) {
    if (sides != DEATH && !near(problem->start[i], problem->start[middle], distance)) continue;
    if (sides != BIRTH && !near(problem->end[i], problem->end[middle], distance)) continue;
    if (fabs(size[i] - size[middle]) <= range) rule->correction[i] += change;
  }
}

static Rule *worst_rule(RankEvolution *evolution) {
  Rule *worst = &evolution->rules[0];
  for (int k = 1; k < POPULATION; k++)
    if (evolution->rules[k].makespan > worst->makespan) worst = &evolution->rules[k];
  return worst;
}

static int64_t best_makespan(const RankEvolution *evolution) {
  int64_t best = INT64_MAX;
  for (int k = 0; k < POPULATION; k++)
    if (evolution->rules[k].makespan < best) best = evolution->rules[k].makespan;
  return best;
}

static const Rule *random_rule(const RankEvolution *evolution, Random *random) {
  return &evolution->rules[random_choice(random, POPULATION)];
}

/* The next rule to try: new ones at first and sometimes later, else a changed one. */
static void breed(RankEvolution *evolution, Random *random) {
  Rule *child = &evolution->child;
  int32_t count = evolution->problem->count;
  if (evolution->age < INVENTED || random_unit(random) < 0.02) {
    invent_rule(child, random, count);
    return;
  }
  copy_rule(child, random_rule(evolution, random), count);
  if (random_unit(random) < 0.5)
    follow_difference(child, random_rule(evolution, random), random_rule(evolution, random), random_unit(random),
                      count);
  double kind = random_unit(random);
  if (kind < 0.5) change_corrections(evolution, child, random);
  if (kind > 0.3) change_weights(child, random);
}

/* Packs by the child; INT64_MAX when it is not below `limit`. */
static int64_t pack_child(RankEvolution *evolution, Skyline *skyline, int64_t limit, int64_t *work) {
  const Problem *problem = evolution->problem;
  const Rule *child = &evolution->child;
  for (int32_t i = 0; i < problem->count; i++) {
    double key = child->correction[i];
    for (int f = 0; f < FEATURE_COUNT; f++) key += child->weight[f] * evolution->feature[f][i];
    evolution->key[i] = key;
  }
  rank_by_key(evolution->key, problem->count, evolution->order);
  *work += problem->count / 8 + 8;
  return skyline_pack(skyline, evolution->order, child->pivot, limit, evolution->offset, work);
}

/* The child replaces the worst rule, or the one that is as good, so that all makespans differ. */
static void adopt_child(RankEvolution *evolution, Rule *worst, int64_t makespan) {
  for (int k = 0; k < POPULATION; k++)
    if (evolution->rules[k].makespan == makespan) worst = &evolution->rules[k];
  evolution->child.makespan = makespan;
  copy_rule(worst, &evolution->child, evolution->problem->count);
}

bool rank_evolution_run(RankEvolution *evolution, Skyline *skyline, Random *random, int64_t goal, int64_t limit,
                        int64_t *work) {
  Problem *problem = evolution->problem;
  int64_t stop = *work + limit;
  while (problem->makespan > goal && *work < stop) {
    if (evolution->stale == PATIENCE) return false;
    breed(evolution, random);
    Rule *worst = worst_rule(evolution);
    int64_t least = worst->makespan < INT64_MAX ? worst->makespan - 1 : INT64_MAX;
    int64_t makespan = pack_child(evolution, skyline, least, work);
    evolution->age++;
    evolution->stale++;
    if (makespan == INT64_MAX) continue;
    if (makespan < best_makespan(evolution)) evolution->stale = 0;
    offer_packing(problem, evolution->offset, makespan);
    adopt_child(evolution, worst, makespan);
  }
  return true;
}
