//===- Node.h - what a handler sees of an ONNX node -------------------------------------------===//
//
// Type-checked attributes, inputs and results by position, and the small emitters that several
// handlers share. An attribute that the handler did not read is an error when the node is done: none
// is ignored silently.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_NODE_H
#define PARTITA_LIB_IMPORT_FILE_NODE_H

#include "dialects/Tx/Tx.h"
#include "lib/Import/Importer.h"

namespace partita::importer {

class Node {
public:
  Node(Importer &importer, const onnx::NodeProto &proto, Frame &frame, int64_t version);

  Importer &importer;
  const onnx::NodeProto &proto;
  Frame &frame;
  const int64_t version; // of the operator's domain
  const std::string name;
  const mlir::Location loc;
  /// Do some of its inputs stand in for unavailable ones (KeepGoing.cpp)?
  bool hasStandIns = false;

  /// Starts an error: "node 'name' (Type): ".
  mlir::InFlightDiagnostic error();
  Folder &folder() { return importer.folder; }
  mlir::OpBuilder &builder() { return importer.builder; }

  // Attributes. A getter leaves `value` as it is when the node has no such attribute.
  bool has(llvm::StringRef key);
  mlir::LogicalResult attribute(llvm::StringRef key, int64_t &value);
  mlir::LogicalResult attribute(llvm::StringRef key, float &value);
  mlir::LogicalResult attribute(llvm::StringRef key, std::string &value);
  mlir::LogicalResult attribute(llvm::StringRef key, Shape &values);
  mlir::LogicalResult attribute(llvm::StringRef key, llvm::SmallVector<float> &values);
  mlir::LogicalResult attribute(llvm::StringRef key, const onnx::TensorProto *&value);
  mlir::LogicalResult attribute(llvm::StringRef key, const onnx::GraphProto *&value);
  /// The raw attribute, references to the calling function's attributes resolved; or null.
  const onnx::AttributeProto *findAttribute(llvm::StringRef key);
  /// Fails if an attribute was never read.
  mlir::LogicalResult checkAllRead();

  // Inputs.
  int64_t inputCount() const { return proto.input_size(); }
  /// An optional input: null when absent.
  Tensor *input(int64_t index);
  /// Fails unless there are between `least` and `most` inputs, the first `least` present.
  mlir::LogicalResult arity(int64_t least, int64_t most);
  /// The contents of an input that must be known, as integers. `what` says what it is.
  mlir::LogicalResult knownInts(int64_t index, const char *what, Shape &values);
  mlir::LogicalResult knownInt(int64_t index, const char *what, int64_t &value);
  /// Are the contents of all present inputs known?
  bool allKnown();

  // Results.
  mlir::LogicalResult set(int64_t index, Tensor *tensor);
  mlir::LogicalResult set(int64_t index, mlir::Value value);
  mlir::LogicalResult set(int64_t index, HostTensor host);
  bool wants(int64_t index) const {
    return index < proto.output_size() && !proto.output(index).empty();
  }

  // Helpers for emission.
  /// Fails if one of `tensors` has an element type that a program cannot have, or no elements. Call it
  /// before value().
  mlir::LogicalResult emittable(llvm::ArrayRef<Tensor *> tensors);
  mlir::Value value(Tensor *tensor) { return importer.materialize(tensor, loc); }
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> strides);
  template <typename Op> mlir::Value emit(mlir::ValueRange operands) {
    return Op::create(builder(), loc, operands)->getResult(0);
  }

  /// Makes an axis in [-rank, rank) non-negative; fails for others.
  mlir::LogicalResult normalizeAxis(int64_t &axis, int64_t rank);
  /// The numpy broadcast of shapes; fails with an error that shows all shapes.
  mlir::LogicalResult broadcastShape(llvm::ArrayRef<Tensor *> tensors, Shape &shape);
  /// The error for an operand that must be known at import but depends on the model's input.
  mlir::LogicalResult notKnown(const char *what, const char *remedy = "");

private:
  llvm::SmallVector<llvm::StringRef> read;
};

llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
/// The double that was meant by this float: 1e-05f is 1e-05, not 9.99999975e-06. Epsilons and ratios are
/// written as decimals, which the exporter has rounded.
double asWritten(float value);
/// "2x3 of int64"
std::string typeText(const Tensor &tensor);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_NODE_H
