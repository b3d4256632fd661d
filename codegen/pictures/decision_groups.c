/* codegen/pictures/decision_groups.c - equal decisions of repeated modules. */
#include "codegen/pictures/decision_groups.h"

#include "codegen/text.h"

enum { MOST_NAMED = 3 };

const char *local_id(const char *module, const char *id) {
  size_t length = module ? strlen(module) : 0;
  /* a name that was given inside a module stands behind its path once more */
  while (length && string_starts(id, module) && id[length] == '.' && id[length + 1]) id += length + 1;
  return id;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Parts between dots that are numbers become '*'. */
static char *module_pattern(MemoryArena *arena, const char *path) {
  Text text = {.arena = arena};
  while (*path) {
    size_t length = strcspn(path, "."), digits = strspn(path, "0123456789");
    if (length && digits == length)
      text_append(&text, "*");
    else
      text_append(&text, "%.*s", (int)length, path);
    path += length;
    if (*path == '.') text_append(&text, "."), path++;
  }
  return memory_string(arena, text_bytes(&text));
}

/* "add#3" becomes "add#*"; a letter with a number, as numbered tensors are called, "t*". */
static char *name_pattern(MemoryArena *arena, const char *name) {
  size_t length = strlen(name), end = length;
  while (end > 0 && is_digit(name[end - 1])) end--;
  bool numbered = end < length && end > 0 && name[end - 1] == '#';
  bool letter = end < length && end == 1;
  if (numbered) return memory_format(arena, "%.*s*", (int)end, name);
  return letter ? memory_format(arena, "%c*", name[0]) : memory_string(arena, name);
}

/* The pattern of an id beside its module; where it was named in an enclosing one ("block.3.n", made in "block.3.ln"),
 * of the path that both share too. */
static const char *local_pattern(MemoryArena *arena, const char *module, const char *id) {
  const char *name = local_id(module, id);
  size_t shared = 0;
  for (size_t i = 0; module[i] && module[i] == name[i]; i++)
    if (name[i] == '.') shared = i + 1;
  if (!shared) return name_pattern(arena, name);
  return memory_format(arena, "%s%s", module_pattern(arena, memory_string_range(arena, name, (int64_t)shared)),
                       name_pattern(arena, name + shared));
}

static const char *module_of(const Picture *picture, const char **modules, int32_t node) {
  if (modules) return module_pattern(picture->arena, modules[node]);
  return picture->graph->nodes.items[node].op ? picture->graph->nodes.items[node].op : "";
}

/* What tells one storage of a group from the others: the first differing part, "h.3" or the id. */
static const char *member_name(const Picture *picture, int32_t storage) {
  const PlanStorage *what = &picture->graph->storages.items[storage];
  const char *module = picture->graph->nodes.items[what->producer].module;
  for (const char *at = module ? module : ""; *at;) {
    size_t length = strcspn(at, ".");
    if (length && strspn(at, "0123456789") == length)
      return memory_string_range(picture->arena, module, at + length - module);
    at += length + (at[length] == '.');
  }
  return what->id;
}

static void name_minority(const Picture *picture, DecisionGroup *group) {
  Text text = {.arena = picture->arena};
  bool kept = group->kept <= group->recomputed;
  int64_t named = 0, all = kept ? group->kept : group->recomputed;
  if (!all || all > MOST_NAMED) return;
  for (int64_t i = 0; i < group->storages.count; i++) {
    int32_t storage = group->storages.items[i];
    if ((picture->fates[storage] == FATE_KEPT) != kept) continue;
    text_append(&text, "%s%s", named++ ? ", " : "", member_name(picture, storage));
  }
  group->minority = memory_string(picture->arena, text_bytes(&text));
}

DecisionGroupList group_decisions(const Picture *picture) {
  MemoryArena *arena = picture->arena;
  const PlanGraph *graph = picture->graph;
  const char **modules = NEW_ARRAY(arena, const char *, graph->nodes.count);
  bool named = false;
  for (int64_t n = 0; n < graph->nodes.count; n++) {
    modules[n] = graph->nodes.items[n].module ? graph->nodes.items[n].module : "";
    named |= graph->nodes.items[n].module != NULL;
  }
  DecisionGroupList groups = {0};
  StringMap index = {.arena = arena};
  for (int64_t i = 0; i < picture->decisions.count; i++) {
    const StorageDecision *decision = &picture->decisions.items[i];
    const PlanStorage *storage = &graph->storages.items[decision->storage];
    const char *module = module_of(picture, named ? modules : NULL, storage->producer);
    const char *name = local_pattern(arena, modules[storage->producer], storage->id);
    char *key = memory_format(arena, "%s\n%s\n%lld", module, name, (long long)storage->bytes);
    const int64_t *known = string_map_find(&index, key);
    int64_t g = known ? *known : groups.count;
    if (!known) {
      string_map_set(&index, key, g);
      array_push(arena, &groups, ((DecisionGroup){.module = module, .name = name, .bytes = storage->bytes}));
    }
    DecisionGroup *group = &groups.items[g];
    *(decision->kept ? &group->kept : &group->recomputed) += 1;
    if (decision->times_run > group->most_runs) group->most_runs = decision->times_run;
    array_push(arena, &group->storages, decision->storage);
  }
  for (int64_t g = 0; g < groups.count; g++) {
    if (groups.items[g].storages.count == 1)
      groups.items[g].name = local_id(modules[graph->storages.items[groups.items[g].storages.items[0]].producer],
                                      graph->storages.items[groups.items[g].storages.items[0]].id);
    name_minority(picture, &groups.items[g]);
  }
  return groups;
}
