/* Data files: right ones, and one fault of each kind with what the message has to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
/* cmocka.h needs the above */
#include <cmocka.h>

#include "runtime/batches.h"
#include "tests/runtime/support.h"

static RpInput inputs[2];
static RpProgram program = {.inputs = inputs, .input_count = 2};
static RpStatus status;

static void declare(int input, RpType type, int rank, int64_t a, int64_t b, int64_t c) {
  inputs[input] = (RpInput){{input == 0 ? "x" : "y", type, rank, {a, b, c}, 1024 * input}, 1024 * input};
}

static bool open_source(RpSource *source, const RpReader *reader) {
  status = (RpStatus){0};
  return rp_source_open(source, &program, reader, NULL, false, NULL, &status);
}

static RpReader reader_of(RpReaderKind kind, const char *path, int input_count) {
  return (RpReader){.kind = kind, .name = "x", .path = path, .input_count = input_count, .inputs = {0, 1}, .last = -1};
}

/* Opening has to fail with `message` in what is said. */
static void refuse(const RpReader *reader, RpCode code, const char *message) {
  RpSource source;
  if (open_source(&source, reader)) fail_msg("'%s' was accepted, expected: %s", reader->path, message);
  if (!strstr(status.message, message)) fail_msg("expected \"%s\", found: %s", message, status.message);
  assert_int_equal(status.code, code);
}

static void accept(RpSource *source, const RpReader *reader) {
  if (!open_source(source, reader)) fail_msg("%s", status.message);
}

static void write_gzip(const char *path, const void *bytes, size_t size) {
  gzFile stream = gzopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(gzwrite(stream, bytes, (unsigned)size), size);
  assert_int_equal(gzclose(stream), Z_OK);
}

static const unsigned char idx_floats[] = {0,    0,    0x0D, 2, 0,    0, 0, 2, 0,    0, 0, 2, /* [2,2]: 1 -2 0.5 256 */
                                           0x3F, 0x80, 0,    0, 0xC0, 0, 0, 0, 0x3F, 0, 0, 0, 0x43, 0x80, 0, 0};

static void test_idx(void **state) {
  (void)state;
  RpSource source;
  float values[2];
  char *to[] = {(char *)values};
  declare(0, RP_F32, 2, 2, 2, 0);
  write_file("a.idx", idx_floats, sizeof idx_floats);
  write_gzip("a.idx.gz", idx_floats, sizeof idx_floats);
  const char *const paths[] = {"a.idx", "a.idx.gz"};
  for (int i = 0; i < 2; i++) {
    RpReader reader = reader_of(RP_READ_IDX, paths[i], 1);
    accept(&source, &reader);
    assert_int_equal(rp_source_records(&source), 2);
    assert_true(rp_source_read(&source, 1, to, &status));
    assert_true(values[0] == 0.5f && values[1] == 256);
    rp_source_close(&source);
    reader.first = 1;
    accept(&source, &reader);
    assert_int_equal(rp_source_records(&source), 1);
    assert_true(rp_source_read(&source, 0, to, &status));
    assert_true(values[0] == 0.5f);
    rp_source_close(&source);
    reader.last = 3;
    refuse(&reader, RP_BAD_DATA, "records 1..3 of 'a.idx");
    reader.last = 1;
    refuse(&reader, RP_BAD_DATA, "has no record");
  }
}

