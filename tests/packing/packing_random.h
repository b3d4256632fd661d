/* tests/packing/packing_random.h - a small generator of random instances, the same on every machine. */
#ifndef REPRISE_TESTS_PACKING_RANDOM_H
#define REPRISE_TESTS_PACKING_RANDOM_H

#include "passes/packing/packing.h"

/* SplitMix64. */
static inline uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static inline int64_t random_below(uint64_t *state, int64_t bound) {
  return (int64_t)(random_bits(state) % (uint64_t)bound);
}

/* Lives of random length in [0, times), sizes in [0, most_bytes]. */
static inline void random_buffers(uint64_t seed, PackingBuffer *buffers, int64_t count, int64_t times, int64_t longest,
                                  int64_t most_bytes) {
  for (int64_t i = 0; i < count; i++) {
    int64_t lower = random_below(&seed, times - 1), length = 1 + random_below(&seed, longest);
    int64_t upper = lower + length < times ? lower + length : times;
    buffers[i] = (PackingBuffer){lower, upper, random_below(&seed, most_bytes + 1), 0, NULL};
  }
}

#endif
