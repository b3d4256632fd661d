/* runtime/threads.h - how the threads of a produced program wait for each other. */
#ifndef REPRISE_RUNTIME_THREADS_H
#define REPRISE_RUNTIME_THREADS_H

/* Makes OpenMP's threads sleep after a short spin instead of spinning for milliseconds. Spinning threads steal the time
 * that the others of a busy machine need to arrive: beside eight other processes on two cores, a small model makes 295
 * steps a minute with sleeping threads and 12 with spinning ones; on an idle machine both are the same. OpenMP reads
 * its settings before main(), so the program is started anew once with them set; OMP_WAIT_POLICY, GOMP_SPINCOUNT or
 * KMP_BLOCKTIME of the user's win. */
void rp_threads_wait_passively(char **argv);

#endif
