//===- EqualParameters.h - recorded parameters with equal values --------------------*- C++ -*-===//
//
// A model that sets the data of one parameter to that of another (b.weight.data = a.weight.data) ties them
// in PyTorch, but dynamo's record lists two parameters. Equal values are the only trace, and parameters
// have them for other reasons too:
//
//   - copied layers (copy.deepcopy, as nn.TransformerEncoder makes its layers): elements of one list,
//     whose parameters are all equal, or all but one of several
//   - values by a formula (an identity, log(1..n) in each row as in Mamba): few numbers, each several times
//
// Other modules whose parameters are all equal may be copies, or one may have the other's data: the file
// does not show which.
//
// Vectors may have values by a formula in which no number is repeated, so they are only considered beside
// equal matrices of the same modules.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_EQUALPARAMETERS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_EQUALPARAMETERS_H

#include "lib/Import/Weights/EqualMatrices.h"
#include "lib/Import/Weights/WeightTable.h"

namespace partita::importer {

class EqualParameterFinder {
public:
  /// `isSearched`: may this tensor be tied to another one?
  EqualParameterFinder(const WeightTable &weights,
                       llvm::function_ref<bool(const WeightTable::Tensor &)> isSearched);

  /// Tensors of different parameters that neither reason explains: matrices in the file's order, each
  /// group followed by the vectors beside it.
  std::vector<std::vector<EqualMatrix>> take();

private:
  struct Parameter {
    llvm::StringRef tensor;
    const TensorData *data;
    bool isSearched;
  };
  /// By the rest of their names, a module's parameters.
  using Module = std::map<llvm::StringRef, Parameter>;
  using Groups = std::vector<std::vector<EqualMatrix>>;

  bool isFull(llvm::StringRef tensor) const;
  llvm::StringRef parameterOf(llvm::StringRef tensor) const;
  Module moduleOf(llvm::StringRef path) const;
  bool areCopies(llvm::StringRef tensor, llvm::StringRef other);
  bool areCopiedLayers(llvm::StringRef path, llvm::StringRef other);
  bool compareLayers(llvm::StringRef path, llvm::StringRef other);
  void addVectors(const std::vector<EqualMatrix> &matrices, Groups &groups);

  const WeightTable &weights;
  EqualTensorFinder finder;
  SearchBudget budget; ///< of comparing layers and vectors
  std::map<std::string, Parameter> byParameter;
  std::map<std::pair<llvm::StringRef, llvm::StringRef>, bool> compared; // layers
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_EQUALPARAMETERS_H
