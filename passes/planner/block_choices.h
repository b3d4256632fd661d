/* passes/planner/block_choices.h - what to keep inside one block of the forward pass (block_plan.h). */
#ifndef REPRISE_PASSES_PLANNER_BLOCK_CHOICES_H
#define REPRISE_PASSES_PLANNER_BLOCK_CHOICES_H

#include "passes/planner/retain_model.h"

typedef struct Block {
  int32_t from, to;             /* forward nodes */
  int32_t *stages, stage_count; /* those whose latest block this is, ascending */
} Block;

typedef struct BlockChoice {
  bool *keep;                /* by candidate: storages of the block in order of number */
  double cost;               /* of what runs again */
  int64_t kept;              /* bytes */
  int64_t forward, backward; /* peak of the block's forward nodes and of its stages beside what earlier blocks keep,
                                above block_base() */
} BlockChoice;
typedef ARRAY(BlockChoice) BlockChoices;

/* Bytes before the block's first node, without what crosses into it; bytes before its first stage. */
int64_t block_forward_base(const RetainModel *model, const Block *block);
int64_t block_backward_base(const RetainModel *model, const Block *block);

/* The storages that the block makes and that may be dropped, ascending. What crosses its end is kept all the same. */
typedef ARRAY(int32_t) StorageList;
StorageList block_candidates(MemoryArena *arena, const RetainModel *model, const Block *block);

/* Equal for blocks whose choices are equal. */
uint64_t block_hash(const RetainModel *model, const Block *block);

/* The Pareto set of choices, at most MOST_CHOICES, in ascending order of bytes kept. */
enum { MOST_CHOICES = 48 };
BlockChoices block_choices(MemoryArena *arena, const RetainModel *model, const Block *block);

#endif
