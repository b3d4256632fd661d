/* ir/text_words.h - words of the text form, in the order of their enums. Included by text.c and text_parse.c. */
#ifndef REPRISE_IR_TEXT_WORDS_H
#define REPRISE_IR_TEXT_WORDS_H

#include "ir/ir.h"

/* NULL ends each list. */
static const char *const text_phases[] = {"forward", "backward", "update", NULL};
static const char *const text_constraints[] = {"free", "keep", "recompute", NULL};
static const char *const text_roles[] = {"parameter", "state", "optimizer", "accumulator", NULL};
static const char *const text_initials[] = {"constant", "uniform", "normal", "truncated_normal", NULL};
static const char *const text_readers[] = {"constant", "idx", "npy", "csv", "bytes", "chars", "tokens", NULL};
static const char *const text_schedules[] = {"constant", "cosine", "linear", "step", NULL};

#endif
