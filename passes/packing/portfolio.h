/* passes/packing/portfolio.h - the fixed rules of rank and pivot that are tried first. */
#ifndef REPRISE_PASSES_PACKING_PORTFOLIO_H
#define REPRISE_PASSES_PACKING_PORTFOLIO_H

#include "passes/packing/skyline.h"

/* What makes an item worth placing early. */
typedef enum RankRule {
  RANK_AREA,       /* size * width, width = points of life */
  RANK_WIDTH,      /* width, then size */
  RANK_SIZE,       /* size, then width */
  RANK_HEAT,       /* heat, then area */
  RANK_HEAT_WIDTH, /* heat^4 * width */
  RANK_HEAT_SIZE,  /* heat^4 * size */
  RANK_HEAT_AREA,  /* heat^4 * area */
  RANK_TALL_AREA,  /* size^2 * width */
  RANK_LONG_AREA,  /* size * width^2 */
  RANK_COUNT
} RankRule;

/* Sorts the items by a rule, the best first, ties by index. */
void rank_items(const Problem *problem, RankRule rule, int32_t *order);

/* Sorts the items by decreasing key, ties by index. Keys may be infinite, but not NaN. */
void rank_by_key(const double *key, int32_t count, int32_t *order);

/* The natural logarithm of each item's key under a rule, key[count]. */
void log_rank_keys(const Problem *problem, RankRule rule, double *key);

/* Runs the skyline with every rule of rank and pivot until the makespan of the problem is at most `goal`, or after
 * about `limit` units of work, added to *work; the first run is always completed. */
void run_portfolio(Problem *problem, int64_t goal, int64_t limit, int64_t *work);

#endif
