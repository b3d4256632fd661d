/* runtime/weights.h - loading weights files into the arena: names, renames, tied weights, conversions. */
#ifndef REPRISE_RUNTIME_WEIGHTS_H
#define REPRISE_RUNTIME_WEIGHTS_H

#include "runtime/log.h"
#include "runtime/options.h"
#include "runtime/safetensors.h"

/* Loads every parameter and state of the program (with `snapshot`, its optimizer state too) from `path`.
 *
 * A tensor of the file goes to the model's tensor of the same name after the renames, or of that name without a leading
 * "transformer.". Two tensors of the file for one of the model must hold equal values. Tensors that the model does not
 * have are ignored with a note; tensors of the model that the file does not have, other shapes, and types that cannot
 * be converted are errors. F16 and BF16 become f32, with a note. A rename that matches nothing is an error. */
bool rp_weights_load(const RpContext *context, const RpTensorFile *tensors, bool snapshot, const RpPair *renames,
                     int rename_count, RpLog *log, RpStatus *status);

#endif
