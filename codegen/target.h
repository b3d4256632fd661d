/* codegen/target.h - what a target is: how kernels are declared, what it can hold, how a program is put together. */
#ifndef REPRISE_CODEGEN_TARGET_H
#define REPRISE_CODEGEN_TARGET_H

#include "ir/ir.h"

struct Compilation;
struct CodegenOptions;
struct GraphEmission;
struct Text;

typedef struct Target {
  const char *name;              /* as in --target=NAME */
  const char *extension;         /* of its source files */
  int64_t alignment;             /* of every storage, bytes */
  const char *function;          /* how a kernel's definition starts: "static void" */
  bool (*holds)(DataType dtype); /* element types that its kernels compute on */
  /* One node as calls, lines of a step function. */
  void (*emit_node)(struct GraphEmission *graph, NodeId id, struct Text *steps);
} Target;

extern const Target target_c, target_cuda;

/* NULL when there is none of that name. */
const Target *target_find(const char *name);

#endif
