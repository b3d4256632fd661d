/* runtime/kernels/vector.cuh - four neighbouring elements in registers, moved sixteen bytes at a time where they are
 * that long. Addresses are multiples of the bytes that move at once. */
#ifndef REPRISE_RUNTIME_KERNELS_VECTOR_CUH
#define REPRISE_RUNTIME_KERNELS_VECTOR_CUH

#include "runtime/kernels/device.cuh"

struct alignas(16) RpDouble2 {
  double x, y;
};
struct alignas(16) RpLong2 {
  int64_t x, y;
};
struct alignas(4) RpByte4 {
  uint8_t x, y, z, w;
};

RP_FUNCTION void rp_load_vector(float v[4], const float *at) {
  const float4 x = *(const float4 *)at;
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}
RP_FUNCTION void rp_store_vector(float *at, const float v[4]) {
  *(float4 *)at = make_float4(v[0], v[1], v[2], v[3]);
}

RP_FUNCTION void rp_load_vector(int32_t v[4], const int32_t *at) {
  const int4 x = *(const int4 *)at;
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}
RP_FUNCTION void rp_store_vector(int32_t *at, const int32_t v[4]) { *(int4 *)at = make_int4(v[0], v[1], v[2], v[3]); }

RP_FUNCTION void rp_load_vector(double v[4], const double *at) {
  const RpDouble2 a = ((const RpDouble2 *)at)[0], b = ((const RpDouble2 *)at)[1];
  v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
RP_FUNCTION void rp_store_vector(double *at, const double v[4]) {
  ((RpDouble2 *)at)[0] = RpDouble2{v[0], v[1]};
  ((RpDouble2 *)at)[1] = RpDouble2{v[2], v[3]};
}

RP_FUNCTION void rp_load_vector(int64_t v[4], const int64_t *at) {
  const RpLong2 a = ((const RpLong2 *)at)[0], b = ((const RpLong2 *)at)[1];
  v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
RP_FUNCTION void rp_store_vector(int64_t *at, const int64_t v[4]) {
  ((RpLong2 *)at)[0] = RpLong2{v[0], v[1]};
  ((RpLong2 *)at)[1] = RpLong2{v[2], v[3]};
}

RP_FUNCTION void rp_load_vector(uint8_t v[4], const uint8_t *at) {
  const RpByte4 x = *(const RpByte4 *)at;
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}
RP_FUNCTION void rp_store_vector(uint8_t *at, const uint8_t v[4]) {
  *(RpByte4 *)at = RpByte4{v[0], v[1], v[2], v[3]};
}

RP_FUNCTION void rp_load_vector(bool v[4], const bool *at) {
  const RpByte4 x = *(const RpByte4 *)at;
  v[0] = x.x != 0, v[1] = x.y != 0, v[2] = x.z != 0, v[3] = x.w != 0;
}
RP_FUNCTION void rp_store_vector(bool *at, const bool v[4]) { *(RpByte4 *)at = RpByte4{v[0], v[1], v[2], v[3]}; }

#endif
