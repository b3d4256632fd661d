/* frontend/driver/picture_output.c - files that show a plan. */
#include "frontend/driver/picture_output.h"

Picture *picture_of_view(MemoryArena *arena, const PlanView *view) {
  return picture_create(arena, view->name, view->graph, view->answer.plan, view->keep_all, view->budget,
                        view->arena_bytes);
}

bool pictures_take_output(const Options *options) {
  const char *const files[] = {options->dot_output, options->svg_output};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i] && string_equal(files[i], "-")) return true;
  return false;
}

int write_pictures(const Options *options, const PlanView *view) {
  MemoryArena *arena = options->arena;
  int code = EXIT_OK;
  if (!options->dot_output && !options->svg_output) return EXIT_OK;
  Picture *picture = picture_of_view(arena, view);
  if (options->dot_output)
    code = write_text(options, options->dot_output, dot_text(arena, picture, options->dot_detail));
  if (code == EXIT_OK && options->svg_output)
    code = write_text(options, options->svg_output, timeline_svg(arena, picture, false));
  return code;
}
