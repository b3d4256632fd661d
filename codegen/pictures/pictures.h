/* codegen/pictures/pictures.h - texts of the pictures: DOT, SVG, HTML. All are byte for byte functions of the plan. */
#ifndef REPRISE_CODEGEN_PICTURES_PICTURES_H
#define REPRISE_CODEGEN_PICTURES_PICTURES_H

#include "codegen/pictures/drawing.h"

/* The graph in DOT, through libcgraph: forward boxes downwards, backward ones upwards beside what they read. Besides
 * what `dot` draws from, boxes carry the attributes class, bytes, cost and runs, edges bytes, the graph budget, peak,
 * keep_all_peak, cost, base_cost and lower_bound, with the plan's numbers. */
char *dot_text(MemoryArena *arena, const Picture *picture, Detail detail);

/* The memory timeline of one step: live bytes stacked by role over time, with the curve of keeping everything behind.
 * embedded: without styles of its own and without fixed width, for a page that holds picture_style(). */
char *timeline_svg(MemoryArena *arena, const Picture *picture, bool embedded);
/* The CSS that all our SVGs use, light and dark. */
const char *picture_style(void);

#endif
