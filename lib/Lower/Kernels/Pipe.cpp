//===- Pipe.cpp - between pipeline stages -----------------------------------------------------===//
//
// A message is sent from where its value stands and received where plan-memory said; what several
// stages add up is summed in place, as over the ranks of a stage.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Messages.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

template <typename Op, typename Call> LogicalResult lowerMessage(Op op, Lowering &l, Value buffer) {
  l.create<Call>(buffer, l.microBatch(), l.elements(op.getValue()),
                 analysis::channelOf(op.getChannel()), analysis::Message::nameOf(op));
  return success();
}

struct Send : KernelInterface::ExternalModel<Send, pipe::SendOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerMessage<pipe::SendOp, rt::SendOp>(cast<pipe::SendOp>(op), l, l.operand(0));
  }
};

struct Recv : KernelInterface::ExternalModel<Recv, pipe::RecvOp> {
  StringRef resultName(Operation *, unsigned) const { return "received"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerMessage<pipe::RecvOp, ReceiveOp>(cast<pipe::RecvOp>(op), l, l.result(0));
  }
};

struct Sum : KernelInterface::ExternalModel<Sum, pipe::SumOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "sum"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto sum = cast<pipe::SumOp>(op);
    if (!pipe::stageCount(op))
      return op->emitOpError() << "is of no stage; run pipe-cut first";
    if (l.type(sum.getValue()).getElementType().isInteger(1))
      return op->emitOpError() << "adds up numbers, not "
                               << l.type(sum.getValue()).getElementType();
    l.create<AllReduceOp>(l.summed(), ArrayRef(l.elements(sum.getValue())),
                          analysis::communicatorOf(sum), analysis::nameOf(op), "");
    return success();
  }
};

} // namespace

void rt::attachMessages(MLIRContext *context) {
  pipe::SendOp::attachInterface<Send>(*context);
  pipe::RecvOp::attachInterface<Recv>(*context);
  pipe::SumOp::attachInterface<Sum>(*context);
}
