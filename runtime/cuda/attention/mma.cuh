// Tensor cores: together with asynchronous copies (async_copy.cuh), the few PTX instructions that
// attention needs, for sm_80 and later. Without nvcc, <without_nvcc/mma.h> has functions of these
// names.
//
// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16"), lane = 4 g + t, two 16-bit elements per
// register, the lower one first:
//
//     A [16, 16]: rows g, g + 8, g, g + 8 at columns 2t, 2t, 2t + 8, 2t + 8     4 registers
//     B [16, 8]:  rows 2t, 2t + 8 (and the next) of column g                    2 registers
//     C [16, 8]:  rows g, g, g + 8, g + 8 at columns 2t, 2t + 1, 2t, 2t + 1     4 floats
//
// So two neighbouring C's, rounded, form an A, and rows of C are reduced over the four lanes of g.

#ifndef PARTITA_RT_CUDA_ATTENTION_MMA_CUH
#define PARTITA_RT_CUDA_ATTENTION_MMA_CUH

#include "cuda/kernels/async_copy.cuh"

namespace partita_rt::cuda {

#if defined(__CUDACC__)

/// c += a b, summed in float.
template <typename T>
__device__ inline void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1) {
  if constexpr (std::is_same_v<T, Half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads four 8 x 8 matrices from shared memory; lane 8 i + j passes the address of row j of matrix
/// i (16 aligned bytes). r[i] = elements 2t, 2t + 1 of row g of matrix i.
__device__ inline void loadMatrices(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row))
               : "memory");
}
/// Loads transposed: r[i] = elements g of rows 2t, 2t + 1 of matrix i.
__device__ inline void loadTransposed(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(sharedAddress(row))
               : "memory");
}

/// Rounds two numbers to T, the first one in the lower half.
template <typename T> __device__ inline uint32_t roundPair(float first, float second) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

#else

using without_nvcc::loadMatrices;
using without_nvcc::loadTransposed;
using without_nvcc::multiplyAdd;
using without_nvcc::roundPair;

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_MMA_CUH
