/* passes/packing/random.h - SplitMix64: the engine's random numbers, the same on every machine. */
#ifndef REPRISE_PASSES_PACKING_RANDOM_H
#define REPRISE_PASSES_PACKING_RANDOM_H

#include <stdint.h>

typedef struct Random {
  uint64_t state;
} Random;

static inline uint64_t random_next(Random *random) {
  uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Uniform in [0, 1). */
static inline double random_unit(Random *random) { return (double)(random_next(random) >> 11) * 0x1p-53; }

/* Uniform in [0, bound), bound > 0. */
static inline int32_t random_choice(Random *random, int32_t bound) {
  return (int32_t)(random_next(random) % (uint64_t)bound);
}

/* k in [0, most], with probability 2^-(k + 1) for k < most. */
static inline int random_doublings(Random *random, int most) {
  uint64_t bits = random_next(random) | UINT64_C(1) << most;
  return __builtin_ctzll(bits);
}

#endif
