//===- BatchDims.h - is dimension 0 still the batch? ------------------------------------------===//
//
// A shape that tracing has made a constant may still fit: Reshape(x, [-1, 16, 12]) was one sample of 16
// tokens a row, and with 8 tokens it makes one row of two samples. Whatever is then computed along the
// rows mixes samples, and no error says so. So the batch is followed from the inputs on, by dimension
// 0 of what depends on them, and a constant shape that leaves it is warned of.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_BATCHDIMS_H
#define PARTITA_LIB_IMPORT_BATCHDIMS_H

#include "onnx.pb.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <utility>

namespace partita::importer {

class Node;
struct Tensor;

class BatchDims {
public:
  /// The batch is dimension 0 of the first input that has one of no fixed size.
  void bind(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs, llvm::ArrayRef<Shape> shapes);
  /// Notes of an input of the model whether it has the batch.
  void begin(const onnx::ValueInfoProto &input, Tensor &tensor) const;
  /// Notes of the results of a node that has been imported what follows from its inputs.
  void follow(Node &node);
  /// "" where each constant shape keeps the batch.
  std::string warning() const;

private:
  bool isActive() const { return size > 1 && !others.empty(); }
  bool holdsOther(llvm::ArrayRef<int64_t> shape) const;
  bool mixes(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const;
  std::string fixedDim(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const;

  std::string name; ///< of the batch, in the file
  int64_t size = 1;
  llvm::SmallVector<std::pair<std::string, int64_t>> others; ///< dimensions that have been bound
  std::string first;                                         ///< node that leaves the batch
  int64_t more = 0;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BATCHDIMS_H
