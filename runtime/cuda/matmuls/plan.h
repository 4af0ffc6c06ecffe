// A shape's descriptors and algorithm, which matmuls.cpp makes; tuning.cpp tries other algorithms.

#ifndef PARTITA_RT_CUDA_MATMULS_PLAN_H
#define PARTITA_RT_CUDA_MATMULS_PLAN_H

#include "cuda/matmuls/matmuls.h"

namespace partita_rt::cuda {

/// A descriptor of cuBLASLt; the destructor destroys it.
template <typename Handle, cublasStatus_t (*destroy)(Handle)> struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() {
    if (handle)
      destroy(handle);
  }
};
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

struct Matmuls::Plan {
  MatmulShape shape;
  Operation operation;
  Layout a, b, c; ///< in our terms, not cuBLASLt's
  Layout addend;
  cublasLtMatmulAlgo_t algorithm{};
  bool possible = false;
  bool isApartUntuned = false; ///< cuBLASLt may still have a kernel: tuning tries

  explicit Plan(const MatmulShape &shape);
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MATMULS_PLAN_H
