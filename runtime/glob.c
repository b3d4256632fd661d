/* Globs of data files: `*` within a segment, `**` across (docs/program.md). */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/files.h"

typedef struct PathList {
  char **paths;
  int64_t count, capacity;
  bool failed; /* out of memory */
} PathList;

/* Takes `path` over. */
static void add_path(PathList *list, char *path) {
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity ? 2 * list->capacity : 16;
    char **grown = realloc(list->paths, (size_t)capacity * sizeof *grown);
    if (!grown) {
      list->failed = true;
      free(path);
      return;
    }
    list->paths = grown;
    list->capacity = capacity;
  }
  list->paths[list->count++] = path;
}

/* `*` matches any run of characters, everything else itself. */
static bool match_segment(const char *pattern, size_t length, const char *name) {
  if (*name == '.' && (length == 0 || *pattern != '.')) return false;
  const char *end = pattern + length, *star = NULL, *resume = NULL;
  while (*name) {
    if (pattern < end && *pattern == '*') {
      star = ++pattern;
      resume = name;
    } else if (pattern < end && *pattern == *name) {
      pattern++;
      name++;
    } else if (star) {
      pattern = star;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (pattern < end && *pattern == '*') pattern++;
  return pattern == end;
}

/* "prefix" + "name" + suffix, where prefix is empty or ends in a slash. */
static char *join(PathList *list, const char *prefix, const char *name, const char *suffix) {
  size_t prefix_length = strlen(prefix), name_length = strlen(name), suffix_length = strlen(suffix);
  char *path = malloc(prefix_length + name_length + suffix_length + 1);
  if (!path) {
    list->failed = true;
    return NULL;
  }
  memcpy(path, prefix, prefix_length);
  memcpy(path + prefix_length, name, name_length);
  memcpy(path + prefix_length + name_length, suffix, suffix_length + 1);
  return path;
}

static void walk(PathList *list, const char *prefix, const char *pattern);

/* One directory entry against the pattern's first segment, whose rest (after its slash) is NULL at the end. */
static void visit(PathList *list, const char *prefix, const char *name, const char *pattern, size_t length,
                  const char *rest) {
  bool deep = length == 2 && memcmp(pattern, "**", 2) == 0;
  if (deep ? *name == '.' : !match_segment(pattern, length, name)) return;
  struct stat information;
  char *path = join(list, prefix, name, "");
  /* Below `**` links to directories are not followed, so that a loop of links ends. */
  if (!path || (deep && rest ? lstat(path, &information) : stat(path, &information)) != 0) {
    free(path);
    return;
  }
  if (S_ISREG(information.st_mode) && !rest) {
    add_path(list, path);
    return;
  }
  free(path);
  if (!S_ISDIR(information.st_mode) || (!rest && !deep)) return;
  char *below = join(list, prefix, name, "/");
  if (below) walk(list, below, deep ? pattern : rest);
  free(below);
}

static void walk(PathList *list, const char *prefix, const char *pattern) {
  size_t length = strcspn(pattern, "/");
  const char *rest = pattern[length] ? pattern + length + 1 : NULL;
  if (length == 2 && memcmp(pattern, "**", 2) == 0 && rest) walk(list, prefix, rest); /* no directory at all */
  DIR *directory = opendir(*prefix ? prefix : ".");
  if (!directory) return;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    visit(list, prefix, entry->d_name, pattern, length, rest);
  }
  closedir(directory);
}

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts and drops repetitions, which several `**` can make. */
static void sort_paths(PathList *list) {
  qsort(list->paths, (size_t)list->count, sizeof *list->paths, compare_paths);
  int64_t kept = 0;
  for (int64_t i = 0; i < list->count; i++) {
    if (kept > 0 && strcmp(list->paths[kept - 1], list->paths[i]) == 0) {
      free(list->paths[i]);
    } else {
      list->paths[kept++] = list->paths[i];
    }
  }
  list->count = kept;
}

bool rp_glob(const char *pattern, char ***paths, int64_t *count, RpStatus *status) {
  PathList list = {0};
  if (strchr(pattern, '*')) {
    /* The part before the first segment with a star is a plain directory. */
    const char *star = strchr(pattern, '*'), *start = star;
    while (start > pattern && start[-1] != '/') start--;
    char *prefix = strndup(pattern, (size_t)(start - pattern));
    if (prefix) walk(&list, prefix, start);
    if (!prefix) list.failed = true;
    free(prefix);
    if (list.count > 1) sort_paths(&list);
  } else {
    char *path = strdup(pattern);
    if (path) add_path(&list, path);
    if (!path) list.failed = true;
  }
  if (!list.failed && list.count > 0) {
    *paths = list.paths;
    *count = list.count;
    return true;
  }
  rp_paths_free(list.paths, list.count);
  if (list.failed) return rp_fail(status, RP_IO, "out of memory while looking for '%s'", pattern);
  return rp_fail(status, RP_IO, "no file matches '%s'", pattern);
}

void rp_paths_free(char **paths, int64_t count) {
  for (int64_t i = 0; i < count; i++) free(paths[i]);
  free(paths);
}
