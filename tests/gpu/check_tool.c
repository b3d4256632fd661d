/* What tests/gpu/check.sh needs beside programs: data, comparisons, the device's memory.
 *
 *   check_tool tokens FILE COUNT VOCABULARY     an llm.c token file
 *   check_tool idx FILE RECORDS ROWS COLUMNS BOUND   an IDX file of bytes below BOUND; ROWS 0: one byte a record
 *   check_tool tensors A B TOLERANCE            largest difference relative to each tensor's largest element
 *   check_tool losses A B TOLERANCE             of two logs, relative
 *   check_tool field LOG EVENT PATH             a number or text of the last such event; PATH: names with dots
 *   check_tool step-time LOG TOKENS             milliseconds per step, median of the second half of the steps
 *   check_tool memory                           bytes of the first GPU in use, by cuMemGetInfo
 *   check_tool report FILE                      holds a report against its form; prints how many checks it has
 *
 * Comparisons print the difference and fail when it exceeds the tolerance. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver.h"
#include "runtime/program.h"
#include "runtime/safetensors.h"

static uint32_t draw(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

static int fail(const char *what, const char *why) {
  fprintf(stderr, "check_tool: %s: %s\n", what, why);
  return 2;
}

/* ---- data ---- */

static int write_tokens(const char *path, long count, long vocabulary) {
  FILE *stream = fopen(path, "wb");
  int32_t header[256] = {20240520, 1, (int32_t)count};
  uint64_t state = 1;
  if (!stream) return fail(path, "cannot be written");
  fwrite(header, sizeof header, 1, stream);
  for (long i = 0; i < count; i++) {
    uint16_t token = (uint16_t)(draw(&state) % (uint32_t)vocabulary);
    fwrite(&token, sizeof token, 1, stream);
  }
  return fclose(stream) == 0 ? 0 : fail(path, "cannot be written");
}

static void write_big_endian(FILE *stream, long value) {
  for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(value >> shift & 255), stream);
}

static int write_idx(const char *path, long records, long rows, long columns, long bound) {
  FILE *stream = fopen(path, "wb");
  uint64_t state = 2;
  if (!stream) return fail(path, "cannot be written");
  fwrite((const char[]){0, 0, 8, rows ? 3 : 1}, 4, 1, stream);
  write_big_endian(stream, records);
  if (rows) write_big_endian(stream, rows), write_big_endian(stream, columns);
  for (long i = 0; i < records * (rows ? rows * columns : 1); i++) fputc((int)(draw(&state) % (uint32_t)bound), stream);
  return fclose(stream) == 0 ? 0 : fail(path, "cannot be written");
}

/* ---- comparisons ---- */

static int finish_comparison(double difference, double tolerance) {
  printf("%.3g\n", difference);
  return difference <= tolerance ? 0 : 1;
}

/* NaN when the entry cannot be read. */
static double compare_entry(const RpTensorFile *a, const RpTensorEntry *x, const RpTensorFile *b,
                            const RpTensorEntry *y) {
  RpStatus status = {0};
  int64_t count = (x->end - x->begin) / 4;
  if (x->type != y->type || x->end - x->begin != y->end - y->begin) return NAN;
  if (x->type != RP_F32) return 0;
  float *left = malloc((size_t)count * 4 + 4), *right = malloc((size_t)count * 4 + 4);
  double largest = 1e-6, difference = NAN;
  if (left && right && rp_tensors_read(a, x, RP_F32, 0, count, left, &status) &&
      rp_tensors_read(b, y, RP_F32, 0, count, right, &status)) {
    difference = 0;
    for (int64_t i = 0; i < count; i++) {
      largest = fmax(largest, fabs((double)left[i]));
      double distance = fabs((double)left[i] - right[i]);
      if (!(distance <= difference)) difference = distance;
    }
  }
  free(left);
  free(right);
  return difference / largest;
}

static int compare_tensors(const char *first, const char *second, double tolerance) {
  RpTensorFile a, b;
  RpStatus status = {0};
  double worst = 0;
  if (!rp_tensors_open(&a, first, &status) || !rp_tensors_open(&b, second, &status)) return fail(first, status.message);
  bool matches = a.count == b.count;
  for (int64_t i = 0; i < a.count; i++) {
    double difference = NAN;
    for (int64_t k = 0; k < b.count; k++)
      if (strcmp(a.entries[i].name, b.entries[k].name) == 0)
        difference = compare_entry(&a, &a.entries[i], &b, &b.entries[k]);
    if (!(difference <= tolerance)) fprintf(stderr, "  %s: %g\n", a.entries[i].name, difference);
    if (!(difference <= worst)) worst = difference;
  }
  rp_tensors_close(&a);
  rp_tensors_close(&b);
  return matches ? finish_comparison(worst, tolerance) : fail(second, "other tensors");
}

/* ---- logs ---- */

