/* runtime/scalar_math.h - the functions that scalar expressions of the op table call.
 *
 * Included by emitted C, by the reference interpreter and by emitted CUDA, where RP_FUNCTION is defined beforehand. The
 * float forms are our own: straight lines of additions, multiplications, divisions and selects, so that compilers
 * vectorise loops over them and a value has the same bits in a scalar loop, a vector loop, a fused body and a clone.
 * That holds without contraction and reassociation (-ffp-contract=off, no -ffast-math). Errors are measured over every
 * float in tests/codegen/test_scalar_math.c. The double forms are libm's.
 *
 * Polynomials are weighted least-squares fits iterated towards the minimax one, coefficients rounded to float one by
 * one, lowest first. */
#ifndef REPRISE_RUNTIME_SCALAR_MATH_H
#define REPRISE_RUNTIME_SCALAR_MATH_H

#ifndef __CUDACC_RTC__
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#endif

#ifndef RP_FUNCTION
#ifdef __GNUC__
#define RP_FUNCTION static inline __attribute__((always_inline))
#else
#define RP_FUNCTION static inline
#endif
#endif

/* ---- bits of floats ---- */

RP_FUNCTION uint32_t rp_float_bits(float value) {
  union {
    float value;
    uint32_t bits;
  } either = {value};
  return either.bits;
}

RP_FUNCTION float rp_float_from_bits(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } either = {bits};
  return either.value;
}

RP_FUNCTION float rp_infinity_f32(void) { return rp_float_from_bits(0x7f800000u); }
RP_FUNCTION float rp_nan_f32(void) { return rp_float_from_bits(0x7fc00000u); }
RP_FUNCTION float rp_abs_f32(float x) { return rp_float_from_bits(rp_float_bits(x) & 0x7fffffffu); }

/* magnitude >= 0 or NaN, with the sign of `sign` */
RP_FUNCTION float rp_with_sign_f32(float magnitude, float sign) {
  return rp_float_from_bits(rp_float_bits(magnitude) | (rp_float_bits(sign) & 0x80000000u));
}

/* ---- float ---- */

/* e^x = 2^k e^r, k = round(x / ln 2), |r| <= ln(2)/2. Error below 1.1 ulp; 0 below -104, infinity above 88.73,
 * subnormal results rounded once. */
RP_FUNCTION float rp_exp_f32(float x) {
  const float above = x < -104.0f ? -104.0f : x;
  const float y = above > 89.0f ? 89.0f : above;
  const float shifted = y * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to integer, k in the low bits */
  const float k = shifted - 12582912.0f;
  const float r = (y - k * 0.693359375f) - k * -2.12194440e-4f; /* the first product is exact */
  const float tail = 0.49999994f + r * (0.166665211f + r * (0.0416682735f + r * (0.00836868584f + r * 0.00138201378f)));
  const float power = 1.0f + (r + r * r * tail);
  const int32_t exponent = (int32_t)(rp_float_bits(shifted) - 0x4b400000u), half = exponent >> 1;
  return power * rp_float_from_bits((uint32_t)(half + 127) << 23) *
         rp_float_from_bits((uint32_t)(exponent - half + 127) << 23);
}

/* log(1 + f) + k ln 2 + c, for 1 + f in [sqrt(1/2), sqrt(2)) and c tiny. With s = f / (2 + f):
 * log(1 + f) = log((1 + s) / (1 - s)) = f - (f^2/2 - s (f^2/2 + R)), R = s^2 (2/3 + ...). */
RP_FUNCTION float rp_log_reduced_f32(float f, float k, float c) {
  const float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
  const float tail = z * (0.666667759f + z * (0.399775684f + z * 0.298714608f));
  return s * (half_square + tail) + (k * 9.05800061e-6f + c) - half_square + f + k * 0.693138123f;
}

/* Error below 1 ulp, subnormal arguments included. log(0) = -infinity, NaN below. */
RP_FUNCTION float rp_log_f32(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float y = subnormal ? x * 0x1p23f : x;
  const uint32_t shifted = rp_float_bits(y) - 0x3f3504f3u; /* from sqrt(1/2) */
  const float k = (float)((int32_t)shifted >> 23) - (subnormal ? 23.0f : 0.0f);
  const float m = rp_float_from_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float value = rp_log_reduced_f32(m - 1.0f, k, 0.0f);
  const float positive = x < rp_infinity_f32() ? value : x;
  const float rest = x == 0.0f ? -rp_infinity_f32() : rp_nan_f32();
  return x > 0.0f ? positive : rest;
}

