//===- IdleOptions.h - options of the plan that do nothing ------------------------------*- C++ -*-===//
//
// Some options are found without effect only by the pass that applies them. Where stages are compiled
// one by one, another stage may have what the option applies to, so a stage only records it.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_IDLEOPTIONS_H
#define PARTITA_ANALYSIS_IDLEOPTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::analysis {

/// Reports that a plan's option has no effect on a program, because of `reason`; records it on a
/// stage (pipe.idle), and succeeds.
mlir::LogicalResult reportIdle(mlir::ModuleOp module, llvm::StringRef option,
                               llvm::StringRef reason);

/// Reports an option that all stages of the program record.
mlir::LogicalResult checkIdle(mlir::ModuleOp program);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_IDLEOPTIONS_H
