//===- SyncEach.h - how often stages 2 and 3 communicate ------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_ZERO_SYNCEACH_H
#define PARTITA_LIB_ZERO_SYNCEACH_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace partita::zero {

inline llvm::LogicalResult checkSyncEach(mlir::Operation *module, llvm::StringRef value) {
  if (value == "micro-batch" || value == "step")
    return llvm::success();
  return module->emitError() << "sync-each=" << value << ", expected micro-batch or step";
}

} // namespace partita::zero

#endif // PARTITA_LIB_ZERO_SYNCEACH_H
