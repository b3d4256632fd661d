/* passes/planner/mip.c - building mixed-integer programs row by row. */
#include "passes/planner/mip.h"

Mip *mip_create(MemoryArena *arena) {
  Mip *mip = NEW(arena, Mip);
  mip->arena = arena;
  return mip;
}

int32_t mip_column(Mip *mip, double lower, double upper, double cost, bool integer) {
  MipColumn column = {.lower = lower, .upper = upper, .cost = cost, .integer = integer};
  array_push(mip->arena, &mip->columns, column);
  return (int32_t)mip->columns.count - 1;
}

static void grow_sums(Mip *mip) {
  double *sums = NEW_ARRAY(mip->arena, double, mip->columns.capacity);
  bool *touched = NEW_ARRAY(mip->arena, bool, mip->columns.capacity);
  for (int64_t i = 0; i < mip->room; i++) {
    sums[i] = mip->sums[i];
    touched[i] = mip->touched_is[i];
  }
  mip->sums = sums;
  mip->touched_is = touched;
  mip->room = mip->columns.capacity;
}

void mip_term(Mip *mip, int32_t column, double value) {
  if (column < 0) return;
  if (mip->room < mip->columns.count) grow_sums(mip);
  if (!mip->touched_is[column]) array_push(mip->arena, &mip->touched, column);
  mip->touched_is[column] = true;
  mip->sums[column] += value;
}

int32_t mip_row_end(Mip *mip, double lower, double upper) {
  MipRow row = {.lower = lower, .upper = upper, .start = (int32_t)mip->entries.count};
  for (int64_t i = 0; i < mip->touched.count; i++) {
    int32_t column = mip->touched.items[i];
    if (mip->sums[column] != 0)
      array_push(mip->arena, &mip->entries, ((MipEntry){.column = column, .value = mip->sums[column]}));
    mip->sums[column] = 0;
    mip->touched_is[column] = false;
  }
  mip->touched.count = 0;
  row.count = (int32_t)mip->entries.count - row.start;
  if (!row.count) return -1;
  array_push(mip->arena, &mip->rows, row);
  return (int32_t)mip->rows.count - 1;
}
