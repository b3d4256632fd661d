/* The command line of a produced program, by running one. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/safetensors.h"
#include "tests/runtime/support.h"

/* 28 points of y = x . (1, -2, 3) + 0.5: 20 to train on, 8 to test on. */
static void write_points(const char *path, double last_target) {
  FILE *stream = fopen(path, "w");
  assert_non_null(stream);
  fputs("a,b,c,y\n", stream);
  for (int i = 0; i < 28; i++) {
    double a = (i * 7 % 11 - 5) / 5.0, b = (i * 5 % 13 - 6) / 6.0, c = (i * 3 % 7 - 3) / 3.0;
    double y = i == 27 && last_target > 0 ? last_target : a - 2 * b + 3 * c + 0.5;
    fprintf(stream, "%.9g, %.9g,%.9g,%.9g\r\n", a, b, c, y);
  }
  fclose(stream);
}

static int enter(void **state) {
  if (enter_scratch(state) != 0) return -1;
  write_points("points.csv", 0);
  return 0;
}

/* The `index`-th event of a kind in a file of JSON lines, owned by the caller; every line has to parse. */
static json_t *find_event(const char *path, const char *kind, int index) {
  FILE *stream = fopen(path, "r");
  char line[4096];
  json_t *found = NULL;
  assert_non_null(stream);
  while (fgets(line, sizeof line, stream)) {
    json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(event);
    const char *name = json_string_value(json_object_get(event, "event"));
    assert_non_null(name);
    if (!found && strcmp(name, kind) == 0 && index-- == 0) {
      found = event;
    } else {
      json_decref(event);
    }
  }
  fclose(stream);
  return found;
}

static int count_events(const char *path, const char *kind) {
  int count = 0;
  for (json_t *event; (event = find_event(path, kind, count)) != NULL; count++) json_decref(event);
  return count;
}

static double number(const char *path, const char *kind, int index, const char *key) {
  json_t *event = find_event(path, kind, index), *value = event;
  assert_non_null(event);
  char keys[64], *rest = keys;
  snprintf(keys, sizeof keys, "%s", key);
  for (char *part; (part = strtok_r(rest, "/", &rest)) != NULL;) value = json_object_get(value, part);
  assert_true(json_is_number(value));
  double result = json_number_value(value);
  json_decref(event);
  return result;
}

static void read_floats(const char *path, const char *name, float *values, int64_t count) {
  RpStatus status = {0};
  RpTensorFile tensors;
  if (!rp_tensors_open(&tensors, path, &status)) fail_msg("%s", status.message);
  int64_t found = -1;
  for (int64_t i = 0; i < tensors.count; i++) {
    if (strcmp(tensors.entries[i].name, name) == 0) found = i;
  }
  if (found < 0) fail_msg("no tensor '%s' in '%s'", name, path);
  assert_int_equal(tensors.entries[found].end - tensors.entries[found].begin, 4 * count);
  assert_true(rp_tensors_read(&tensors, &tensors.entries[found], RP_F32, 0, count, values, &status));
  rp_tensors_close(&tensors);
}

static void test_trains(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 300 --log=log.jsonl", REGRESSION), 0);
  assert_int_equal(count_events("out", "start"), 1);
  assert_int_equal(count_events("out", "step"), 300);
  assert_true(number("out", "step", 299, "loss") < 1e-3);
  assert_true(number("out", "test", 0, "loss") < 1e-3);
  assert_true(number("out", "test", 0, "scalars/absolute") < 0.05);
  assert_int_equal(number("out", "test", 0, "records"), 8);
  assert_int_equal(number("out", "done", 0, "step"), 300);
  assert_same_files("out", "log.jsonl");
}

static void test_default_steps_and_epochs(void **state) {
  (void)state;
  assert_int_equal(run("%s", REGRESSION), 0); /* the model's 2 epochs of 20 records in batches of 4 */
  assert_int_equal(count_events("out", "step"), 10);
  assert_int_equal(run("%s --epochs=3", REGRESSION), 0);
  assert_int_equal(count_events("out", "step"), 15);
  assert_int_equal(run("%s --epochs=3", REGRESSION2), 0);
  assert_int_equal(count_events("out", "step"), 7);
}