/* log(1 + x): with u = 1 + x rounded, log(u) + (x - (u - 1)) / u. Error below 1 ulp. */
RP_FUNCTION float rp_log1p_f32(float x) {
  const float u = 1.0f + x;
  const uint32_t shifted = rp_float_bits(u) - 0x3f3504f3u;
  const int32_t exponent = (int32_t)shifted >> 23;
  const float m = rp_float_from_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float lost = (exponent >= 2 ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
  const bool near = exponent == 0;
  const float value = rp_log_reduced_f32(near ? x : m - 1.0f, (float)exponent, near ? 0.0f : lost);
  const float finite = rp_abs_f32(x) < 0x1p-24f ? x : value;
  const float above = x < rp_infinity_f32() ? finite : x;
  const float rest = x == -1.0f ? -rp_infinity_f32() : rp_nan_f32();
  return x > -1.0f ? above : rest;
}

/* Below 0.625 an odd polynomial, else 1 - 2 / (e^2|x| + 1). Error below 2 ulp. */
RP_FUNCTION float rp_tanh_f32(float x) {
  const float a = rp_abs_f32(x), z = a * a;
  const float tail =
      -0.333332807f + z * (0.133314058f + z * (-0.0537365153f + z * (0.0206281673f + z * -0.0056922962f)));
  const float small = a + a * (z * tail), large = 1.0f - 2.0f / (rp_exp_f32(2.0f * a) + 1.0f);
  return rp_with_sign_f32(a < 0.625f ? small : large, x);
}

/* Below 0.93 an odd polynomial, else 1 - exp(log erfc |x|), with log erfc(a) / a a polynomial up to 4, where erf rounds
 * to
 * 1. Error below 2 ulp. */
RP_FUNCTION float rp_erf_f32(float x) {
  const float a = rp_abs_f32(x), b = a > 4.0f ? 4.0f : a, z = b * b;
  const float head =
      0.128379151f +
      z * (-0.376124889f + z * (0.11281731f + z * (-0.0267629661f + z * (0.00498735206f + z * -0.000595957856f))));
  const float log_erfc =
      b * (-1.12851441f + b * (-0.635718167f +
                               b * (-0.105262019f + b * (0.022890063f + b * (-0.00321498164f + b * 0.000213987441f)))));
  const float small = a + a * head, large = 1.0f - rp_exp_f32(log_erfc);
  return rp_with_sign_f32(a < 0.93f ? small : large, x);
}

RP_FUNCTION float rp_sqrt_f32(float x) { return sqrtf(x); }
RP_FUNCTION float rp_floor_f32(float x) { return floorf(x); }
RP_FUNCTION float rp_pow_f32(float x, float y) { return powf(x, y); }
RP_FUNCTION float rp_sin_f32(float x) { return sinf(x); }
RP_FUNCTION float rp_cos_f32(float x) { return cosf(x); }

/* ---- double ---- */

RP_FUNCTION double rp_exp_f64(double x) { return exp(x); }
RP_FUNCTION double rp_log_f64(double x) { return log(x); }
RP_FUNCTION double rp_log1p_f64(double x) { return log1p(x); }
RP_FUNCTION double rp_tanh_f64(double x) { return tanh(x); }
RP_FUNCTION double rp_erf_f64(double x) { return erf(x); }
RP_FUNCTION double rp_sqrt_f64(double x) { return sqrt(x); }
RP_FUNCTION double rp_floor_f64(double x) { return floor(x); }
RP_FUNCTION double rp_pow_f64(double x, double y) { return pow(x, y); }
RP_FUNCTION double rp_sin_f64(double x) { return sin(x); }
RP_FUNCTION double rp_cos_f64(double x) { return cos(x); }
RP_FUNCTION double rp_abs_f64(double x) { return fabs(x); }

/* ---- integers ---- */

/* Towards zero, saturating at [lowest, highest], the range of the integer type that is meant; NaN gives 0. */
RP_FUNCTION int64_t rp_float_to_integer(double value, int64_t lowest, int64_t highest) {
  if (!(value == value)) return 0;
  if (value <= (double)lowest) return lowest;
  if (value >= (double)highest) return highest; /* (double)INT64_MAX is 2^63: what is below it fits */
  return (int64_t)value;
}

RP_FUNCTION int64_t rp_integer_abs(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }

/* Rounded towards minus infinity. Division by zero gives 0; the smallest integer by -1 gives itself. */
RP_FUNCTION int64_t rp_integer_floor_divide(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0 - (uint64_t)x);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* x - y floor(x / y): has the sign of y. Modulo zero gives 0. */
RP_FUNCTION int64_t rp_integer_modulo(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  const int64_t rest = x % y;
  return rest + (rest != 0 && (rest < 0) != (y < 0) ? y : 0);
}

#endif
