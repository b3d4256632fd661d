/* codegen/pictures/decision_groups.h - decisions of equal storages in repeated modules, told once. */
#ifndef REPRISE_CODEGEN_PICTURES_DECISION_GROUPS_H
#define REPRISE_CODEGEN_PICTURES_DECISION_GROUPS_H

#include "codegen/pictures/picture.h"

/* Storages of the same size whose names differ only in the number of a repeated module ("h.*.attn") or in a number at
 * the end. */
typedef struct DecisionGroup {
  const char *module; /* pattern; the operator where the graph names no modules, "" without either */
  const char *name;   /* pattern, without the module */
  int64_t bytes;      /* of each */
  int64_t kept, recomputed;
  int32_t most_runs; /* the most executions of one of their nodes */
  const char
      *minority; /* where kept and recomputed both occur: the modules or ids of the fewer, "h.0, h.3"; else NULL */
  ARRAY(int32_t) storages;
} DecisionGroup;

typedef ARRAY(DecisionGroup) DecisionGroupList;

/* In order of the first storage of each. */
DecisionGroupList group_decisions(const Picture *picture);
/* An id without the path of its module before it; whole where nothing would be left. */
const char *local_id(const char *module, const char *id);

#endif
