//===- Folder.h - computing on tensors that depend on no input --------------------------------===//
//
// Every function computes one ONNX operation on HostTensors whose shapes and indices the caller has
// checked. A result of none means "too large": the tensor has more distinct elements than one fold
// may have, or the model has used up the limit for all folds together (otherwise a file of a kilobyte
// could take hours). The caller then emits the operation instead.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FOLDING_FOLDER_H
#define PARTITA_LIB_IMPORT_FOLDING_FOLDER_H

#include "partita/Import/HostTensor.h"

namespace partita::importer {

using MaybeHost = std::optional<HostTensor>;

/// One scalar function, on doubles and on 64-bit integers (which wrap). Either may be null.
struct ScalarFunction {
  double (*onDouble)(const double *operands);
  int64_t (*onInt)(const int64_t *operands);

  bool takesFloats() const { return onDouble != nullptr; }
};

class Folder {
public:
  /// `limit`: distinct elements of one result; `total`: of all results together.
  Folder(int64_t limit, int64_t total) : limit(limit), left(total) {}

  /// Elementwise; operands are broadcast to `shape`. Computes on doubles if an operand is a float or the
  /// function has no integer form.
  MaybeHost elementwise(DType type, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<HostTensor> operands, const ScalarFunction &function);
  /// condition ? a : b, bytes moved as they are.
  MaybeHost select(llvm::ArrayRef<int64_t> shape, HostTensor condition, HostTensor a, HostTensor b);
  MaybeHost cast(const HostTensor &x, DType type);

  MaybeHost dense(const HostTensor &x);
  MaybeHost reshape(const HostTensor &x, llvm::ArrayRef<int64_t> shape);
  MaybeHost concat(llvm::ArrayRef<HostTensor> parts, int64_t axis);
  MaybeHost gather(const HostTensor &data, const HostTensor &indices, int64_t axis);
  MaybeHost gatherElements(const HostTensor &data, const HostTensor &indices, int64_t axis);
  MaybeHost gatherND(const HostTensor &data, const HostTensor &indices);
  MaybeHost scatterND(const HostTensor &data, const HostTensor &indices, const HostTensor &updates);
  MaybeHost trilu(const HostTensor &x, int64_t diagonal, bool upper);
  MaybeHost cumSum(const HostTensor &x, int64_t axis, bool exclusive, bool reverse);
  MaybeHost range(DType type, double start, double step, int64_t count);
  MaybeHost rangeInt(DType type, int64_t start, int64_t step, int64_t count);

  enum class Reduction { sum, mean, prod, max, min };
  /// Reduces the dimensions in `axes` (sorted), which stay with size 1. None also for the max or min of
  /// an empty set of integers.
  MaybeHost reduce(const HostTensor &x, llvm::ArrayRef<int64_t> axes, Reduction kind);

  /// May a tensor of this shape be computed? If so, it is charged to the limit.
  bool admit(llvm::ArrayRef<int64_t> shape);

private:
  int64_t limit, left;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FOLDING_FOLDER_H
