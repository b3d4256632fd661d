/* ir/rows.h - the functions that rows of the op table name. Included by the files that define or tabulate them. */
#ifndef REPRISE_IR_ROWS_H
#define REPRISE_IR_ROWS_H

#include "ir/ir.h"

/* infer.c: output types; report and return false when the inputs do not fit. */
bool infer_same(Graph *graph, const Node *node, Type *outputs);
bool infer_reshape(Graph *graph, const Node *node, Type *outputs);
bool infer_permute(Graph *graph, const Node *node, Type *outputs);
bool infer_slice(Graph *graph, const Node *node, Type *outputs);
bool infer_expand(Graph *graph, const Node *node, Type *outputs);
bool infer_concat(Graph *graph, const Node *node, Type *outputs);
bool infer_place(Graph *graph, const Node *node, Type *outputs);
bool infer_contract(Graph *graph, const Node *node, Type *outputs);
bool infer_layer_norm(Graph *graph, const Node *node, Type *outputs);
bool infer_cross_entropy(Graph *graph, const Node *node, Type *outputs);
bool infer_argmax(Graph *graph, const Node *node, Type *outputs);
bool infer_embed(Graph *graph, const Node *node, Type *outputs);
bool infer_embed_backward(Graph *graph, const Node *node, Type *outputs);
/* By kind, for rows without a function of their own. */
bool infer_pointwise(Graph *graph, const Node *node, Type *outputs);
bool infer_reduction(Graph *graph, const Node *node, Type *outputs);

/* layouts.c */
bool layout_reshape(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output);
bool layout_permute(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output);
bool layout_slice(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output);
bool layout_expand(const Graph *graph, const Node *node, const ViewLayout *input, ViewLayout *output);
void place_concat(const Graph *graph, const Node *node, int input, Placement *placement);
void place_place(const Graph *graph, const Node *node, int input, Placement *placement);
void arguments_rows(const Graph *graph, const Node *node, KernelArguments *arguments);
void arguments_embed(const Graph *graph, const Node *node, KernelArguments *arguments);
void arguments_embed_backward(const Graph *graph, const Node *node, KernelArguments *arguments);

/* gradients.c: one function per row with a gradient, made from the table. */
typedef int (*GradientFunction)(GradientContext *context, int input);
GradientFunction gradient_of(Op op);

/* composites.c, attention.c */
#define COMPOSITE(name, signature, function) \
  ValueId function(Graph *graph, int input_count, const ValueId *inputs, const Attribute *attributes, ValueId *outputs);
#include "ir/ops.def"

/* optimizers.c */
#define OPTIMIZER(name, signature, function) \
  void function(Graph *graph, int parameter, ValueId gradient, ValueId scale, const Attribute *settings);
#include "ir/ops.def"

#endif
