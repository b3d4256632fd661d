/* codegen/pictures/picture.h - what every picture of a plan shows, computed once.
 *
 * A picture joins a planning problem, a plan and the plan that keeps everything. Numbers come from replaying both under
 * the counting rules (docs/design.md, section 6); a picture that disagrees with the plan's own claims is a bug (die).
 * Sizes are bytes, costs in the graph's unit. Everything lives in the arena given to picture_create(). */
#ifndef REPRISE_CODEGEN_PICTURES_PICTURE_H
#define REPRISE_CODEGEN_PICTURES_PICTURE_H

#include "passes/planner/plan.h"

/* What becomes of a storage that the forward pass makes. FREED: no stage reads it, it is gone before the backward pass;
 * RECOMPUTED also when only clones want it again. OTHER: persistent storages and those of the backward pass. */
typedef enum Fate { FATE_KEPT, FATE_RECOMPUTED, FATE_FREED, FATE_OTHER, FATE_COUNT } Fate;
/* "kept", "recomputed", "freed early", "" */
const char *fate_name(Fate fate);

/* One execution of a node. */
typedef struct PictureRun {
  int32_t node;
  int32_t ordinal; /* 0: the first execution; clones count from 1 */
  const PlanStep *step;
  double start;                  /* cost of everything before it */
  int64_t live[PLAN_ROLE_COUNT]; /* while it runs */
  int64_t total;
} PictureRun;

typedef struct PictureRuns {
  ARRAY(PictureRun) runs;
  double cost;
  int64_t peak; /* the largest total; persistent bytes where no run raises them */
  int64_t peak_run;
} PictureRuns;

typedef struct Picture {
  MemoryArena *arena;
  const char *name;
  const PlanGraph *graph;
  const Plan *plan, *keep_all;
  int64_t budget, arena_bytes; /* -1: none, not packed */
  PictureRuns planned, kept;   /* by the plan, and keeping everything */
  Fate *fates;                 /* per storage */
  int32_t *times_run;          /* per node, by the plan */
  DecisionList decisions;      /* storages that a stage reads, in order of making */
  int64_t recomputed_count;    /* of the decisions */
} Picture;

/* budget, arena_bytes: -1 where there is none. Everything given must outlive the picture. */
Picture *picture_create(MemoryArena *arena, const char *name, const PlanGraph *graph, const Plan *plan,
                        const Plan *keep_all, int64_t budget, int64_t arena_bytes);

/* Is an output of this run dropped at once? */
bool run_drops(const PictureRun *run, int32_t storage);
/* The phase, by position where the graph does not tell. Never PLAN_PHASE_NONE. */
PlanPhase picture_phase(const PlanGraph *graph, int32_t node);
const char *phase_name(PlanPhase phase);
/* Time lost and gap in percent of base cost and of cost; 0 where costs are 0. The gap is rounded up to hundredths: what
 * is printed is proven. */
double picture_overhead(const Plan *plan);
double picture_gap(const Plan *plan);
/* "12.3 ms" for microseconds, "12.3 UNIT" for other units, plain without one. */
char *format_cost(MemoryArena *arena, const PlanGraph *graph, double cost);
/* The shortest decimal number that reads back as the same double. */
char *exact_number(MemoryArena *arena, double value);
/* "Digits within 120.0 KiB: live peak 110.2 KiB, +1.25 % time, proven optimal": the title of every picture. */
char *picture_title(const Picture *picture);
/* "file:line:column" of the node that makes a storage, or "". */
const char *source_of_storage(const PlanGraph *graph, int32_t storage);

/* ---- text ---- */

/* For XML, HTML and DOT labels: & < > " ' as references, control characters and broken UTF-8 as U+FFFD. */
char *escape_markup(MemoryArena *arena, const char *text);
/* At most `most` code points; where it is cut a "…" stands in the middle. */
char *shorten_text(MemoryArena *arena, const char *text, int most);
/* The number of code points, counting every byte of broken UTF-8 as one. */
int text_width(const char *text);

#endif
