//===- MemoryLimit.h - does the plan fit? -------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORYLIMIT_H
#define PARTITA_TOOLS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Phases/Plan.h"
#include <functional>
#include <optional>
#include <vector>

namespace partita::tool {

/// What a plan needs of a rank.
struct Footprint {
  uint64_t bytes = 0; ///< of the device's memory (memory::deviceParts)
  uint64_t host = 0;  ///< of the host's: persistent and pinned
  int64_t sent = 0;   ///< bytes per training step, by the runtime's convention
  int64_t moved = 0;  ///< bytes per training step between device and host
  int64_t flops = 0;  ///< per training step
  /// Of a program of pipeline stages, what each stage's ranks need, and its first layer.
  std::vector<uint64_t> ofStages;
  std::vector<int64_t> cuts;
};

/// The stage whose ranks need the most memory; of a program that is not cut into stages, the program.
mlir::ModuleOp fullestStage(mlir::ModuleOp program);

/// Of a program that has been through phase `memory`; nothing before. Of pipeline stages it is the fullest one's.
std::optional<Footprint> footprintOf(mlir::ModuleOp program);
/// What it needs of the device, again, where a later phase has added to it.
void measureAgain(mlir::ModuleOp program, Footprint &footprint);

/// The model's dimensions, as --dim gives them, and the plan: what a change of memory can change.
struct Request {
  std::vector<std::string> dims;
  Plan plan;
};

/// Compiles the model again as another request has it, silently; nothing where it does not compile.
using Planner = std::function<std::optional<Footprint>(const Request &)>;

/// Compares what `plan-memory` wrote on the module with a limit in bytes per rank. Returns nothing
/// when it fits; else how much is needed, the largest holders, and changes of the request with what
/// each would save and cost, which `planner` has tried: those with which it fits first. `cuts`: what is
/// known of other cuts into pipeline stages, as a part of the sentence.
std::string checkMemory(mlir::ModuleOp module, const Request &request, uint64_t limit,
                        const Planner &planner, llvm::StringRef cuts = "");

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORYLIMIT_H
