//===- MemoryLimit.h - does the plan fit? -------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_MEMORYLIMIT_H
#define PARTITA_TOOLS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Pipelines/Plan.h"
#include <functional>
#include <optional>

namespace partita::tool {

/// Bytes of a rank by the plan of memory on a module; nothing before phase `memory`.
std::optional<uint64_t> plannedBytes(mlir::ModuleOp module);

/// The model's dimensions, as --dim gives them, and the plan: what a change of memory can change.
struct Request {
  std::vector<std::string> dims;
  Plan plan;
};

/// Compiles the model again as another request has it, silently, and returns its bytes per rank;
/// nothing where it does not compile.
using Planner = std::function<std::optional<uint64_t>(const Request &)>;

/// Compares what `plan-memory` wrote on the module with a limit in bytes per rank. Returns nothing
/// when it fits; else how much is needed, the largest holders and the cheapest change of the
/// request with which it fits, which `planner` has tried.
std::string checkMemory(mlir::ModuleOp module, const Request &request, uint64_t limit,
                        const Planner &planner);

} // namespace partita::tool

#endif // PARTITA_TOOLS_MEMORYLIMIT_H