static void test_schedule_and_rate(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 3 --lr 0.5", REGRESSION), 0);
  assert_float_equal(number("out", "step", 0, "learning_rate"), 0.25, 1e-9); /* warm-up of 2 */
  assert_float_equal(number("out", "step", 1, "learning_rate"), 0.5, 1e-9);
  assert_float_equal(number("out", "step", 2, "learning_rate"), 0.5, 1e-9);
  assert_int_equal(run("%s --steps 2 --lr 0 --save still.safetensors", REGRESSION), 0);
  assert_int_equal(run("%s --steps 1 --lr 0 --save start.safetensors", REGRESSION), 0);
  float still[3], start[3];
  read_floats("still.safetensors", "weight", still, 3);
  read_floats("start.safetensors", "weight", start, 3);
  assert_memory_equal(still, start, sizeof still);
}

static void test_seed(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 2 --save a", REGRESSION), 0);
  assert_int_equal(run("%s --steps 2 --save b", REGRESSION), 0);
  assert_same_files("a", "b");
  assert_int_equal(run("%s --steps 2 --seed 8 --save b", REGRESSION), 0);
  float a[3], b[3];
  read_floats("a", "weight", a, 3);
  read_floats("b", "weight", b, 3);
  assert_memory_not_equal(a, b, sizeof a);
}

/* behaviours 10: two micro-steps of half the rows each are one step of all rows. */
static void test_accumulation(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 1 --dump-grads two", REGRESSION2), 0);
  float error[4], weight[3], loss;
  read_floats("two", "error", error, 4); /* the first micro-step's */
  read_floats("two", "grad.weight", weight, 3);
  read_floats("two", "loss", &loss, 1);
  assert_float_equal(loss, number("out", "step", 0, "loss"), 1e-6);
  float first = 0;
  for (int i = 0; i < 4; i++) first += error[i] * error[i] / 4;
  assert_true(fabsf(first - loss) > 1e-4); /* combined, not the first's */
  float mean_square, x[12];
  read_floats("two", "output.mean_square", &mean_square, 1);
  assert_float_equal(mean_square, first, 1e-6); /* divided by the count */
  read_floats("two", "x", x, 12);
  assert_true(fabsf(x[0]) <= 1 && x[0] * 5 == roundf(x[0] * 5)); /* seen before the first kernel */
  /* The first update's weight change is -rate * gradient: rate 0.02 * 1/2 in warm-up. */
  assert_int_equal(run("%s --steps 1 --save after", REGRESSION2), 0);
  assert_int_equal(run("%s --steps 1 --lr 0 --save before", REGRESSION2), 0);
  float before[3], after[3];
  read_floats("before", "weight", before, 3);
  read_floats("after", "weight", after, 3);
  for (int i = 0; i < 3; i++) assert_float_equal(before[i] - after[i], 0.01f * weight[i], 1e-6);
}

static void check_resume(const char *program) {
  assert_int_equal(run("%s --steps 4 --lr 0.03 --seed 3 --save whole", program), 0);
  assert_int_equal(run("%s --steps 2 --lr 0.03 --seed 3 --save half", program), 0);
  assert_int_equal(run("%s --steps 4 --resume half --save resumed", program), 0);
  assert_same_files("whole", "resumed");
  assert_int_equal(count_events("out", "step"), 2);
  assert_int_equal(number("out", "step", 0, "step"), 3);
}

static void test_resume_is_exact(void **state) {
  (void)state;
  check_resume(REGRESSION);
  check_resume(REGRESSION2);
  /* Over the end of an epoch (5 steps), which has its own order. */
  assert_int_equal(run("%s --steps 12 --save whole", REGRESSION), 0);
  assert_int_equal(run("%s --steps 7 --save half", REGRESSION), 0);
  assert_int_equal(run("%s --steps 12 --resume half --save half", REGRESSION), 0);
  assert_same_files("whole", "half");
}

