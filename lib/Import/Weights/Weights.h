//===- Weights.h - what is trained of a file's tensors, and as what -----------------*- C++ -*-===//
//
// Parameters, buffers and constants are all initializers of a file, and an exporter that folds
// constants has transposed, sliced, merged or multiplied some of them. What each tensor is follows, in
// this order, from
//
//   - the user: --trainable, --freeze, --tie
//   - its use and values, for buffers (Buffers.h)
//   - the exporter's record (Origins.h), where the values do not contradict it
//   - the structure: floats of more than one element are parameters; a copy of an embedding table is
//     the table
//
// Each remaining guess that training depends on becomes a note, which names the option that decides.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTS_H

#include "dialects/Train/Tensors.h"
#include "partita/Import/Import.h"
#include "partita/Import/ModelFile.h"
#include "partita/Import/TableCopies.h"
#include "llvm/ADT/StringSet.h"
#include <memory>

namespace partita::importer {

/// A guess (WeightNotes.h).
struct WeightNote {
  std::string text;
  std::vector<std::string> tensors; ///< the tensors concerned
  bool isReported = false;          ///< `import --report` lists them anyway
  /// It is about how parameters are trained, not about what is a parameter: --trainable does not
  /// decide it.
  bool isOfParameters = false;
  bool isOfForward = false; ///< inference depends on it too
};

/// A parameter's name and shape in the model, before an exporter folded it.
struct OriginalParameter {
  std::string name;
  Shape shape;
  bool transposed = false; ///< the file holds its transpose
};

struct WeightTable; // private: what this answers from

class Weights {
public:
  Weights(ModelFile &file, const ImportOptions &options);
  ~Weights();

  /// Fails after one error: an option that matches no tensor, or ties unequal ones. Decides once;
  /// later calls return the same result.
  mlir::LogicalResult decide();

  /// Is this initializer a parameter, trained or frozen? Else its values are constants.
  bool isParameter(llvm::StringRef name) const;
  /// Is it a constant that becomes a parameter without a gradient, because it is too large to be read or
  /// has no values? (What --freeze matches is another question, of the objective.)
  bool isUnreadConstant(llvm::StringRef name) const;
  /// What --freeze matches although it is no parameter, in the file's order.
  std::vector<std::string> frozenConstants() const;
  /// No table of these is a copy itself.
  const std::vector<WeightCopy> &copies() const;
  /// Does a copy, transposition aside, have another shape than its table or the slice of it?
  bool isReshaped(const WeightCopy &copy) const;
  /// Null if name and shape are those of the tensor.
  const OriginalParameter *original(llvm::StringRef name) const;
  const std::vector<WeightNote> &notes() const { return noted; }
  /// The only parameter that the exporter computed a tensor from; empty if the tensor is that
  /// parameter, if there are several, or if nothing is recorded.
  llvm::StringRef originOf(llvm::StringRef name) const;
  /// How the exporter has made the parameter; No if it is one of the model's, under whatever name.
  train::Folded foldedBy(llvm::StringRef name) const;
  /// The least and the most dimensions that the parameters have of which it holds elements; empty if they
  /// have as many as it has, or if that does not matter.
  llvm::SmallVector<int64_t, 2> originalDimensions(llvm::StringRef name) const;
  /// Tensors that are buffers by their use and values, known before anything is decided: constants, unless
  /// an option or the record decides otherwise.
  const llvm::StringSet<> &bufferNames() const;

private:
  const ImportOptions &options;
  std::optional<bool> decided; ///< has decide() succeeded?
  std::unique_ptr<WeightTable> table;
  std::vector<WeightNote> noted;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTS_H
