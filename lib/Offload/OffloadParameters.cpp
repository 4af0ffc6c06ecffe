//===- OffloadParameters.cpp - offloads parameters --------------------------------------------===//
//
// An update runs on the host if its parameter and all of its states, if any, are offloaded: it uses
// the value in host memory. All other uses get copies on the device, one per block and purpose
// (forward, backward, update). A parameter that is not updated on the host is copied back where it
// is written.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Offload/OffloadWords.h"
#include "partita/Offload/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADPARAMETERSPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using offload::OffloadDialect;

namespace {

struct OffloadParameters : partita::impl::OffloadParametersPassBase<OffloadParameters> {
  using OffloadParametersPassBase::OffloadParametersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (keep < 0) {
      module.emitError() << "keep=" << keep.getValue()
                         << ", expected a number of elements from 0 on";
      return signalPassFailure();
    }
    FailureOr<bool> wanted = offload::names(module, what, "parameters");
    if (failed(wanted))
      return signalPassFailure();
    if (!*wanted)
      return;
    llvm::MapVector<Operation *, SmallVector<train::ReadOp>> reads;
    module.walk([&](train::ReadOp read) {
      auto parameter =
          SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(read, read.getSymbolAttr());
      if (parameter && cast<RankedTensorType>(read.getType()).getNumElements() > keep)
        reads[parameter].push_back(read);
    });
    if (reads.empty()) {
      module.emitWarning() << "offload: parameters: none has more than " << int64_t(keep)
                           << " elements, --persistence-threshold's, so all stay on the device";
      return;
    }
    parameters += reads.size();
    for (auto &[parameter, list] : reads)
      parameter->setAttr(OffloadDialect::kHost, UnitAttr::get(&getContext()));
    for (auto &[parameter, list] : reads)
      llvm::for_each(list, fetch);
    module.walk([&](train::WriteOp write) { bringBack(write); });
  }

private:
  /// Returns true if the use is the value of an update whose states are all on the host.
  static bool isForHost(OpOperand &use) {
    auto update = dyn_cast<train::OptimizerInterface>(use.getOwner());
    return update && use.getOperandNumber() == update.kValue &&
           llvm::all_of(train::stateSymbols(update), offload::livesOnHost);
  }

  /// Returns the purpose of a use; a shard is taken for an update.
  static StringRef purposeOf(Operation *user) {
    if (isa<train::OptimizerInterface, zero::ShardOp>(user))
      return "update";
    return provenance::isBackward(user) ? "backward" : "";
  }

  /// Returns true if the op uses another offloaded parameter.
  static bool needsOther(Operation &op, train::ReadOp read) {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      FlatSymbolRefAttr name = train::parameterReadBy(operand);
      return name && name != read.getSymbolAttr() &&
             offload::livesOnHost(SymbolTable::lookupNearestSymbolFrom(&op, name));
    });
  }

  using Uses = SmallVector<OpOperand *>;

  /// Returns the first user; all are in one block.
  static Operation *firstOf(const Uses &uses) {
    auto before = [](OpOperand *a, OpOperand *b) {
      return a->getOwner()->isBeforeInBlock(b->getOwner());
    };
    return (*llvm::min_element(uses, before))->getOwner();
  }

  static Value copyFor(train::ReadOp read, const Uses &uses, StringRef purpose) {
    Operation *first = firstOf(uses);
    OpBuilder builder(first);
    Location loc =
        provenance::isBackward(first) ? provenance::backward(read.getLoc()) : read.getLoc();
    auto copy = offload::ToDeviceOp::create(builder, loc, read.getType(), read,
                                            purpose.empty() ? StringAttr()
                                                            : builder.getStringAttr(purpose));
    for (OpOperand *use : uses)
      use->set(copy);
    return copy;
  }

  /// The backward pass starts with the parameter with which the forward pass ends. Saves that copy,
  /// since dropping it and fetching another one would free nothing in between. Returns true if it
  /// did.
  static bool savesCopy(train::ReadOp read, Value copy, const Uses &backward) {
    auto loop = dyn_cast<train::AccumulateOp>(copy.getDefiningOp()->getParentOp());
    if (!loop || !loop.hasBackward())
      return false;
    Block &block = loop.getBackward().front();
    if (backward.front()->getOwner()->getBlock() != &block ||
        llvm::any_of(llvm::make_range(block.begin(), firstOf(backward)->getIterator()),
                     [&](Operation &op) { return needsOther(op, read); }))
      return false;
    for (OpOperand *use : backward)
      use->set(loop.save(copy));
    return true;
  }

  static void fetch(train::ReadOp read) {
    llvm::MapVector<std::pair<Block *, StringRef>, Uses> uses;
    for (OpOperand &use : read->getUses())
      if (isForHost(use))
        use.getOwner()->setAttr(OffloadDialect::kOnHost, UnitAttr::get(read.getContext()));
      else
        uses[{use.getOwner()->getBlock(), purposeOf(use.getOwner())}].push_back(&use);
    SmallVector<Value> copies;
    for (auto &[where, list] : uses)
      if (where.second.empty())
        copies.push_back(copyFor(read, list, where.second));
    for (auto &use : uses) {
      const Uses &list = use.second;
      StringRef purpose = use.first.second;
      if (!purpose.empty() &&
          llvm::none_of(copies, [&](Value copy) { return savesCopy(read, copy, list); }))
        copyFor(read, list, purpose);
    }
  }

  /// Copies a written value to the host if the parameter is there.
  static void bringBack(train::WriteOp write) {
    Operation *symbol = SymbolTable::lookupNearestSymbolFrom(write, write.getSymbolAttr());
    if (!offload::livesOnHost(symbol) || offload::isOnHost(write.getValue()) ||
        write.getValue().getDefiningOp<train::InitialValueOp>())
      return;
    OpBuilder builder(write);
    auto copy = offload::ToHostOp::create(builder, write.getLoc(), write.getValue().getType(),
                                          write.getValue());
    write->setOperand(0, copy);
  }
};

} // namespace
