//===- Tensor.h - the interpreter's values ------------------------------------------*- C++ -*-===//
//
// A host tensor in double precision, the list of each rank's share of a value, and the conversions
// between a full value and its ranks' shards.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERP_TENSOR_H
#define PARTITA_INTERP_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <vector>

namespace partita::par {
class MeshAttr;
}

namespace partita::interp {

/// Elements in row-major order: `reals` for floating-point types, `ints` for integers and i1.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  bool isReal = true;
  std::vector<double> reals;
  std::vector<int64_t> ints;

  Tensor() = default;
  /// Creates zeros in the shape of one rank.
  explicit Tensor(mlir::RankedTensorType type);
  Tensor(llvm::ArrayRef<int64_t> shape, bool isReal);

  int64_t size() const;
  int64_t dim(int64_t i) const { return shape[i < 0 ? i + shape.size() : i]; }
  /// Returns the product of all dimensions except the last `trailing` ones.
  int64_t leading(int64_t trailing) const;
  double number(int64_t i) const { return isReal ? reals[i] : static_cast<double>(ints[i]); }
  void setNumber(int64_t i, double value) {
    isReal ? (void)(reals[i] = value) : (void)(ints[i] = static_cast<int64_t>(value));
  }
  void copyElement(int64_t to, const Tensor &from, int64_t i) {
    isReal ? (void)(reals[to] = from.reals[i]) : (void)(ints[to] = from.ints[i]);
  }
  /// Adds `other`, of the same shape and kind.
  void add(const Tensor &other);
  /// Returns true if the bits are the same, so that a NaN equals itself.
  bool identical(const Tensor &other) const;
};

/// What each rank holds. Ranks that hold the same value may share one tensor.
using RankTensors = llvm::SmallVector<std::shared_ptr<const Tensor>, 2>;

llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Calls f(linear index in shape, base + sum of index * stride) for every index of `shape`.
template <typename F>
void walk(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides, int64_t base, F f) {
  int64_t count = 1, offset = base;
  for (int64_t size : shape)
    count *= size;
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t linear = 0; linear < count; ++linear) {
    f(linear, offset);
    for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d])
        break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

/// Returns "[1, 0, 3]", the index of element `linear` of a tensor of this shape.
std::string indexText(llvm::ArrayRef<int64_t> shape, int64_t linear);

/// Calls error with a message that describes the problem and returns failure.
using ErrorFn = llvm::function_ref<void(const llvm::Twine &)>;

/// Checks that the interpreter can hold the tensor type: static, of numbers, and with the shape of
/// one rank's shard for this mesh. Else calls error.
mlir::LogicalResult checkType(mlir::Type type, par::MeshAttr mesh, ErrorFn error);

/// Returns what each rank of `mesh` holds of `full` by the placement in `type`: its shard, the
/// full value, or, for a partial sum, a random term (by `seed`); the terms add up.
mlir::FailureOr<RankTensors> cut(const Tensor &full, mlir::Type type, par::MeshAttr mesh,
                                 uint64_t seed, ErrorFn error);

/// Returns the full value: partial sums are added in rank order, shards are put in place. A value
/// that should be equal on two ranks and is not is an error that names both.
mlir::FailureOr<Tensor> assemble(const RankTensors &shards, mlir::Type type, par::MeshAttr mesh,
                                 ErrorFn error);

/// Return the sums (the max) over each group of ranks that differ along `axis`, in the order of the
/// axis; the group shares the result.
RankTensors sumOverGroups(par::MeshAttr mesh, llvm::StringRef axis, const RankTensors &values);
RankTensors maxOverGroups(par::MeshAttr mesh, llvm::StringRef axis, const RankTensors &values);

/// Checks that values are equal on all ranks if the placement in `type` requires it. Else calls
/// error.
mlir::LogicalResult checkAgreement(const RankTensors &shards, mlir::Type type, par::MeshAttr mesh,
                                   ErrorFn error);

} // namespace partita::interp

#endif // PARTITA_INTERP_TENSOR_H
