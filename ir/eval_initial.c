/* ir/eval_initial.c - initial values of persistents, by the rule of runtime/initial.h. */
#include <math.h>

#include "ir/eval_internal.h"
#include "runtime/random.h"

/* The micro-step that keys initial values; attempt k of a truncated normal uses k less. */
static const uint64_t initial_stream = UINT64_C(0xFFFFFFFF);

/* Box-Muller: u in (0, 1], v in [0, 1), 53 bits each, from the four words of an element. */
static double draw_normal(uint64_t seed, uint64_t id, uint64_t stream, uint64_t index) {
  uint32_t words[4];
  rp_random_words(seed, id, stream, index, words);
  double u = (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) + 1,
         v = (double)(((uint64_t)words[2] << 32 | words[3]) >> 11);
  return sqrt(-2 * log(u * 0x1p-53)) * cos(6.283185307179586 * (v * 0x1p-53));
}

static double draw_truncated(uint64_t seed, uint64_t id, uint64_t index) {
  double value = draw_normal(seed, id, initial_stream, index);
  for (uint64_t attempt = 1; fabs(value) > 2; attempt++) value = draw_normal(seed, id, initial_stream - attempt, index);
  return value;
}

static double draw_initial(const Initial *initial, uint64_t seed, uint64_t id, uint64_t index) {
  switch (initial->kind) {
    case INITIAL_CONSTANT:
      return initial->value;
    case INITIAL_UNIFORM:
      return initial->value * (2.0 * rp_uniform(seed, id, initial_stream, index) - 1.0);
    case INITIAL_NORMAL:
      return initial->mean + initial->value * draw_normal(seed, id, initial_stream, index);
    case INITIAL_TRUNCATED_NORMAL:
      return initial->mean + initial->value * draw_truncated(seed, id, index);
  }
  die("unknown initial value kind %d", (int)initial->kind);
}

void eval_fill_initial(Evaluation *evaluation, uint64_t seed) {
  const Module *module = evaluation->graph->module;
  for (int64_t k = 0; k < module->persistents.count; k++) {
    const Persistent *persistent = &module->persistents.items[k];
    uint64_t id = rp_hash_name(persistent->name);
    int64_t elements = type_elements(&persistent->type);
    for (int64_t i = 0; i < elements; i++) {
      double value = draw_initial(&persistent->initial, seed, id, (uint64_t)i);
      eval_tensor_set(&evaluation->persistents[k], i, eval_round(evaluation->precision, persistent->type.dtype, value));
    }
  }
}
