/* The files of examples/: each compiles as it stands in canonical form; sizes of models; what training them reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "tests/examples/model_run.h"
#include "tests/examples/program_run.h"

typedef struct Example {
  const char *file;
  int64_t weights; /* elements of all parameters; 0: layers only, no model */
} Example;

static const Example examples[] = {{"trace.rp", 2},
                                   {"digits/digits.rp", 9610},
                                   {"mnist.rp", 269322},
                                   {"batch_norm.rp", 43018},
                                   {"adapter.rp", 40714},
                                   {"char_rnn.rp", 329472},
                                   {"nn.rp", 0},
                                   {"gpt2.rp", 124439808},
                                   {"char_transformer.rp", 834304}};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static char *in_source(MemoryArena *arena, const char *name) {
  return memory_format(arena, "%s/%s", REPRISE_SOURCE, name);
}

static int64_t count_weights(const Module *module) {
  int64_t count = 0;
  for (int64_t i = 0; i < module->persistents.count; i++)
    if (module->persistents.items[i].role == ROLE_PARAMETER) count += type_elements(&module->persistents.items[i].type);
  return count;
}

static Module *elaborate(MemoryArena *arena, const char *name, const Definition *definitions, int count) {
  const char *error = NULL;
  Module *module = elaborate_path(arena, example_path(arena, name), definitions, count, &error);
  diag_print(stderr, false);
  diag_reset();
  assert_null(error);
  assert_non_null(module);
  return module;
}

static void examples_have_their_sizes(void **state) {
  (void)state;
  for (int i = 0; i < EXAMPLES; i++) {
    if (!examples[i].weights) continue;
    MemoryArena *arena = memory_arena_create();
    Module *module = elaborate(arena, examples[i].file, NULL, 0);
    assert_int_equal(count_weights(module), examples[i].weights);
    assert_true(module->training.has_optimizer);
    memory_arena_destroy(arena);
  }
}

static bool is_listed(const char *folder, const char *name) {
  for (int i = 0; i < EXAMPLES; i++) {
    const char *file = examples[i].file, *slash = strrchr(file, '/');
    bool here = slash ? (size_t)(slash - file) == strlen(folder) && string_starts(file, folder) : !*folder;
    if (here && string_equal(slash ? slash + 1 : file, name)) return true;
  }
  return false;
}

static void every_example_is_listed(void **state) {
  (void)state;
  static const char *const folders[] = {"", "digits"};
  for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
    MemoryArena *arena = memory_arena_create();
    DIR *directory = opendir(example_path(arena, folders[f]));
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
      if (string_ends(entry->d_name, ".rp") && !is_listed(folders[f], entry->d_name))
        fail_msg("%s is not tested", entry->d_name);
    closedir(directory);
    memory_arena_destroy(arena);
  }
}

static void examples_are_in_canonical_form(void **state) {
  (void)state;
  for (int i = 0; i < EXAMPLES; i++) {
    MemoryArena *arena = memory_arena_create();
    const char *words[] = {REPRISE_COMMAND, "fmt", "--check", example_path(arena, examples[i].file), NULL};
    if (run_command(words, NULL, NULL) != EXIT_OK)
      fail_msg("%s is not in canonical form: run reprise fmt", examples[i].file);
    memory_arena_destroy(arena);
  }
}

/* Names, shapes and sizes of the public weights files. */
static void gpt2_has_its_public_sizes(void **state) {
  (void)state;
  static const struct {
    const char *layers, *heads, *width;
    int64_t weights;
  } sizes[] = {{"12", "12", "768", 124439808},
               {"24", "16", "1024", 354823168},
               {"36", "20", "1280", 774030080},
               {"48", "25", "1600", 1557611200}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    MemoryArena *arena = memory_arena_create();
    Definition definitions[] = {{"L", sizes[i].layers}, {"H", sizes[i].heads}, {"C", sizes[i].width}};
    assert_int_equal(count_weights(elaborate(arena, "gpt2.rp", definitions, 3)), sizes[i].weights);
    memory_arena_destroy(arena);
  }
}

static void gpt2_has_its_public_names(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  static const char *const layer[] = {
      "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
      "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};
  StringMap expected = {.arena = arena};
  string_map_set(&expected, "wte.weight", 0);
  string_map_set(&expected, "wpe.weight", 0);
  string_map_set(&expected, "ln_f.weight", 0);
  string_map_set(&expected, "ln_f.bias", 0);
  for (int i = 0; i < 12; i++)
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++)
      string_map_set(&expected, memory_format(arena, "h.%d.%s", i, layer[k]), 0);
  const Module *module = elaborate(arena, "gpt2.rp", NULL, 0);
  assert_int_equal(module->persistents.count, expected.count);
  for (int64_t i = 0; i < module->persistents.count; i++)
    assert_non_null(string_map_find(&expected, module->persistents.items[i].name));
  memory_arena_destroy(arena);
}

