// Hopper's warp-group matmuls: wgmma, for sm_90a only, and its fences. Without nvcc (launch.cuh),
// <without_nvcc/wgmma.h> has functions of these names.
//
// A warp group is four warps, starting at a multiple of 4, which all call these functions. c [64,
// N] += a b: a [64, 16] in shared memory or registers, b [16, N] in shared memory. Warp w has rows
// 16 w .. 16 w + 15 of c, and of an a in registers, distributed over lanes like C and A in mma.cuh;
// c[j] are columns 8 j .. 8 j + 7.
//
// In shared memory, matrices are panels: rows of 64 elements (128 bytes), 8 rows per block of 1,024
// bytes, aligned to 1,024. The 16-byte chunk i of a row is stored in place of chunk i ^ (row % 8)
// ("128-byte swizzle": bits 4 .. 6 of an address are XORed with bits 7 .. 9). A descriptor has the
// address of the operand's first element and the distance between its blocks:
//
//     rows of a panel are rows of a, columns of b    byRows: multiplies 16 of a row's elements; the
//                                                    next ones are 32 bytes further
//     rows of a panel are columns of a, rows of b    transposed: 16 rows, 64 or N elements of each,
//                                                    from N / 64 panels; the next ones are 2,048
//                                                    bytes further
//
// The matmuls run asynchronously. Order: writes by stores (or cp.async); fenceForMatmuls() in the
// threads that made them, which bulk copies (bulk_copy.cuh) do not need; a barrier; beginMatmuls(); matmuls; commitMatmuls();
// waitForMatmuls<kLeft>(), before which neither c nor the operands may be touched. Create an
// operand `left` in registers for one matmul only: if one is kept for later matmuls, ptxas 13.0
// reuses its registers for other values.

#ifndef PARTITA_RT_CUDA_ATTENTION_WGMMA_CUH
#define PARTITA_RT_CUDA_ATTENTION_WGMMA_CUH

#include "cuda/attention/mma.cuh"

#if !defined(__CUDACC__)
#include <without_nvcc/wgmma.h>
#endif

// nvcc.mk defines PARTITA_RT_SM90A for wgmma sources that are compiled for Hopper. Without it, nvcc
// compiles none of this.
#if !defined(__CUDACC__) || defined(PARTITA_RT_SM90A)
#define PARTITA_RT_WGMMA
#endif

namespace partita_rt::cuda {

constexpr int kPanel = 64; ///< elements per row

/// Returns the descriptor of an operand at this address of shared memory. panelBytes: distance
/// between panels, for a transposed operand with N > 64.
__device__ inline uint64_t operandAt(uint32_t address, int panelBytes = 0) {
  constexpr uint64_t kSwizzle128 = 1, kBlock = 1024;
  return uint64_t(address >> 4 & 0x3fff) | uint64_t(panelBytes >> 4) << 16 | kBlock >> 4 << 32 |
         kSwizzle128 << 62;
}
/// Returns the descriptor of an operand `bytes` further. Addresses stay in the lower half: 32-bit
/// sums.
__device__ inline uint64_t behind(uint64_t operand, int bytes) {
  return (operand & ~uint64_t(0xffffffff)) | (uint32_t(operand) + uint32_t(bytes >> 4));
}

#if defined(__CUDACC__) && defined(PARTITA_RT_WGMMA)

/// Makes this thread's writes to shared memory visible to matmuls after a barrier.
__device__ inline void fenceForMatmuls() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Writes four 8 x 8 matrices of 16-bit elements to shared memory: `row` is the address of row lane % 8
/// of matrix lane / 8, a multiple of 16; r[i] is the lane's pair of matrix i, as in A of mma.cuh.
__device__ inline void storeMatrices(void *row, const uint32_t (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(sharedAddress(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

/// Orders registers for matmuls. Call it before the first ones, and after other uses of the
/// registers.
__device__ inline void beginMatmuls() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commitMatmuls() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all groups except the last kLeft.
template <int kLeft> __device__ inline void waitForMatmuls() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// Keeps the compiler from moving uses of these registers past this point.
template <int N> __device__ inline void pin(float (&c)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    asm volatile("" : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])::"memory");
}

// clang-format off
#define WGMMA_C32                                                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define WGMMA_C64                                                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define WGMMA_4(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define WGMMA_8(j) WGMMA_4(j), WGMMA_4(j + 1)
#define WGMMA_32(j) WGMMA_8(j), WGMMA_8(j + 2), WGMMA_8(j + 4), WGMMA_8(j + 6)
#define WGMMA_SHARED(type, n, list, registers, a, b, add, left_transposed, transposed)             \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add ", 0;\n"                                  \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " list ", %" #a   \
               ", %" #b ", p, 1, 1, %" #left_transposed ", %" #transposed ";\n}\n"                  \
               : registers : "l"(left), "l"(right), "r"(int(sum)), "n"(int(kLeft)),                \
                 "n"(int(kTransposed)))
#define WGMMA_REGISTERS(type, n, list, registers, a0, a1, a2, a3, b, add, transposed)              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add ", 0;\n"                                  \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " list            \
               ", {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1, %" #transposed       \
               ";\n}\n"                                                                            \
               : registers                                                                         \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right),               \
                 "r"(int(sum)), "n"(int(kTransposed)))
