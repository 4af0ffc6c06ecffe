// A shape's descriptors and algorithm, as products.cpp makes them and tuning.cpp tries others.

#ifndef PARTITA_RT_CUDA_PRODUCTS_PLAN_H
#define PARTITA_RT_CUDA_PRODUCTS_PLAN_H

#include "cuda/products/products.h"

namespace partita_rt::cuda {

/// A descriptor of cuBLASLt, destroyed with it.
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

struct Products::Plan {
  ProductShape shape;
  Operation operation;
  Layout a, b, c; ///< ours, not cuBLASLt's
  Layout addend;
  cublasLtMatmulAlgo_t algorithm{};
  bool possible = false;
  bool isApartUntuned = false; ///< cuBLASLt may have it all the same: tuning tries

  explicit Plan(const ProductShape &shape);
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_PRODUCTS_PLAN_H