static void test_resume_errors(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 4 --save four", REGRESSION), 0);
  assert_int_equal(run("%s --steps 2 --resume four", REGRESSION), 2);
  assert_contains("err", "has 4 updates already");
  assert_int_equal(run("%s --resume four --seed 1", REGRESSION), 2);
  assert_int_equal(run("%s --resume four --load four", REGRESSION), 2);
  assert_int_equal(run("%s --resume four", REGRESSION2), 1);
  assert_contains("err", "accumulate 1, this program has 2");
  write_text("few.csv", "h\n1,2,3,4\n1,2,3,4\n1,2,3,4\n1,2,3,4\n");
  assert_int_equal(run("%s --resume four --data few.csv", REGRESSION), 1);
  assert_contains("err", "the model asks for records 0..20 of 'few.csv'");
  assert_int_equal(run("%s --steps 1 --dump-grads grads", REGRESSION), 0);
  assert_int_equal(run("%s --resume grads", REGRESSION), 1);
  assert_contains("err", "not a snapshot");
  assert_int_equal(run("%s --resume absent", REGRESSION), 4);
}

static void test_load_and_eval(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 200 --save trained", REGRESSION), 0);
  double loss = number("out", "test", 0, "loss");
  assert_int_equal(run("%s --eval --load trained", REGRESSION), 0);
  assert_float_equal(number("out", "test", 0, "loss"), loss, 0);
  assert_int_equal(count_events("out", "step"), 0);
  assert_int_equal(run("%s --eval --load trained --test x=points.csv", REGRESSION), 0);
  assert_float_equal(number("out", "test", 0, "loss"), loss, 0);
  write_points("other.csv", 900);
  assert_int_equal(run("%s --eval --load trained --test other.csv", REGRESSION), 0);
  assert_true(number("out", "test", 0, "loss") > 1000);
  assert_int_equal(run("%s --steps 1 --load trained", REGRESSION), 0);
  assert_true(number("out", "step", 0, "loss") < 1e-2);
}

/* What cannot be written is said before the first step, not after the last. */
static void test_outputs_are_tried_first(void **state) {
  (void)state;
  static const char *const options[] = {"--save", "--trace"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    assert_int_equal(run("%s --steps 3 %s no/such/folder", REGRESSION, options[i]), 4);
    assert_contains("err", "cannot write 'no/such/folder");
    assert_int_equal(count_events("out", "step"), 0);
  }
}

static void test_notes(void **state) {
  (void)state;
  assert_int_equal(run("%s --eval", REGRESSION), 0);
  assert_contains("err", "note: these are the initial weights");
  assert_int_equal(run("%s --steps 300 --lr 1e9", REGRESSION), 0);
  assert_contains("err", "note: the loss is not finite in step");
}

static void test_rename(void **state) {
  (void)state;
  const RpTensor tensors[] = {{"old.weight", RP_F32, 1, {3}, 0}, {"bias", RP_F32, 0, {0}, 0}};
  const float weight[] = {1, -2, 3}, bias = 0.5f;
  RpStatus status = {0};
  RpTensorWriter writer;
  assert_true(rp_writer_open(&writer, "old", tensors, 2, NULL, 0, &status));
  assert_true(rp_writer_put(&writer, 1, &bias, &status) && rp_writer_put(&writer, 0, weight, &status));
  assert_true(rp_writer_commit(&writer, &status));
  assert_int_equal(run("%s --eval --load old", REGRESSION), 1);
  assert_contains("err", "lacks 1 tensor of the model, first 'weight'");
  assert_int_equal(run("%s --eval --load old --rename old.weight=weight", REGRESSION), 0);
  assert_true(number("out", "test", 0, "loss") < 1e-9);
  assert_int_equal(run("%s --eval --load old --rename=old.=", REGRESSION), 0);
  assert_true(number("out", "test", 0, "loss") < 1e-9);
  assert_int_equal(run("%s --eval --load old --rename nothing=weight", REGRESSION), 1);
  assert_int_equal(run("%s --eval --rename a=b", REGRESSION), 2);
}