#define WGMMA_C128 WGMMA_32(0), WGMMA_32(8)

/// c = a b, plus c if `sum`; a byRows or, with kLeft, transposed, b byRows or transposed. T: Half,
/// BFloat16; N: 64, 128.
template <typename T, bool kTransposed, bool kLeft = false, int kColumns>
__device__ inline void multiplyGroup(float (&c)[kColumns][4], uint64_t left, uint64_t right,
                                     bool sum) {
  static_assert(kColumns == 8 || kColumns == 16);
  if constexpr (kColumns == 8 && std::is_same_v<T, Half>)
    WGMMA_SHARED("f16", 64, WGMMA_C32, WGMMA_32(0), 32, 33, 34, 35, 36);
  else if constexpr (kColumns == 8)
    WGMMA_SHARED("bf16", 64, WGMMA_C32, WGMMA_32(0), 32, 33, 34, 35, 36);
  else if constexpr (std::is_same_v<T, Half>)
    WGMMA_SHARED("f16", 128, WGMMA_C64, WGMMA_C128, 64, 65, 66, 67, 68);
  else
    WGMMA_SHARED("bf16", 128, WGMMA_C64, WGMMA_C128, 64, 65, 66, 67, 68);
}
template <typename T, bool kTransposed, int kColumns>
__device__ inline void multiplyGroup(float (&c)[kColumns][4], const uint32_t (&left)[4],
                                     uint64_t right, bool sum) {
  static_assert(kColumns == 8 || kColumns == 16);
  if constexpr (kColumns == 8 && std::is_same_v<T, Half>)
    WGMMA_REGISTERS("f16", 64, WGMMA_C32, WGMMA_32(0), 32, 33, 34, 35, 36, 37, 38);
  else if constexpr (kColumns == 8)
    WGMMA_REGISTERS("bf16", 64, WGMMA_C32, WGMMA_32(0), 32, 33, 34, 35, 36, 37, 38);
  else if constexpr (std::is_same_v<T, Half>)
    WGMMA_REGISTERS("f16", 128, WGMMA_C64, WGMMA_C128, 64, 65, 66, 67, 68, 69, 70);
  else
    WGMMA_REGISTERS("bf16", 128, WGMMA_C64, WGMMA_C128, 64, 65, 66, 67, 68, 69, 70);
}
// clang-format on
#undef WGMMA_C32
#undef WGMMA_C64
#undef WGMMA_4
#undef WGMMA_8
#undef WGMMA_32
#undef WGMMA_C128
#undef WGMMA_SHARED
#undef WGMMA_REGISTERS

#elif !defined(__CUDACC__)

using without_nvcc::beginMatmuls;
using without_nvcc::commitMatmuls;
using without_nvcc::fenceForMatmuls;
using without_nvcc::multiplyGroup;
using without_nvcc::pin;
using without_nvcc::sharedAddress;
using without_nvcc::storeMatrices;
using without_nvcc::waitForMatmuls;

#endif

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_WGMMA_CUH
