#include "tests/codegen/emitted.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* cmocka.h needs the four above it */
#include <cmocka.h>

static const char warnings[] = "-std=c17 -Wall -Wextra -Wpedantic -Werror";

static char *make_folder(MemoryArena *memory) {
  const char *base = getenv("TMPDIR");
  char *folder = memory_format(memory, "%s/reprise-test-XXXXXX", base ? base : "/tmp");
  assert_non_null(mkdtemp(folder));
  return folder;
}

static void write_file(MemoryArena *memory, const char *path, const char *text) {
  const char *error;
  assert_true(file_write(memory, path, text, (int64_t)strlen(text), &error));
}

static void remove_folder(MemoryArena *memory, const char *folder) {
  static const char *const names[] = {"program.c", "harness.c"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(memory_format(memory, "%s/%s", folder, names[i]));
  rmdir(folder);
}

static const char harness[] =
    "#define main emitted_main\n"
    "#include \"program.c\"\n"
    "#undef main\n"
    "const RpProgram *test_program(void);\n"
    "const RpProgram *test_program(void) { return &program; }\n"
    "int test_main(int argc, char **argv);\n"
    "int test_main(int argc, char **argv) { return emitted_main(argc, argv); }\n";

/* Into a shared object at `output`. On a processor of another kind its host part has to run too, if it is kept. */
static void compile(MemoryArena *memory, const char *source, const char *output, bool kept) {
  char *folder = make_folder(memory);
  write_file(memory, memory_format(memory, "%s/program.c", folder), source);
  write_file(memory, memory_format(memory, "%s/harness.c", folder), harness);
  char *command =
      memory_format(memory,
                    "%s %s " TEST_FLAGS
                    " -ftree-vectorize %s -fopenmp -ffp-contract=off -fno-math-errno "
                    "-fno-trapping-math -Wno-missing-prototypes -fPIC -shared -I%s -o %s %s/harness.c "
                    "-L%s -lreprise_runtime -lopenblas -ljansson -lz -lm",
                    TEST_CC, warnings, kept ? "-s" : "-march=native", TEST_INCLUDE, output, folder, TEST_LIBRARY);
  if (system(command) != 0) fail_msg("the emitted program does not compile: %s", command);
  remove_folder(memory, folder);
}

/* REPRISE_TEST_PROGRAMS names a folder in which compiled programs are kept, by their text, and found again: for tests
 * that are carried to a machine without a compiler. */
static void *compile_and_open(MemoryArena *memory, const Compilation *compilation) {
  const char *kept = getenv("REPRISE_TEST_PROGRAMS");
  char *folder = kept ? memory_string(memory, kept) : make_folder(memory), *text = emitted_text(memory, compilation);
  assert_non_null(text);
  char *path = memory_format(memory, "%s/%016llx.so", folder, (unsigned long long)hash_string(HASH_START, text));
  if (access(path, R_OK) != 0) {
    char *source = emitted_source(memory, compilation);
    assert_non_null(source);
    compile(memory, source, path, kept != NULL);
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  if (!kept) {
    unlink(path);
    rmdir(folder);
  }
  return library;
}

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  assert_non_null(symbol);
  return symbol;
}

Emitted *emitted_load(MemoryArena *memory, const Compilation *compilation) {
  void *library = compile_and_open(memory, compilation);
  Emitted *emitted = NEW(memory, Emitted);
  emitted->library = library;
  const RpProgram *(*program)(void);
  *(void **)&program = find(library, "test_program");
  *(void **)&emitted->set_threads = find(library, "rp_threads_set");
  emitted->memory = memory;
  emitted->program = program();
  emitted->arena = aligned_alloc(64, (size_t)align_size(emitted->program->arena_bytes, 64));
  emitted->control = (RpControl *)(void *)(emitted->arena + emitted->program->control_offset);
  emitted->context = (RpContext){.program = emitted->program, .arena = emitted->arena};
  return emitted;
}

bool emitted_is_clean(const char *source, const char *compiler) {
  MemoryArena *memory = memory_arena_create();
  bool clean = true;
  if (system(memory_format(memory, "command -v %s >/dev/null 2>&1", compiler)) == 0) {
    char *folder = make_folder(memory);
    write_file(memory, memory_format(memory, "%s/program.c", folder), source);
    clean = system(memory_format(memory, "%s %s -O2 -fopenmp -I%s -c -o /dev/null %s/program.c", compiler, warnings,
                                 TEST_INCLUDE, folder)) == 0;
    remove_folder(memory, folder);
  }
  memory_arena_destroy(memory);
  return clean;
}

/* ---- tensors ---- */

int64_t emitted_elements(const RpTensor *tensor) {
  int64_t elements = 1;
  for (int i = 0; i < tensor->rank; i++) elements *= tensor->dims[i];
  return elements;
}

int64_t emitted_bytes(const RpTensor *tensor) { return emitted_elements(tensor) * dtype_bytes((DataType)tensor->type); }

double emitted_element(const RpTensor *tensor, const char *bytes, int64_t index) {
  const void *data = bytes;
  switch (tensor->type) {
    case RP_F32:
      return (double)((const float *)data)[index];
    case RP_F64:
      return ((const double *)data)[index];
    case RP_I32:
      return ((const int32_t *)data)[index];
    case RP_I64:
      return (double)((const int64_t *)data)[index];
    default:
      return ((const uint8_t *)data)[index];
  }
}

static void store(const RpTensor *tensor, char *bytes, const EvalTensor *from) {
  void *data = bytes;
  for (int64_t i = 0; i < emitted_elements(tensor); i++) switch (tensor->type) {
      case RP_F32:
        ((float *)data)[i] = (float)from->real[i];
        break;
      case RP_F64:
        ((double *)data)[i] = from->real[i];
        break;
      case RP_I32:
        ((int32_t *)data)[i] = (int32_t)from->integer[i];
        break;
      case RP_I64:
        ((int64_t *)data)[i] = from->integer[i];
        break;
      default:
        ((uint8_t *)data)[i] = (uint8_t)from->integer[i];
    }
}

void emitted_fill(Emitted *emitted, const Evaluation *evaluation) {
  const RpProgram *program = emitted->program;
  memset(emitted->arena, 0xff, (size_t)program->arena_bytes);
  for (int64_t i = 0; i < program->input_count; i++)
    store(&program->inputs[i].tensor, emitted->arena + program->inputs[i].tensor.offset, &evaluation->inputs[i]);
  for (int64_t i = 0; i < program->persistent_count; i++)
    store(&program->persistents[i].tensor, emitted->arena + program->persistents[i].tensor.offset,
          &evaluation->persistents[i]);
  *emitted->control = (RpControl){.seed = evaluation->control.seed,
                                  .micro_step = evaluation->control.micro_step,
                                  .update = evaluation->control.update,
                                  .learning_rate_scale = (float)evaluation->control.learning_rate_scale,
                                  .micro_steps = evaluation->control.micro_steps};
}
