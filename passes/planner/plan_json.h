/* passes/planner/plan_json.h - a plan from JSON that is already parsed, for readers of streams. */
#ifndef REPRISE_PASSES_PLANNER_PLAN_JSON_H
#define REPRISE_PASSES_PLANNER_PLAN_JSON_H

#include <jansson.h>

#include "passes/planner/plan.h"

/* As plan_parse(); the caller keeps the ownership of root, of which nothing is referred to afterwards. */
Plan *plan_from_json(MemoryArena *arena, const PlanGraph *graph, json_t *root, const char **error);

#endif
