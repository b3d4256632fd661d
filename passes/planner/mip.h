/* passes/planner/mip.h - mixed-integer linear programs, and the one door to the solver (ilp_glpk.c).
 *
 * min constant + Σ cost_j x_j  subject to  lower_i <= Σ a_ij x_j <= upper_i, column bounds, some x_j integer.
 * Rows can be added while the solver runs: every integral candidate is shown to a callback that may answer with rows
 * that it violates. */
#ifndef REPRISE_PASSES_PLANNER_MIP_H
#define REPRISE_PASSES_PLANNER_MIP_H

#include "ir/base.h"

typedef struct MipColumn {
  double lower, upper, cost;
  bool integer;
} MipColumn;

typedef struct MipRow {
  double lower, upper;  /* ±HUGE_VAL where there is none */
  int32_t start, count; /* entries */
} MipRow;

typedef struct MipEntry {
  int32_t column;
  double value;
} MipEntry;

typedef struct Mip {
  MemoryArena *arena;
  double constant;
  ARRAY(MipColumn) columns;
  ARRAY(MipRow) rows;
  ARRAY(MipEntry) entries;
  double *sums;     /* the row under construction: coefficient per column */
  bool *touched_is; /* per column: in touched */
  int64_t room;     /* length of both */
  ARRAY(int32_t) touched;
} Mip;

Mip *mip_create(MemoryArena *arena);
int32_t mip_column(Mip *mip, double lower, double upper, double cost, bool integer);
/* Builds one row: any number of mip_term() (terms of one column add up), then mip_row_end(). Returns the row's number,
 * or -1 for a row without terms, which is not added. */
void mip_term(Mip *mip, int32_t column, double value);
int32_t mip_row_end(Mip *mip, double lower, double upper);

typedef struct MipEvents {
  void *context;
  /* An integral solution of all rows so far, indexed by column. Adds the rows that it violates to the program; adding
   * none accepts it, and is the only place where solutions are seen. May be NULL. */
  void (*candidate)(void *context, Mip *mip, const double *values);
  bool (*stop)(void *context); /* asked often; may be NULL */
} MipEvents;

typedef struct MipLimits {
  int64_t nodes; /* branch-and-bound nodes */
  int64_t work;  /* simplex iterations x (3 rows + 1000) + nodes x (10 entries + 30000), each some 30 ns */
  double gap;    /* relative */
  double cutoff; /* stop once every open node's bound is at least this; HUGE_VAL for none */
} MipLimits;

typedef enum MipStatus { MIP_OPTIMAL, MIP_FEASIBLE, MIP_INFEASIBLE, MIP_LIMIT, MIP_FAILED } MipStatus;

typedef struct MipResult {
  MipStatus status;
  double bound;            /* lower bound on any solution; -HUGE_VAL when none is known */
  int64_t work, root_work; /* done, as in the limits: in all and by the root relaxation */
} MipResult;

/* Solves. MIP_FAILED: the solver broke down (numerically, or an internal error of GLPK, which it survives). */
MipResult mip_solve(Mip *mip, const MipLimits *limits, const MipEvents *events);

#endif
