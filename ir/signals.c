/* ir/signals.c - handlers that can be put in place and taken back. */
#include "ir/signals.h"

#include <stddef.h>

static const int ending_signals[ENDING_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

void watch_ending_signals(SignalWatch *watch, void (*handler)(int number)) {
  struct sigaction action = {.sa_handler = handler};
  for (int i = 0; i < ENDING_SIGNALS; i++) {
    sigaction(ending_signals[i], NULL, &watch->before[i]);
    if (watch->before[i].sa_handler != SIG_IGN) sigaction(ending_signals[i], &action, NULL);
  }
}

void restore_ending_signals(const SignalWatch *watch) {
  for (int i = 0; i < ENDING_SIGNALS; i++) sigaction(ending_signals[i], &watch->before[i], NULL);
}
