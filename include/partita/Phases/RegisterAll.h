//===- RegisterAll.h - registers all dialects, passes and pipelines -----------------*- C++ -*-===//

#ifndef PARTITA_PHASES_REGISTERALL_H
#define PARTITA_PHASES_REGISTERALL_H

#include "mlir/IR/DialectRegistry.h"

namespace partita {

/// Registers all dialects in `registry`, and all passes of all folders, upstream's transforms and
/// the pipelines of Phases.h with MLIR. May be called once per process.
void registerEverything(mlir::DialectRegistry &registry);

} // namespace partita

#endif // PARTITA_PHASES_REGISTERALL_H
