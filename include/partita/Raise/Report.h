//===- Report.h - what would be raised in a module, and what nearly would -----------*- C++ -*-===//

#ifndef PARTITA_RAISE_REPORT_H
#define PARTITA_RAISE_REPORT_H

#include "mlir/IR/BuiltinOps.h"

namespace partita {

/// Raises a copy of an imported module and writes how many composites became which op, and each one
/// that came close, by its ONNX node's name, with the reason.
mlir::LogicalResult reportRaising(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_RAISE_REPORT_H
