/* ir/optimizers.c - the update of one parameter, built of pointwise nodes that fuse into one kernel.
 *
 * gradient: of the parameter's type; scale: f32 [] that multiplies it (clipping, mean over micro-batches), or NO_VALUE.
 * The learning rate is settings' rate times the step's scale. Formulas and their order are PyTorch's. */
#include "ir/build.h"
#include "ir/rows.h"

/* A persistent of the parameter's type, named after it. */
static ValueId add_slot(Graph *graph, int parameter, const char *slot) {
  Module *module = graph->module;
  const Persistent *of = &module->persistents.items[parameter];
  Persistent persistent = {.name = memory_format(module->arena, "optimizer.%s.%s", slot, of->name),
                           .type = of->type,
                           .role = ROLE_OPTIMIZER,
                           .location = of->location};
  return graph_persistent(graph, module_add_persistent(module, persistent));
}

static ValueId times(Graph *graph, ValueId x, double factor) {
  return BUILD(graph, multiply, x, build_constant(graph, value_type(graph, x)->dtype, factor));
}

/* a + factor b */
static ValueId plus_times(Graph *graph, ValueId a, ValueId b, double factor) {
  return BUILD(graph, add, a, times(graph, b, factor));
}

static ValueId scaled(Graph *graph, ValueId gradient, ValueId scale) {
  return scale == NO_VALUE ? gradient : BUILD(graph, multiply, gradient, scale);
}

/* rate times the schedule's factor at this update, f32 [] */
static ValueId learning_rate(Graph *graph, double rate) {
  Attribute attributes[] = {attribute_ints(0, NULL), attribute_dtype(F32)};
  return times(graph, build_apply(graph, OP_learning_rate_scale, attributes, 0, (ValueId[]){NO_VALUE}), rate);
}

static double setting(Op op, const Attribute *settings, const char *name) {
  return settings[op_attribute_index(op, name)].number;
}

/* g ← g + wd w; v ← momentum v + g; w ← w − lr (g + momentum v if nesterov, else v) */
void update_sgd(Graph *graph, int parameter, ValueId gradient, ValueId scale, const Attribute *settings) {
  double momentum = setting(OP_sgd, settings, "momentum"), decay = setting(OP_sgd, settings, "wd");
  bool nesterov = settings[op_attribute_index(OP_sgd, "nesterov")].integer;
  ValueId w = graph_persistent(graph, parameter), g = scaled(graph, gradient, scale);
  if (decay != 0) g = plus_times(graph, g, w, decay);
  ValueId direction = g;
  if (momentum != 0) {
    ValueId slot = add_slot(graph, parameter, "momentum");
    ValueId velocity = BUILD(graph, add, times(graph, slot, momentum), g);
    build_assign(graph, slot, velocity);
    direction = nesterov ? plus_times(graph, g, velocity, momentum) : velocity;
  }
  ValueId rate = learning_rate(graph, setting(OP_sgd, settings, "lr"));
  build_assign(graph, w, BUILD(graph, subtract, w, BUILD(graph, multiply, rate, direction)));
}

/* 1 − betaᵗ in double: at t = 1 and beta = 0.999 a float would keep four digits. */
static ValueId bias_correction(Graph *graph, double beta) {
  Attribute attributes[] = {attribute_ints(0, NULL), attribute_dtype(F64)};
  ValueId t = build_apply(graph, OP_update_number, attributes, 0, (ValueId[]){NO_VALUE});
  ValueId power = BUILD(graph, power, build_constant(graph, F64, beta), t);
  return BUILD(graph, subtract, build_constant(graph, F64, 1), power);
}

/* m ← β₁ m + (1−β₁) g; v ← β₂ v + (1−β₂) g²; w ← w − lr/(1−β₁ᵗ) · m / (√v / √(1−β₂ᵗ) + eps)   (Kingma & Ba 2015) */
static void update_moments(Graph *graph, int parameter, ValueId w, ValueId g, double lr, const double *betas,
                           double eps) {
  DataType dtype = value_type(graph, w)->dtype;
  ValueId m = add_slot(graph, parameter, "m"), v = add_slot(graph, parameter, "v");
  ValueId m_next = plus_times(graph, times(graph, m, betas[0]), g, 1 - betas[0]);
  ValueId v_next = plus_times(graph, times(graph, v, betas[1]), BUILD(graph, square, g), 1 - betas[1]);
  build_assign(graph, m, m_next);
  build_assign(graph, v, v_next);
  ValueId rate = build_cast(graph, learning_rate(graph, lr), F64);
  ValueId step = build_cast(graph, BUILD(graph, divide, rate, bias_correction(graph, betas[0])), dtype);
  ValueId correction = build_cast(graph, BUILD(graph, sqrt, bias_correction(graph, betas[1])), dtype);
  ValueId root = BUILD(graph, divide, BUILD(graph, sqrt, v_next), correction);
  ValueId denominator = BUILD(graph, add, root, build_constant(graph, dtype, eps));
  ValueId change = BUILD(graph, multiply, step, BUILD(graph, divide, m_next, denominator));
  build_assign(graph, graph_persistent(graph, parameter), BUILD(graph, subtract, w, change));
}

/* Weight decay as part of the gradient. */
void update_adam(Graph *graph, int parameter, ValueId gradient, ValueId scale, const Attribute *settings) {
  ValueId w = graph_persistent(graph, parameter), g = scaled(graph, gradient, scale);
  double decay = setting(OP_adam, settings, "wd");
  if (decay != 0) g = plus_times(graph, g, w, decay);
  update_moments(graph, parameter, w, g, setting(OP_adam, settings, "lr"),
                 settings[op_attribute_index(OP_adam, "betas")].numbers, setting(OP_adam, settings, "eps"));
}

/* Weight decay apart from the gradient: w ← w − lr wd w first. (Loshchilov & Hutter 2019) */
void update_adamw(Graph *graph, int parameter, ValueId gradient, ValueId scale, const Attribute *settings) {
  ValueId w = graph_persistent(graph, parameter);
  double decay = setting(OP_adamw, settings, "wd"), lr = setting(OP_adamw, settings, "lr");
  if (decay != 0) {
    ValueId shrink = times(graph, learning_rate(graph, lr), decay);
    w = BUILD(graph, subtract, w, BUILD(graph, multiply, w, shrink));
  }
  update_moments(graph, parameter, w, scaled(graph, gradient, scale), lr,
                 settings[op_attribute_index(OP_adamw, "betas")].numbers, setting(OP_adamw, settings, "eps"));
}

/* ---- clipping by the global norm (Pascanu et al. 2013), with PyTorch's constant ---- */

ValueId build_clip_scale(Graph *graph, int count, const ValueId *gradients, ValueId scale, double limit) {
  ValueId total = NO_VALUE;
  for (int i = 0; i < count; i++) {
    ValueId squares = build_reduce(graph, OP_sum, BUILD(graph, square, gradients[i]), -1, NULL, false);
    total = total == NO_VALUE ? squares : BUILD(graph, add, total, squares);
  }
  if (total == NO_VALUE) return scale;
  DataType dtype = value_type(graph, total)->dtype;
  ValueId norm = scaled(graph, BUILD(graph, sqrt, total), scale);
  ValueId ratio = BUILD(graph, divide, build_constant(graph, dtype, limit),
                        BUILD(graph, add, norm, build_constant(graph, dtype, 1e-6)));
  return scaled(graph, BUILD(graph, minimum, ratio, build_constant(graph, dtype, 1)), scale);
}
