/* runtime/scalar_math.h against libm in double: a stride through all floats, the special values, order. */
#include "runtime/scalar_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Prime to 2^32, so that every exponent and sign is met; 3.5 million floats. */
enum { STRIDE = 1237 };

typedef struct Function {
  const char *name;
  float (*ours)(float);
  double (*exact)(double);
  double ulps;
} Function;

static float exp_f32(float x) { return rp_exp_f32(x); }
static float log_f32(float x) { return rp_log_f32(x); }
static float log1p_f32(float x) { return rp_log1p_f32(x); }
static float tanh_f32(float x) { return rp_tanh_f32(x); }
static float erf_f32(float x) { return rp_erf_f32(x); }

static const Function functions[] = {{"exp", exp_f32, exp, 1.1},
                                     {"log", log_f32, log, 1.0},
                                     {"log1p", log1p_f32, log1p, 1.0},
                                     {"tanh", tanh_f32, tanh, 2.0},
                                     {"erf", erf_f32, erf, 2.0}};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

/* Distance in units of the last place of the exact value as a float; subnormals have the spacing of the smallest
 * normal. */
static double ulp_distance(float found, double exact) {
  if (isnan(exact)) return isnan(found) ? 0 : HUGE_VAL;
  if (isinf((float)exact) || isinf(found)) return found == (float)exact ? 0 : HUGE_VAL;
  int exponent;
  frexp(exact, &exponent);
  return fabs((double)found - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void errors_are_small(void **state) {
  (void)state;
  for (int f = 0; f < FUNCTION_COUNT; f++) {
    double worst = 0;
    float at = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += STRIDE) {
      float x = rp_float_from_bits((uint32_t)bits);
      double distance = ulp_distance(functions[f].ours(x), functions[f].exact((double)x));
      if (distance > worst) {
        worst = distance;
        at = x;
      }
    }
    if (worst > functions[f].ulps) fail_msg("%s(%.9g) is off by %.2f ulp", functions[f].name, (double)at, worst);
  }
}

static void assert_same(float found, float wanted) {
  if (rp_float_bits(found) != rp_float_bits(wanted) && !(isnan(found) && isnan(wanted)))
    fail_msg("%.9g instead of %.9g", (double)found, (double)wanted);
}

static void special_values(void **state) {
  (void)state;
  const float special[] = {0.0f,    -0.0f,    1.0f,      -1.0f,      INFINITY,  -INFINITY, NAN,
                           3.4e38f, -3.4e38f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 88.8f,     -104.0f};
  for (int f = 0; f < FUNCTION_COUNT; f++)
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
      double exact = functions[f].exact((double)special[i]);
      bool rounded = isfinite(exact) && exact != 0 && fabs(exact) != 1;
      if (!rounded) assert_same(functions[f].ours(special[i]), (float)exact);
      assert_true(ulp_distance(functions[f].ours(special[i]), exact) <= functions[f].ulps);
    }
  assert_same(rp_exp_f32(0.0f), 1.0f);
  assert_same(rp_log_f32(1.0f), 0.0f);
}

/* A step of a float never takes a result back by more than the rounding of two results. */
static void order_is_kept(void **state) {
  (void)state;
  for (int f = 0; f < FUNCTION_COUNT; f++)
    for (float x = -8; x < 8; x += 0.00037f) {
      float next = nextafterf(x, 100), low = functions[f].ours(x), high = functions[f].ours(next);
      if (isnan(low) || isinf(low)) continue;
      assert_true(ulp_distance(high, (double)low) <= 3 || high > low);
    }
}

static void conversions_saturate(void **state) {
  (void)state;
  assert_int_equal(rp_float_to_integer(1e30, INT32_MIN, INT32_MAX), INT32_MAX);
  assert_int_equal(rp_float_to_integer(-1e30, INT64_MIN, INT64_MAX), INT64_MIN);
  assert_int_equal(rp_float_to_integer(9.3e18, INT64_MIN, INT64_MAX), INT64_MAX);
  assert_int_equal(rp_float_to_integer((double)NAN, INT32_MIN, INT32_MAX), 0);
  assert_int_equal(rp_float_to_integer(-2.9, INT32_MIN, INT32_MAX), -2);
  assert_int_equal(rp_float_to_integer(-1.0, 0, UINT8_MAX), 0);
}

static void integer_division(void **state) {
  (void)state;
  for (int64_t x = -7; x <= 7; x++)
    for (int64_t y = -7; y <= 7; y++) {
      int64_t quotient = y ? (int64_t)floor((double)x / (double)y) : 0;
      assert_int_equal(rp_integer_floor_divide(x, y), quotient);
      assert_int_equal(rp_integer_modulo(x, y), y ? x - y * quotient : 0);
    }
  assert_int_equal(rp_integer_floor_divide(INT64_MIN, -1), INT64_MIN);
  assert_int_equal(rp_integer_modulo(INT64_MIN, -1), 0);
  assert_int_equal(rp_integer_abs(INT64_MIN), INT64_MIN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_are_small),     cmocka_unit_test(special_values),   cmocka_unit_test(order_is_kept),
      cmocka_unit_test(conversions_saturate), cmocka_unit_test(integer_division),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
