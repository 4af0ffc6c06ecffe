//===- CompressMomenta.h - what sums with a bit per element do not go with ----------*- C++ -*-===//

#ifndef PARTITA_OPTIMIZER_COMPRESSMOMENTA_H
#define PARTITA_OPTIMIZER_COMPRESSMOMENTA_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace partita::optimizer {

/// What decides whether momenta can be summed with a bit per element.
struct SumsPlan {
  int64_t stage = 0; ///< of ZeRO
  /// The mesh axes that split the batch, as in --mesh, and how many ranks each has.
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 2> batchAxes;
  bool scalesLoss = false, keepsStatesOnHost = false, quantizesGradients = false;
  bool isSummed() const; ///< do several ranks have samples of their own?
};

/// Why momenta cannot be summed with a bit per element.
struct SumsRefusal {
  llvm::StringLiteral option; ///< that of the plan which asks for it
  std::string reason;         ///< "compresses ..., use ...", of the optimizer
};
/// The first reason, if there is any: what docs/optimizers.md lists, as far as the plan alone decides it.
std::optional<SumsRefusal> refusalOfSums(const SumsPlan &plan);
/// "onebit-adam over several ranks " for an optimizer's name as an op or an option has it.
std::string overSeveralRanks(llvm::StringRef optimizer);

} // namespace partita::optimizer

#endif // PARTITA_OPTIMIZER_COMPRESSMOMENTA_H
