//===- Parameters.h - parameters by name, what a rank holds of them, how they are updated -*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_PARAMETERS_H
#define PARTITA_ANALYSIS_PARAMETERS_H

#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <string>

namespace partita::analysis {

/// The parameters whose names, in the model or in its file, match one of the glob patterns. A malformed pattern,
/// or one without a match, is an error of `option` that names the nearest names.
mlir::FailureOr<llvm::SetVector<train::ParameterOp>>
parametersNamed(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns,
                llvm::StringRef option);

/// The types of one rank's parameters and states, by symbol: those of their reads and writes, which must
/// agree.
using LocalTypes = llvm::StringMap<mlir::RankedTensorType>;
mlir::FailureOr<LocalTypes> localTypes(mlir::ModuleOp module);
/// The type of a parameter or state; its own type if nothing reads or writes it.
mlir::RankedTensorType localType(const LocalTypes &types, mlir::Operation *symbol);

/// The hyperparameters that one table can hold for all updates, by name: those of the first op that has
/// them, and the first weight decay that is not zero.
std::map<std::string, double> sharedHyperparameters(mlir::ModuleOp module);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_PARAMETERS_H
