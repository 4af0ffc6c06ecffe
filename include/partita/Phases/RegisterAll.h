//===- RegisterAll.h - everything that a tool of Partita knows ----------------------*- C++ -*-===//

#ifndef PARTITA_PHASES_REGISTERALL_H
#define PARTITA_PHASES_REGISTERALL_H

#include "mlir/IR/DialectRegistry.h"

namespace partita {

/// All dialects into `registry`; all passes of all folders, upstream's transforms and the pipelines
/// of Phases.h into MLIR's registries. May be called once per process.
void registerEverything(mlir::DialectRegistry &registry);

} // namespace partita

#endif // PARTITA_PHASES_REGISTERALL_H