static void test_idx_faults(void **state) {
  (void)state;
  RpReader reader = reader_of(RP_READ_IDX, "bad.idx", 1);
  unsigned char bytes[sizeof idx_floats + 1];
  static const struct {
    int offset, value, size; /* size 0: as it is */
    const char *message;
  } faults[] = {
      {0, 1, 0, "not an IDX file"},
      {2, 0x0A, 0, "found 00 00 0a"},
      {3, 0, 0, "1 to 9 axes"},
      {3, 200, 0, "found 200"},
      {7, 3, 0, "says 24 bytes of data after offset 12, found 16"},
      {4, 0xFF, 0, "bytes of data"},
      {2, 0x0C, 0, "expects f32, found i32"},
      {2, 0x0B, 28 - 8, "found i16"},
      {11, 1, 28 - 8, "expects records of shape [2], found [1]"},
      {3, 1, 16, "expects records of shape [2], found [] after"},
      {0, 0, 3, "ends at byte 3"},
      {0, 0, 10, "ends at byte 10"},
      {0, 0, 27, "found 15"},
      {0, 0, 29, "found 17"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    memcpy(bytes, idx_floats, sizeof idx_floats);
    bytes[sizeof idx_floats] = 0;
    bytes[faults[i].offset] = (unsigned char)faults[i].value;
    write_file("bad.idx", bytes, faults[i].size ? (size_t)faults[i].size : sizeof idx_floats);
    refuse(&reader, RP_BAD_DATA, faults[i].message);
  }
  write_gzip("whole.gz", idx_floats, sizeof idx_floats);
  size_t size;
  char *gzip = read_whole("whole.gz", &size);
  write_file("bad.idx", gzip, size - 6);
  refuse(&reader, RP_BAD_DATA, "cannot decompress 'bad.idx'");
  free(gzip);
  reader.path = "absent";
  refuse(&reader, RP_IO, "cannot open 'absent'");
  reader.path = ".";
  refuse(&reader, RP_IO, "not a regular file");
}

static void write_npy(const char *path, int version, const char *dict, const void *data, size_t size) {
  FILE *stream = fopen(path, "wb");
  size_t prefix = version == 1 ? 10 : 12, length = (prefix + strlen(dict) + 1 + 63) / 64 * 64 - prefix;
  assert_non_null(stream);
  fprintf(stream, "\x93NUMPY%c%c%c%c", version, 0, (int)(length & 255), (int)(length >> 8));
  if (version > 1) fputc(0, stream), fputc(0, stream);
  fprintf(stream, "%-*s\n", (int)length - 1, dict);
  fwrite(data, 1, size, stream);
  fclose(stream);
}

static void test_npy(void **state) {
  (void)state;
  static const int64_t data[] = {10, 11, 12, 13, 14, 15};
  RpReader reader = reader_of(RP_READ_NPY, "a.npy", 1);
  RpSource source;
  int64_t values[2];
  char *to[] = {(char *)values};
  declare(0, RP_I64, 2, 1, 2, 0);
  for (int version = 1; version <= 3; version++) {
    write_npy("a.npy", version, "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", data, sizeof data);
    accept(&source, &reader);
    assert_int_equal(rp_source_records(&source), 3);
    assert_true(rp_source_read(&source, 2, to, &status));
    assert_true(values[0] == 14 && values[1] == 15);
    rp_source_close(&source);
  }
  declare(0, RP_U8, 1, 4, 0, 0);
  write_npy("a.npy", 1, "{\"shape\":(48,),\"fortran_order\":True,\"descr\":\"|u1\"}", data, sizeof data);
  accept(&source, &reader);
  assert_int_equal(rp_source_records(&source), 48);
  rp_source_close(&source);
}

static void test_npy_faults(void **state) {
  (void)state;
  static const int64_t data[] = {10, 11, 12, 13, 14, 15};
  static const struct {
    const char *dict, *message;
  } faults[] = {
      {"{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }", "found dtype |O"},
      {"{'descr': '>i8', 'fortran_order': False, 'shape': (3, 2), }", "is big-endian (dtype >i8)"},
      {"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }", "expects i64, found i32"},
      {"{'descr': '<i8', 'fortran_order': True, 'shape': (3, 2), }", "Fortran order"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", "expects records of shape [2], found [3]"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (), }", "found a scalar"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (4, 2), }", "4 records of 16 bytes"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775807, 2), }", "records of 16 bytes"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999, 2), }", "header like"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (-3, 2), }", "header like"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1), }", "header like"},
      {"{'descr': '<i8', 'fortran_order': False}", "header like"},
      {"{'descr': '<i8', 'descr': '<i8', 'fortran_order': False, 'shape': (3, 2)}", "header like"},
      {"{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (3, 2)}", "header like"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), 'x': 1}", "header like"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2", "header like"},
      {"", "header like"},
  };
  RpReader reader = reader_of(RP_READ_NPY, "bad.npy", 1);
  declare(0, RP_I64, 2, 1, 2, 0);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    write_npy("bad.npy", 1, faults[i].dict, data, sizeof data);
    refuse(&reader, RP_BAD_DATA, faults[i].message);
  }
  write_npy("bad.npy", 4, faults[0].dict, data, sizeof data);
  refuse(&reader, RP_BAD_DATA, "version 1, 2 or 3");
  write_file("bad.npy", "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  refuse(&reader, RP_BAD_DATA, "a header of 4294967295 bytes");
  write_file("bad.npy", "\x93NUMPY\1\0\x76\0{", 11);
  refuse(&reader, RP_BAD_DATA, "ends at byte 11");
}

