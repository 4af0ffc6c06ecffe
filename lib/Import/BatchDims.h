//===- BatchDims.h - is dimension 0 still the batch? ------------------------------------------===//
//
// A shape that tracing has made constant may still fit: Reshape(x, [-1, 16, 12]) gave each sample of 16
// tokens a row, but with 8 tokens it puts two samples into one row. Whatever is then computed along
// the rows mixes samples, without an error. So the batch is tracked from the inputs, as dimension 0 of
// what depends on them, and a constant shape that breaks it is a warning.
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
  /// The batch is dimension 0 of the first input whose dimension 0 has no fixed size.
  void bind(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs, llvm::ArrayRef<Shape> shapes);
  /// Marks an input of the model that has the batch.
  void begin(const onnx::ValueInfoProto &input, Tensor &tensor) const;
  /// Marks the results of an imported node by its inputs.
  void follow(Node &node);
  /// "" if every constant shape keeps the batch.
  std::string warning() const;
  /// Does some constant shape mix samples?
  bool mixesSamples() const { return !first.empty(); }

private:
  bool isActive() const { return size > 1 && !others.empty(); }
  bool holdsOther(llvm::ArrayRef<int64_t> shape) const;
  bool mixes(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const;
  std::string fixedDims(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> wanted) const;

  std::string name; ///< of the batch dimension in the file
  int64_t size = 1;
  llvm::SmallVector<std::pair<std::string, int64_t>> others; ///< dimensions that have been bound
  std::string first;                                         ///< the warning about the first node
  int64_t more = 0;                                          ///< nodes like it
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BATCHDIMS_H
