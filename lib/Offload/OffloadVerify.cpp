//===- OffloadVerify.cpp - checks which ops access host memory --------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Train/Train.h"
#include "partita/Offload/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADVERIFYPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct OffloadVerify : partita::impl::OffloadVerifyPassBase<OffloadVerify> {
  void runOnOperation() override {
    markAllAnalysesPreserved(); // ops are not verified again, either
    WalkResult any = getOperation().walk([](Operation *op) {
      bool hosts = offload::livesOnHost(op) || offload::isMadeOnHost(op) ||
                   isa_and_nonnull<offload::OffloadDialect>(op->getDialect());
      return hosts ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!any.wasInterrupted()) // looking up symbols for all operands of a deep model takes time
      return;
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      for (OpOperand &operand : op->getOpOperands())
        if (failed(check(operand)))
          return failure();
      return success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  static Operation *symbolOf(train::WriteOp write) {
    return SymbolTable::lookupNearestSymbolFrom(write, write.getSymbolAttr());
  }

  static LogicalResult check(OpOperand &operand) {
    Operation *op = operand.getOwner();
    bool onHost = offload::isOnHost(operand.get());
    if (auto write = dyn_cast<train::WriteOp>(op)) {
      if (onHost == offload::livesOnHost(symbolOf(write)) ||
          operand.get().getDefiningOp<train::InitialValueOp>())
        return success();
      return refuse(operand, onHost ? "on the host to what lives on the device"
                                    : "on the device to what lives on the host");
    }
    if (std::optional<offload::Direction> direction = offload::directionOf(op)) {
      if (*direction == offload::Direction::ToHost)
        return onHost ? refuse(operand, "that is on the host already") : success();
      return onHost ? success() : refuse(operand, "that is on the device already");
    }
    auto update = dyn_cast<train::OptimizerInterface>(op);
    if (update && offload::isMadeOnHost(op) && !onHost &&
        llvm::is_contained(update.getStateValues(), operand.get()))
      return refuse(operand, "that is on the device; the host updates states that it keeps");
    if (!onHost || isa<AsyncWaitInterface>(op) || isHostsOwn(operand) || isSaved(operand))
      return success();
    return refuse(operand, "that is on the host; it needs an offload.to_device");
  }

  /// An update on the host reads its value and states there, but not the gradient.
  static bool isHostsOwn(OpOperand &operand) {
    Operation *op = operand.getOwner();
    return offload::isMadeOnHost(op) && operand.getOperandNumber() != 1;
  }

  /// Returns true for a value on the host that is saved for the backward pass.
  static bool isSaved(OpOperand &operand) {
    auto yield = dyn_cast<train::YieldOp>(operand.getOwner());
    return yield && operand.getOperandNumber() >= yield.getValues().size();
  }

  static LogicalResult refuse(OpOperand &operand, StringRef what) {
    InFlightDiagnostic error = operand.getOwner()->emitOpError()
                               << "takes as operand " << operand.getOperandNumber() << " a value "
                               << what;
    if (Operation *definer = operand.get().getDefiningOp())
      error.attachNote(definer->getLoc()) << "it comes from here";
    return error;
  }
};

} // namespace
