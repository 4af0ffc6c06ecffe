//===- CompressedMomenta.h - optimizers that sum momenta ----------------------------*- C++ -*-===//

#ifndef PARTITA_OPTIMIZER_COMPRESSEDMOMENTA_H
#define PARTITA_OPTIMIZER_COMPRESSEDMOMENTA_H

#include "dialects/Train/Train.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::optimizer {

/// The hyperparameter of an optimizer that can take compressed sums of momenta (1-bit Adam, 1-bit LAMB, 0/1 Adam); 1 where an
/// update does (pass compress-momenta).
inline constexpr llvm::StringLiteral kCompressed = "compressed";

/// Is it an optimizer with these hyperparameters?
inline bool sumsMomenta(llvm::ArrayRef<train::Hyperparameter> hyperparameters) {
  return llvm::any_of(hyperparameters,
                      [](const train::Hyperparameter &each) { return each.name == kCompressed; });
}

} // namespace partita::optimizer

#endif // PARTITA_OPTIMIZER_COMPRESSEDMOMENTA_H
