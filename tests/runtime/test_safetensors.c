/* The safetensors format: what is written reads back, every planted fault is refused, weights find their places. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/safetensors.h"
#include "runtime/weights.h"
#include "tests/runtime/support.h"

static RpStatus status;

/* A file of `header` as it stands and `data_size` zero bytes; `length` < 0 takes the header's own. */
static size_t compose(unsigned char *file, const char *header, long long length, size_t data_size) {
  size_t size = strlen(header);
  uint64_t prefix = length < 0 ? size : (uint64_t)length;
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)(prefix >> 8 * i);
  memcpy(file + 8, header, size);
  memset(file + 8 + size, 0, data_size);
  return 8 + size + data_size;
}

static void refuse(const char *header, long long length, size_t data_size, const char *message) {
  unsigned char file[8192];
  RpTensorFile tensors;
  size_t size = compose(file, header, length, data_size);
  status = (RpStatus){0};
  if (rp_tensors_open_memory(&tensors, "f", file, (int64_t)size, &status)) {
    fail_msg("accepted %s, expected: %s", header, message);
  }
  if (!strstr(status.message, message)) fail_msg("%s: expected \"%s\", found: %s", header, message, status.message);
  assert_int_equal(status.code, RP_BAD_DATA);
}

#define TENSOR(name, type, shape, begin, end) \
  "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

