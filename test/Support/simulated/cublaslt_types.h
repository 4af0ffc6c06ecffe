// Types that cublasLtMatmul multiplies, among those that runtime/cuda stores: rows of a table in
// NVIDIA's documentation, so that the simulated cuBLASLt and its caller do not both rest on one
// reading of it.
//
// Source: cuBLAS Library User Guide of CUDA 13 (12.x is the same), section cublasLtMatmul(), the
// table "When A, B, C, and D are regular column- or row-major matrices", rows of CUBLAS_COMPUTE_32F
// with a scale of CUDA_R_32F and non-default epilogues. The guide's minor release was not noted. The
// installed cuBLAS is 13.1.0, of CUDA 13.0 Update 2 (cublas_api.h; the names are the release
// notes'). The release notes of CUDA 13.0 to 13.2, section cuBLAS, have no change of these rows.
// Compared with TypesAreSupportedByCublasLt of xla/service/gpu/transforms/gemm_rewriter.cc,
// openxla/xla 01631ca8, which has the same rows without biases. A bias is of D's type: cublasLt.h
// 13.1.0, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE. Auxiliary matrices: the same,
// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: a leading dimension divisible by 8, at least D's rows.
//
// What the simulated library also refuses:
// - C and D at one address with different layouts: the release notes of CUDA 13.1, cuBLAS, which
//   say that 13.0 Update 2 checks it [5471880].
// - Sums of a transposed A (BGRADA) or of a B that is not transposed (BGRADB), and any sums with
//   FP8: NVIDIA/nvmath-python 48f5b643, tests/nvmath_tests/distributed/test_matmul.py; the guide
//   does not say so.

#ifndef PARTITA_TEST_SIMULATED_CUBLASLT_TYPES_H
#define PARTITA_TEST_SIMULATED_CUBLASLT_TYPES_H

#include <library_types.h>

namespace simulated {

struct MatmulTypes {
  cudaDataType a, b, c, bias; ///< D is of C's type
};

constexpr MatmulTypes kMatmulTypes[] = {
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
};
/// FP8: the same guide, the paragraphs on "FP8 kernels" and their table: A and B are not both e5m2;
/// on GPUs of compute capability 8.9, 9.0 and 12.x A is transposed and B is not; dimensions and
/// leading dimensions are multiples of 16, and matrices are 16-byte aligned; scales are floats in
/// device memory.
constexpr MatmulTypes kScaledTypes[] = {
    {CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_16BF},
    {CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_16BF},
    {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, CUDA_R_16BF},
    {CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_16BF},
};
constexpr int kScaledMultiple = 16;
/// Bytes. cuBLASLt 13.1.0 refuses a scale at another address, which an H200 has shown: a defect of
/// 12.9 to CUDA 13.1, which 13.1 Update 1 has mended (its release notes, cuBLAS [5728938]).
constexpr int kScaleAlignment = 16;
constexpr int kAuxLdMultiple = 8;

constexpr bool multiplies(cudaDataType a, cudaDataType b, cudaDataType c, cudaDataType bias) {
  for (const MatmulTypes &row : kMatmulTypes)
    if (row.a == a && row.b == b && row.c == c && row.bias == bias)
      return true;
  return false;
}

constexpr bool isScaled(cudaDataType type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}
constexpr bool multipliesScaled(cudaDataType a, cudaDataType b, cudaDataType c) {
  for (const MatmulTypes &row : kScaledTypes)
    if (row.a == a && row.b == b && row.c == c)
      return true;
  return false;
}

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_CUBLASLT_TYPES_H
