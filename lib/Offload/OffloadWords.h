//===- OffloadWords.h - the keywords of --offload -----------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H
#define PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::offload {
/// Returns whether `word` is among `what`. Fails after an error if `what` has an unknown keyword.
mlir::FailureOr<bool> names(mlir::ModuleOp module, llvm::ArrayRef<std::string> what,
                            llvm::StringRef word);
} // namespace partita::offload

#endif // PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H