/* behaviours 26 and more of its kind. */
static void test_hostile_files(void **state) {
  (void)state;
  static const struct {
    const char *header;
    long long length;
    size_t data_size;
    const char *message;
  } cases[] = {
      {"{" TENSOR("w", "F32", "[16,32]", "0", "512") "}", -1, 512,
       "F32 [16,32] takes 2048 bytes, its data_offsets [0, 512] cover 512"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8") "," TENSOR("v", "F32", "[2]", "4", "12") "}", -1, 12, "overlaps"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8") "," TENSOR("v", "F32", "[2]", "12", "20") "}", -1, 20,
       "a hole before it"},
      {"{" TENSOR("w", "F32", "[2]", "4", "12") "}", -1, 12, "starts at data offset 4, expected 0"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8") "}", -1, 4, "ends at data offset 8, the file has 4"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8") "}", -1, 9, "end at data offset 8, the file has 9"},
      {"{" TENSOR("w", "F32", "[1]", "0", "4") "," TENSOR("w", "F32", "[1]", "4", "8") "}", -1, 8, "duplicate"},
      {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", -1, 0, "duplicate"},
      {"{\"__metadata__\":{\"a\":1}}", -1, 0, "\"a\" is not a string"},
      {"{\"__metadata__\":[]}", -1, 0, "__metadata__ is not an object"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8"), -1, 8, "header is not valid"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8") "}x", -1, 8, "header is not valid"},
      {" {" TENSOR("w", "F32", "[2]", "0", "8") "}", -1, 8, "start with '{'"},
      {"[]", -1, 0, "start with '{'"},
      {"", -1, 0, "start with '{'"},
      {"{}", 100000001, 0, "a header of 100000001 bytes"},
      {"{}", 3, 0, "a header of 3 bytes, expected at most 2"},
      {"{}", INT64_MAX, 0, "a header of 9223372036854775807 bytes"},
      {"{" TENSOR("w", "F31", "[2]", "0", "8") "}", -1, 8, "known dtype"},
      {"{" TENSOR("w", "F32", "[-2]", "0", "8") "}", -1, 8, "expected a shape"},
      {"{" TENSOR("w", "F32", "[2.0]", "0", "8") "}", -1, 8, "expected a shape"},
      {"{" TENSOR("w", "F32", "2", "0", "8") "}", -1, 8, "expected a shape"},
      {"{" TENSOR("w", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", -1, 4, "at most 8 sizes"},
      {"{" TENSOR("w", "F32", "[4294967296,4294967296]", "0", "8") "}", -1, 8, "fits 64 bits"},
      {"{" TENSOR("w", "F32", "[4611686018427387904]", "0", "8") "}", -1, 8, "fits 64 bits"},
      {"{" TENSOR("w", "F32", "[99999999999999999999]", "0", "8") "}", -1, 8, "header is not valid"},
      {"{" TENSOR("w", "F32", "[2]", "8", "0") "}", -1, 8, "0 <= begin <= end"},
      {"{" TENSOR("w", "F32", "[2]", "-8", "0") "}", -1, 8, "0 <= begin <= end"},
      {"{" TENSOR("w", "F32", "[2]", "0", "8.0") "}", -1, 8, "0 <= begin <= end"},
      {"{" TENSOR("w", "F32", "[2]", "0,4", "8") "}", -1, 8, "0 <= begin <= end"},
      {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", -1, 8, "nothing else"},
      {"{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}", -1, 0, "nothing else"},
      {"{\"w\":3}", -1, 0, "known dtype"},
      {"{\"a\\u0000b\":{}}", -1, 0, "header is not valid"},
      {"{\"\xff\":{}}", -1, 0, "header is not valid"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    refuse(cases[i].header, cases[i].length, cases[i].data_size, cases[i].message);
  }
  RpTensorFile tensors;
  for (int64_t size = 0; size < 8; size++) {
    assert_false(rp_tensors_open_memory(&tensors, "f", "\2\0\0\0\0\0\0", size, &status));
    assert_non_null(strstr(status.message, "8 bytes of header length"));
  }
}

/* Every cut of a good file is refused, whatever byte it ends at. */
static void test_truncation(void **state) {
  (void)state;
  unsigned char file[512];
  RpTensorFile tensors;
  size_t size =
      compose(file, "{" TENSOR("w", "F32", "[2]", "0", "8") "," TENSOR("v", "U8", "[3]", "8", "11") "}  ", -1, 11);
  assert_true(rp_tensors_open_memory(&tensors, "f", file, (int64_t)size, &status));
  assert_int_equal(tensors.count, 2);
  rp_tensors_close(&tensors);
  for (size_t cut = 0; cut < size; cut++) {
    assert_false(rp_tensors_open_memory(&tensors, "f", file, (int64_t)cut, &status));
  }
}

static void test_odd_but_valid(void **state) {
  (void)state;
  unsigned char file[512];
  RpTensorFile tensors;
  /* Empty tensors, a scalar, names with escapes, types that only other programs use, order of names not of data. */
  size_t size = compose(
      file,
      "{" TENSOR("z\\n\\u00e9", "F8_E4M3", "[3]", "4", "7") "," TENSOR("e", "F64", "[0,4]", "4", "4") "," TENSOR(
          "s", "F32", "[]", "0", "4") ",\"__metadata__\":{\"k\":\"v\"}}",
      -1, 7);
  if (!rp_tensors_open_memory(&tensors, "f", file, (int64_t)size, &status)) fail_msg("%s", status.message);
  assert_int_equal(tensors.count, 3);
  assert_string_equal(tensors.entries[0].name, "s");
  assert_string_equal(tensors.entries[2].name, "z\n\xc3\xa9");
  assert_string_equal(rp_tensors_metadata(&tensors, "k"), "v");
  assert_null(rp_tensors_metadata(&tensors, "format"));
  rp_tensors_close(&tensors);
}

static void test_round_trip(void **state) {
  (void)state;
  static const RpTensor declared[] = {
      {"layer.0.\"weight\"\\\n", RP_F32, 2, {2, 3}, -1}, {"count", RP_I64, 0, {0}, -1}, {"mask", RP_BOOL, 1, {5}, -1}};
  static const float weight[] = {1, -2, 3.5f, 1e-30f, INFINITY, 0};
  static const int64_t count = -7;
  static const uint8_t mask[] = {1, 0, 1, 1, 0};
  const RpMetadata metadata[] = {{"reprise.update", "12"}};
  RpTensorWriter writer;
  RpTensorFile tensors;
  assert_true(rp_writer_open(&writer, "round", declared, 3, metadata, 1, &status));
  assert_true(rp_writer_put(&writer, 2, mask, &status));
  assert_null(read_whole("round", NULL)); /* nothing under its name before it is whole */
  assert_true(rp_writer_put_part(&writer, 0, 0, weight, 8, &status));
  assert_true(rp_writer_put_part(&writer, 0, 8, weight + 2, 16, &status));
  assert_true(rp_writer_put(&writer, 1, &count, &status));
  assert_true(rp_writer_commit(&writer, &status));
  if (!rp_tensors_open(&tensors, "round", &status)) fail_msg("%s", status.message);
  float got[6];
  int64_t got_count;
  assert_int_equal(tensors.count, 3);
  assert_string_equal(tensors.entries[0].name, declared[0].name);
  assert_int_equal(tensors.data_offset % 8, 0);
  assert_true(rp_tensors_read(&tensors, &tensors.entries[0], RP_F32, 0, 6, got, &status));
  assert_memory_equal(got, weight, sizeof got);
  assert_true(rp_tensors_read(&tensors, &tensors.entries[1], RP_I64, 0, 1, &got_count, &status));
  assert_int_equal(got_count, count);
  assert_string_equal(rp_tensors_metadata(&tensors, "format"), "pt");
  assert_string_equal(rp_tensors_metadata(&tensors, "reprise.update"), "12");
  rp_tensors_close(&tensors);
}

static void test_writer_failures(void **state) {
  (void)state;
  static const RpTensor twice[] = {{"w", RP_F32, 0, {0}, -1}, {"w", RP_F32, 0, {0}, -1}};
  RpTensorWriter writer;
  assert_false(rp_writer_open(&writer, "dup", twice, 2, NULL, 0, &status));
  assert_int_equal(status.code, RP_INTERNAL);
  assert_false(rp_writer_open(&writer, "no/such/folder", twice, 1, NULL, 0, &status));
  assert_int_equal(status.code, RP_IO);
  write_text("old", "stays");
  assert_true(rp_writer_open(&writer, "old", twice, 1, NULL, 0, &status));
  rp_writer_discard(&writer);
  assert_contains("old", "stays");
  assert_int_equal(run("ls"), 0);
  char *listing = read_whole("out", NULL);
  assert_null(strstr(listing, "partial"));
  free(listing);
}

/* A model of two tensors over an arena of 64 bytes: weight f32[2] at 0, steps i64[] at 16, optimizer state at 32. */
static const RpPersistent persistents[] = {
    {{"h.weight", RP_F32, 1, {2}, 0}, RP_PARAMETER, {RP_INIT_CONSTANT, 0, 0}, true},
    {{"h.steps", RP_I64, 0, {0}, 16}, RP_STATE, {RP_INIT_CONSTANT, 0, 0}, false},
    {{"optimizer.m.h.weight", RP_F32, 1, {2}, 32}, RP_OPTIMIZER, {RP_INIT_CONSTANT, 0, 0}, false},
};
static const RpProgram program = {.persistents = persistents, .persistent_count = 3};
static _Alignas(8) char arena[64];

/* Loads a file of `header` and `data`; notes go to stderr. */
static bool load(const char *header, const void *data, size_t data_size, bool snapshot, const RpPair *rename) {
  unsigned char file[4096];
  size_t size = compose(file, header, -1, data_size);
  memcpy(file + size - data_size, data, data_size);
  RpContext context = {.program = &program, .arena = arena};
  RpTensorFile tensors;
  RpLog log = {0};
  memset(arena, 0, sizeof arena);
  status = (RpStatus){0};
  if (!rp_tensors_open_memory(&tensors, "f", file, (int64_t)size, &status)) return false;
  bool loaded = rp_weights_load(&context, &tensors, snapshot, rename, rename ? 1 : 0, &log, &status);
  rp_tensors_close(&tensors);
  return loaded;
}

#define STEPS TENSOR("h.steps", "I64", "[]", "0", "8")

static void refuse_load(const char *header, const void *data, size_t size, const RpPair *rename, const char *message) {
  if (load(header, data, size, false, rename)) fail_msg("accepted %s, expected: %s", header, message);
  if (!strstr(status.message, message)) fail_msg("expected \"%s\", found: %s", message, status.message);
  assert_int_equal(status.code, RP_BAD_DATA);
}

static void test_loading(void **state) {
  (void)state;
  const float *weight = (const float *)(const void *)arena;
  const struct {
    int64_t steps;
    float values[4];
  } data = {9, {1, 2, 1, 2}}, differing = {9, {1, 2, 1, 3}};
  const struct {
    int64_t steps;
    uint16_t values[2];
  } halves = {9, {0x3c00, 0xc000}}, bfloats = {9, {0x3f80, 0xc000}};
  const char *plain = "{" STEPS "," TENSOR("h.weight", "F32", "[2]", "8", "16") "}";
  assert_true(load(plain, &data, 16, false, NULL));
  assert_true(weight[0] == 1 && weight[1] == 2 && arena[16] == 9);
  assert_true(load("{" STEPS "," TENSOR("transformer.h.weight", "F32", "[2]", "8", "16") "}", &data, 16, false, NULL));
  assert_true(weight[1] == 2);
  assert_true(load("{" STEPS "," TENSOR("h.weight", "F16", "[2]", "8", "12") "}", &halves, 12, false, NULL));
  assert_true(weight[0] == 1 && weight[1] == -2);
  assert_true(load("{" STEPS "," TENSOR("h.weight", "BF16", "[2]", "8", "12") "}", &bfloats, 12, false, NULL));
  assert_true(weight[0] == 1 && weight[1] == -2);
  assert_true(load("{" STEPS "," TENSOR("h.weight", "F32", "[2]", "8", "16") "," TENSOR("h.attn.bias", "F32", "[1,2]",
                                                                                        "16", "24") "}",
                   &data, 24, false, NULL));
  refuse_load("{" STEPS "," TENSOR("h.weight", "F32", "[1,2]", "8", "16") "}", &data, 16, NULL,
              "tensor 'h.weight': expected f32 [2], found F32 [1,2]");
  refuse_load("{" STEPS "," TENSOR("h.weight", "I32", "[2]", "8", "16") "}", &data, 16, NULL,
              "expected f32 [2], found I32 [2]");
  refuse_load("{" STEPS "," TENSOR("h.weight", "I16", "[2]", "8", "12") "}", &data, 12, NULL, "found I16 [2]");
  refuse_load("{" STEPS "}", &data, 8, NULL, "lacks 1 tensor of the model, first 'h.weight'");
  /* Tied weights: either name, both when equal, not when different. */
  const RpPair tie = {"lm_head.weight=h.weight", "h.weight", 14};
  assert_true(load("{" STEPS "," TENSOR("lm_head.weight", "F32", "[2]", "8", "16") "}", &data, 16, false, &tie));
  assert_true(weight[1] == 2);
  const char *both = "{" STEPS "," TENSOR("h.weight", "F32", "[2]", "8", "16") "," TENSOR("lm_head.weight", "F32",
                                                                                          "[2]", "16", "24") "}";
  assert_true(load(both, &data, 24, false, &tie));
  refuse_load(both, &differing, 24, &tie,
              "'h.weight' and 'lm_head.weight' are both 'h.weight' of the model but hold different values");
  refuse_load(plain, &data, 16, &tie, "--rename lm_head.weight=h.weight: 'f' has no such tensor");
  /* A snapshot has to bring the optimizer's state too. */
  assert_false(load(plain, &data, 16, true, NULL));
  assert_non_null(strstr(status.message, "first 'optimizer.m.h.weight'"));
  assert_true(load("{" STEPS "," TENSOR("h.weight", "F32", "[2]", "8", "16") "," TENSOR("optimizer.m.h.weight", "F32",
                                                                                        "[2]", "16", "24") "}",
                   &data, 24, true, NULL));
  assert_true(((const float *)(const void *)arena)[9] == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hostile_files),   cmocka_unit_test(test_truncation),
      cmocka_unit_test(test_odd_but_valid),   cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_writer_failures), cmocka_unit_test(test_loading),
  };
  return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
