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
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_H

#include "dialects/Train/Tensors.h"
#include "lib/Import/File/Exporter.h"
#include "lib/Import/File/Origins.h"
#include "lib/Import/Weights/WeightValues.h"
#include "partita/Import/Import.h"
#include "partita/Import/ModelFile.h"
#include "partita/Support/NamePattern.h"
#include "llvm/ADT/StringSet.h"
#include <map>

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

class Weights {
public:
  Weights(ModelFile &file, const ImportOptions &options);

  /// Fails after one error: an option that matches no tensor, or ties unequal ones. Decides once;
  /// later calls return the same result.
  mlir::LogicalResult decide();

  /// Is this initializer a parameter, trained or frozen? Else its values are constants.
  bool isParameter(llvm::StringRef name) const { return known(name) && known(name)->isParameter; }
  /// Is it a constant that becomes a parameter without a gradient, because it is too large to be read or
  /// has no values? (--freeze: isFrozen.)
  bool isUnreadConstant(llvm::StringRef name) const {
    return known(name) && known(name)->isUnreadConstant;
  }
  /// Does an option decide what it is?
  bool isDecided(llvm::StringRef name) const { return known(name) && known(name)->isDecided; }
  /// Does --freeze match it, so that guesses about its training do not matter?
  bool isFrozen(llvm::StringRef name) const { return known(name) && known(name)->isFrozen; }
  /// What --freeze matches although it is no parameter, in the file's order.
  std::vector<std::string> frozenConstants() const;
  /// No table of these is a copy itself.
  const std::vector<WeightCopy> &copies() const { return found; }
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
  /// Biases that the exporter has made by folding what follows a layer into it (a BatchNorm into a
  /// Conv), in the order of the nodes. The weights of these layers are changed too.
  const std::vector<std::string> &madeBiases() const { return biasesMade; }
  /// Is it one of several tensors that hold elements of one parameter?
  bool isPart(llvm::StringRef name) const;
  /// Is it the only tensor of one parameter, and equal to it plus a constant (Origin::shifted)?
  bool isShifted(llvm::StringRef name) const;
  /// Tensors that are buffers by their use and values: constants, unless an option or the record
  /// decides otherwise.
  const llvm::StringSet<> &bufferNames() const { return buffers; }

private:
  friend class NoteFinder;
  struct Use {
    const onnx::NodeProto *node;
    int operand;
  };
  struct Tensor {
    const onnx::TensorProto *proto;
    TensorData data;
    std::vector<Use> uses;
    bool isRead = false, isParameter = false, isUnreadConstant = false, isCopy = false;
    bool isDecided = false; ///< an option says what it is
    bool isFrozen = false;  ///< --freeze names it
    bool isNamed = false;   ///< --trainable gives its exact name
    bool mayRepeat = false; ///< a concatenation that may hold an element twice
  };
  using Group = std::vector<std::string>; ///< tensors of one parameter, none a copy of another

  mlir::LogicalResult decideOnce();
  const Tensor *known(llvm::StringRef name) const;
  Tensor *known(llvm::StringRef name);
  void locateTensors();
  void countUses(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, bool isOuter);
  bool isConstant(const Tensor &tensor);
  bool isUsedAs(const Tensor &tensor, llvm::StringRef op, int operand) const;
  bool matches(const NamePattern &pattern, llvm::StringRef name) const;
  bool isMeant(const NamePattern &pattern, const Tensor &tensor) const;
  llvm::SmallVector<llvm::StringRef>
  namesToSuggest(llvm::function_ref<bool(const Tensor &)> mayBe) const;
  mlir::LogicalResult readTrainable();
  mlir::LogicalResult readFreeze();
  mlir::LogicalResult checkNotFolded(const NamePattern &pattern, llvm::StringRef text) const;
  mlir::LogicalResult readTies();
  mlir::LogicalResult tie(llvm::StringRef first, llvm::StringRef second);
  Tensor *named(llvm::StringRef name);
  void decideEach();
  void addCopy(WeightCopy copy, llvm::StringRef name, llvm::StringRef table);
  void findTableCopies();
  void findDerivedCopies();
  void findFoldedCopies();
  bool isSliced(llvm::StringRef name) const;
  Decomposed decomposed(const Tensor &tensor) const;
  bool isMoved(const Tensor &tensor) const;
  bool mayRepeat(const Tensor &tensor) const;
  void restoreNames();
  void findMadeBiases();
  void restoreName(const std::string &parameter, const std::string &tensor);
  bool isTrained(const Tensor &tensor) const {
    return tensor.isRead && tensor.isParameter && !tensor.isUnreadConstant && !tensor.isCopy;
  }

  ModelFile &file;
  const onnx::GraphProto &graph;
  const ImportOptions &options;
  Origins origins;
  Exporter exporter;
  std::optional<bool> decided; ///< has decide() succeeded?
  SearchBudget budget;
  llvm::StringMap<Tensor> tensors;
  std::vector<std::string> order;                  ///< their names, as in the file
  llvm::StringSet<> buffers;                       ///< by use and values (Buffers.h)
  llvm::StringMap<const onnx::NodeProto *> makers; ///< by result
  llvm::StringMap<Tensor *> passedOn;              ///< by the name of a cast or copy of it
  std::map<std::string, Group> groups;             ///< by the only parameter of their members
  std::vector<WeightCopy> found;
  std::vector<WeightCopy> tableCopies; ///< of embedding tables, by their values alone
  std::vector<std::string> biasesMade;
  llvm::StringSet<> remade;         ///< these, and the weights of their layers
  std::vector<std::string> doubted; ///< trained, although constants by the exporter's record
  llvm::StringMap<OriginalParameter> originals; ///< by tensor
  std::vector<WeightNote> noted;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_H
