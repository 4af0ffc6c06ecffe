//===- MemoryLimit.h - does the plan fit? -------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORYLIMIT_H
#define PARTITA_TOOLS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Phases/Plan.h"
#include <functional>
#include <optional>

namespace partita::tool {

/// What a plan needs of a rank.
struct Footprint {
  uint64_t bytes = 0; ///< of the device's memory (memory::deviceParts)
  uint64_t host = 0;  ///< of the host's: persistent and pinned
  int64_t sent = 0;   ///< bytes per training step, by the runtime's convention
  int64_t moved = 0;  ///< bytes per training step between device and host
  int64_t flops = 0;  ///< per training step
};

/// The stage whose ranks need the most memory; of a program that is not cut into stages, the program.
mlir::ModuleOp fullestStage(mlir::ModuleOp program);

/// Of a module that has been through phase `memory`; nothing before.
std::optional<Footprint> footprintOf(mlir::ModuleOp module);

/// The model's dimensions, as --dim gives them, and the plan: what a change of memory can change.
struct Request {
  std::vector<std::string> dims;
  Plan plan;
};

/// Compiles the model again as another request has it, silently; nothing where it does not compile.
using Planner = std::function<std::optional<Footprint>(const Request &)>;

/// Compares what `plan-memory` wrote on the module with a limit in bytes per rank. Returns nothing
/// when it fits; else how much is needed, the largest holders, and changes of the request with what
/// each would save and cost, which `planner` has tried: those with which it fits first.
std::string checkMemory(mlir::ModuleOp module, const Request &request, uint64_t limit,
                        const Planner &planner);

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORYLIMIT_H
