#include "runtime/initial.h"

#include <math.h>

#include "runtime/random.h"
#include "runtime/types.h"

double rp_normal(uint64_t seed, uint64_t op_id, uint64_t micro_step, uint64_t index) {
  uint32_t words[4];
  rp_random_words(seed, op_id, micro_step, index, words);
  uint64_t first = ((uint64_t)words[0] << 32 | words[1]) >> 11, second = ((uint64_t)words[2] << 32 | words[3]) >> 11;
  double u = ((double)first + 1) * 0x1p-53, v = (double)second * 0x1p-53; /* u in (0, 1], v in [0, 1) */
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double truncated_normal(uint64_t seed, uint64_t op_id, uint64_t index) {
  for (uint64_t attempt = 0;; attempt++) {
    double value = rp_normal(seed, op_id, RP_INITIAL_STREAM - attempt, index);
    if (fabs(value) <= 2) return value;
  }
}

static double draw(const RpInitial *initial, uint64_t seed, uint64_t op_id, uint64_t index) {
  switch (initial->kind) {
    case RP_INIT_UNIFORM:
      return initial->value * (2.0 * rp_uniform(seed, op_id, RP_INITIAL_STREAM, index) - 1.0);
    case RP_INIT_NORMAL:
      return initial->mean + initial->value * rp_normal(seed, op_id, RP_INITIAL_STREAM, index);
    case RP_INIT_TRUNCATED_NORMAL:
      return initial->mean + initial->value * truncated_normal(seed, op_id, index);
    case RP_INIT_CONSTANT:
      break;
  }
  return initial->value;
}

void rp_initialise(const RpPersistent *persistent, uint64_t seed, void *data) {
  const RpTensor *tensor = &persistent->tensor;
  uint64_t op_id = rp_hash_name(tensor->name);
  int64_t elements = rp_tensor_elements(tensor);
#pragma omp parallel for schedule(static) if (elements > 65536)
  for (int64_t i = 0; i < elements; i++) {
    rp_store(tensor->type, data, i, draw(&persistent->initial, seed, op_id, (uint64_t)i));
  }
}
