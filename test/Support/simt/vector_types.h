// CUDA's small vector types, for kernels and launches.

#ifndef PARTITA_TEST_SIMT_VECTOR_TYPES_H
#define PARTITA_TEST_SIMT_VECTOR_TYPES_H

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct uint3 {
  unsigned x, y, z;
};
struct __attribute__((may_alias, aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((may_alias, aligned(16))) uint4 {
  unsigned x, y, z, w;
};
struct __attribute__((may_alias, aligned(16))) float4 {
  float x, y, z, w;
};

#endif // PARTITA_TEST_SIMT_VECTOR_TYPES_H
