//===- Parameters.h - parameters by the names that a user gives ---------------------*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_PARAMETERS_H
#define PARTITA_ANALYSIS_PARAMETERS_H

#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace partita::analysis {

/// The parameters whose names, in the model or in its file, match one of the glob patterns. A pattern that is none,
/// or matches none, is an error of `option` that names the nearest.
mlir::FailureOr<llvm::SetVector<train::ParameterOp>>
parametersNamed(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns,
                llvm::StringRef option);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_PARAMETERS_H