static void test_csv(void **state) {
  (void)state;
  RpReader reader = reader_of(RP_READ_CSV, "a.csv", 2);
  RpSource source;
  uint8_t x[3];
  float y[2];
  char *to[] = {(char *)x, (char *)y};
  declare(0, RP_U8, 2, 2, 3, 0);
  declare(1, RP_F32, 2, 2, 2, 0);
  write_text("a.csv", "p,q,r,s,t\n 1, 2 ,255,-0.5,1e3\r\n\n0,0,0, .25 ,7");
  reader.header = true;
  accept(&source, &reader);
  assert_int_equal(rp_source_records(&source), 2);
  assert_true(rp_source_read(&source, 0, to, &status));
  assert_true(x[0] == 1 && x[1] == 2 && x[2] == 255 && y[0] == -0.5f && y[1] == 1000);
  assert_true(rp_source_read(&source, 1, to, &status));
  assert_true(x[2] == 0 && y[0] == 0.25f && y[1] == 7);
  rp_source_close(&source);
  reader.header = false;
  refuse(&reader, RP_BAD_DATA, "a.csv:1: column 1: input 'x' expects u8, found 'p'");
}

static void test_csv_faults(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } faults[] = {
      {"1,2\n1\n", "bad.csv:2: expected 2 columns, found 1"},
      {"1,2,3\n", "bad.csv:1: expected 2 columns, found 3"},
      {"1,2,\n", "bad.csv:1: expected 2 columns"},
      {"1,\n", "column 2: input 'y' expects i32, found ''"},
      {"1,2.5\n", "found '2.5'"},
      {"1,2147483648\n", "found '2147483648'"},
      {"nan,2\n", "input 'x' expects f64, found 'nan'"},
      {"1e999,2\n", "found '1e999'"},
      {"1;2\n", "found '1;2'"},
      {"\x1b[31m\xff,2\n", "found '?[31m?'"},
      {"\"1\",2\n", "found '\"1\"'"},
      {"", "has no record"},
      {"\n \n", "has no record"},
  };
  RpReader reader = reader_of(RP_READ_CSV, "bad.csv", 2);
  declare(0, RP_F64, 1, 2, 0, 0);
  declare(1, RP_I32, 1, 2, 0, 0);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    write_text("bad.csv", faults[i].text);
    refuse(&reader, RP_BAD_DATA, faults[i].message);
  }
}

static void test_bytes_and_chars(void **state) {
  (void)state;
  RpReader reader = reader_of(RP_READ_BYTES, "a.txt", 2);
  RpSource source, test;
  int32_t x[4], y[4];
  char *to[] = {(char *)x, (char *)y};
  declare(0, RP_I32, 2, 2, 4, 0);
  declare(1, RP_I32, 2, 2, 4, 0);
  write_text("a.txt", "hello world!\n");
  accept(&source, &reader);
  assert_int_equal(rp_source_records(&source), 3);
  assert_true(rp_source_read(&source, 1, to, &status));
  assert_true(x[0] == 'e' && x[3] == 'o' && y[0] == 'l' && y[3] == ' ');
  rp_source_close(&source);
  reader.kind = RP_READ_CHARS; /* \n ! space d e h l o r w */
  reader.vocabulary = 10;
  accept(&source, &reader);
  assert_true(rp_source_read(&source, 0, to, &status));
  assert_true(x[0] == 5 && x[1] == 4 && x[2] == 6 && y[0] == 4 && y[3] == 7);
  /* Test text is numbered by the training text; a byte that is not in it is an error when it is read. */
  write_text("b.txt", "wwwwwwwwwz");
  assert_true(rp_source_open(&test, &program, &reader, "b.txt", true, &source, &status));
  assert_true(rp_source_read(&test, 0, to, &status));
  assert_int_equal(x[0], 9);
  assert_false(rp_source_read(&test, 5, to, &status));
  assert_non_null(strstr(status.message, "element 9 (a byte) is not in the vocabulary"));
  rp_source_close(&test);
  rp_source_close(&source);
  reader.vocabulary = 9;
  refuse(&reader, RP_BAD_DATA, "'a.txt' has 10 distinct bytes, the model has room for 9");
  reader.last = 4;
  reader.vocabulary = 0;
  refuse(&reader, RP_BAD_DATA, "a window takes one more");
  declare(1, RP_I32, 2, 2, 5, 0);
  refuse(&reader, RP_BAD_DATA, "same type and shape [B, T]");
  declare(0, RP_F32, 2, 2, 4, 0);
  declare(1, RP_F32, 2, 2, 4, 0);
  refuse(&reader, RP_BAD_DATA, "expected i32, i64 or u8 for chars");
}

