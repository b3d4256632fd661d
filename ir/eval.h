/* ir/eval.h - the reference interpreter: runs any graph naively, in the order of its nodes.
 *
 * It is the oracle for the code generators, so it takes nothing from them: values are dense row-major arrays of doubles
 * or 64-bit integers, views are copies, kernels are written from their formulas. What it shares with emitted C is the
 * expression column of the op table, runtime/scalar_math.h and the random numbers.
 *
 *   Evaluation *e = eval_create(arena, graph, EVAL_F32);
 *   eval_fill_initial(e, seed);                      persistents from their initial values
 *   eval_tensor_set(&e->inputs[0], i, x);            or fill .real / .integer directly
 *   if (!eval_run(e)) … e->fault …
 *   eval_value(e, graph->loss.value)->real[0];
 *   eval_commit(e);                                  persistents take what was written; then run the next step
 */
#ifndef REPRISE_IR_EVAL_H
#define REPRISE_IR_EVAL_H

#include "ir/ir.h"

/* EVAL_F32: as a program computes: scalar expressions on f32 in float, reductions, contractions and kernels in double
 * and rounded once, every value rounded to its data type. EVAL_F64: every real in double whatever its data type.
 * Integers wrap to their width in both. */
typedef enum EvalPrecision { EVAL_F32, EVAL_F64 } EvalPrecision;

/* A value: exactly one of the arrays is set, type_elements(&type) long. Bools are the integers 0 and 1. */
typedef struct EvalTensor {
  Type type;
  double *real;     /* floating data types */
  int64_t *integer; /* the others */
} EvalTensor;

/* What scalar expressions call CONTROL; fields as in RpControl (runtime/program.h). */
typedef struct EvalControl {
  uint64_t seed;
  int64_t micro_step; /* from 0 */
  int64_t update;     /* from 1 */
  double learning_rate_scale;
  int32_t micro_steps; /* per update */
} EvalControl;

typedef struct EvalPlan EvalPlan; /* private: what eval_create prepares per node */

typedef struct Evaluation {
  const Graph *graph;
  EvalPrecision precision;
  EvalControl control; /* seed and settings of the module's training, micro-step 0, update 1, scale 1; may be changed */
  EvalTensor *inputs;  /* by index into module->inputs; zero until filled */
  EvalTensor *persistents; /* by index into module->persistents, as before the step; zero until filled */
  EvalTensor *written;     /* by index into module->persistents; meaningful where was_written */
  bool *was_written;
  EvalTensor *values; /* by value id; those without a producer have no arrays */
  const char *fault;  /* what is wrong with the data, after a run that failed; else NULL */
  NodeId fault_node;
  MemoryArena *arena;
  EvalPlan *plan;
  /* `probe_delta` is added to element `probe_element` of this value as soon as it is made; NO_VALUE: no probe */
  ValueId probe_value;
  int64_t probe_element;
  double probe_delta;
  /* by node: not run again, its outputs stay as they are; NULL: all nodes run */
  const bool *skipped;
} Evaluation;

/* Allocates everything in the arena, about 8 bytes per element of every value. The graph must be verified and must not
 * change while the evaluation is used. */
Evaluation *eval_create(MemoryArena *arena, const Graph *graph, EvalPrecision precision);

/* Runs every node once, or those of the phases first … last. Returns false when the data has a fault (an index out of
 * range): fault and fault_node say which. Persistents keep their old values, writes go to `written`. */
bool eval_run(Evaluation *evaluation);
bool eval_run_phases(Evaluation *evaluation, Phase first, Phase last);
/* Persistents take what was written since the last commit. */
void eval_commit(Evaluation *evaluation);
/* The tensor of a value of any kind; persistents as before the step. */
const EvalTensor *eval_value(const Evaluation *evaluation, ValueId value);

/* Persistents from their initial values: element i of Philox keyed by (seed, hash of the name), the rule of
 * runtime/initial.h written down again. */
void eval_fill_initial(Evaluation *evaluation, uint64_t seed);

/* A zeroed tensor, and access whatever its class. */
EvalTensor eval_tensor_create(MemoryArena *arena, const Type *type);
double eval_tensor_get(const EvalTensor *tensor, int64_t element);
void eval_tensor_set(EvalTensor *tensor, int64_t element, double value);

/* ---- gradients against finite differences ---- */

typedef struct GradientCheck {
  int64_t checked, skipped; /* elements compared; elements left out because the loss has a kink near them */
  double worst;             /* largest relative error */
  const char *name;         /* graph->gradients entry where it is, NULL when nothing was checked */
  int64_t element;
  double analytic, numeric;
} GradientCheck;

/* Compares graph->gradients with central differences of the loss, at up to `elements` elements of each gradient (all of
 * them, or evenly spread ones including the first and the last). Needs an EVAL_F64 evaluation with inputs and
 * persistents filled and a graph as the grad pass leaves it, not fused; leaves inputs and persistents unchanged and
 * nothing written. Differences are taken at two step sizes and extrapolated (Richardson); where one-sided differences
 * disagree as at a kink, the element is skipped. Operators that stop gradients on purpose keep their value. The
 * relative error is |analytic - numeric| over the larger of the two, or over 1e-5 of the larger of the loss and the
 * largest entry of that gradient where both are smaller. Returns false after a data fault. */
bool eval_gradient_check(Evaluation *evaluation, int64_t elements, GradientCheck *check);

#endif
