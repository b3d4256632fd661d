#include "runtime/types.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int64_t size;
  bool integer;
} types[] = {
    [RP_F32] = {"f32", 4, false}, [RP_F64] = {"f64", 8, false},  [RP_BF16] = {"bf16", 2, false},
    [RP_F16] = {"f16", 2, false}, [RP_I32] = {"i32", 4, true},   [RP_I64] = {"i64", 8, true},
    [RP_U8] = {"u8", 1, true},    [RP_BOOL] = {"bool", 1, true},
};

int64_t rp_type_size(RpType type) { return types[type].size; }
const char *rp_type_name(RpType type) { return types[type].name; }
bool rp_type_is_integer(RpType type) { return types[type].integer; }

int64_t rp_tensor_elements(const RpTensor *tensor) {
  int64_t elements = 1;
  for (int axis = 0; axis < tensor->rank; axis++) elements *= tensor->dims[axis];
  return elements;
}

int64_t rp_tensor_bytes(const RpTensor *tensor) { return rp_tensor_elements(tensor) * rp_type_size(tensor->type); }

char *rp_shape_text(int rank, const int64_t *dims, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int axis = 0; axis < rank && used < size; axis++) {
    used += (size_t)snprintf(text + used, size - used, axis ? ",%lld" : "%lld", (long long)dims[axis]);
  }
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

void rp_store(RpType type, void *data, int64_t index, double value) {
  switch (type) {
    case RP_F32:
      ((float *)data)[index] = (float)value;
      break;
    case RP_F64:
      ((double *)data)[index] = value;
      break;
    case RP_BF16:
      ((uint16_t *)data)[index] = rp_float_to_bfloat((float)value);
      break;
    case RP_F16:
      ((uint16_t *)data)[index] = rp_float_to_half((float)value);
      break;
    case RP_I32:
      ((int32_t *)data)[index] = (int32_t)value;
      break;
    case RP_I64:
      ((int64_t *)data)[index] = (int64_t)value;
      break;
    case RP_U8:
      ((uint8_t *)data)[index] = (uint8_t)value;
      break;
    case RP_BOOL:
      ((uint8_t *)data)[index] = value != 0;
      break;
  }
}

static float float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float rp_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 1023u;
  if (exponent == 31) return float_from_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return float_from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
  float magnitude = ldexpf((float)fraction, -24); /* zero and subnormals */
  return sign ? -magnitude : magnitude;
}

float rp_bfloat_to_float(uint16_t bfloat) { return float_from_bits((uint32_t)bfloat << 16); }

uint16_t rp_float_to_bfloat(float value) {
  uint32_t bits = bits_from_float(value);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

uint16_t rp_float_to_half(float value) {
  uint16_t sign = (uint16_t)(bits_from_float(value) >> 16 & 0x8000u);
  float magnitude = fabsf(value);
  if (isnan(value)) return sign | 0x7e00u;
  if (magnitude >= 65520.0f) return sign | 0x7c00u;
  /* Below 2^-14 halves are multiples of 2^-24: nearbyint rounds to even, and a carry makes the first normal number. */
  if (magnitude < 0x1p-14f) return sign | (uint16_t)nearbyintf(magnitude * 0x1p24f);
  uint32_t bits = bits_from_float(magnitude);
  bits += 0xfffu + (bits >> 13 & 1u);
  return sign | (uint16_t)((bits >> 13) - (112u << 10));
}
