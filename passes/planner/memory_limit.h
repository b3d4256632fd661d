/* passes/planner/memory_limit.h - a limit on the address space of this process. */
#ifndef REPRISE_PASSES_PLANNER_MEMORY_LIMIT_H
#define REPRISE_PASSES_PLANNER_MEMORY_LIMIT_H

#include <stdint.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define REPRISE_RESERVES_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_RESERVES_ADDRESSES 1
#endif
#endif

/* bytes 0: no limit. AddressSanitizer reserves terabytes of addresses, so its builds run without a limit. */
static inline void limit_address_space(int64_t bytes) {
#ifdef REPRISE_RESERVES_ADDRESSES
  (void)bytes;
#else
  struct rlimit limit = {.rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes};
  if (bytes) setrlimit(RLIMIT_AS, &limit);
#endif
}

#endif