static void write_tokens(const char *path, int32_t magic, int32_t version, int32_t count, const void *data,
                         size_t size) {
  int32_t header[256] = {magic, version, count};
  char bytes[2048];
  memcpy(bytes, header, sizeof header);
  memcpy(bytes + sizeof header, data, size);
  write_file(path, bytes, sizeof header + size);
}

static void test_tokens(void **state) {
  (void)state;
  static const uint16_t narrow[] = {1, 2, 50256, 4, 5};
  static const uint32_t wide[] = {100000, 7, 8};
  RpReader reader = reader_of(RP_READ_TOKENS, "part_*.bin", 2);
  RpSource source;
  int32_t x[4], y[4];
  char *to[] = {(char *)x, (char *)y};
  declare(0, RP_I32, 2, 1, 4, 0);
  declare(1, RP_I32, 2, 1, 4, 0);
  refuse(&reader, RP_IO, "no file matches 'part_*.bin'");
  write_tokens("part_2.bin", 20240801, 7, 3, wide, sizeof wide);
  write_tokens("part_1.bin", 20240520, 1, 5, narrow, sizeof narrow);
  accept(&source, &reader);
  assert_int_equal(source.available, 8);
  assert_true(rp_source_read(&source, 2, to, &status)); /* over the boundary */
  assert_true(x[0] == 50256 && x[1] == 4 && x[2] == 5 && x[3] == 100000 && y[2] == 100000 && y[3] == 7);
  rp_source_close(&source);
  write_tokens("part_3.bin", 20240520, 1, 6, narrow, sizeof narrow);
  refuse(&reader, RP_BAD_DATA, "'part_3.bin': its header says 6 tokens of 2 bytes after offset 1024, found 10 bytes");
  write_tokens("part_3.bin", 20240520, 7, 5, narrow, sizeof narrow);
  refuse(&reader, RP_BAD_DATA, "not a token file of llm.c");
  write_tokens("part_3.bin", 20240520, 1, -1, narrow, sizeof narrow);
  refuse(&reader, RP_BAD_DATA, "says -1 tokens");
  write_text("part_3.bin", "short");
  refuse(&reader, RP_BAD_DATA, "ends at byte 5");
}

static void check_glob(const char *pattern, const char *expected) {
  char **paths, found[512] = "";
  int64_t count;
  assert_true(rp_glob(pattern, &paths, &count, &status));
  for (int64_t i = 0; i < count; i++) strcat(strcat(found, paths[i]), " ");
  assert_string_equal(found, expected);
  rp_paths_free(paths, count);
}

