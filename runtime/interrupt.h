/* runtime/interrupt.h - Ctrl-C: the first SIGINT is noted, a second one ends the process. */
#ifndef REPRISE_RUNTIME_INTERRUPT_H
#define REPRISE_RUNTIME_INTERRUPT_H

#include <stdbool.h>

void rp_interrupt_install(void);
bool rp_interrupted(void);

#endif
