/* ir/signals.h - what is to be done before a signal ends the program: SIGINT, SIGTERM and SIGHUP. */
#ifndef REPRISE_IR_SIGNALS_H
#define REPRISE_IR_SIGNALS_H

#include <signal.h>

enum { ENDING_SIGNALS = 3 };

/* What handled the signals before. */
typedef struct SignalWatch {
  struct sigaction before[ENDING_SIGNALS];
} SignalWatch;

/* From now on `handler` handles the three; those that are ignored stay so. Watches nest. */
void watch_ending_signals(SignalWatch *watch, void (*handler)(int number));
/* What handled them before does so again. May be called in a handler, which then passes the signal on with raise(). */
void restore_ending_signals(const SignalWatch *watch);

#endif
