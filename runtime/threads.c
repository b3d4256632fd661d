#include "runtime/threads.h"

#include <stdlib.h>
#include <unistd.h>

void rp_threads_wait_passively(char **argv) {
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME")) return;
  setenv("GOMP_SPINCOUNT", "2000", 1);
  setenv("KMP_BLOCKTIME", "0", 1);
  execv("/proc/self/exe", argv); /* returns only where there is no /proc: then the threads spin */
}