/* ---- training ---- */

static void expect_accuracy(const char *file, const char *const *run_words, double least) {
  MemoryArena *arena = memory_arena_create();
  const char *folder = folder_create(arena);
  const char *log = train_example(arena, folder, file, NULL, run_words);
  assert_non_null(log);
  LogLines accuracy = log_field(arena, log, "test", "scalars.accuracy");
  assert_true(accuracy.count >= 1);
  if (!(accuracy.values[accuracy.count - 1] >= least))
    fail_msg("%s: accuracy %.4f", file, accuracy.values[accuracy.count - 1]);
  folder_remove(arena, folder);
  memory_arena_destroy(arena);
}

static void digits_are_learned(void **state) {
  (void)state;
  expect_accuracy("digits/digits.rp", NULL, 0.97);
}

static void digits_are_learned_with_batch_statistics(void **state) {
  (void)state;
  expect_accuracy("batch_norm.rp", NULL, 0.97);
}

static void adapter_learns(void **state) {
  (void)state;
  expect_accuracy("adapter.rp", NULL, 0.90);
}

static void mnist_is_learned(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  const char *images = REPRISE_SHARED_DATA "/mnist/t10k-images-idx3-ubyte.gz",
             *labels = REPRISE_SHARED_DATA "/mnist/t10k-labels-idx1-ubyte.gz";
  bool there = access(images, R_OK) == 0 && access(labels, R_OK) == 0;
  if (!there) print_message("skipped: no file %s\n", images);
  if (there) {
    const char *image = memory_format(arena, "image=%s", images), *label = memory_format(arena, "label=%s", labels);
    const char *words[] = {"--data", image, "--data", label, "--test", image, "--test", label, NULL};
    expect_accuracy("mnist.rp", words, 0.94);
  }
  memory_arena_destroy(arena);
  if (!there) skip();
}

/* ---- against PyTorch: tests/reference/char_transformer.py ---- */

static const char **definition_words(MemoryArena *arena, json_t *definitions, json_t *train_characters) {
  const char **words = NEW_ARRAY(arena, const char *, 20), *name;
  int count = 0;
  json_t *value;
  json_object_foreach(definitions, name, value) words[count++] =
      memory_format(arena, "-D%s=%d", name, (int)json_integer_value(value));
  words[count++] = memory_format(arena, "-DTRAIN=%d", (int)json_integer_value(train_characters));
  words[count++] = memory_format(arena, "-DEND=%d", (int)json_integer_value(train_characters) + 1300);
  return words;
}

static void compare_losses(MemoryArena *arena, const char *log, const json_t *expected, const char *name) {
  LogLines found = log_field(arena, log, "step", "loss");
  assert_int_equal(found.count, (int64_t)json_array_size(expected));
  assert_int_equal(found.count, 20);
  for (int64_t i = 0; i < found.count; i++) {
    double value = json_number_value(json_array_get(expected, (size_t)i));
    if (fabs(found.values[i] - value) > 1e-4)
      fail_msg("%s: loss %d is %.8g, PyTorch's %.8g", name, (int)i, found.values[i], value);
  }
}

static void char_transformer_trains_as_in_torch(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  json_t *root = json_load_file(in_source(arena, "tests/reference/char_transformer.json"), 0, NULL), *configuration;
  const char *name, *text = in_source(arena, "LICENSE"),
                    *words[] = {"--steps", "20", "--data", text, "--test", text, NULL};
  assert_non_null(root);
  json_object_foreach(json_object_get(root, "configurations"), name, configuration) {
    const char *folder = folder_create(arena);
    const char **definitions =
        definition_words(arena, json_object_get(configuration, "definitions"), json_object_get(root, "TRAIN"));
    const char *log = train_example(arena, folder, "char_transformer.rp", definitions, words);
    assert_non_null(log);
    compare_losses(arena, log, json_object_get(configuration, "losses"), name);
    folder_remove(arena, folder);
  }
  json_decref(root);
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_example_is_listed),
                                     cmocka_unit_test(examples_have_their_sizes),
                                     cmocka_unit_test(examples_are_in_canonical_form),
                                     cmocka_unit_test(gpt2_has_its_public_sizes),
                                     cmocka_unit_test(gpt2_has_its_public_names),
                                     cmocka_unit_test(digits_are_learned),
                                     cmocka_unit_test(digits_are_learned_with_batch_statistics),
                                     cmocka_unit_test(adapter_learns),
                                     cmocka_unit_test(mnist_is_learned),
                                     cmocka_unit_test(char_transformer_trains_as_in_torch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