/* The events of a kind, as an array. */
static json_t *read_events(const char *path, const char *event) {
  char line[1 << 16];
  json_t *events = json_array();
  FILE *stream = fopen(path, "r");
  while (stream && fgets(line, sizeof line, stream)) {
    json_t *object = json_loads(line, 0, NULL);
    const char *name = json_string_value(json_object_get(object, "event"));
    if (name && strcmp(name, event) == 0) json_array_append(events, object);
    json_decref(object);
  }
  if (stream) fclose(stream);
  return events;
}

static int compare_losses(const char *first, const char *second, double tolerance) {
  json_t *a = read_events(first, "step"), *b = read_events(second, "step");
  double worst = json_array_size(a) && json_array_size(a) == json_array_size(b) ? 0 : NAN;
  for (size_t i = 0; i < json_array_size(a) && i < json_array_size(b); i++) {
    double x = json_number_value(json_object_get(json_array_get(a, i), "loss"));
    double y = json_number_value(json_object_get(json_array_get(b, i), "loss"));
    double difference = fabs(x - y) / fmax(fabs(x), 1e-6);
    if (!(difference <= worst)) worst = difference;
  }
  json_decref(a);
  json_decref(b);
  return finish_comparison(worst, tolerance);
}

static int print_field(const char *path, const char *event, char *names) {
  json_t *events = read_events(path, event);
  const json_t *value = json_array_get(events, json_array_size(events) - 1);
  for (char *name = strtok(names, "."); name; name = strtok(NULL, ".")) value = json_object_get(value, name);
  bool found = value != NULL;
  if (json_is_string(value))
    puts(json_string_value(value));
  else if (found)
    json_dumpf(value, stdout, JSON_ENCODE_ANY), putchar('\n');
  json_decref(events);
  return found ? 0 : fail(path, "no such field");
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int print_step_time(const char *path, double tokens) {
  json_t *events = read_events(path, "step");
  size_t count = json_array_size(events), first = count / 2, used = 0;
  double *times = calloc(count + 1, sizeof *times);
  for (size_t i = first; times && i < count; i++) {
    double rate = json_number_value(json_object_get(json_array_get(events, i), "tokens_per_second"));
    if (rate > 0) times[used++] = tokens / rate * 1e3;
  }
  if (used) qsort(times, used, sizeof *times, compare_doubles), printf("%.3f\n", times[used / 2]);
  free(times);
  json_decref(events);
  return used ? 0 : fail(path, "no steps");
}

/* Every check has a name, a time and a verdict. */
static int check_report(const char *path) {
  json_error_t error;
  json_t *report = json_load_file(path, 0, &error);
  if (!report) return fail(path, error.text);
  const json_t *checks = json_object_get(report, "checks"), *check;
  size_t i;
  bool good = json_is_boolean(json_object_get(report, "passed")) &&
              json_is_boolean(json_object_get(report, "complete")) &&
              json_is_integer(json_object_get(report, "seconds")) && json_is_array(checks);
  json_array_foreach(checks, i, check) {
    const json_t *passed = json_object_get(check, "passed");
    good = good && json_is_string(json_object_get(check, "check")) &&
           (json_is_boolean(passed) || json_is_null(passed)) && json_is_integer(json_object_get(check, "at_second")) &&
           json_object_get(check, "detail");
  }
  printf("%zu\n", json_array_size(checks));
  json_decref(report);
  return good ? 0 : fail(path, "not such a report");
}

/* ---- the device ---- */

static int print_memory(void) {
  CudaLibraries cuda = {0};
  RpStatus status = {0};
  CuDevice device;
  CuContext context;
  size_t available = 0, total = 0;
  if (!rp_cuda_load(&cuda, false, &status)) return fail("driver", status.message);
  bool asked = cuda.init(0) == 0 && cuda.device_get(&device, 0) == 0 && cuda.context_retain(&context, device) == 0 &&
               cuda.context_set(context) == 0 && cuda.memory_info(&available, &total) == 0;
  if (asked) cuda.context_release(device);
  rp_cuda_unload(&cuda);
  if (!asked) return fail("driver", "no GPU");
  printf("%zu\n", total - available);
  return 0;
}

int main(int argc, char **argv) {
  const char *verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "tokens") == 0 && argc == 5) return write_tokens(argv[2], atol(argv[3]), atol(argv[4]));
  if (strcmp(verb, "idx") == 0 && argc == 7)
    return write_idx(argv[2], atol(argv[3]), atol(argv[4]), atol(argv[5]), atol(argv[6]));
  if (strcmp(verb, "tensors") == 0 && argc == 5) return compare_tensors(argv[2], argv[3], atof(argv[4]));
  if (strcmp(verb, "losses") == 0 && argc == 5) return compare_losses(argv[2], argv[3], atof(argv[4]));
  if (strcmp(verb, "field") == 0 && argc == 5) return print_field(argv[2], argv[3], argv[4]);
  if (strcmp(verb, "step-time") == 0 && argc == 4) return print_step_time(argv[2], atof(argv[3]));
  if (strcmp(verb, "memory") == 0 && argc == 2) return print_memory();
  if (strcmp(verb, "report") == 0 && argc == 3) return check_report(argv[2]);
  fprintf(stderr, "see the head of tests/gpu/check_tool.c\n");
  return 2;
}
