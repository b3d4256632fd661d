/* frontend/driver/picture_output.h - files that show a plan: --dot, --svg, --report. */
#ifndef REPRISE_FRONTEND_DRIVER_PICTURE_OUTPUT_H
#define REPRISE_FRONTEND_DRIVER_PICTURE_OUTPUT_H

#include "codegen/pictures/pictures.h"
#include "frontend/driver/planning.h"

/* The picture of a view that has a plan. */
Picture *picture_of_view(MemoryArena *arena, const PlanView *view);
/* Writes what the options ask for. Returns EXIT_OK, or EXIT_IO after its message. */
int write_pictures(const Options *options, const PlanView *view);
/* Does a picture go to standard output, so that nothing else may? */
bool pictures_take_output(const Options *options);

#endif
