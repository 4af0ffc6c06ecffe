//===- Functions.cpp - attributes of entry points -------------------------------------------------===//
//
// Attributes say which entry point a function is, and which of its inputs have a batch dimension. The
// last phase reads them, and an edit of a file may lose them.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Verify/Functions.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace partita;
using train::TrainDialect;

LogicalResult partita::checkEntryPoints(ModuleOp module) {
  llvm::SmallDenseMap<train::EntryPoint, Operation *> found;
  for (Operation &op : *module.getBody()) {
    std::optional<train::EntryPoint> entry =
        isa<FunctionOpInterface>(op) ? train::entryPointOf(&op) : std::nullopt;
    if (!entry)
      continue;
    auto [first, isNew] = found.try_emplace(*entry, &op);
    if (!isNew) {
      InFlightDiagnostic error = op.emitError()
                                 << "is entry point '" << train::nameOf(*entry)
                                 << "' of the program, but so is @"
                                 << SymbolTable::getSymbolName(first->second).getValue();
      return error.attachNote(first->second->getLoc()) << "the other one is here", error;
    }
  }
  return success();
}

/// Returns whether an axis of data parallelism splits the tensor.
static bool isSplitByBatch(RankedTensorType type) {
  return llvm::any_of(par::Layout::of(type).splits, [](const auto &splits) {
    return llvm::any_of(splits, [](const auto &split) { return par::splitsBatch(split.axis); });
  });
}

/// Returns what shows that input `i`, which has no train.batch, is of the batch, or "". The objective
/// marks the first input that has a dimension of samples, and all that have as many samples.
static StringRef batchProblem(func::FuncOp function, train::EntryPoint entry, unsigned i) {
  auto typeOf = [&](unsigned number) {
    return dyn_cast<RankedTensorType>(function.getArgumentTypes()[number]);
  };
  RankedTensorType type = typeOf(i);
  if (!type)
    return "";
  if (isSplitByBatch(type))
    return "and its type is split over data-parallel ranks";
  auto sizeOf = [](RankedTensorType type, int64_t dim) {
    return type && dim >= 0 && dim < type.getRank() ? par::fullType(type).getDimSize(dim) : -1;
  };
  bool isAny = false;
  for (unsigned other = 0; other < function.getNumArguments(); ++other)
    if (auto batch = function.getArgAttrOfType<IntegerAttr>(other, TrainDialect::kBatch)) {
      isAny = true;
      int64_t size = sizeOf(typeOf(other), batch.getInt());
      if (size >= 0 && size == sizeOf(type, batch.getInt()))
        return "and has as many samples as an argument that has it";
    }
  auto module = function->getParentOfType<ModuleOp>();
  // A stage may have none of the program's inputs, or only others.
  bool isOfObjective = module->hasAttr(TrainDialect::kObjective) && !pipe::stageOf(module);
  int64_t microBatches = entry == train::EntryPoint::TrainStep;
  if (!isAny && isOfObjective && type.getRank() > microBatches)
    return "nor has any other";
  return "";
}

LogicalResult partita::checkBatches(ModuleOp module, StringRef after) {
  for (auto function : module.getOps<func::FuncOp>()) {
    std::optional<train::EntryPoint> entry = train::entryPointOf(function);
    for (unsigned i = 0; entry && i < function.getNumArguments(); ++i) {
      if (function.getArgAttr(i, TrainDialect::kBatch))
        continue;
      if (StringRef problem = batchProblem(function, *entry, i); !problem.empty())
        return function.emitError()
               << "argument " << i << " of @" << function.getName() << " has no "
               << TrainDialect::kBatch << " after phase '" << after << "', " << problem;
    }
  }
  return success();
}

LogicalResult partita::checkCalled(ModuleOp module, StringRef after) {
  SmallVector<func::FuncOp> reached;
  llvm::SmallPtrSet<Operation *, 8> known;
  for (auto function : module.getOps<func::FuncOp>())
    if (train::entryPointOf(function) && known.insert(function).second)
      reached.push_back(function);
  if (reached.empty()) // a fragment
    return success();
  while (!reached.empty())
    reached.pop_back_val().walk([&](CallOpInterface call) {
      auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
      if (callee && known.insert(callee).second)
        reached.push_back(callee);
    });
  for (auto function : module.getOps<func::FuncOp>())
    if (!known.contains(function))
      return function.emitError() << "@" << function.getName()
                                  << " is not an entry point of the program, nor does one "
                                  << "call it, after phase '" << after
                                  << "'; give it its train.entry_point, or remove it";
  return success();
}