/* Behaviour 23 in part: what is wrong on the command line is exit code 2, with a word on what would be right. */
static void test_usage_errors(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *message;
  } cases[] = {
      {"--stesp 3", "did you mean '--steps'?"},
      {"--wholly-unknown", "--help lists them"},
      {"--data nothing=points.csv", "expected FILE or x=FILE"},
      {"file", "expected an option"},
      {"--steps", "found the end of the command line"},
      {"--steps -1", "found '-1'"},
      {"--steps nan", "found 'nan'"},
      {"--steps 0", "found '0'"},
      {"--steps=", "found ''"},
      {"--steps 99999999999999999999", "whole number"},
      {"--steps 3x", "found '3x'"},
      {"--steps 2 --epochs 2", "--steps cannot be combined with --epochs"},
      {"--lr nan", "found 'nan'"},
      {"--lr -1", "found '-1'"},
      {"--lr inf", "found 'inf'"},
      {"--lr 1e999", "found '1e999'"},
      {"--seed -1", "found '-1'"},
      {"--seed 18446744073709551616", "whole number"},
      {"--threads 0", "from 1 to 1024"},
      {"--eval=yes", "takes no value"},
      {"--eval --lr 1", "it does not train"},
      {"--eval --save x", "--save"},
      {"--data x=a --data x=b", "twice"},
      {"--data ''", "NAME=FILE"},
      {"--save ''", "expected a file"},
      {"--save a --save b", "twice"},
      {"--load a --rename b", "FROM=TO"},
      {"--load a --rename b.=c", "prefix"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int code = run("%s %s", REGRESSION, cases[i].arguments);
    if (code != 2) fail_msg("%s: exit code %d", cases[i].arguments, code);
    assert_contains("err", cases[i].message);
  }
}

static void test_help_and_plan(void **state) {
  (void)state;
  assert_int_equal(run("%s --help", REGRESSION), 0);
  assert_contains("out", "--dump-grads FILE");
  assert_contains("out", "--test x=points.csv   (records 20..)");
  assert_int_equal(run("%s --plan", REGRESSION), 0);
  assert_contains("out", "reprise-plan");
}

static void test_data_errors(void **state) {
  (void)state;
  assert_int_equal(run("%s --data absent.csv", REGRESSION), 4);
  assert_contains("err", "cannot open 'absent.csv': No such file");
  write_text("bad.csv", "h\n1,2,3,4\n1,2,oops,4\n");
  assert_int_equal(run("%s --data x=bad.csv", REGRESSION), 1);
  assert_contains("err", "bad.csv:3: column 3: input 'x' expects f32, found 'oops'");
  assert_int_equal(run("%s --save no/such/folder/x --steps 1", REGRESSION), 4);
  assert_int_equal(run("%s --log no/such/folder/x", REGRESSION), 4);
}

/* A kernel's fault: exit 1, its message and source, nothing saved. */
static void test_fault(void **state) {
  (void)state;
  FILE *stream = fopen("wild.csv", "w");
  assert_non_null(stream);
  fputs("h\n", stream);
  for (int i = 0; i < 28; i++) fprintf(stream, "1,2,3,%d\n", i == 5 ? 2000 : 1);
  fclose(stream);
  assert_int_equal(run("%s --data wild.csv --save never", REGRESSION), 1);
  assert_contains("err", "regression.rp:5:8: target out of range: expected at most 1000");
  assert_null(read_whole("never", NULL));
}

static void test_interrupt(void **state) {
  (void)state;
  /* `kill` when the first step is in the log; far more steps than can be made before that. */
  assert_int_equal(run("sh -c '%s --steps 100000000 --save stopped --log steps >/dev/null & p=$!; "
                       "until grep -q step\\\" steps 2>/dev/null; do sleep 0.01; done; kill -INT $p; wait $p'",
                       REGRESSION),
                   130);
  assert_contains("err", "interrupted after step");
  int steps = count_events("steps", "save") == 1 ? (int)number("steps", "save", 0, "step") : 0;
  assert_true(steps > 0);
  assert_int_equal(run("%s --steps %d --save whole", REGRESSION, steps), 0);
  assert_same_files("whole", "stopped");
}

