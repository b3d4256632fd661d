/* passes/packing/squeaky_wheel.h - squeaky wheel optimization (Joslin & Clements, JAIR 1999) of the skyline's ranks. */
#ifndef REPRISE_PASSES_PACKING_SQUEAKY_WHEEL_H
#define REPRISE_PASSES_PACKING_SQUEAKY_WHEEL_H

#include "passes/packing/random.h"
#include "passes/packing/skyline.h"

/* Items that end above the target rise in rank and the skyline runs again, with restarts from the fixed rules. Stops
 * when the makespan is at most `goal` or after about `limit` units of work, added to *work. */
void run_squeaky_wheel(Problem *problem, Skyline *skyline, Random *random, int64_t goal, int64_t limit, int64_t *work);

#endif
