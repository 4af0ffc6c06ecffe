//===- EqualParameters.h - recorded parameters with equal values --------------------*- C++ -*-===//
//
// A model that sets the data of one parameter to that of another (b.weight.data = a.weight.data) ties them
// in PyTorch, but dynamo's record lists two parameters. Equal values are the only trace, and parameters
// have them for other reasons too:
//
//   - a copied module (copy.deepcopy, as nn.TransformerEncoder makes its layers): all of its parameters
//     equal those of the other one, not only one of them
//   - values by a formula (an identity, log(1..n) in each row as in Mamba): few numbers, each several times
//
// Vectors may have values by a formula in which no number is repeated, so they only help to recognize
// copied modules.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_EQUALPARAMETERS_H
#define PARTITA_LIB_IMPORT_EQUALPARAMETERS_H

#include "lib/Import/Weights/EqualMatrices.h"
#include "lib/Import/Weights/WeightTable.h"

namespace partita::importer {

class EqualParameterFinder {
public:
  /// `isSearched`: may this tensor be tied to another one?
  EqualParameterFinder(const WeightTable &weights,
                       llvm::function_ref<bool(const WeightTable::Tensor &)> isSearched);

  /// Tensors of different parameters that neither reason explains, in the file's order.
  std::vector<std::vector<EqualMatrix>> take();

private:
  /// By the rest of their names, the tensors of a module's parameters.
  using Module = std::map<llvm::StringRef, const TensorData *>;

  bool isWhole(llvm::StringRef tensor) const;
  Module moduleOf(llvm::StringRef path) const;
  bool areCopies(llvm::StringRef tensor, llvm::StringRef other);
  bool areCopiedModules(llvm::StringRef path, llvm::StringRef other);
  bool compareModules(llvm::StringRef path, llvm::StringRef other);

  const WeightTable &weights;
  EqualTensorFinder finder;
  SearchBudget budget; ///< of comparing modules
  std::map<std::string, const TensorData *> byParameter;
  std::map<std::pair<llvm::StringRef, llvm::StringRef>, bool> compared; // modules
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_EQUALPARAMETERS_H
