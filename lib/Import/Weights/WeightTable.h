//===- WeightTable.h - the tensors of a file, and what is decided about them --------*- C++ -*-===//
//
// WeightDecider fills it, phase by phase; NoteFinder and Weights only read it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTTABLE_H
#define PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTTABLE_H

#include "lib/Import/File/Exporter.h"
#include "lib/Import/File/Origins.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Weights/WeightValues.h"
#include "lib/Import/Weights/Weights.h"
#include <map>

namespace partita::importer {

struct WeightTable {
  using Use = InitializerUses::Use;
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

  explicit WeightTable(ModelFile &file);

  const Tensor *known(llvm::StringRef name) const;
  /// Is it a parameter, trained or frozen? Else its values are constants.
  bool isParameter(llvm::StringRef name) const { return known(name) && known(name)->isParameter; }
  bool isUnreadConstant(llvm::StringRef name) const {
    return known(name) && known(name)->isUnreadConstant;
  }
  /// Does an option decide what it is?
  bool isDecided(llvm::StringRef name) const { return known(name) && known(name)->isDecided; }
  /// Does --freeze match it, so that guesses about its training do not matter?
  bool isFrozen(llvm::StringRef name) const { return known(name) && known(name)->isFrozen; }
  bool isTrained(const Tensor &tensor) const {
    return tensor.isRead && tensor.isParameter && !tensor.isUnreadConstant && !tensor.isCopy;
  }
  /// Do all its uses have this operator and operand?
  bool isUsedAs(const Tensor &tensor, llvm::StringRef op, int operand) const;

  const OriginalParameter *original(llvm::StringRef name) const;
  llvm::StringRef originOf(llvm::StringRef name) const;
  train::Folded foldedBy(llvm::StringRef name) const;
  llvm::SmallVector<int64_t, 2> originalDimensions(llvm::StringRef name) const;
  /// By its readers, if they agree.
  Decomposed decomposed(const Tensor &tensor) const;
  /// Does it hold elements of parameters, each at most once, as far as the record shows?
  bool isMoved(const Tensor &tensor) const;
  /// Is it a copy of parameters that the model has cast to 16 bits?
  bool isRounded(llvm::StringRef name) const;
  /// Is it one of several tensors that hold elements of one parameter?
  bool isPart(llvm::StringRef name) const;
  /// Is it the only tensor of one parameter, and equal to it plus a constant (Origin::shifted)?
  bool isShifted(llvm::StringRef name) const;
  /// Is a slice of it a copy?
  bool isSliced(llvm::StringRef name) const;
  bool isReshaped(const WeightCopy &copy) const;

  // The file.
  ModelFile &file;
  const onnx::GraphProto &graph;
  const Origins origins;
  const Exporter exporter;
  /// Tensors that are buffers by their use and values (Buffers.h): constants, unless an option or the
  /// record decides otherwise.
  const llvm::StringSet<> buffers;
  llvm::StringMap<Tensor> tensors;
  std::vector<std::string> order;                  ///< their names, as in the file
  llvm::StringMap<const onnx::NodeProto *> makers; ///< by result

  // What is decided.
  std::vector<std::string> doubted;    ///< trained, although constants by the exporter's record
  std::vector<WeightCopy> tableCopies; ///< of embedding tables, by their values alone
  std::vector<WeightCopy> copies;      ///< no table of these is a copy itself
  std::map<std::string, Group> groups; ///< by the only parameter of their members
  llvm::StringMap<OriginalParameter> originals; ///< by tensor
  /// Biases that the exporter has made by folding what follows a layer into it (a BatchNorm into a Conv),
  /// in the order of the nodes.
  std::vector<std::string> madeBiases;
  llvm::StringSet<> remade; ///< these, and the weights of their layers, which are changed too
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTTABLE_H
