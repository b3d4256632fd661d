/* ir/base.h - what every part of the compiler shares: checked sizes, memory arenas, arrays, strings, files.
 *
 * Memory: nothing in the compiler calls free(). Objects live in a MemoryArena; there is one for the module (lives to
 * exit) and one for scratch (reset after each pass). Allocation never fails: it dies with exit code 70.
 * Errors: a fault of the user goes to diag_error() (ir/diagnostics.h); a broken invariant of ours goes to die(). */
#ifndef REPRISE_IR_BASE_H
#define REPRISE_IR_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The documented exit codes of every program of the project (docs/design.md, section 9). */
typedef enum ExitCode {
  EXIT_OK = 0,
  EXIT_SOURCE_ERROR = 1,
  EXIT_USAGE = 2,
  EXIT_BUDGET_INFEASIBLE = 3,
  EXIT_IO = 4,
  EXIT_NO_PLAN = 5,
  EXIT_VERIFICATION_FAILED = 6,
  EXIT_DEVICE = 7,
  EXIT_INTERNAL = 70,
  EXIT_INTERRUPTED = 130
} ExitCode;

/* Reports a broken invariant on stderr and exits with EXIT_INTERNAL. Never for a fault of the user. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says that memory is short, which is nobody's fault, and exits likewise. bytes: how many more were asked for; 0: unknown. */
_Noreturn void die_out_of_memory(int64_t bytes);

#define ASSERT(condition) \
  do { \
    if (!(condition)) die("%s:%d: assertion failed: %s", __FILE__, __LINE__, #condition); \
  } while (0)

/* ---- checked arithmetic on sizes (bytes, elements); all return false on overflow and leave *result alone ---- */

bool checked_add(int64_t a, int64_t b, int64_t *result);
bool checked_subtract(int64_t a, int64_t b, int64_t *result);
bool checked_multiply(int64_t a, int64_t b, int64_t *result);
/* Rounds bytes >= 0 up to a multiple of alignment >= 1. */
bool checked_align(int64_t bytes, int64_t alignment, int64_t *result);
/* The same three for sizes already known to fit: die on overflow. */
int64_t add_sizes(int64_t a, int64_t b);
int64_t multiply_sizes(int64_t a, int64_t b);
int64_t align_size(int64_t bytes, int64_t alignment);

/* ---- memory arenas ---- */

typedef struct MemoryArena MemoryArena;

MemoryArena *memory_arena_create(void);
/* Forgets every object but keeps the largest block for reuse. */
void memory_arena_reset(MemoryArena *arena);
void memory_arena_destroy(MemoryArena *arena);
/* Zeroed, aligned to 16 bytes; size 0 gives a unique pointer. Dies when memory is exhausted. */
void *memory_alloc(MemoryArena *arena, int64_t bytes);
/* Copies of strings and formatted strings. */
char *memory_string(MemoryArena *arena, const char *text);
char *memory_string_range(MemoryArena *arena, const char *text, int64_t length);
char *memory_format(MemoryArena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *memory_format_list(MemoryArena *arena, const char *format, va_list arguments);

#define NEW(arena, type) ((type *)memory_alloc((arena), (int64_t)sizeof(type)))
#define NEW_ARRAY(arena, type, count) \
  ((type *)memory_alloc((arena), multiply_sizes((int64_t)(count), (int64_t)sizeof(type))))

/* ---- growable arrays in an arena ----
 * ARRAY(int) values = {0}; array_push(arena, &values, 7); values.items[0]; values.count */
#define ARRAY(type) \
  struct { \
    type *items; \
    int64_t count, capacity; \
  }
#define array_push(arena, array, value) \
  do { \
    if ((array)->count == (array)->capacity) \
      (array)->items = array_grow((arena), (array)->items, &(array)->capacity, (int64_t)sizeof *(array)->items); \
    (array)->items[(array)->count++] = (value); \
  } while (0)
/* Doubles a capacity: returns a larger copy of items. */
void *array_grow(MemoryArena *arena, const void *items, int64_t *capacity, int64_t item_bytes);

/* ---- strings ---- */

static inline bool string_equal(const char *a, const char *b) { return strcmp(a, b) == 0; }
bool string_starts(const char *text, const char *prefix);
bool string_ends(const char *text, const char *suffix);
/* Levenshtein distance, for did-you-mean; returns limit + 1 when it is larger than limit. */
int string_distance(const char *a, const char *b, int limit);
/* 64-bit FNV-1a; continue from a previous hash, or start from HASH_START. */
#define HASH_START UINT64_C(14695981039346656037)
uint64_t hash_bytes(uint64_t hash, const void *bytes, int64_t length);
uint64_t hash_string(uint64_t hash, const char *text);

/* A map from strings to int64, in insertion order when listed through keys[]. Zero-initialise with an arena. */
typedef struct StringMap {
  MemoryArena *arena;
  const char **keys; /* in insertion order */
  int64_t *values;
  int64_t count, capacity;
  int32_t *slots; /* open addressing: index + 1 into keys, 0 = empty */
  int64_t slot_count;
} StringMap;
/* Returns the address of the value, or NULL when absent. The address is valid until the next insertion. */
int64_t *string_map_find(const StringMap *map, const char *key);
/* Inserts or overwrites; copies the key. */
void string_map_set(StringMap *map, const char *key, int64_t value);

/* ---- files ---- */

/* Reads a whole file ("-" is stdin) into the arena, NUL-terminated; returns NULL with *error set (in the arena). */
char *file_read(MemoryArena *arena, const char *path, int64_t *length, const char **error);
/* Is there a file to be read, as far as that shows without opening it (a pipe is read once)? Sets *error when not. */
bool file_can_read(MemoryArena *arena, const char *path, const char **error);
/* Writes a whole file through a temporary in the same directory and a rename ("-" is stdout, written directly), so
 * that it appears whole or not at all; a device or pipe is written in place. Returns false with *error set (in the
 * arena). */
bool file_write(MemoryArena *arena, const char *path, const void *bytes, int64_t length, const char **error);
/* Path of a file named relative to the folder of another file, or `name` itself when absolute. */
char *file_sibling(MemoryArena *arena, const char *path, const char *name);

/* ---- sizes as people write them ---- */

/* Parses "64MiB", "64MB", "8GiB", "1.5GiB", "1024", "512B": a positive whole number of bytes that fits int64.
 * Returns false with *error set to what was expected (static text). Signs, nan, inf, 0, blanks are refused. */
bool parse_size(const char *text, int64_t *bytes, const char **error);
/* "64.0 MiB (67,108,864 B)"-style texts for people: binary unit alone, and digits with separators. */
char *format_bytes(MemoryArena *arena, int64_t bytes);
char *format_bytes_exact(MemoryArena *arena, int64_t bytes);

#endif
