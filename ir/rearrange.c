/* ir/rearrange.c - "b t (h d) -> b h t d": split axes, permute them, merge axes. (einops, Rogozhnikov 2022) */
#include "ir/build.h"

enum { MOST_NAMES = 2 * MAX_RANK, LONGEST_NAME = 32 };

/* One side of a pattern: elementary axes in order, and how many of them each tensor axis is made of. */
typedef struct Side {
  int count, groups;
  char names[MOST_NAMES][LONGEST_NAME];
  int group_sizes[MOST_NAMES];
  int64_t sizes[MOST_NAMES]; /* 0: not known yet */
} Side;

typedef struct Pattern {
  Graph *graph;
  const char *text;
  Side left, right;
} Pattern;

static bool fault(const Pattern *pattern, const char *what) {
  diag_error(pattern->graph->location, "'rearrange' with \"%s\": %s", pattern->text, what);
  return false;
}

static int find_name(const Side *side, const char *name) {
  for (int i = 0; i < side->count; i++)
    if (string_equal(side->names[i], name)) return i;
  return -1;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Adds one elementary axis; "1" is an axis of size one and may stand more than once. */
static bool add_name(const Pattern *pattern, Side *side, const char *start, int length) {
  if (side->count == MOST_NAMES || length >= LONGEST_NAME) return fault(pattern, "too many axes, or too long a name");
  char *name = side->names[side->count];
  memcpy(name, start, (size_t)length);
  name[length] = '\0';
  bool one = string_equal(name, "1");
  if (!one && name[0] >= '0' && name[0] <= '9')
    return fault(pattern, "the only number that may stand for an axis is 1");
  if (!one && find_name(side, name) >= 0) return fault(pattern, "an axis is named twice on one side");
  side->sizes[side->count++] = one ? 1 : 0;
  return true;
}

static bool parse_side(const Pattern *pattern, Side *side, const char *at, const char *end) {
  bool inside = false;
  while (at < end) {
    if (*at == ' ') {
      at++;
    } else if (*at == '(' && !inside) {
      if (side->groups == MOST_NAMES) return fault(pattern, "too many axes");
      inside = true;
      side->group_sizes[side->groups] = 0;
      at++;
    } else if (*at == ')' && inside) {
      inside = false;
      side->groups++;
      at++;
    } else if (is_word(*at)) {
      const char *start = at;
      while (at < end && is_word(*at)) at++;
      if (side->groups == MOST_NAMES) return fault(pattern, "too many axes");
      if (!add_name(pattern, side, start, (int)(at - start))) return false;
      if (inside)
        side->group_sizes[side->groups]++;
      else
        side->group_sizes[side->groups++] = 1;
    } else {
      return fault(pattern, "expected names of axes, '1' and one level of parentheses on both sides of '->'");
    }
  }
  return inside ? fault(pattern, "a parenthesis is not closed") : true;
}

static bool parse_pattern(Pattern *pattern) {
  const char *arrow = strstr(pattern->text, "->");
  if (!arrow) return fault(pattern, "expected '->' between the two sides");
  return parse_side(pattern, &pattern->left, pattern->text, arrow) &&
         parse_side(pattern, &pattern->right, arrow + 2, arrow + strlen(arrow));
}

/* Sizes of the left side from the tensor: one unknown per group, exactly divisible. */
static bool solve_sizes(Pattern *pattern, const Type *type) {
  Side *left = &pattern->left;
  if (left->groups != type->rank) {
    char *found = type_text(pattern->graph->module->arena, type);
    diag_error(pattern->graph->location, "'rearrange' with \"%s\": the left side has %d axes, the tensor is %s",
               pattern->text, left->groups, found);
    return false;
  }
  for (int group = 0, first = 0; group < left->groups; first += left->group_sizes[group++]) {
    int64_t known = 1;
    int unknown = -1;
    for (int i = first; i < first + left->group_sizes[group]; i++) {
      if (left->sizes[i]) {
        if (!checked_multiply(known, left->sizes[i], &known)) return fault(pattern, "size overflow");
      } else if (unknown >= 0) {
        return fault(pattern, "two axes of one parenthesis have unknown sizes; give one as an argument");
      } else {
        unknown = i;
      }
    }
    if (unknown >= 0 && type->dims[group] % known == 0)
      left->sizes[unknown] = type->dims[group] / known, known = type->dims[group];
    if (known != type->dims[group]) {
      diag_error(pattern->graph->location,
                 "'rearrange' with \"%s\": axis %d has %lld elements, which the named sizes do not make", pattern->text,
                 group, (long long)type->dims[group]);
      return false;
    }
  }
  return true;
}

static bool set_sizes(Pattern *pattern, int count, const char *const *names, const int64_t *sizes) {
  for (int i = 0; i < count; i++) {
    int axis = find_name(&pattern->left, names[i]);
    if (axis < 0 || sizes[i] < 1) {
      diag_error(pattern->graph->location,
                 axis < 0 ? "'rearrange' with \"%s\": the left side has no axis '%s'"
                          : "'rearrange' with \"%s\": the size of '%s' must be at least 1",
                 pattern->text, names[i]);
      return false;
    }
    pattern->left.sizes[axis] = sizes[i];
  }
  return true;
}

/* The order of the left side's axes as the right side wants them; axes of size 1 are left out on both sides. */
static bool order_axes(Pattern *pattern, const int *kept_index, int kept, int64_t *order) {
  const Side *left = &pattern->left;
  Side *right = &pattern->right;
  int placed = 0;
  for (int i = 0; i < right->count; i++) {
    if (string_equal(right->names[i], "1")) continue;
    int from = find_name(left, right->names[i]);
    if (from < 0) return fault(pattern, "the right side names an axis that the left side lacks");
    right->sizes[i] = left->sizes[from];
    order[placed++] = kept_index[from];
  }
  return placed == kept ? true : fault(pattern, "the left side names an axis that the right side lacks");
}

ValueId build_rearrange(Graph *graph, ValueId x, const char *text, int count, const char *const *names,
                        const int64_t *sizes) {
  if (x == NO_VALUE) return NO_VALUE;
  Pattern *pattern = NEW(graph->module->arena, Pattern);
  pattern->graph = graph;
  pattern->text = text;
  Side *left = &pattern->left, *right = &pattern->right;
  if (!parse_pattern(pattern) || !set_sizes(pattern, count, names, sizes) ||
      !solve_sizes(pattern, value_type(graph, x)))
    return NO_VALUE;
  int kept = 0, kept_index[MOST_NAMES];
  int64_t dims[MOST_NAMES], order[MOST_NAMES];
  for (int i = 0; i < left->count; i++) {
    kept_index[i] = kept;
    if (!string_equal(left->names[i], "1")) dims[kept++] = left->sizes[i];
  }
  if (kept > MAX_RANK || right->groups > MAX_RANK) {
    fault(pattern, "more than 8 axes");
    return NO_VALUE;
  }
  if (!order_axes(pattern, kept_index, kept, order)) return NO_VALUE;
  x = build_permute(graph, build_reshape(graph, x, kept, dims), order);
  for (int group = 0, first = 0; group < right->groups; first += right->group_sizes[group++]) {
    dims[group] = 1;
    for (int i = first; i < first + right->group_sizes[group]; i++) dims[group] *= right->sizes[i];
  }
  return build_reshape(graph, x, right->groups, dims);
}
