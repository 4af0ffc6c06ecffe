//===- Parameters.h - parameters by name, their shards and updates ------------------*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_PARAMETERS_H
#define PARTITA_ANALYSIS_PARAMETERS_H

#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <string>

namespace partita::analysis {

/// Returns the parameters whose names, in the model or in its file, match one of the glob patterns.
/// Reports a malformed pattern, or one without a match, as an error of `option` with the nearest
/// names.
mlir::FailureOr<llvm::SetVector<train::ParameterOp>>
parametersNamed(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns,
                llvm::StringRef option);

/// Reports the first of these patterns that names no parameter for which `matters` holds; `otherwise`: what holds for those it names.
llvm::LogicalResult checkNamed(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns,
                               llvm::StringRef option,
                               llvm::function_ref<bool(train::ParameterOp)> matters,
                               llvm::StringRef otherwise);

/// The types of one rank's parameters and states, by symbol: those of their reads and writes, which
/// must agree.
using LocalTypes = llvm::StringMap<mlir::RankedTensorType>;
mlir::FailureOr<LocalTypes> localTypes(mlir::ModuleOp module);
/// Returns the type of a parameter or state; its own type if nothing reads or writes it.
mlir::RankedTensorType localType(const LocalTypes &types, mlir::Operation *symbol);

/// Returns, by name, the hyperparameters that one table can hold for all updates: those of the
/// first op that has them, and the first weight decay that is not zero.
std::map<std::string, double> sharedHyperparameters(mlir::ModuleOp module);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_PARAMETERS_H
