//===- MemoryLimit.h - does the plan fit? -------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORYLIMIT_H
#define PARTITA_TOOLS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Phases/Plan.h"
#include <functional>
#include <optional>
#include <vector>

namespace partita::tool {

/// The resources that a rank needs under a plan.
struct Footprint {
  uint64_t bytes = 0; ///< of the device's memory (memory::deviceParts), of the fullest stage
  std::optional<int64_t> stage; ///< the fullest one; none without stages
  // Each of the stage that has most:
  uint64_t host = 0; ///< host memory: persistent and pinned
  int64_t sent = 0;  ///< bytes per training step, by the runtime's convention
  int64_t moved = 0; ///< bytes per training step between device and host
  int64_t flops = 0; ///< per training step
  /// The tokens whose logits exist at once, where the limit has lowered them (size-classifier), and
  /// the target's; else 0.
  int64_t classifierTokens = 0, usualClassifierTokens = 0;
  /// For a program of pipeline stages, the bytes that each stage's ranks need, and its first layer.
  std::vector<uint64_t> ofStages;
  std::vector<int64_t> cuts;
};

/// Returns the stage whose ranks need the most memory; the program itself if it is not cut into
/// stages.
mlir::ModuleOp fullestStage(mlir::ModuleOp program);

/// Returns the footprint of a program that has been through phase `memory`; nothing before. For
/// pipeline stages, that of the fullest one.
std::optional<Footprint> footprintOf(mlir::ModuleOp program);
/// Updates the bytes of device memory, to which a later phase may have added.
void measureAgain(mlir::ModuleOp program, Footprint &footprint);

/// The model's dimensions, as --dim gives them, and the plan: the inputs that a change can affect.
struct Request {
  std::vector<std::string> dims;
  Plan plan;
};

/// Compiles the model again for another request, silently; returns nothing if it does not compile.
using Planner = std::function<std::optional<Footprint>(const Request &)>;

/// Compares the results of `plan-memory` on the module with a limit in bytes per rank. Returns ""
/// if it fits; else the memory needed, the largest holders, and changes of the request with their
/// savings and costs, which `planner` has tried, those that fit first. `cuts`: the end of a
/// sentence about other cuts into pipeline stages.
std::string checkMemory(mlir::ModuleOp module, const Request &request, uint64_t limit,
                        const Planner &planner, llvm::StringRef cuts = "");

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORYLIMIT_H
