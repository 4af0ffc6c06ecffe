//===- MemoryLimit.h - does the plan fit? -------------------------------------------------------*-
//C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORYLIMIT_H
#define PARTITA_TOOLS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Pipelines/Plan.h"

namespace partita::tool {

/// Compares what `plan-memory` wrote on the module with a limit in bytes per rank. Returns nothing
/// when it fits; else how much is needed, the largest holders and the cheapest change of the plan
/// that would make it fit.
std::string checkMemory(mlir::ModuleOp module, const Plan &plan, uint64_t limit);

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORYLIMIT_H
