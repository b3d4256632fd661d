/* passes/planner/plan.h - plans: a schedule of executions and frees, what it costs, and how good it is proven to be.
 *
 * A plan is made from a run sequence (a list of node numbers, first executions in the order of the graph, further ones
 * anywhere after their inputs exist): plan_from_runs() adds the frees, in-place choices and drops that the counting
 * rules allow. Every strategy produces run sequences and nothing else. */
#ifndef REPRISE_PASSES_PLANNER_PLAN_H
#define REPRISE_PASSES_PLANNER_PLAN_H

#include "passes/planner/plan_graph.h"

typedef enum PlanStepKind { PLAN_RUN, PLAN_FREE } PlanStepKind;

typedef struct PlanStep {
  PlanStepKind kind;
  int32_t target;    /* node to run, or storage to free */
  PlanInplace *into; /* outputs that take an input's bytes */
  int32_t *drops;    /* outputs not wanted from this run */
  int32_t into_count, drop_count;
} PlanStep;

typedef enum PlanStatus { PLAN_STATUS_FEASIBLE, PLAN_STATUS_OPTIMAL } PlanStatus;
/* What a lower bound holds for: schedules whose first executions keep the order of the graph, or any schedule. */
typedef enum PlanScope { PLAN_SCOPE_ANY, PLAN_SCOPE_ORDER } PlanScope;

typedef struct Plan {
  ARRAY(PlanStep) steps;
  int64_t peak, budget; /* bytes; budget 0: none was given */
  double cost, base_cost, lower_bound;
  PlanScope scope;
  PlanStatus status;
  const char *stopped_by;           /* why the search ended; NULL when it proved the plan optimal */
  const char *strategy;             /* NULL when not known */
  int64_t anatomy[PLAN_ROLE_COUNT]; /* bytes at the peak; sums to peak */
} Plan;

/* OPTIMAL when the cost is the bound, to a billionth. */
PlanStatus plan_status_of(double cost, double lower_bound);

/* A growing list of nodes in the order in which they run. */
typedef ARRAY(int32_t) RunList;

/* Where instances of storages begin and end in a run sequence. For run k, the flag of input i is at input_base[k] + i,
 * that of output o at output_base[k] + o. The same analysis serves plan_from_runs() and runs_profile(). */
typedef struct RunUses {
  bool *first;       /* by run: the first execution of its node, whose outputs cannot be dropped */
  bool *input_ends;  /* indexed by input_base[k] + i: this run is the last to read the instance */
  bool *output_used; /* indexed by output_base[k] + o: this instance is wanted */
  int32_t *input_base, *output_base;
} RunUses;

/* The plan of a run sequence, with peak, cost and anatomy from its replay, lower_bound = base_cost, scope any, status
 * optimal exactly when cost = base_cost. Dies when the sequence breaks the counting rules (our bug). */
Plan *plan_from_runs(MemoryArena *arena, const PlanGraph *graph, const int32_t *runs, int64_t count);
/* Every node once, in order. */
Plan *plan_keep_all(MemoryArena *arena, const PlanGraph *graph);
/* The run sequence of a plan. */
RunList plan_runs(MemoryArena *arena, const Plan *plan);

RunUses run_uses(MemoryArena *arena, const PlanGraph *graph, const int32_t *runs, int64_t count);
/* Chooses the in-place pairs of run k: fills pairs (room for all of the node's outputs) and returns their number. */
int32_t run_inplace(const PlanGraph *graph, const RunUses *uses, const int32_t *runs, int64_t k, PlanInplace *pairs);
/* The peak of a run sequence in bytes without building its plan. live, when not NULL, receives the bytes live while run
 * k executes. */
int64_t runs_profile(MemoryArena *scratch, const PlanGraph *graph, const int32_t *runs, int64_t count, int64_t *live);
double runs_cost(const PlanGraph *graph, const int32_t *runs, int64_t count);

/* Are the graph's keep and recompute constraints met? If not, *storage is the first one that breaks them. */
bool plan_obeys_decisions(MemoryArena *scratch, const PlanGraph *graph, const Plan *plan, int32_t *storage);

/* What became of a storage that a stage reads although it was made before the first stage. */
typedef struct StorageDecision {
  int32_t storage;
  bool kept;         /* live from its first making to its last use */
  int32_t times_run; /* executions of its node */
} StorageDecision;
typedef ARRAY(StorageDecision) DecisionList;
DecisionList plan_decisions(MemoryArena *arena, const PlanGraph *graph, const Plan *plan);

/* The text of a plan file; on one line when compact (for the planner's stream). */
char *plan_text(MemoryArena *arena, const PlanGraph *graph, const Plan *plan, bool compact);
/* Reads a plan file for a graph; a fault is reported with diag_error() and gives NULL. Only the form and the names are
 * checked here; whether the schedule obeys the rules is for replay_plan() (replay.h) to say. */
Plan *plan_read(MemoryArena *arena, const PlanGraph *graph, const char *path);
/* The same from a text, silently: NULL with *error set (in the arena) on the first fault. */
Plan *plan_parse(MemoryArena *arena, const PlanGraph *graph, const char *text, int64_t length, const char **error);

#endif
