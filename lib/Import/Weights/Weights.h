//===- Weights.h - what is trained of a file's tensors, and as what -----------------*- C++ -*-===//
//
// A file holds parameters, buffers and constants alike as initializers, and an exporter that folds
// constants has transposed, sliced, merged or multiplied some of them. What each is follows, in this
// order, from
//
//   - the user: --trainable, --freeze, --tie
//   - its use and values, for buffers (Buffers.h)
//   - what the exporter recorded (Origins.h), as far as the values do not contradict it
//   - the structure: floats of more than one element are parameters, copies of an embedding table
//     are the table
//
// What remains a guess on which training depends is a note, which names the option that decides.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_H

#include "dialects/Train/Tensors.h"
#include "lib/Import/File/Origins.h"
#include "lib/Import/Weights/WeightValues.h"
#include "partita/Import/Import.h"
#include "partita/Import/ModelFile.h"
#include "partita/Support/NamePattern.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace partita::importer {

/// What had to be guessed (WeightNotes.h).
struct WeightNote {
  std::string text;
  std::vector<std::string> tensors; ///< that it is about
  bool isReported = false;          ///< the report of a file lists them anyway
  /// It is about parameters, not about whether something is one: --trainable decides nothing.
  bool isOfParameters = false;
};

/// A parameter under the name, and in the layout, that it had before an exporter folded it.
struct OriginalParameter {
  std::string name;
  Shape shape;
  bool transposed = false; ///< the file holds its transpose
};

class Weights {
public:
  Weights(ModelFile &file, const ImportOptions &options);

  /// Fails after one error: an option that names no such tensor, or ties what is not equal. Does
  /// its work once, however often it is asked.
  mlir::LogicalResult decide();

  /// Is this initializer a parameter, trained or frozen? Else its values are constants.
  bool isParameter(llvm::StringRef name) const { return known(name) && known(name)->isParameter; }
  /// Of a parameter: is it a constant that is too large to be read, or has no values?
  bool isFrozen(llvm::StringRef name) const { return known(name) && known(name)->isFrozen; }
  /// Does an option say what it is?
  bool isDecided(llvm::StringRef name) const { return known(name) && known(name)->isDecided; }
  /// Does --freeze name it, so that it does not matter how it is trained?
  bool isHeld(llvm::StringRef name) const { return known(name) && known(name)->isHeld; }
  /// Of one table or several, none of which is a copy itself.
  const std::vector<WeightCopy> &copies() const { return found; }
  /// Has a copy, the transposition aside, another shape than what it repeats, or the slice of it?
  bool isReshaped(const WeightCopy &copy) const;
  /// Null where the parameter is the tensor as it stands.
  const OriginalParameter *original(llvm::StringRef name) const;
  const std::vector<WeightNote> &notes() const { return noted; }
  /// The only parameter that the exporter computed a tensor from; empty where the tensor is that
  /// parameter, there are several, or nothing is recorded.
  llvm::StringRef originOf(llvm::StringRef name) const;
  /// What the exporter has made the parameter by; No where it is one of the model, under whatever name.
  train::Folded foldedBy(llvm::StringRef name) const;
  /// Biases that the exporter has made by folding what follows a layer into it (a BatchNorm into a
  /// Conv), in the order of the nodes: the layer's weight is another one, too.
  const std::vector<std::string> &madeBiases() const { return biasesMade; }
  /// Is it the only tensor of one parameter, and that plus a constant (Origin::shifted)?
  bool isShifted(llvm::StringRef name) const;
  /// Tensors that their use and values show to be none: constants, unless an option says otherwise.
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
    bool isRead = false, isParameter = false, isFrozen = false, isCopy = false;
    bool isDecided = false; ///< an option says what it is
    bool isHeld = false;    ///< --freeze names it
    bool isNamed = false;   ///< --trainable names it, without wildcards
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
  mlir::LogicalResult readTrainable();
  mlir::LogicalResult readFreeze();
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
    return tensor.isRead && tensor.isParameter && !tensor.isFrozen && !tensor.isCopy;
  }

  ModelFile &file;
  const onnx::GraphProto &graph;
  const ImportOptions &options;
  Origins origins;
  std::optional<bool> decided; ///< with success?
  SearchBudget budget;
  llvm::StringMap<Tensor> tensors;
  std::vector<std::string> order;                  ///< their names, as in the file
  llvm::StringSet<> buffers;                       ///< by use and values (Buffers.h)
  llvm::StringMap<const onnx::NodeProto *> makers; ///< by result
  llvm::StringMap<Tensor *> passedOn;              ///< by a cast or copy of it
  std::map<std::string, Group> groups;             ///< by parameter, of those that are one's alone
  std::vector<WeightCopy> found;
  std::vector<std::string> biasesMade;
  llvm::StringSet<> remade;         ///< those, and the weights of their layers
  std::vector<std::string> doubted; ///< constants by the exporter's record that are trained
  llvm::StringMap<OriginalParameter> originals; ///< by tensor
  std::vector<WeightNote> noted;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_H
