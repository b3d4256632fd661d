/* passes/packing/exact_search.h - complete depth-first search for a packing below a capacity.
 *
 * After MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning",
 * ASPLOS 2023), with its floors, canonical order and splits, but branching on what covers a pivot point of a valley of
 * the skyline and not on which item comes next. */
#ifndef REPRISE_PASSES_PACKING_EXACT_SEARCH_H
#define REPRISE_PASSES_PACKING_EXACT_SEARCH_H

#include "passes/packing/problem.h"

/* Which point of which valley is decided next. Ties go to the fewest branches, then to the left. */
typedef enum BranchRule {
  BRANCH_TIGHTEST,  /* least slack, in any valley */
  BRANCH_LOWEST,    /* the lowest valley, least slack there */
  BRANCH_NARROWEST, /* fewest branches, then least slack */
  BRANCH_COUNT
} BranchRule;

typedef enum SearchOutcome {
  SEARCH_FOUND,
  SEARCH_IMPOSSIBLE, /* proven: no packing within the capacity */
  SEARCH_STOPPED     /* by the limit */
} SearchOutcome;

typedef struct ExactSearch ExactSearch;

/* Working memory for searches of a problem: the sum of the items' widths is listed point by point. */
ExactSearch *exact_search_create(MemoryArena *arena, const Problem *problem);

/* Searches for a packing of at most `capacity` bytes; branches try items in the order of `key` (higher first), to which
 * `wall_bonus` is added for each side where the item would touch the wall of its valley, and twice that for each where
 * its top would be level with the wall's. Spends
 * at most about `limit` units of work, added to *work. Sets offset[count] when it finds one. */
SearchOutcome exact_search_run(ExactSearch *search, const double *key, double wall_bonus, BranchRule rule,
                               int64_t capacity, int64_t limit, int64_t *offset, int64_t *work);

#endif
