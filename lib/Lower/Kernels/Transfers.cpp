//===- Transfers.cpp - copies between host and device -----------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

int64_t copiedBytes(Operation *op) { return bytesOf(op->getOperand(0).getType()); }

/// What is copied is dense: results are, and a view's users here do not take its strides.
template <typename Op, bool toHost>
struct Copy : KernelInterface::ExternalModel<Copy<Op, toHost>, Op> {
  Space resultSpace(Operation *, unsigned) const { return toHost ? Space::Pinned : Space::Arena; }
  StringRef resultName(Operation *, unsigned) const { return toHost ? "host" : "device"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    bool starts = op->getNumResults() == 2;
    std::string pending = starts ? namePending(op, l) : "";
    l.create<TransferOp>(l.result(op->getNumResults() - 1), l.operand(0), copiedBytes(op), toHost,
                         pending);
    return success();
  }
};

struct Wait : KernelInterface::ExternalModel<Wait, offload::WaitOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {1}; }
  Space resultSpace(Operation *op, unsigned) const {
    return offload::isOnHost(op->getResult(0)) ? Space::Pinned : Space::Arena;
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    StringAttr pending = pendingOf(op->getOperand(0).getDefiningOp());
    if (!pending)
      return op->emitOpError() << "waits for no copy of this function";
    l.create<TransferWaitOp>(pending);
    Value buffer = op->getOperand(1), result = op->getResult(0);
    if (!l.samePlace(buffer, result))
      l.copy(l.buffer(result), l.view(result), buffer);
    return success();
  }
};

} // namespace

void rt::attachTransfers(MLIRContext *context) {
  using namespace offload;
  ToHostOp::attachInterface<Copy<ToHostOp, true>>(*context);
  ToHostStartOp::attachInterface<Copy<ToHostStartOp, true>>(*context);
  ToDeviceOp::attachInterface<Copy<ToDeviceOp, false>>(*context);
  ToDeviceStartOp::attachInterface<Copy<ToDeviceStartOp, false>>(*context);
  offload::WaitOp::attachInterface<::Wait>(*context);
}
