//===- Transfers.cpp - copies between host and device -----------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "lib/Lower/Kernels/Wait.h"
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
    l.create<TransferOp>(l.result(op->getNumResults() - 1), l.operand(0), copiedBytes(op), toHost,
                         l.pendingOf(op));
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
  offload::WaitOp::attachInterface<WaitModel<offload::WaitOp>>(*context);
}
