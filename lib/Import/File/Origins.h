//===- Origins.h - where tensors come from, by the exporter's record ----------------*- C++ -*-===//
//
// PyTorch's exporter (torch.onnx.export with dynamo=True) folds constants like others, but records it:
// the graph's metadata lists the inputs of the exported program, each a PARAMETER, a BUFFER or a
// constant with its name in the model, and the metadata of a folded value lists the values that it
// was computed from. So ones and zeros that a decomposition creates are known not to be parameters,
// and a tensor that is a transposed or sliced parameter is known to be one.
//
// Metadata is text in an untrusted file. It is parsed strictly, a record that contradicts itself is
// not used, and callers compare values before they make two tensors one.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_ORIGINS_H
#define PARTITA_LIB_IMPORT_FILE_ORIGINS_H

#include "lib/Import/File/AtenOperations.h"
#include "onnx.pb.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <string>
#include <vector>

namespace partita::importer {

struct Origin {
  enum Kind {
    Unknown,   ///< the file does not say
    Parameter, ///< a parameter of the model, under its own name
    Constant,  ///< computed from no parameter, or a buffer
    Derived    ///< computed from parameters
  };
  Kind kind = Unknown;
  std::vector<std::string> parameters; ///< those that it is, or is computed from; sorted
  bool folded = false;                 ///< computed, from parameters or from other values
  /// Derived: all operations that have names in the traced program move elements (transpose, reshape,
  /// slice, concatenation).
  bool moved = false;
  /// Moved: how many dimensions more the parameters have than the tensor, as far as the operations show (before
  /// an inner last operation).
  int leastDropped = 0, mostDropped = 0;
  /// One of these operations concatenates. The record lists an operand once, however often it was
  /// concatenated: only the values show whether an element is repeated.
  bool joined = false;
  /// Operations inside the decomposition of another are *inner*: what they compute has no name in the
  /// traced program ("val_12"). The last operation, which made the tensor, is inner, inside that which
  /// reads it. The tensor may be, say, a scaled operand: what it is depends on the reader (`decomposed`).
  bool lastInner = false;
  /// All operations are inner.
  bool allInner = false;
  /// Derived by a single operation, which is inner and has no operand but the parameter.
  bool direct = false;
  /// Rows of a table, looked up.
  bool lookedUp = false;
  /// Computed by detach() among others, which stops the gradient.
  bool detached = false;
  /// One of these operations casts (`_to_copy`).
  bool cast = false;
  /// One parameter, perhaps negated, plus a literal, like the scale 1 + w of Gemma's norms.
  /// Its gradient is the parameter's, perhaps negated.
  bool shifted = false;
  /// The model's buffers and constants that it is computed from.
  std::vector<std::string> constants = {};
};

class Origins {
public:
  explicit Origins(const onnx::GraphProto &graph);

  /// Does the file have a valid record of the program's inputs?
  bool known() const { return isKnown; }
  /// Why the record is not used; empty if it is, or if there is none.
  const std::string &problem() const { return trouble; }
  /// Tensors whose own metadata contradicts the record of inputs, so that nothing is known about them.
  const std::vector<std::string> &contradicted() const { return contradictory; }
  const Origin &of(llvm::StringRef initializer) const;
  /// What a tensor whose last operation is inner is, as an operand of a node: by the node's recorded call
  /// or, without one, by its operator. A MatMul's second operand that comes from one parameter by one
  /// operation is the transpose of a linear layer's weight.
  static Decomposed decomposed(const Origin &origin, const onnx::NodeProto &reader, int operand);
  /// Is it the name of one of the model's parameters?
  bool isParameter(llvm::StringRef name) const { return parameters.contains(name); }
  /// A parameter that the record does not account for: no initializer is it or comes from it. Empty if
  /// there is none. Exporters keep one of several tied or equal parameters, and a second optimizer does
  /// not know what the first has folded.
  const std::string &unaccounted() const { return unaccountedParameter; }

private:
  void readSignature(llvm::StringRef text);
  void readLine(llvm::StringRef line);
  Origin derived(llvm::StringRef name, llvm::StringRef text) const;

  llvm::StringSet<> parameters, constants;
  llvm::StringSet<> computed; ///< results of nodes
  llvm::StringMap<Origin> origins;
  bool isKnown = false;
  std::string trouble, unaccountedParameter;
  std::vector<std::string> contradictory;
};

/// The strings of a list as Python's repr() writes it; none if the text is not such a list.
std::optional<std::vector<std::string>> parsePythonList(llvm::StringRef text);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_ORIGINS_H
