/* runtime/random.h - counter-based random numbers: Philox4x32-10.
 *
 * J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 *
 * A number is a pure function of (seed, op id, micro-step, element index): nothing is stored, so a mask can be drawn
 * again, in any order and on any device, and is the same. Included by emitted C, by the reference interpreter and by
 * emitted CUDA, where RP_RANDOM_FUNCTION is defined as `static __device__ inline`. Integer arithmetic only up to the
 * last step, without branches, so loops over it vectorise. */
#ifndef REPRISE_RUNTIME_RANDOM_H
#define REPRISE_RUNTIME_RANDOM_H

#ifndef __CUDACC_RTC__
#include <stdint.h>
#endif

#ifndef RP_RANDOM_FUNCTION
#ifdef __GNUC__ /* a call that stays a call keeps its loop from being vectorised */
#define RP_RANDOM_FUNCTION static inline __attribute__((always_inline))
#else
#define RP_RANDOM_FUNCTION static inline
#endif
#endif

/* Ten rounds of Philox4x32 on the counter (c0, c1, c2, c3) with the key (key0, key1). */
RP_RANDOM_FUNCTION void rp_philox(uint32_t key0, uint32_t key1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                                  uint32_t out[4]) {
  for (int round = 0; round < 10; round++) {
    uint64_t product0 = (uint64_t)0xD2511F53u * c0, product1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(product1 >> 32) ^ c1 ^ key0;
    c2 = (uint32_t)(product0 >> 32) ^ c3 ^ key1;
    c1 = (uint32_t)product1;
    c3 = (uint32_t)product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* The four words of one element:
 *   counter = (index low, micro_step low, op_id low, op_id high)
 *   key     = (seed low ^ micro_step high, seed high ^ index high)
 * Distinct (op_id, micro_step, index) below 2^32 never share a counter; higher ones change the key. */
RP_RANDOM_FUNCTION void rp_random_words(uint64_t seed, uint64_t op_id, uint64_t micro_step, uint64_t index,
                                        uint32_t out[4]) {
  rp_philox((uint32_t)seed ^ (uint32_t)(micro_step >> 32), (uint32_t)(seed >> 32) ^ (uint32_t)(index >> 32),
            (uint32_t)index, (uint32_t)micro_step, (uint32_t)op_id, (uint32_t)(op_id >> 32), out);
}

/* Uniform in [0, 1): the first word's 24 top bits times 2^-24, exact in float. */
RP_RANDOM_FUNCTION float rp_uniform(uint64_t seed, uint64_t op_id, uint64_t micro_step, uint64_t index) {
  uint32_t words[4];
  rp_random_words(seed, op_id, micro_step, index, words);
  return (float)(words[0] >> 8) * 0x1p-24f;
}

/* Uniform integer in [0, bound), bound >= 1: the first two words as one 64-bit number, modulo (bias below
 * bound / 2^64). */
RP_RANDOM_FUNCTION uint64_t rp_uniform_integer(uint64_t seed, uint64_t op_id, uint64_t micro_step, uint64_t index,
                                               uint64_t bound) {
  uint32_t words[4];
  rp_random_words(seed, op_id, micro_step, index, words);
  return ((uint64_t)words[0] << 32 | words[1]) % bound;
}

/* Op id of a name: 64-bit FNV-1a, then the finaliser of splitmix64 so that similar names differ in all bits. */
RP_RANDOM_FUNCTION uint64_t rp_hash_name(const char *name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

#endif
