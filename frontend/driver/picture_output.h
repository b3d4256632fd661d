/* frontend/driver/picture_output.h - files that show a plan: --dot, --svg, --report. */
#ifndef REPRISE_FRONTEND_DRIVER_PICTURE_OUTPUT_H
#define REPRISE_FRONTEND_DRIVER_PICTURE_OUTPUT_H

#include "codegen/pictures/pictures.h"
#include "frontend/driver/planning.h"

/* Options that only mean something beside others. Returns EXIT_OK, or EXIT_USAGE after its message. */
int check_picture_options(const Options *options);
/* The picture of a view that has a plan. */
Picture *picture_of_view(MemoryArena *arena, const PlanView *view);
/* Writes what the options ask for. The report solves a curve of its own; price (NULL: not known) goes into it. Returns
 * EXIT_OK, or EXIT_IO after its message. */
int write_pictures(Planning *planning, const PlanView *view, const ShadowPrice *price);
/* Does a picture go to standard output, so that nothing else may? */
bool pictures_take_output(const Options *options);

#endif
