/* passes/device.c - device descriptions: small texts, built in or from a file. */
#include <math.h>
#include <stdlib.h>

#include "passes/cost.h"

/* Generated from passes/devices by CMake: name and text of each, ended by NULL. */
extern const char *const reprise_device_texts[][2];

enum { MOST_DEVICES = 64 };

const char *const *device_names(void) {
  static const char *names[MOST_DEVICES];
  for (int i = 0; i + 1 < MOST_DEVICES && reprise_device_texts[i][0]; i++) names[i] = reprise_device_texts[i][0];
  return names;
}

/* One "key = value" line without its comment. */
typedef struct Line {
  char *key, *value;
  Location location;
} Line;

static char *trim(char *text) {
  text += strspn(text, " \t\r");
  for (size_t length = strlen(text); length && strchr(" \t\r", text[length - 1]);) text[--length] = '\0';
  return text;
}

static bool set_positive(const Line *line, double *number) {
  char *end;
  double value = strtod(line->value, &end);
  if (end == line->value || *end || !(value > 0) || !isfinite(value)) {
    diag_error(line->location, "'%s': expected a positive number, found '%s'", line->key, line->value);
    return false;
  }
  *number = value;
  return true;
}

static bool set_field(MemoryArena *arena, const Line *line, Device *device) {
  const char *error;
  if (string_equal(line->key, "name")) {
    device->name = memory_string(arena, line->value);
    return true;
  }
  if (string_equal(line->key, "flops")) return set_positive(line, &device->flops);
  if (string_equal(line->key, "bandwidth")) return set_positive(line, &device->bandwidth);
  if (string_equal(line->key, "launch")) return set_positive(line, &device->launch);
  if (!string_equal(line->key, "memory")) {
    diag_error(line->location, "unknown key '%s'; expected name, flops, bandwidth, launch or memory", line->key);
    return false;
  }
  if (parse_size(line->value, &device->memory, &error)) return true;
  diag_error(line->location, "'memory': %s, found '%s'", error, line->value);
  return false;
}

static const Device *parse_device(MemoryArena *arena, const Source *source) {
  Device *device = NEW(arena, Device);
  bool good = true;
  for (int64_t start = 0, end; start < source->length; start = end + 1) {
    for (end = start; end < source->length && source->text[end] != '\n';) end++;
    char *text = memory_string_range(arena, source->text + start, end - start);
    text[strcspn(text, "#")] = '\0';
    if (!*trim(text)) continue;
    Line line = {.location = {source, (int32_t)start, (int32_t)strlen(text)}};
    char *equals = strchr(text, '=');
    if (!equals) {
      diag_error(line.location, "expected 'key = value'");
      good = false;
      continue;
    }
    *equals = '\0';
    line.key = trim(text);
    line.value = trim(equals + 1);
    good = set_field(arena, &line, device) && good;
  }
  if (good && device->name && device->flops > 0 && device->bandwidth > 0 && device->launch > 0 && device->memory > 0)
    return device;
  if (good) diag_error((Location){source, 0, 0}, "a device needs name, flops, bandwidth, launch and memory");
  return NULL;
}

const Device *find_device(MemoryArena *arena, const char *name, const char **io_error) {
  Source *source = NEW(arena, Source);
  *io_error = NULL;
  source->path = memory_string(arena, name);
  for (int i = 0; reprise_device_texts[i][0]; i++) {
    if (!string_equal(reprise_device_texts[i][0], name)) continue;
    source->text = reprise_device_texts[i][1];
    source->length = (int64_t)strlen(source->text);
    return parse_device(arena, source);
  }
  if (!strchr(name, '/') && !strchr(name, '.')) {
    char *known = memory_string(arena, "");
    for (const char *const *at = device_names(); *at; at++)
      known = memory_format(arena, "%s%s%s", known, *known ? ", " : "", *at);
    diag_error((Location){0}, "unknown device '%s'; expected one of %s, or the path of a description", name, known);
    return NULL;
  }
  source->text = file_read(arena, name, &source->length, io_error);
  return source->text ? parse_device(arena, source) : NULL;
}

char *device_text(MemoryArena *arena, const Device *device) {
  return memory_format(arena,
                       "name      = %s\nflops     = %.4g\nbandwidth = %.4g\nlaunch    = %.3g\nmemory    = %lld\n",
                       device->name, device->flops, device->bandwidth, device->launch, (long long)device->memory);
}
