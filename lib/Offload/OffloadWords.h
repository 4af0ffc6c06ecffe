//===- OffloadWords.h - the words of --offload --------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H
#define PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H

#include "mlir/IR/BuiltinOps.h"

namespace partita::offload {
/// Is `word` one of `what`? Every word must be one that there is; what is not is reported.
mlir::FailureOr<bool> names(mlir::ModuleOp module, llvm::ArrayRef<std::string> what,
                            llvm::StringRef word);
} // namespace partita::offload

#endif // PARTITA_LIB_OFFLOAD_OFFLOADWORDS_H
