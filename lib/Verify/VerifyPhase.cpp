//===- VerifyPhase.cpp - verify-phase -----------------------------------------------------------===//
//
// What holds after a phase, a row each: what is new there, what has gone, what every op says. A row
// adds to those above it: a dialect stays, and what is gone stays away.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "partita/Verify/Passes.h"

namespace partita {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "partita/Verify/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

using Predicate = bool (*)(Operation *);

struct Contract {
  StringLiteral phase;
  Predicate isKnown; ///< of a dialect that may be there from now on
  Predicate isGone;  ///< may not be there from now on
  Predicate isWrong = nullptr; ///< from now on: no op may be
  StringLiteral has = "";      ///< what such an op has
};

template <typename... Dialects> bool isOf(Operation *op) {
  return isa_and_nonnull<Dialects...>(op->getDialect());
}
template <typename... Ops> bool isOneOf(Operation *op) { return isa<Ops...>(op); }

/// Does it compute values that live in memory? What is inside a kernel lives in registers.
bool isStep(Operation *op) {
  return op->getNumResults() > 0 &&
         isa_and_nonnull<func::FuncOp, train::AccumulateOp>(op->getParentOp());
}

/// What is made from ops of layers is of one as well. A constant that several ops share has no
/// location, and so no layer, by upstream's folders.
bool lacksLayer(Operation *op) {
  return isStep(op) && !op->hasTrait<OpTrait::ConstantLike>() && !train::LayerAttr::of(op) &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           Operation *definer = operand.getDefiningOp();
           return definer && train::LayerAttr::of(definer);
         });
}

bool lacksMemory(Operation *op) {
  return isStep(op) && !op->hasAttr(rt::RtDialect::kBuffers);
}

bool isUnscheduled(Operation *op) {
  auto loop = dyn_cast<train::AccumulateOp>(op);
  return loop && loop.isUnscheduled();
}

const Contract kContracts[] = {
    // par: a module written by hand may place collectives itself
    {"import",
     isOf<BuiltinDialect, func::FuncDialect, train::TrainDialect, tx::TxDialect, par::ParDialect>,
     nullptr},
    {"raise", nullptr, nullptr},
    {"objective", nullptr, nullptr, lacksLayer, "no train.layer"},
    {"precision", nullptr, nullptr},
    {"stages", isOf<pipe::PipeDialect>, nullptr},
    {"partition", nullptr, nullptr},
    {"parameters", isOf<zero::ZeroDialect>, nullptr},
    {"differentiate", isOf<amp::AmpDialect>,
     isOneOf<par::FOp, par::GOp, par::MaxOp, train::MinimizeOp>},
    {"optimize", nullptr, isOneOf<train::UpdateOp>},
    {"states", nullptr, isOneOf<train::GlobalNormOp, train::TrustRatioOp>},
    {"offload", isOf<offload::OffloadDialect>, nullptr},
    {"cut", nullptr, isOneOf<pipe::MoveOp, pipe::ShareOp, pipe::PinOp>},
    {"schedule", nullptr, nullptr, isUnscheduled, "a backward region of its own, and no order"},
    {"fuse", nullptr, nullptr},
    {"overlap", nullptr, nullptr},
    {"memory", nullptr, nullptr, lacksMemory, "no memory (rt.buffers)"},
    {"sync", nullptr, nullptr},
};

/// Of the last phase: emitc, and the declarations of what the program keeps in memory.
bool isEmitted(Operation *op) {
  return isOf<BuiltinDialect, emitc::EmitCDialect>(op) ||
         isOneOf<train::ParameterOp, train::StateOp>(op);
}

struct VerifyPhase : partita::impl::VerifyPhasePassBase<VerifyPhase> {
  using VerifyPhasePassBase::VerifyPhasePassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved(); // nor are ops verified again
    const Contract *last = llvm::find_if(
        kContracts, [&](const Contract &contract) { return contract.phase == after.getValue(); });
    if (last == std::end(kContracts) && after != "lower") {
      getOperation().emitError() << "verify-phase: there is no phase '" << after << "'";
      return signalPassFailure();
    }
    if (last != std::end(kContracts))
      contracts = ArrayRef(std::begin(kContracts), last + 1);
    if (failed(checkEntryPoints()))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](Operation *op) {
      return failed(contracts.empty() ? checkEmitted(op) : check(op)) ? WalkResult::interrupt()
                                                                      : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// A run calls one function for each.
  LogicalResult checkEntryPoints() {
    llvm::SmallDenseMap<train::EntryPoint, Operation *> found;
    for (Operation &op : *getOperation().getBody()) {
      std::optional<train::EntryPoint> entry =
          isa<FunctionOpInterface>(op) ? train::entryPointOf(&op) : std::nullopt;
      if (!entry)
        continue;
      auto [first, isNew] = found.try_emplace(*entry, &op);
      if (!isNew) {
        InFlightDiagnostic error =
            op.emitError() << "is '" << train::nameOf(*entry) << "' of the program, as "
                           << "@" << SymbolTable::getSymbolName(first->second).getValue() << " is";
        return error.attachNote(first->second->getLoc()) << "that one is here", error;
      }
    }
    return success();
  }

  LogicalResult check(Operation *op) const {
    auto any = [&](Predicate Contract::*holds) {
      return llvm::any_of(contracts, [&](const Contract &contract) {
        return contract.*holds && (contract.*holds)(op);
      });
    };
    if (any(&Contract::isGone))
      return op->emitOpError() << "is left after phase '" << after << "'";
    if (!any(&Contract::isKnown))
      return op->emitOpError() << "is of a dialect that phase '" << after << "' does not know";
    for (const Contract &contract : contracts)
      if (contract.isWrong && contract.isWrong(op))
        return op->emitOpError() << "has " << contract.has << " after phase '" << after << "'";
    return success();
  }

  LogicalResult checkEmitted(Operation *op) const {
    return isEmitted(op) ? success() : op->emitOpError() << "is left after phase 'lower'";
  }

  ArrayRef<Contract> contracts; ///< up to the phase's; none after the last
};

} // namespace
