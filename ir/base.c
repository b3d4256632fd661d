/* ir/base.c - checked sizes, memory arenas, arrays, strings. */
#include "ir/base.h"

#include <stdlib.h>

_Noreturn void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("internal error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs("\nThis is a fault of the program, not of your input. Please report it with the input that shows it.\n", stderr);
  va_end(arguments);
  exit(EXIT_INTERNAL);
}

_Noreturn void die_out_of_memory(int64_t bytes) {
  if (bytes > 0)
    fprintf(stderr, "error: out of memory: %lld bytes more were needed\n", (long long)bytes);
  else
    fputs("error: out of memory\n", stderr);
  fputs("This machine, or a limit set for this program (see ulimit -v), has no more.\n", stderr);
  exit(EXIT_INTERNAL);
}

/* ---- checked arithmetic ---- */

bool checked_add(int64_t a, int64_t b, int64_t *result) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *result = sum;
  return true;
}

bool checked_subtract(int64_t a, int64_t b, int64_t *result) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) return false;
  *result = difference;
  return true;
}

bool checked_multiply(int64_t a, int64_t b, int64_t *result) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *result = product;
  return true;
}

bool checked_align(int64_t bytes, int64_t alignment, int64_t *result) {
  int64_t padded;
  ASSERT(bytes >= 0 && alignment >= 1);
  if (!checked_add(bytes, alignment - 1, &padded)) return false;
  *result = padded / alignment * alignment;
  return true;
}

int64_t add_sizes(int64_t a, int64_t b) {
  int64_t sum;
  if (!checked_add(a, b, &sum)) die("size overflow: %lld + %lld", (long long)a, (long long)b);
  return sum;
}

int64_t multiply_sizes(int64_t a, int64_t b) {
  int64_t product;
  if (!checked_multiply(a, b, &product)) die("size overflow: %lld * %lld", (long long)a, (long long)b);
  return product;
}

int64_t align_size(int64_t bytes, int64_t alignment) {
  int64_t aligned;
  if (!checked_align(bytes, alignment, &aligned)) die("size overflow: aligning %lld", (long long)bytes);
  return aligned;
}

/* ---- memory arenas: a list of blocks, each at least as large as what asked for it ---- */

enum { OBJECT_ALIGNMENT = 16, FIRST_BLOCK_BYTES = 1 << 16 };

typedef struct MemoryBlock {
  struct MemoryBlock *previous;
  int64_t capacity, used;
} MemoryBlock;

struct MemoryArena {
  MemoryBlock *block;
};

static char *block_bytes(MemoryBlock *block) { return (char *)block + align_size((int64_t)sizeof *block, OBJECT_ALIGNMENT); }

static MemoryBlock *create_block(int64_t capacity, MemoryBlock *previous) {
  int64_t bytes = add_sizes(capacity, align_size((int64_t)sizeof(MemoryBlock), OBJECT_ALIGNMENT));
  MemoryBlock *block = malloc((size_t)bytes);
  if (!block) die_out_of_memory(bytes);
  *block = (MemoryBlock){.previous = previous, .capacity = capacity};
  return block;
}

MemoryArena *memory_arena_create(void) {
  MemoryArena *arena = malloc(sizeof *arena);
  if (!arena) die_out_of_memory(0);
  arena->block = create_block(FIRST_BLOCK_BYTES, NULL);
  return arena;
}

void memory_arena_reset(MemoryArena *arena) {
  MemoryBlock *keep = arena->block;
  for (MemoryBlock *block = keep->previous, *previous; block; block = previous) {
    previous = block->previous;
    free(block);
  }
  keep->previous = NULL;
  keep->used = 0;
}

void memory_arena_destroy(MemoryArena *arena) {
  if (!arena) return;
  memory_arena_reset(arena);
  free(arena->block);
  free(arena);
}