static void test_globs(void **state) {
  (void)state;
  static const char *const folders[] = {"g", "g/a", "g/a/b", "g/.hidden"};
  static const char *const files[] = {"g/1.bin", "g/a/2.bin", "g/a/b/3.bin", "g/.hidden/4.bin", "g/.5.bin", "g/a/b/x"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_int_equal(mkdir(folders[i], 0700), 0);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_text(files[i], "x");
  check_glob("g/*.bin", "g/1.bin ");
  check_glob("g/*/2*", "g/a/2.bin ");
  check_glob("g/**/*.bin", "g/1.bin g/a/2.bin g/a/b/3.bin ");
  check_glob("**/3.bin", "g/a/b/3.bin ");
  check_glob("g/a/**", "g/a/2.bin g/a/b/3.bin g/a/b/x ");
  check_glob("g/**/**/3.bin", "g/a/b/3.bin ");
  check_glob("g/.*.bin", "g/.5.bin ");
  check_glob("no star at all", "no star at all ");
}

/* Every record exactly once an epoch, another order in the next, the same order again from the same seed. */
static void test_batches_cover_the_data(void **state) {
  (void)state;
  static const RpReader readers[] = {{RP_READ_IDX, "x", "x.idx", 1, {0}, 0, -1, 0, false, 0},
                                     {RP_READ_IDX, "y", "y.idx", 1, {1}, 0, -1, 0, false, 0}};
  RpOptions options = {0};
  RpData data, again;
  unsigned char bytes[8 + 23] = {0, 0, 8, 1, 0, 0, 0, 23};
  char arena[2048], other[2048];
  int seen[23] = {0}, moved = 0;
  declare(0, RP_U8, 1, 5, 0, 0);
  declare(1, RP_U8, 1, 5, 0, 0);
  for (int i = 0; i < 23; i++) bytes[8 + i] = (unsigned char)i;
  write_file("x.idx", bytes, sizeof bytes);
  for (int i = 0; i < 23; i++) bytes[8 + i] = (unsigned char)(100 + i);
  write_file("y.idx", bytes, sizeof bytes);
  program.readers = readers, program.reader_count = 2, program.shuffle = true;
  assert_true(rp_data_open_training(&data, &program, &options, 5, &status));
  assert_true(rp_data_open_training(&again, &program, &options, 5, &status));
  assert_int_equal(rp_data_batches(&data), 4);
  for (int batch = 0; batch < 4; batch++) {
    assert_true(rp_data_load(&data, &program, batch, arena, &status));
    for (int row = 0; row < 5; row++) {
      assert_int_equal(arena[1024 + row], arena[row] + 100); /* readers share the order */
      seen[(int)arena[row]]++;
      moved += arena[row] != batch * 5 + row;
    }
  }
  int total = 0;
  for (int i = 0; i < 23; i++) assert_true(seen[i] <= 1), total += seen[i];
  assert_int_equal(total, 20);
  assert_true(moved > 10);
  /* Straight to the third batch of the second epoch. */
  for (int batch = 4; batch < 7; batch++) assert_true(rp_data_load(&data, &program, batch, arena, &status));
  assert_true(rp_data_load(&again, &program, 6, other, &status));
  assert_memory_equal(arena, other, 5);
  assert_true(rp_data_load(&again, &program, 2, other, &status));
  assert_memory_not_equal(arena, other, 5);
  rp_data_close(&data);
  rp_data_close(&again);
  bytes[7] = 22;
  write_file("y.idx", bytes, sizeof bytes - 1);
  assert_false(rp_data_open_training(&data, &program, &options, 5, &status));
  assert_non_null(strstr(status.message, "'x.idx' has 23 records for input 'x', 'y.idx' has 22 for input 'y'"));
  declare(1, RP_U8, 1, 4, 0, 0);
  assert_false(rp_data_open_training(&data, &program, &options, 5, &status));
  assert_non_null(strstr(status.message, "the same first axis"));
  program.reader_count = 1;
  assert_false(rp_data_open_training(&data, &program, &options, 5, &status));
  assert_non_null(strstr(status.message, "nothing is read into input 'y'"));
}

static void test_windows(void **state) {
  (void)state;
  static const RpReader readers[] = {{RP_READ_BYTES, "x", "w.txt", 2, {0, 1}, 0, 20, 0, false, 0}};
  static const RpReader test_readers[] = {{RP_READ_BYTES, "x", "w.txt", 2, {0, 1}, 20, -1, 0, false, 0}};
  RpOptions options = {0};
  RpData data, test;
  uint8_t arena[2048];
  int starts[17] = {0};
  declare(0, RP_U8, 2, 2, 4, 0);
  declare(1, RP_U8, 2, 2, 4, 0);
  write_text("w.txt", "abcdefghijklmnopqrstuvwxyz0123456789");
  program.readers = readers, program.reader_count = 1, program.shuffle = true;
  program.test_readers = test_readers, program.test_reader_count = 1;
  assert_true(rp_data_open_training(&data, &program, &options, 1, &status));
  assert_int_equal(rp_data_batches(&data), 2);
  assert_true(data.texts && data.window == 4);
  for (int batch = 0; batch < 400; batch++) {
    assert_true(rp_data_load(&data, &program, batch, (char *)arena, &status));
    for (int row = 0; row < 2; row++) {
      assert_in_range(arena[4 * row], 'a', 'p'); /* the last start whose window ends at 't' */
      assert_int_equal(arena[1024 + 4 * row + 3], arena[4 * row] + 4);
      starts[arena[4 * row] - 'a']++;
    }
  }
  for (int start = 0; start < 16; start++) assert_in_range(starts[start], 20, 90); /* 50 expected of each */
  assert_true(rp_data_open_test(&test, &program, &options, &data, &status));
  assert_int_equal(rp_data_batches(&test), 1); /* three windows of 4 in 16 positions, two a batch */
  assert_true(rp_data_load(&test, &program, 0, (char *)arena, &status));
  assert_true(arena[0] == 'u' && arena[4] == 'y');
  rp_data_close(&test);
  rp_data_close(&data);
  program.test_reader_count = 0;
}

static void test_constants(void **state) {
  (void)state;
  static const RpReader readers[] = {{RP_READ_CONSTANT, "x", NULL, 2, {0, 1}, 0, -1, 2.5, false, 0}};
  RpOptions options = {0};
  RpData data;
  _Alignas(8) char arena[2048];
  declare(0, RP_F32, 2, 3, 2, 0);
  declare(1, RP_I64, 0, 0, 0, 0);
  program.readers = readers, program.reader_count = 1, program.shuffle = true;
  assert_true(rp_data_open_training(&data, &program, &options, 1, &status));
  assert_int_equal(rp_data_batches(&data), 1);
  assert_true(rp_data_load(&data, &program, 7, arena, &status));
  for (int i = 0; i < 6; i++) assert_true(((float *)(void *)arena)[i] == 2.5f);
  assert_int_equal(*(int64_t *)(void *)(arena + 1024), 2);
  rp_data_close(&data);
}

static void test_mnist(void **state) {
  (void)state;
  RpReader images = reader_of(RP_READ_IDX, REPRISE_SHARED_DATA "/mnist/t10k-images-idx3-ubyte.gz", 1);
  RpReader labels = reader_of(RP_READ_IDX, REPRISE_SHARED_DATA "/mnist/t10k-labels-idx1-ubyte.gz", 1);
  RpSource source;
  uint8_t image[784], label;
  char *to_image[] = {(char *)image}, *to_label[] = {(char *)&label};
  int counts[10] = {0};
  if (access(images.path, R_OK) != 0) skip();
  declare(0, RP_U8, 3, 10, 28, 28);
  accept(&source, &images);
  assert_int_equal(rp_source_records(&source), 10000);
  assert_true(rp_source_read(&source, 0, to_image, &status));
  long sum = 0;
  for (int i = 0; i < 784; i++) sum += image[i];
  assert_true(sum > 784 * 10 && sum < 784 * 80);
  rp_source_close(&source);
  declare(0, RP_U8, 1, 10, 0, 0);
  accept(&source, &labels);
  for (int i = 0; i < 10000; i++) {
    assert_true(rp_source_read(&source, i, to_label, &status));
    counts[label]++;
  }
  assert_int_equal(counts[0], 980); /* of the published test set */
  assert_int_equal(counts[1], 1135);
  rp_source_close(&source);
}

static void test_tinyshakespeare(void **state) {
  (void)state;
  RpReader reader = reader_of(RP_READ_CHARS, REPRISE_SHARED_DATA "/text/tinyshakespeare.txt", 2);
  RpSource source;
  int32_t x[8], y[8];
  char *to[] = {(char *)x, (char *)y};
  if (access(reader.path, R_OK) != 0) skip();
  declare(0, RP_I32, 2, 1, 8, 0);
  declare(1, RP_I32, 2, 1, 8, 0);
  reader.vocabulary = 65;
  accept(&source, &reader);
  assert_int_equal(source.available, 1115394);
  assert_true(rp_source_read(&source, 0, to, &status)); /* "First Ci", numbered as nanoGPT does */
  static const int32_t first[] = {18, 47, 56, 57, 58, 1, 15, 47};
  assert_memory_equal(x, first, sizeof first);
  rp_source_close(&source);
  reader.vocabulary = 64;
  refuse(&reader, RP_BAD_DATA, "65 distinct bytes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_idx),
      cmocka_unit_test(test_idx_faults),
      cmocka_unit_test(test_npy),
      cmocka_unit_test(test_npy_faults),
      cmocka_unit_test(test_csv),
      cmocka_unit_test(test_csv_faults),
      cmocka_unit_test(test_bytes_and_chars),
      cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_globs),
      cmocka_unit_test(test_batches_cover_the_data),
      cmocka_unit_test(test_windows),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_mnist),
      cmocka_unit_test(test_tinyshakespeare),
  };
  return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