static void test_memory(void **state) {
  (void)state;
  static const char *const programs[] = {REGRESSION, REGRESSION2};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(run("%s --memory", programs[i]), 0);
    assert_int_equal(count_events("out", "step"), 1);
    assert_int_equal(number("out", "memory", 0, "live_peak"), 960);
    assert_int_equal(number("out", "memory", 0, "arena"), 960);
    assert_int_equal(number("out", "memory", 0, "budget"), 1024);
    /* With accumulation the gradients' own places, the last two of the arena, are never written. */
    assert_int_equal(number("out", "memory", 0, "high_water"), i == 0 ? 960 : 832);
    assert_int_equal(number("out", "memory", 0, "anatomy/optimizer_state"), 128);
    assert_true(number("out", "memory", 0, "rss") > 0);
  }
}

/* Behaviour 19: training does not grow. (The sanitizer's quarantine of freed memory would.) */
static void test_memory_is_constant(void **state) {
  (void)state;
  assert_int_equal(
      run("ASAN_OPTIONS=quarantine_size_mb=0:thread_local_quarantine_size_kb=0 %s --memory --steps 2000", REGRESSION),
      0);
  assert_true(number("out", "memory", 0, "rss") - number("out", "memory", 0, "rss_before") < 512 * 1024);
}

static void test_poison(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 3 --save clean", REGRESSION), 0);
  assert_int_equal(run("%s --steps 3 --poison --save poisoned", REGRESSION), 0);
  assert_same_files("clean", "poisoned");
  assert_int_equal(run("%s --steps 3 --save planted", PLANTED), 0);
  assert_same_files("clean", "planted");
  assert_int_equal(run("%s --steps 3 --poison --save planted", PLANTED), 0);
  float weight[3];
  read_floats("planted", "weight", weight, 3);
  assert_true(isnan(weight[0]));
  assert_contains("out", "\"loss\":null"); /* from the second step on */
}

/* The planted program's evaluation frees the error before it is summed up. */
static void test_poison_in_evaluation(void **state) {
  (void)state;
  assert_int_equal(run("%s --eval", PLANTED), 0);
  assert_contains("out", "\"event\":\"test\",\"step\":0,\"loss\":");
  double loss = number("out", "test", 0, "loss");
  assert_true(loss > 0);
  assert_int_equal(run("%s --eval --poison", REGRESSION), 0);
  assert_float_equal(number("out", "test", 0, "loss"), loss, 0);
  assert_int_equal(run("%s --eval --poison", PLANTED), 0);
  assert_contains("out", "\"loss\":null");
}

/* On the host: the emulated device and the sanitizer watch the bytes around the arena themselves. */
static void test_guard_zones(void **state) {
  (void)state;
#if defined(BEFORE) && !defined(__SANITIZE_ADDRESS__)
  static const char *const planted[] = {BEFORE, BEHIND};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(run("%s --steps 1 --save clean", planted[i]), 0);
    assert_int_equal(run("%s --steps 1 --poison --save planted", planted[i]), 70);
    assert_contains("err", "regression.rp:5:8: loss has written outside the arena");
  }
#endif
}

static void test_no_memory(void **state) {
  (void)state;
  assert_int_equal(run("ASAN_OPTIONS=allocator_may_return_null=1 %s", TOO_LARGE), 7);
  assert_contains("err", " memory");
  assert_contains("err", "the arena");
  assert_contains("err", "1152921504606846976 bytes");
}