void *memory_alloc(MemoryArena *arena, int64_t bytes) {
  ASSERT(bytes >= 0);
  int64_t need = align_size(bytes ? bytes : 1, OBJECT_ALIGNMENT);
  MemoryBlock *block = arena->block;
  if (block->capacity - block->used < need) {
    int64_t capacity = block->capacity < INT64_C(1) << 26 ? block->capacity * 2 : block->capacity;
    block = arena->block = create_block(capacity > need ? capacity : need, block);
  }
  void *object = block_bytes(block) + block->used;
  block->used += need;
  return memset(object, 0, (size_t)need);
}

char *memory_string_range(MemoryArena *arena, const char *text, int64_t length) {
  char *copy = memory_alloc(arena, add_sizes(length, 1));
  if (length) memcpy(copy, text, (size_t)length);
  return copy;
}

char *memory_string(MemoryArena *arena, const char *text) {
  return memory_string_range(arena, text, (int64_t)strlen(text));
}

char *memory_format_list(MemoryArena *arena, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  ASSERT(length >= 0);
  char *text = memory_alloc(arena, length + 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

char *memory_format(MemoryArena *arena, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = memory_format_list(arena, format, arguments);
  va_end(arguments);
  return text;
}

void *array_grow(MemoryArena *arena, const void *items, int64_t *capacity, int64_t item_bytes) {
  int64_t larger = *capacity ? multiply_sizes(*capacity, 2) : 8;
  void *copy = memory_alloc(arena, multiply_sizes(larger, item_bytes));
  if (*capacity) memcpy(copy, items, (size_t)(*capacity * item_bytes));
  *capacity = larger;
  return copy;
}

/* ---- strings ---- */

bool string_starts(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

bool string_ends(const char *text, const char *suffix) {
  size_t length = strlen(text), tail = strlen(suffix);
  return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

int string_distance(const char *a, const char *b, int limit) {
  enum { LONGEST = 64 };
  int a_length = (int)strnlen(a, LONGEST + 1), b_length = (int)strnlen(b, LONGEST + 1), row[LONGEST + 1];
  if (a_length > LONGEST || b_length > LONGEST) return limit + 1;
  for (int j = 0; j <= b_length; j++) row[j] = j;
  for (int i = 1; i <= a_length; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= b_length; j++) {
      int replace = diagonal + (a[i - 1] != b[j - 1]), best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (replace < best) best = replace;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b_length] <= limit ? row[b_length] : limit + 1;
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, int64_t length) {
  const unsigned char *byte = bytes;
  for (int64_t i = 0; i < length; i++) hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
  return hash;
}

uint64_t hash_string(uint64_t hash, const char *text) { return hash_bytes(hash, text, (int64_t)strlen(text)); }

static int64_t map_slot(const StringMap *map, const char *key) {
  int64_t mask = map->slot_count - 1, slot = (int64_t)(hash_string(HASH_START, key) & (uint64_t)mask);
  while (map->slots[slot] && !string_equal(map->keys[map->slots[slot] - 1], key)) slot = (slot + 1) & mask;
  return slot;
}

int64_t *string_map_find(const StringMap *map, const char *key) {
  if (!map->slot_count) return NULL;
  int32_t index = map->slots[map_slot(map, key)];
  return index ? &map->values[index - 1] : NULL;
}

static void map_rehash(StringMap *map) {
  map->slot_count = map->slot_count ? map->slot_count * 2 : 16;
  map->slots = NEW_ARRAY(map->arena, int32_t, map->slot_count);
  for (int64_t i = 0; i < map->count; i++) map->slots[map_slot(map, map->keys[i])] = (int32_t)(i + 1);
}

void string_map_set(StringMap *map, const char *key, int64_t value) {
  int64_t *found = string_map_find(map, key);
  if (found) {
    *found = value;
    return;
  }
  if (map->count == map->capacity) {
    int64_t capacity = map->capacity;
    map->keys = array_grow(map->arena, map->keys, &map->capacity, (int64_t)sizeof *map->keys);
    map->values = array_grow(map->arena, map->values, &capacity, (int64_t)sizeof *map->values);
  }
  map->keys[map->count] = memory_string(map->arena, key);
  map->values[map->count++] = value;
  if (map->count * 2 > map->slot_count)
    map_rehash(map);
  else
    map->slots[map_slot(map, key)] = (int32_t)map->count;
}
