//===- Collectives.cpp - sums over ranks, shards and full values ------------------------------===//
//
// A collective works in the memory that `plan-memory` chose, its operands' own wherever nobody else
// looks at it; where it is another, the operand is copied first.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Collectives.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "lib/Lower/Kernels/Wait.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

FailureOr<int64_t> rt::groupOf(Operation *op, StringRef axis) {
  auto mesh = par::MeshAttr::of(op);
  for (auto [i, name] : llvm::enumerate(mesh.getAxes()))
    if (name.getValue() == axis)
      return pipe::axisNumber(op, static_cast<int64_t>(i));
  return op->emitOpError() << "is over axis '" << axis << "', which the mesh " << mesh
                           << " does not have";
}

LogicalResult rt::lowerWait(Operation *op, Lowering &l) {
  auto wait = cast<AsyncWaitInterface>(op);
  AsyncStartInterface start = wait.getStart();
  std::string pending = l.pendingOf(start);
  if (isa<offload::CopyInterface>(start.getOperation()))
    l.create<TransferWaitOp>(pending);
  else
    l.create<rt::WaitOp>(pending);
  if (start.worksInOperands())
    return success();
  for (auto [filled, result] : llvm::zip_equal(wait.getFilled(), op->getResults()))
    if (!l.samePlace(filled, result))
      l.copy(l.buffer(result), l.view(result), filled);
  return success();
}

namespace {

/// Integers are summed like floats; truth values have no sum.
LogicalResult checkSummed(Operation *op, Type element) {
  if (element.isInteger(1))
    return op->emitOpError() << "adds up numbers, not " << element;
  return success();
}

template <typename Op, typename Call>
LogicalResult lowerSum(Operation *op, Lowering &l, StringRef pending) {
  auto reduce = cast<Op>(op);
  FailureOr<int64_t> group = groupOf(op, reduce.getAxis());
  if (failed(group))
    return failure();
  SmallVector<int64_t> counts;
  for (Value operand : op->getOperands()) {
    if (failed(checkSummed(op, l.type(operand).getElementType())))
      return failure();
    counts.push_back(l.elements(operand));
  }
  SmallVector<Value> buffers = l.summed();
  l.create<Call>(buffers, counts, reduce.getAxis(), *group, analysis::nameOf(op), pending);
  return success();
}

struct AllReduce : KernelInterface::ExternalModel<AllReduce, par::AllReduceOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "sum"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<par::AllReduceOp, rt::AllReduceOp>(op, l, "");
  }
};

struct AllReduceMax : KernelInterface::ExternalModel<AllReduceMax, par::AllReduceMaxOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "max"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<par::AllReduceMaxOp, rt::AllReduceMaxOp>(op, l, "");
  }
};

/// From memory to other memory: nothing of an operand is overwritten.
template <typename Op, typename Call>
struct Move : KernelInterface::ExternalModel<Move<Op, Call>, Op> {
  StringRef resultName(Operation *op, unsigned) const {
    auto collective = dyn_cast<CollectiveInterface>(op);
    return collective && collective.getRow().to == partita_rt::Extent::Full ? "whole" : "part";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto move = cast<Op>(op);
    FailureOr<int64_t> group = groupOf(op, move.getAxis());
    if (failed(group))
      return failure();
    if (auto collective = dyn_cast<CollectiveInterface>(op);
        collective && collective.getRow().reduces &&
        failed(checkSummed(op, l.type(move.getValue()).getElementType())))
      return failure();
    auto [blocks, count] = move.getInterleaving();
    l.create<Call>(ValueRange(l.operand(0)), ValueRange(l.result(0)), ArrayRef(blocks),
                   ArrayRef(count), ArrayRef<int64_t>(0), move.getAxis(), *group,
                   analysis::nameOf(op), "");
    return success();
  }
};

/// The coordinates of a rank are the host's: the index is written once, where it is first needed.
struct FirstIndex : KernelInterface::ExternalModel<FirstIndex, par::FirstIndexOp> {
  StringRef resultName(Operation *, unsigned) const { return "first"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto mesh = par::MeshAttr::of(op);
    par::Layout layout = par::Layout::of(op->getResult(0).getType());
    SmallVector<int64_t> axes, sizes;
    for (const par::AxisSplit &split : layout.splits[0]) {
      FailureOr<int64_t> axis = groupOf(op, split.axis);
      if (failed(axis))
        return failure();
      axes.push_back(*axis);
      sizes.push_back(mesh.sizeOf(split.axis.getValue()));
    }
    l.create<rt::FirstIndexOp>(
        l.result(0), axes, sizes,
        llvm::divideCeil(cast<par::FirstIndexOp>(op).getSize(), layout.shape[0]));
    return success();
  }
};

struct AllReduceStart : KernelInterface::ExternalModel<AllReduceStart, par::AllReduceStartOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "sum"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<par::AllReduceStartOp, rt::AllReduceOp>(op, l, l.pendingOf(op));
  }
};

struct Poll : KernelInterface::ExternalModel<Poll, par::PollOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto poll = cast<par::PollOp>(op);
    FailureOr<int64_t> group = groupOf(op, poll.getAxis());
    if (failed(group))
      return failure();
    l.create<rt::PollOp>(poll.getAxis(), *group, poll.getBytes());
    return success();
  }
};

} // namespace

void rt::attachCollectives(MLIRContext *context) {
  par::AllReduceOp::attachInterface<AllReduce>(*context);
  par::AllReduceMaxOp::attachInterface<AllReduceMax>(*context);
  par::AllGatherOp::attachInterface<Move<par::AllGatherOp, rt::AllGatherOp>>(*context);
  par::ReduceScatterOp::attachInterface<Move<par::ReduceScatterOp, rt::ReduceScatterOp>>(*context);
  par::NarrowOp::attachInterface<Move<par::NarrowOp, rt::TakePartOp>>(*context);
  par::FirstIndexOp::attachInterface<FirstIndex>(*context);
  par::AllReduceStartOp::attachInterface<AllReduceStart>(*context);
  par::WaitOp::attachInterface<WaitModel<par::WaitOp>>(*context);
  par::PollOp::attachInterface<Poll>(*context);
}