static void test_log(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 2 --save half --log=all", REGRESSION), 0);
  assert_int_equal(run("%s --steps 3 --resume half --log=all", REGRESSION), 0);
  assert_int_equal(count_events("all", "step"), 3); /* a resumed run goes on with its log */
  assert_int_equal(count_events("all", "start"), 2);
  assert_int_equal(run("%s --steps 1 --log=all", REGRESSION), 0);
  assert_int_equal(count_events("all", "step"), 1);
  if (access("/dev/full", W_OK) == 0) {
    assert_int_equal(run("%s --steps 1 --log=/dev/full", REGRESSION), 4);
    assert_contains("err", "the log could not be written");
  }
}

/* Runs a command with a terminal as its stdout and gives what it printed, in `text`. */
static void run_on_terminal(const char *command, char *text, size_t size) {
  size_t used = 0;
  int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    dup2(other, STDOUT_FILENO);
    close(terminal);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  for (ssize_t got; used < size - 1 && (got = read(terminal, text + used, size - 1 - used)) > 0;) used += (size_t)got;
  text[used] = '\0';
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  close(terminal);
}

static void test_terminal(void **state) {
  (void)state;
  char text[16384];
  run_on_terminal("NO_COLOR= " REGRESSION " --steps 3 --save kept --memory --log=lines", text, sizeof text);
  assert_non_null(strstr(text, "Regression: 4 parameters"));
  assert_non_null(strstr(text, "step 3/3  loss \x1b[1m"));
  assert_non_null(strstr(text, "samples/s"));
  assert_non_null(strstr(text, "saved kept"));
  assert_non_null(strstr(text, "test: 8 records"));
  assert_non_null(strstr(text, "high_water"));
  assert_null(strstr(text, "{"));
  assert_int_equal(count_events("lines", "step"), 3);
  run_on_terminal("NO_COLOR=1 " REGRESSION " --steps 3", text, sizeof text);
  assert_non_null(strstr(text, "step 3/3  loss "));
  assert_null(strstr(text, "\x1b[1m"));
}

static void test_trace(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 3 --trace trace.json", REGRESSION), 0);
  json_t *trace = json_load_file("trace.json", 0, NULL), *event;
  size_t index, kernels = 0, counters = 0;
  assert_non_null(trace);
  json_array_foreach(json_object_get(trace, "traceEvents"), index, event) {
    bool kernel = strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0;
    kernels += kernel;
    counters += !kernel;
    if (kernel) assert_true(json_number_value(json_object_get(event, "dur")) >= 0);
    if (index == 5) assert_int_equal(json_integer_value(json_object_get(json_object_get(event, "args"), "bytes")), 960);
  }
  assert_int_equal(kernels, 4);
  assert_int_equal(counters, 4);
  json_decref(trace);
}

static void test_threads(void **state) {
  (void)state;
  assert_int_equal(run("%s --steps 1 --threads 2", REGRESSION), 0);
  assert_int_equal(number("out", "start", 0, "threads"), 2);
  assert_int_equal(run("%s --steps 1 --threads=1", REGRESSION), 0);
  assert_int_equal(number("out", "start", 0, "threads"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trains),
      cmocka_unit_test(test_default_steps_and_epochs),
      cmocka_unit_test(test_schedule_and_rate),
      cmocka_unit_test(test_seed),
      cmocka_unit_test(test_accumulation),
      cmocka_unit_test(test_resume_is_exact),
      cmocka_unit_test(test_resume_errors),
      cmocka_unit_test(test_load_and_eval),
      cmocka_unit_test(test_outputs_are_tried_first),
      cmocka_unit_test(test_notes),
      cmocka_unit_test(test_rename),
      cmocka_unit_test(test_usage_errors),
      cmocka_unit_test(test_help_and_plan),
      cmocka_unit_test(test_data_errors),
      cmocka_unit_test(test_fault),
      cmocka_unit_test(test_interrupt),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_memory_is_constant),
      cmocka_unit_test(test_poison),
      cmocka_unit_test(test_guard_zones),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_poison_in_evaluation),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_log),
      cmocka_unit_test(test_terminal),
  };
  return cmocka_run_group_tests(tests, enter, leave_scratch);
}
