/* tests/operators/vectors.h - the files of tests/reference in memory. */
#ifndef REPRISE_TESTS_OPERATORS_VECTORS_H
#define REPRISE_TESTS_OPERATORS_VECTORS_H

#include <jansson.h>

#include "ir/eval.h"

enum { MOST_TENSORS = 8, MOST_VIEWS = 2 };

/* A tensor as written: what is compared with, or what is fed. */
typedef struct VectorTensor {
  Type type;
  double *data; /* type_elements of them */
} VectorTensor;

/* One step from a tensor to what the operator sees of it. */
typedef struct VectorView {
  const char *kind; /* "permute", "reshape", "expand": dims; "slice": axis, start, stop, step */
  int count;
  int64_t numbers[MAX_RANK];
} VectorView;

typedef struct VectorInput {
  bool present; /* false: an optional input left out */
  VectorTensor tensor;
  int view_count;
  VectorView views[MOST_VIEWS];
  double *gradient; /* of the loss, or NULL: not asked for */
} VectorInput;

typedef struct VectorCase {
  const char *op, *name;
  json_t *attributes;
  int input_count, output_count;
  VectorInput inputs[MOST_TENSORS];
  VectorTensor outputs[MOST_TENSORS];
  int differentiated; /* leading outputs that the loss is made of */
  double tolerance;   /* for float32, relative; 0: the usual one */
} VectorCase;

typedef ARRAY(VectorCase) VectorCases;

/* Reads a file of cases; dies when it is malformed. Everything lives in the arena but the JSON, which the caller
 * releases with json_decref after use. */
json_t *vectors_read(MemoryArena *arena, const char *path, VectorCases *cases);
/* A JSON array of numbers, "nan", "inf" and "-inf". */
double *vectors_numbers(MemoryArena *arena, const json_t *array, int64_t count);
/* Weight of element i of a differentiated output in the loss. */
double vectors_weight(int64_t i);

/* Compares element by element: the difference may be `absolute` plus `relative` times the largest magnitude expected.
 * Reports the first that is further off on stderr under `what` and returns false. */
bool vectors_match(const char *what, const EvalTensor *found, const double *expected, double relative, double absolute);

#endif
