//===- Pipe.cpp - between pipeline stages -----------------------------------------------------===//
//
// A message is sent from where its value stands and received where plan-memory said; what several
// stages add up is summed in place, as over the ranks of a stage.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Messages.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

template <typename Op, typename Call>
LogicalResult lowerMessage(Op op, Lowering &l, Value buffer) {
  pipe::ChannelAttr channel = op.getChannel();
  l.create<Call>(buffer, l.elements(op.getValue()), channel.getFrom(), channel.getTo(),
                 channel.getNumber(), analysis::Message::nameOf(op));
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
    std::optional<int64_t> count = pipe::stageCount(op);
    if (!count)
      return op->emitOpError() << "is of no stage; run pipe-cut first";
    if (l.type(sum.getValue()).getElementType().isInteger(1))
      return op->emitOpError() << "adds up numbers, not " << l.type(sum.getValue()).getElementType();
    ArrayRef<int64_t> stages = sum.getStages();
    bool all = static_cast<int64_t>(stages.size()) == *count;
    l.create<SumStagesOp>(l.summed(), ArrayRef(l.elements(sum.getValue())), sum.getAxisAttr(),
                          all ? ArrayRef<int64_t>() : stages, analysis::nameOf(op), "");
    return success();
  }
};

} // namespace

void rt::attachMessages(MLIRContext *context) {
  pipe::SendOp::attachInterface<Send>(*context);
  pipe::RecvOp::attachInterface<Recv>(*context);
  pipe::SumOp::attachInterface<Sum>(*context);
}
