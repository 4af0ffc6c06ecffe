//===- Origins.h - what an exporter says a tensor comes from ------------------------*- C++ -*-===//
//
// PyTorch's exporter (torch.onnx.export with dynamo=True) folds constants like others, but records
// what it has done: the graph's metadata lists the inputs of the exported program, each a PARAMETER,
// a BUFFER or a constant with its name in the model, and the metadata of a folded value lists the
// values that it was computed from. So it is known that ones and zeros which a decomposition has
// made are no parameters, and which tensors are a parameter again, transposed or sliced.
//
// Metadata is text of an untrusted file. It is parsed strictly, a record that contradicts itself
// says nothing, and what would make two tensors one is checked against their values by who asks.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_ORIGINS_H
#define PARTITA_LIB_IMPORT_ORIGINS_H

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
  std::vector<std::string> parameters; ///< that it is, or is computed from; sorted
  bool folded = false;                 ///< computed, of parameters or of others
  /// Of a derived one: all operations that have names in the traced program move elements
  /// (transpose, reshape, slice, concatenation).
  bool moved = false;
  /// One of these concatenates. The record lists what was concatenated once, however often it was:
  /// whether an element is there twice must be seen in the values.
  bool joined = false;
  /// Made inside the decomposition of the operation that reads it, which has no name of its own: it
  /// may be an operand that is scaled, so what it is must be known of the reader.
  bool inner = false;
  /// Of a derived one: a single operation inside the decomposition of another, without operands
  /// beside the parameter.
  bool direct = false;
  /// Rows of a table, looked up by whatever indices.
  bool lookedUp = false;
  /// By detach() among others, which stops its gradient.
  bool detached = false;
  /// Nothing but operations inside the decomposition of another.
  bool inside = false;
  /// One parameter, perhaps negated, plus a number of the program, as Gemma's norms scale by 1 + w. Its
  /// gradient is the parameter's, perhaps negated.
  bool shifted = false;
};

class Origins {
public:
  explicit Origins(const onnx::GraphProto &graph);

  /// Does the file say what its inputs were?
  bool known() const { return isKnown; }
  /// Why its record is not believed; empty where it is, or where there is none.
  const std::string &problem() const { return trouble; }
  /// Tensors that the inputs' record and their own metadata call different things, so that nothing
  /// is known of them.
  const std::vector<std::string> &contradicted() const { return contradictory; }
  const Origin &of(llvm::StringRef initializer) const;
  /// Of an inner tensor, as operand of a node. By what the exporter says of that, or where it says
  /// nothing by its operator: the only matrix that is multiplied with and comes from one operand by
  /// one operation is the transpose of a linear layer's weight.
  static Decomposed decomposed(const Origin &origin, const onnx::NodeProto &reader, int operand);
  /// Is it the name of one of the model's parameters?
  bool isParameter(llvm::StringRef name) const { return parameters.contains(name); }
  /// A parameter that no initializer is or comes from; empty where there is none. Exporters keep one
  /// of several that are tied, or equal, and a second optimizer does not know what the first has
  /// folded.
  const std::string &lost() const { return lostParameter; }

private:
  void readSignature(llvm::StringRef text);
  void readLine(llvm::StringRef line);
  Origin derived(llvm::StringRef name, llvm::StringRef text) const;

  llvm::StringSet<> parameters, constants;
  llvm::StringMap<Origin> origins;
  bool isKnown = false;
  std::string trouble, lostParameter;
  std::vector<std::string> contradictory;
};

/// The strings of a list as Python's repr() writes it; none if it is not one.
std::optional<std::vector<std::string>> parsePythonList(llvm::StringRef text);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_ORIGINS_H
