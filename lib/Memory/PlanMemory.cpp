//===- PlanMemory.cpp - plan-memory -----------------------------------------------------------===//
//
// Lays out persistent memory first, on device and host: one place per parameter and state, the same
// in all functions, those that fill cache lines first. Then plans each function by itself
// (Plan.cpp, Offsets.cpp). The arena has the size that the largest function needs. The results are
// attributes, which `lower-to-rt` and the ledger read.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Memory/Passes.h"
#include "partita/Memory/Plan.h"
#include "partita/Support/StableSort.h"

namespace partita {
#define GEN_PASS_DEF_PLANMEMORY
#include "partita/Memory/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::memory;
using rt::AtAttr;
using rt::RtDialect;
using rt::Space;

/// Checks that all tensors have a known size; a token is the only other value allowed.
static LogicalResult checkPlannable(func::FuncOp function) {
  if (function.isExternal())
    return function.emitError() << "@" << function.getName() << " has no body to plan memory for";
  auto isPlain = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat();
  };
  for (BlockArgument argument : function.getArguments())
    if (!isPlain(argument.getType()))
      return function.emitError() << "argument " << argument.getArgNumber() << " of @"
                                  << function.getName() << " is of type " << argument.getType()
                                  << "; memory is planned for tensors of known size only";
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    for (Value value : op->getResults())
      if (isa<ShapedType>(value.getType()) && !isPlain(value.getType()))
        return op->emitOpError() << "makes a " << value.getType()
                                 << "; memory is planned for tensors of known size only";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct PlanMemory : partita::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    if (failed(expectScheduled(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    persistent.clear(); // the pass may have run on another stage
    persistentBytes = hostBytes = 0;
    if (failed(layOutPersistent(module)))
      return signalPassFailure();
    Builder b(module.getContext());
    // A program that trains calls @forward only on request, and its outputs may be large.
    bool trains = train::lookup(module, train::EntryPoint::TrainStep) != nullptr;
    int64_t arena = 0, forwardArena = 0, pinned = 0;
    SmallVector<Attribute> ledgers;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (failed(checkPlannable(function)))
        return signalPassFailure();
      FailureOr<FunctionPlan> plan = planFunction(function, persistent);
      if (failed(plan))
        return signalPassFailure();
      assignOffsets(*plan);
      if (rt::Target::of(module).queuesWork())
        keepForUpdates(function, *plan);
      int64_t &largest =
          trains && train::is(function, train::EntryPoint::Forward) ? forwardArena : arena;
      largest = std::max(largest, plan->arenaBytes);
      pinned = std::max(pinned, plan->pinnedBytes);
      attach(*plan);
      llvm::append_range(ledgers, ledgersOf(function, *plan));
      views += plan->views;
      copies += plan->copies;
      inPlace += plan->inPlace;
    }
    module->setAttr(RtDialect::kArenaBytes, b.getI64IntegerAttr(arena));
    if (forwardArena > arena)
      module->setAttr(RtDialect::kForwardArenaBytes, b.getI64IntegerAttr(forwardArena));
    module->setAttr(RtDialect::kPersistentBytes, b.getI64IntegerAttr(persistentBytes));
    for (auto [name, bytes] :
         {std::pair(RtDialect::kHostBytes, hostBytes), {RtDialect::kPinnedBytes, pinned}})
      if (bytes > 0)
        module->setAttr(name, b.getI64IntegerAttr(bytes));
    module->setAttr(RtDialect::kLedger, b.getArrayAttr(ledgers));
  }

private:
  LogicalResult layOutPersistent(ModuleOp module) {
    FailureOr<analysis::LocalTypes> types = analysis::localTypes(module);
    if (failed(types))
      return failure();
    SmallVector<std::pair<Operation *, RankedTensorType>> symbols;
    for (Operation &op : *module.getBody()) {
      if (!isa<train::ParameterOp, train::StateOp>(op))
        continue;
      RankedTensorType local = analysis::localType(*types, &op);
      if (!local.hasStaticShape() || !local.getElementType().isIntOrFloat())
        return op.emitOpError() << "is of type " << local
                                << "; memory is planned for tensors of known size only";
      symbols.push_back({&op, local});
    }
    auto bytesOf = [](auto symbol) { return rt::bytesInMemory(symbol.first, symbol.second); };
    stableSort(symbols, [&](auto a, auto b) { // full cache lines first
      return bytesOf(a) % kAlignment == 0 && bytesOf(b) % kAlignment != 0;
    });
    // What other pipeline stages have, too, comes first, at an offset that is free on all of them.
    auto sharedAt = [](Operation *op) {
      return op->getAttrOfType<IntegerAttr>(pipe::PipeDialect::kOffset);
    };
    for (auto [op, local] : symbols)
      if (IntegerAttr offset = sharedAt(op))
        place(op, local, offset.getInt());
    for (auto [op, local] : symbols)
      if (!sharedAt(op))
        place(op, local, offload::livesOnHost(op) ? hostBytes : persistentBytes);
    return success();
  }

  void place(Operation *op, RankedTensorType local, int64_t offset) {
    int64_t bytes = rt::bytesInMemory(op, local);
    bool onHost = offload::livesOnHost(op);
    Space space = onHost ? Space::Host : Space::Persistent;
    persistent[SymbolTable::getSymbolName(op)] = {space, offset, bytes};
    op->setAttr(RtDialect::kAt, AtAttr::get(&getContext(), space, offset, {}));
    op->setAttr(RtDialect::kLocal, TypeAttr::get(local));
    int64_t &end = onHost ? hostBytes : persistentBytes;
    end = std::max(end, offset + alignPersistent(bytes));
  }

  AtAttr at(const FunctionPlan &plan, const Place &place, RankedTensorType type) {
    if (place.storage < 0)
      return AtAttr::get(&getContext(), Space::None, 0, {});
    const Storage &storage = plan.storages[place.storage];
    int64_t offset = storage.offset;
    if (rt::hasOffsets(storage.space))
      offset += place.view.offset * rt::elementBytes(type.getElementType());
    return AtAttr::get(&getContext(), storage.space, offset,
                       place.view.isDense() ? ArrayRef<int64_t>()
                                            : ArrayRef<int64_t>(place.view.strides));
  }

  void attach(const FunctionPlan &plan) {
    if (InFlight inFlight = plan.inFlight; inFlight.loop) {
      SmallVector<rt::InFlightAttr::Ring> rings;
      for (const InFlight::Ring &ring : inFlight.rings)
        rings.push_back({ring.blocks, ring.bytes, ring.offset, ring.space == Space::Pinned});
      inFlight.loop->setAttr(RtDialect::kInFlight, rt::InFlightAttr::get(&getContext(), rings));
    }
    for (auto [op, number] : plan.number) {
      SmallVector<Attribute> places;
      for (Value result : op->getResults())
        if (auto found = plan.places.find(result); found != plan.places.end())
          places.push_back(at(plan, found->second, cast<RankedTensorType>(result.getType())));
      if (auto into = plan.operandsInto.find(op); into != plan.operandsInto.end()) {
        places.clear();
        for (auto [operand, storage] : llvm::zip(op->getOperands(), into->second)) {
          Place place = plan.places.lookup(operand);
          auto type = cast<RankedTensorType>(operand.getType());
          if (place.storage != storage)
            place = {storage, rt::View::dense(type.getShape())};
          places.push_back(at(plan, place, type));
        }
      }
      if (!places.empty())
        op->setAttr(RtDialect::kBuffers, ArrayAttr::get(&getContext(), places));
      if (auto scratch = plan.workspace.find(op); scratch != plan.workspace.end())
        op->setAttr(RtDialect::kWorkspace,
                    AtAttr::get(&getContext(), plan.storages[scratch->second].space,
                                plan.storages[scratch->second].offset, {}));
    }
  }

  llvm::StringMap<Persistent> persistent;
  int64_t persistentBytes = 0, hostBytes = 0;
};

} // namespace
