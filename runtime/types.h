/* runtime/types.h - element types and shapes of RpTensor. */
#ifndef REPRISE_RUNTIME_TYPES_H
#define REPRISE_RUNTIME_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/program.h"

/* Bytes of one element. */
int64_t rp_type_size(RpType type);
/* Name as in the language: "f32". */
const char *rp_type_name(RpType type);
bool rp_type_is_integer(RpType type);

/* Number of elements and bytes. The compiler has checked that they fit. */
int64_t rp_tensor_elements(const RpTensor *tensor);
int64_t rp_tensor_bytes(const RpTensor *tensor);

/* Writes "[8,1024]" ("[]" for a scalar), cut to `size` bytes; returns `text`. */
char *rp_shape_text(int rank, const int64_t *dims, char *text, size_t size);

/* Stores `value`, rounded to the type (to nearest even; integers truncate), as element `index` of `data`. */
void rp_store(RpType type, void *data, int64_t index, double value);

/* IEEE 754 binary16 and bfloat16, exact in this direction. */
float rp_half_to_float(uint16_t half);
float rp_bfloat_to_float(uint16_t bfloat);
/* Round to nearest even; overflow gives infinity, NaN stays NaN. */
uint16_t rp_float_to_half(float value);
uint16_t rp_float_to_bfloat(float value);

#endif
